//! The derive macro of `polylogue-config`: `#[derive(Config)]`. It makes the description of a type and its reader; all else is
//! computed from the description.

use proc_macro::TokenStream;

mod alternatives;
mod attributes;
mod keys;

/// Makes a configuration type of a struct or an enum. See the documentation of `polylogue-config`.
///
/// On a struct, every field is a key; its documentation comment is required, because it is the text of the reference.
/// `#[key(...)]` takes `default = VALUE`, `none = "effect of its absence"` (required for an `Option`), `range = A..=B`,
/// `nonempty`, `unique`, `requires = "key"`, `excludes = "key"`, `secret`, `name = "key"`, `flatten`, `required` for a list or mapping that must be given, `skip` for a field that
/// no file has, and `as = Type` for a field that is written as another type.
/// `default` with `none` describes the default in words. A default of a field `At<T>` is written without its position.
///
/// `#[config(for = Type)]` makes it the notation of another type with the same fields or variants, which fields name with
/// `as`. `#[config(scope)]` makes it the scope of the names of scoped kinds in it. `#[config(shorthand = "key")]` lets the value of one key stand for the whole mapping; `#[config(alone = "key")]` names the key that a bare value probably belongs to, for the hint alone; it can be repeated; `#[config(name = "Name")]` sets the
/// name of the type in schema and reference, and `#[config(nonempty)]` requires a key.
///
/// On an enum, every variant is a word, or a mapping with one key if it holds a value. With `#[config(by_shape)]` the
/// variants differ by the shape of their values. With `#[when(key = value, noun = "a person")]` on variants, they are
/// mappings that are chosen by the value of a key; one variant without a key is the default: `#[when(noun = "an agent")]`.
/// A `hint` says what to do instead of giving it a key of another kind. Such an enum can be flattened into a struct.
#[proc_macro_derive(Config, attributes(config, key, when))]
pub fn config(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    let made = match &input.data {
        syn::Data::Struct(data) => keys::derive(&input, data),
        syn::Data::Enum(data) => alternatives::derive(&input, data),
        syn::Data::Union(_) => Err(syn::Error::new_spanned(&input, "a union cannot be a configuration type")),
    };
    made.unwrap_or_else(|error| error.to_compile_error()).into()
}
