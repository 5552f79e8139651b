//! A struct as a mapping with fixed keys.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DataStruct, DeriveInput, Field, Fields, Ident, Result, Type};

use crate::attributes::{KeyOptions, TypeOptions, documentation};

/// A field and its options.
struct Key<'a> {
    field: &'a Ident,
    ty: &'a Type,
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
    Ok(implementation(input, &options, &keys))
}

fn key(field: &Field) -> Result<Key<'_>> {
    let options = KeyOptions::of(&field.attrs)?;
    let ident = field.ident.as_ref().ok_or_else(|| syn::Error::new_spanned(field, "a key needs a name"))?;
    let name = options.name.clone().unwrap_or_else(|| ident.to_string().trim_start_matches("r#").to_owned());
    let doc = documentation(&field.attrs);
    let wrong = |message: &str| Err(syn::Error::new_spanned(field, message));
    if options.flatten {
        return Ok(Key { field: ident, ty: &field.ty, name: String::new(), doc, options });
    }
    if doc.is_empty() {
        return wrong("a key needs a documentation comment: it is the text of the reference");
    }
    if is_option(&field.ty) && options.default.is_some() {
        return wrong("a key with a default cannot be unset: remove the `Option`");
    }
    if is_option(&field.ty) && options.none.is_none() {
        return wrong("say what happens without this key: `#[key(none = \"...\")]`");
    }
    Ok(Key { field: ident, ty: &field.ty, name, doc, options })
}

fn is_option(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option"))
}

fn implementation(input: &DeriveInput, options: &TypeOptions, keys: &[Key<'_>]) -> TokenStream {
    let ident = &input.ident;
    let name = options.name.clone().unwrap_or_else(|| ident.to_string());
    let doc = documentation(&input.attrs);
    let shorthand = option(options.shorthand.as_ref());
    let constants: Vec<Ident> = (0..keys.len()).map(|index| format_ident!("KEY_{index}")).collect();
    let described = keys.iter().map(description);
    let optional = keys.iter().map(is_optional);
    let read = keys.iter().zip(&constants).map(|(key, constant)| read_of(key, constant));
    let field = |value: fn(&Key<'_>) -> TokenStream| keys.iter().map(value).collect::<Vec<_>>();
    let (holes, absent) = (field(hole_of), field(absent_of));
    let written = keys.iter().map(write_of);
    quote! {
        #[automatically_derived]
        const _: () = {
            use ::polylogue_config::derived as __config;
            #(const #constants: __config::Key = #described;)*
            impl __config::Keys for #ident {
                const KEYS: __config::Struct =
                    __config::Struct { keys: &[#(#constants),*], shorthand: #shorthand };
                fn from_fields(fields: &__config::Fields<'_>, cx: &mut __config::Cx<'_, '_>) -> Self {
                    Self { #(#read),* }
                }
                fn write_keys(&self, map: &mut __config::Map<::std::string::String, __config::Value>) {
                    #(#written)*
                }
            }
            impl __config::Config for #ident {
                const OPTIONAL: bool = true #(&& #optional)*;
                fn ty() -> &'static __config::Type {
                    const {
                        &__config::Type {
                            name: #name,
                            doc: #doc,
                            kind: __config::Kind::Struct(&<#ident as __config::Keys>::KEYS),
                        }
                    }
                }
                fn read(node: &__config::Node, cx: &mut __config::Cx<'_, '_>) -> Self {
                    let keys = &<Self as __config::Keys>::KEYS;
                    let fields = __config::Fields::open(node, <Self as __config::Config>::ty(), keys, cx);
                    <Self as __config::Keys>::from_fields(&fields, cx)
                }
                fn hole() -> Self {
                    Self { #(#holes),* }
                }
                fn absent() -> Self {
                    Self { #(#absent),* }
                }
                fn write(&self) -> __config::Value {
                    let mut map = __config::Map::new();
                    __config::Keys::write_keys(self, &mut map);
                    __config::Value::Object(map)
                }
            }
        };
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
    let Key { ty, name, doc, options, .. } = key;
    let optional = is_optional(key);
    let default = match &options.default {
        Some(value) => quote! {
            ::std::option::Option::Some(|| <#ty as __config::Config>::write(&(#value)))
        },
        None => quote!(::std::option::Option::None),
    };
    let none = options.none.clone().unwrap_or_default();
    let range = match &options.range {
        Some((least, most)) => quote!(::std::option::Option::Some((#least as f64, #most as f64))),
        None => quote!(::std::option::Option::None),
    };
    let (nonempty, unique, secret) = (options.nonempty, options.unique, options.secret);
    let (requires, excludes) = (&options.requires, &options.excludes);
    quote! {
        __config::Key {
            name: #name,
            doc: #doc,
            ty: <#ty as __config::Config>::ty,
            required: !(#optional),
            default: #default,
            none: #none,
            limits: __config::Limits { range: #range, nonempty: #nonempty, unique: #unique },
            requires: &[#(#requires),*],
            excludes: &[#(#excludes),*],
            secret: #secret,
        }
    }
}

fn is_optional(key: &Key<'_>) -> TokenStream {
    let ty = key.ty;
    match &key.options.default {
        Some(_) => quote!(true),
        None => quote!(<#ty as __config::Config>::OPTIONAL),
    }
}

fn read_of(key: &Key<'_>, constant: &Ident) -> TokenStream {
    let Key { field, ty, options, .. } = key;
    if options.flatten {
        return quote!(#field: <#ty as __config::Keys>::from_fields(fields, cx));
    }
    let value = match &options.default {
        Some(value) => quote!(fields.get(&#constant, cx, || -> #ty { #value })),
        None => quote! {
            if <#ty as __config::Config>::OPTIONAL {
                fields.get(&#constant, cx, <#ty as __config::Config>::absent)
            } else {
                fields.required(&#constant, cx)
            }
        },
    };
    quote!(#field: #value)
}

fn hole_of(key: &Key<'_>) -> TokenStream {
    let Key { field, ty, .. } = key;
    match &key.options.default {
        Some(value) => quote!(#field: #value),
        None => quote!(#field: <#ty as __config::Config>::hole()),
    }
}

fn absent_of(key: &Key<'_>) -> TokenStream {
    let Key { field, ty, .. } = key;
    match &key.options.default {
        Some(value) => quote!(#field: #value),
        None => quote!(#field: <#ty as __config::Config>::absent()),
    }
}

fn write_of(key: &Key<'_>) -> TokenStream {
    let Key { field, ty, name, options, .. } = key;
    if options.flatten {
        return quote!(__config::Keys::write_keys(&self.#field, map););
    }
    let skipped = match &options.default {
        Some(value) => quote!(written == <#ty as __config::Config>::write(&(#value))),
        None => quote!(__config::Config::is_absent(&self.#field)),
    };
    quote! {
        let written = __config::Config::write(&self.#field);
        if !(#skipped) {
            map.insert(#name.to_owned(), written);
        }
    }
}
