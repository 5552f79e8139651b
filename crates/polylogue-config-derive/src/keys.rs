//! A struct as a mapping with fixed keys.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DataStruct, DeriveInput, Field, Fields, Ident, Result, Type};

use crate::attributes::{KeyOptions, TypeOptions, documentation};

/// A field and its options.
struct Key<'a> {
    field: &'a Ident,
    /// The configuration type: that of the field, or the one named by `as`.
    ty: Type,
    of_field: &'a Type,
    name: String,
    doc: String,
    options: KeyOptions,
}

pub(crate) fn derive(input: &DeriveInput, data: &DataStruct) -> Result<TokenStream> {
    if !input.generics.params.is_empty() {
        let message = "a configuration type cannot have type parameters";
        return Err(syn::Error::new_spanned(&input.generics, message));
    }
    let Fields::Named(fields) = &data.fields else {
        return Err(syn::Error::new_spanned(input, "a configuration type needs fields with names"));
    };
    let options = TypeOptions::of(&input.attrs)?;
    let keys = fields.named.iter().map(key).collect::<Result<Vec<_>>>()?;
    let (skipped, keys): (Vec<_>, Vec<_>) = keys.into_iter().partition(|key| key.options.skip);
    let skipped: Vec<&Ident> = skipped.iter().map(|key| key.field).collect();
    let has_more = keys.iter().any(|key| key.options.flatten);
    if let Some(name) =
        options.alone.iter().find(|name| !has_more && keys.iter().all(|key| key.name != **name))
    {
        return Err(syn::Error::new_spanned(input, format!("there is no key `{name}`, which `alone` names")));
    }
    Ok(implementation(input, &options, &keys, &skipped))
}

fn key(field: &Field) -> Result<Key<'_>> {
    let options = KeyOptions::of(&field.attrs)?;
    let ident = field.ident.as_ref().ok_or_else(|| syn::Error::new_spanned(field, "a key needs a name"))?;
    let name = options.name.clone().unwrap_or_else(|| ident.to_string().trim_start_matches("r#").to_owned());
    let doc = documentation(&field.attrs);
    let ty = options.adapter.clone().unwrap_or_else(|| field.ty.clone());
    let mut options = options;
    if let Some(default) = options.default.clone().filter(|_| is_called(&field.ty, "At")) {
        let of_field = &field.ty;
        options.default = Some(syn::parse_quote!(<#of_field as ::std::convert::From<_>>::from(#default)));
    }
    let wrong = |message: &str| Err(syn::Error::new_spanned(field, message));
    if options.flatten || options.skip {
        return Ok(Key { field: ident, ty, of_field: &field.ty, name: String::new(), doc, options });
    }
    if doc.is_empty() {
        return wrong("a key needs a documentation comment: it is the text of the reference");
    }
    if is_option(&ty) && options.default.is_some() {
        return wrong("a key with a default cannot be unset: remove the `Option`");
    }
    if is_option(&ty) && options.none.is_none() {
        return wrong("say what happens without this key: `#[key(none = \"...\")]`");
    }
    Ok(Key { field: ident, ty, of_field: &field.ty, name, doc, options })
}

fn is_option(ty: &Type) -> bool {
    is_called(ty, "Option")
}

fn is_called(ty: &Type, name: &str) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == name))
}

fn implementation(
    input: &DeriveInput,
    options: &TypeOptions,
    keys: &[Key<'_>],
    skipped: &[&Ident],
) -> TokenStream {
    let ident = &input.ident;
    let name = options.name.clone().unwrap_or_else(|| ident.to_string());
    let doc = documentation(&input.attrs);
    let constants: Vec<Ident> = (0..keys.len()).map(|index| format_ident!("KEY_{index}")).collect();
    let (described, of_keys) = (keys.iter().map(description), struct_of(options, &constants));
    let optional = keys.iter().map(is_optional);
    let read = keys.iter().zip(&constants).map(|(key, constant)| read_of(key, constant));
    let field = |value: fn(&Key<'_>) -> TokenStream| keys.iter().map(value).collect::<Vec<_>>();
    let (holes, absent) = (field(hole_of), field(absent_of));
    let written = keys.iter().map(write_of);
    let fields: Vec<&Ident> = keys.iter().map(|key| key.field).chain(skipped.iter().copied()).collect();
    let as_target = as_target(ident, options, &fields);
    let skipped = quote!(#(#skipped: ::std::default::Default::default(),)*);
    let open = options.scope.then(|| quote!(cx.names.open_scope();));
    let close = options.scope.then(|| quote!(cx.names.close_scope();));
    quote! {
        #[automatically_derived]
        const _: () = {
            use ::polylogue_config::derived as __config;
            #(const #constants: __config::Key = #described;)*
            const KEYS: __config::Struct = #of_keys;
            impl __config::Keys for #ident {
                fn from_fields(fields: &__config::Fields<'_>, cx: &mut __config::Cx<'_, '_>) -> Self {
                    #open
                    let value = Self { #(#read,)* #skipped };
                    #close
                    value
                }
                fn write_keys(&self, map: &mut __config::Map<::std::string::String, __config::Value>) {
                    #(#written)*
                }
            }
            impl __config::Config for #ident {
                const OPTIONAL: bool = true #(&& #optional)*;
                fn ty() -> &'static __config::Type {
                    const {
                        &__config::Type { name: #name, doc: #doc, kind: __config::Kind::Struct(&KEYS) }
                    }
                }
                fn read(node: &__config::Node, cx: &mut __config::Cx<'_, '_>) -> Self {
                    let fields = __config::Fields::open(node, <Self as __config::Config>::ty(), cx);
                    <Self as __config::Keys>::from_fields(&fields, cx)
                }
                fn hole() -> Self {
                    Self { #(#holes,)* #skipped }
                }
                fn absent() -> Self {
                    Self { #(#absent,)* #skipped }
                }
                fn missing(cx: &mut __config::Cx<'_, '_>) -> Self {
                    <Self as __config::Keys>::from_fields(&__config::Fields::hole(), cx)
                }
                fn write(&self) -> __config::Value {
                    let mut map = __config::Map::new();
                    __config::Keys::write_keys(self, &mut map);
                    __config::Value::Object(map)
                }
            }
            #as_target
        };
    }
}

/// The description of the mapping with the keys `constants`.
fn struct_of(options: &TypeOptions, constants: &[Ident]) -> TokenStream {
    let (shorthand, alone) = (option(options.shorthand.as_ref()), &options.alone);
    let nonempty = options.nonempty;
    quote! {
        __config::Struct {
            keys: &[#(#constants),*],
            shorthand: #shorthand,
            alone: &[#(#alone),*],
            nonempty: #nonempty,
        }
    }
}

/// The conversions of a notation to its target and back, field by field.
fn as_target(ident: &Ident, options: &TypeOptions, fields: &[&Ident]) -> TokenStream {
    let Some(target) = &options.target else { return TokenStream::new() };
    quote! {
        impl __config::As<#target> for #ident {
            fn into_value(self) -> #target {
                #target { #(#fields: self.#fields),* }
            }
            fn from_value(value: &#target) -> Self {
                Self { #(#fields: ::std::clone::Clone::clone(&value.#fields)),* }
            }
        }
    }
}

fn option(text: Option<&String>) -> TokenStream {
    match text {
        Some(text) => quote!(::std::option::Option::Some(#text)),
        None => quote!(::std::option::Option::None),
    }
}

/// The description of a key.
fn description(key: &Key<'_>) -> TokenStream {
    let Key { ty, of_field, name, doc, options, .. } = key;
    let optional = is_optional(key);
    let written = write_value(key, &quote!(&value));
    let default = match &options.default {
        // A default that is described in words is not shown.
        Some(_) if options.none.is_some() => quote!(::std::option::Option::None),
        Some(value) => quote! {
            ::std::option::Option::Some(|| {
                let value: #of_field = #value;
                #written
            })
        },
        None => quote!(::std::option::Option::None),
    };
    let none = options.none.clone().unwrap_or_default();
    let (limits, secret) = (options.limits(), options.secret);
    let (requires, excludes) = (&options.requires, &options.excludes);
    quote! {
        __config::Key {
            name: #name,
            doc: #doc,
            ty: <#ty as __config::Config>::ty,
            required: !(#optional),
            default: #default,
            none: #none,
            limits: #limits,
            requires: &[#(#requires),*],
            excludes: &[#(#excludes),*],
            secret: #secret,
        }
    }
}

fn is_optional(key: &Key<'_>) -> TokenStream {
    let ty = &key.ty;
    match &key.options.default {
        _ if key.options.required => quote!(false),
        Some(_) => quote!(true),
        None => quote!(<#ty as __config::Config>::OPTIONAL),
    }
}

/// A value of the configuration type as one of the field.
fn adapted(key: &Key<'_>, value: &TokenStream) -> TokenStream {
    let Key { ty, of_field, options, .. } = key;
    match options.adapter {
        Some(_) => quote!(<#ty as __config::As<#of_field>>::into_value(#value)),
        None => value.clone(),
    }
}

/// The field `value`, a reference, as a file has it.
fn write_value(key: &Key<'_>, value: &TokenStream) -> TokenStream {
    let Key { ty, of_field, options, .. } = key;
    match options.adapter {
        Some(_) => {
            quote!(__config::Config::write(&<#ty as __config::As<#of_field>>::from_value(#value)))
        }
        None => quote!(<#ty as __config::Config>::write(#value)),
    }
}

fn read_of(key: &Key<'_>, constant: &Ident) -> TokenStream {
    let Key { field, ty, of_field, options, .. } = key;
    if options.flatten {
        return quote!(#field: <#ty as __config::Keys>::from_fields(fields, cx));
    }
    let value = match &options.default {
        Some(value) => {
            let given = adapted(key, &quote!(given));
            return quote!(#field: match fields.given::<#ty>(&#constant, cx) {
                ::std::option::Option::Some(given) => #given,
                ::std::option::Option::None => {
                    let default: #of_field = #value;
                    default
                }
            });
        }
        None if options.required => quote!(fields.required::<#ty>(&#constant, cx)),
        None => quote! {
            if <#ty as __config::Config>::OPTIONAL {
                fields.given(&#constant, cx).unwrap_or_else(<#ty as __config::Config>::absent)
            } else {
                fields.required::<#ty>(&#constant, cx)
            }
        },
    };
    let value = adapted(key, &quote!({ #value }));
    quote!(#field: #value)
}

fn hole_of(key: &Key<'_>) -> TokenStream {
    let ty = &key.ty;
    without(key, &quote!(<#ty as __config::Config>::hole()))
}

fn absent_of(key: &Key<'_>) -> TokenStream {
    let ty = &key.ty;
    without(key, &quote!(<#ty as __config::Config>::absent()))
}

/// The field without a value in the file: its default, or `otherwise`.
fn without(key: &Key<'_>, otherwise: &TokenStream) -> TokenStream {
    let field = key.field;
    let value = match &key.options.default {
        Some(value) => quote!(#value),
        None => adapted(key, otherwise),
    };
    quote!(#field: #value)
}

fn write_of(key: &Key<'_>) -> TokenStream {
    let Key { field, ty, of_field, name, options, .. } = key;
    if options.flatten {
        return quote!(__config::Keys::write_keys(&self.#field, map););
    }
    let skipped = match &options.default {
        Some(value) => {
            let default = write_value(key, &quote!(&default));
            quote!({ let default: #of_field = #value; written == #default })
        }
        None if options.required => quote!(false),
        None => quote!({
            <#ty as __config::Config>::OPTIONAL
                && written == __config::Config::write(&<#ty as __config::Config>::absent())
        }),
    };
    let written = write_value(key, &quote!(&self.#field));
    quote! {
        let written = #written;
        if !(#skipped) {
            map.insert(#name.to_owned(), written);
        }
    }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
