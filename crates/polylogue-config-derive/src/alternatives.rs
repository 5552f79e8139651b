//! An enum as alternatives: words and one-key mappings, kinds of a mapping, or shapes.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataEnum, DeriveInput, Fields, Ident, Lit, LitStr, Result, Type};

use crate::attributes::{KeyOptions, TypeOptions, documentation, snake_case};

/// A variant and its options.
struct Variant<'a> {
    ident: &'a Ident,
    name: String,
    doc: String,
    /// The type of the value that it holds.
    content: Option<&'a Type>,
    options: KeyOptions,
    when: Option<When>,
}

impl Variant<'_> {
    /// Refuses limits where they would have no effect.
    fn check_limits(&self, is_chosen_by_value: bool) -> Result<()> {
        let KeyOptions { range, nonempty, unique, adapter, .. } = &self.options;
        let is_limited = range.is_some() || *nonempty || *unique;
        let message = match (self.content, is_chosen_by_value) {
            (None, _) if is_limited || adapter.is_some() => "a word has no value that could be limited",
            (Some(_), true) if is_limited => "variants that are chosen by their value have no limits",
            _ => return Ok(()),
        };
        Err(syn::Error::new_spanned(self.ident, message))
    }

    /// The configuration type of the value that it holds.
    fn ty(&self) -> Option<&Type> {
        self.options.adapter.as_ref().or(self.content)
    }

    /// A value of the configuration type as one that it holds.
    fn adapted(&self, value: &TokenStream) -> TokenStream {
        match (&self.options.adapter, self.content) {
            (Some(ty), Some(content)) => quote!(<#ty as __config::As<#content>>::into_value(#value)),
            _ => value.clone(),
        }
    }

    /// What it holds, a reference, as a file has it.
    fn written(&self, value: &TokenStream) -> TokenStream {
        match (&self.options.adapter, self.content) {
            (Some(ty), Some(content)) => {
                quote!(__config::Config::write(&<#ty as __config::As<#content>>::from_value(#value)))
            }
            _ => quote!(__config::Config::write(#value)),
        }
    }
}

/// What chooses a kind: `#[when(...)]`.
struct When {
    noun: String,
    hint: String,
    keys: Vec<(String, Lit)>,
}

pub(crate) fn derive(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    if !input.generics.params.is_empty() {
        let message = "a configuration type cannot have type parameters";
        return Err(syn::Error::new_spanned(&input.generics, message));
    }
    let options = TypeOptions::of(&input.attrs)?;
    if !options.alone.is_empty() {
        return Err(syn::Error::new_spanned(input, "`alone` is for a struct, whose keys it names"));
    }
    let variants = data.variants.iter().map(variant).collect::<Result<Vec<_>>>()?;
    let is_kinds = variants.iter().any(|one| one.when.is_some());
    variants.iter().try_for_each(|one| one.check_limits(options.by_shape || is_kinds))?;
    let Some(first) = variants.first() else {
        return Err(syn::Error::new_spanned(input, "an enum needs a variant"));
    };
    let mut names: Vec<&str> = variants.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| matches!(pair, [one, other] if one == other)) {
        return Err(syn::Error::new_spanned(input, "two variants have the same name"));
    }
    let hole = hole_of(first);
    let mut further = as_target(&input.ident, &options, &variants);
    if is_kinds {
        further.extend(keys_of_kinds(&input.ident, &variants));
    }
    let (kind, read, write) = if options.by_shape {
        shapes(input, &variants)?
    } else if is_kinds {
        kinds(input, &variants)?
    } else {
        choice(&variants)
    };
    Ok(implementation(input, &options, &hole, &kind, &read, &write, &further))
}

fn variant(variant: &syn::Variant) -> Result<Variant<'_>> {
    let content = match &variant.fields {
        Fields::Unit => None,
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => fields.unnamed.first().map(|field| &field.ty),
        other => return Err(syn::Error::new_spanned(other, "a variant holds nothing or one value")),
    };
    let (of_type, options) = (TypeOptions::of(&variant.attrs)?, KeyOptions::of(&variant.attrs)?);
    if options.name.is_some() {
        let message = "a variant is named by `#[config(name = \"...\")]`";
        return Err(syn::Error::new_spanned(variant, message));
    }
    if of_type.has_more_than_name() || options.is_of_field() {
        let message = "a variant takes only `#[config(name)]` and `#[key(as, range, nonempty, unique)]`";
        return Err(syn::Error::new_spanned(variant, message));
    }
    let ident = &variant.ident;
    let name = of_type.name.unwrap_or_else(|| snake_case(&ident.to_string()));
    let doc = documentation(&variant.attrs);
    Ok(Variant { ident, name, doc, content, options, when: when(variant)? })
}

fn when(variant: &syn::Variant) -> Result<Option<When>> {
    let Some(attribute) = variant.attrs.iter().find(|one| one.path().is_ident("when")) else {
        return Ok(None);
    };
    let mut when = When { noun: String::new(), hint: String::new(), keys: Vec::new() };
    attribute.parse_nested_meta(|meta| {
        if meta.path.is_ident("noun") {
            when.noun = meta.value()?.parse::<LitStr>()?.value();
            return Ok(());
        }
        if meta.path.is_ident("hint") {
            when.hint = meta.value()?.parse::<LitStr>()?.value();
            return Ok(());
        }
        let key = meta.path.require_ident()?.to_string();
        match meta.value()?.parse::<Lit>()? {
            literal @ (Lit::Bool(_) | Lit::Str(_)) => when.keys.push((key, literal)),
            other => return Err(syn::Error::new_spanned(other, "expected `true`, `false` or a text")),
        }
        Ok(())
    })?;
    if when.noun.is_empty() {
        return Err(syn::Error::new_spanned(attribute, "say what it is called: `noun = \"a person\"`"));
    }
    Ok(Some(when))
}

fn hole_of(variant: &Variant<'_>) -> TokenStream {
    let ident = variant.ident;
    match variant.ty() {
        Some(ty) => {
            let hole = variant.adapted(&quote!(<#ty as __config::Config>::hole()));
            quote!(Self::#ident(#hole))
        }
        None => quote!(Self::#ident),
    }
}

/// Words and one-key mappings: the kind, the body of `read` and the body of `write`.
fn choice(variants: &[Variant<'_>]) -> (TokenStream, TokenStream, TokenStream) {
    let described = variants.iter().map(|one| {
        let Variant { name, doc, options, .. } = one;
        let limits = options.limits();
        let ty = match one.ty() {
            Some(ty) => quote!(::std::option::Option::Some(<#ty as __config::Config>::ty)),
            None => quote!(::std::option::Option::None),
        };
        quote!(__config::Variant { name: #name, doc: #doc, ty: #ty, limits: #limits })
    });
    let arms = variants.iter().enumerate().map(|(index, one)| {
        let ident = one.ident;
        match one.ty() {
            Some(ty) => {
                let value = one.adapted(&quote!(chosen.read::<#ty>(cx)));
                quote!(::std::option::Option::Some(chosen) if chosen.index == #index => Self::#ident(#value),)
            }
            None => quote!(::std::option::Option::Some(chosen) if chosen.index == #index => Self::#ident,),
        }
    });
    let written = variants.iter().map(|one| {
        let Variant { ident, name, content, .. } = one;
        let value = one.written(&quote!(content));
        match content {
            Some(_) => quote! {
                Self::#ident(content) => match #value {
                    __config::Value::Object(map) if map.is_empty() => __config::Value::from(#name),
                    written => {
                        let mut map = __config::Map::new();
                        map.insert(#name.to_owned(), written);
                        __config::Value::Object(map)
                    }
                },
            },
            None => quote!(Self::#ident => __config::Value::from(#name),),
        }
    });
    (
        quote!(__config::Kind::Choice(&[#(#described),*])),
        quote! {
            let ty = <Self as __config::Config>::ty();
            let __config::Kind::Choice(variants) = &ty.kind else { return Self::hole() };
            match __config::choose(node, ty, variants, cx) {
                #(#arms)*
                _ => Self::hole(),
            }
        },
        quote!(match self { #(#written)* }),
    )
}

/// The type of a variant that must hold one.
fn content<'v>(input: &DeriveInput, variant: &'v Variant<'_>) -> Result<&'v Type> {
    let message = "every variant of this enum must hold a value";
    variant.ty().ok_or_else(|| syn::Error::new_spanned(input, message))
}

/// Kinds of a mapping.
fn kinds(input: &DeriveInput, variants: &[Variant<'_>]) -> Result<(TokenStream, TokenStream, TokenStream)> {
    let mut described = Vec::new();
    for one in variants {
        let ty = content(input, one)?;
        let Some(When { noun, hint, keys }) = &one.when else {
            return Err(syn::Error::new_spanned(one.ident, "say when it is this: `#[when(...)]`"));
        };
        let keys = keys.iter().map(|(key, literal)| match literal {
            Lit::Bool(value) => quote!((#key, __config::Literal::Bool(#value))),
            other => quote!((#key, __config::Literal::Text(#other))),
        });
        described.push(quote! {
            __config::KindOf { noun: #noun, hint: #hint, when: &[#(#keys),*], ty: <#ty as __config::Config>::ty }
        });
    }
    Ok((
        quote!(__config::Kind::Kinds(&[#(#described),*])),
        quote! {
            let fields = __config::Fields::open(node, <Self as __config::Config>::ty(), cx);
            <Self as __config::Keys>::from_fields(&fields, cx)
        },
        quote! {
            let mut map = __config::Map::new();
            __config::Keys::write_keys(self, &mut map);
            __config::Value::Object(map)
        },
    ))
}

/// The keys of kinds, which a struct can have flattened among its own.
fn keys_of_kinds(ident: &Ident, variants: &[Variant<'_>]) -> TokenStream {
    let read = variants.iter().enumerate().map(|(index, one)| {
        let (ident, ty) = (one.ident, one.ty());
        let value = one.adapted(&quote!(<#ty as __config::Keys>::from_fields(fields, cx)));
        quote!(::std::option::Option::Some(#index) => Self::#ident(#value),)
    });
    let written = variants.iter().map(|one| {
        let ident = one.ident;
        quote!(Self::#ident(content) => __config::Keys::write_keys(content, map),)
    });
    quote! {
        impl __config::Keys for #ident {
            fn from_fields(fields: &__config::Fields<'_>, cx: &mut __config::Cx<'_, '_>) -> Self {
                let __config::Kind::Kinds(kinds) = &<Self as __config::Config>::ty().kind else {
                    return <Self as __config::Config>::hole();
                };
                match fields.kind(kinds, cx) {
                    #(#read)*
                    _ => <Self as __config::Config>::hole(),
                }
            }
            fn write_keys(&self, map: &mut __config::Map<::std::string::String, __config::Value>) {
                match self { #(#written)* }
            }
        }
    }
}

/// The conversions of a notation to its target and back, variant by variant.
fn as_target(ident: &Ident, options: &TypeOptions, variants: &[Variant<'_>]) -> TokenStream {
    let Some(target) = &options.target else { return TokenStream::new() };
    let arms = |from: TokenStream, to: TokenStream, clone: bool| {
        let arms = variants.iter().map(move |one| {
            let variant = one.ident;
            let content = if clone { quote!(::std::clone::Clone::clone(content)) } else { quote!(content) };
            match one.content {
                Some(_) => quote!(#from::#variant(content) => #to::#variant(#content),),
                None => quote!(#from::#variant => #to::#variant,),
            }
        });
        quote!(#(#arms)*)
    };
    let (there, back) =
        (arms(quote!(Self), quote!(#target), false), arms(quote!(#target), quote!(Self), true));
    quote! {
        impl __config::As<#target> for #ident {
            fn into_value(self) -> #target {
                match self { #there }
            }
            // The target can have variants that no file has.
            #[allow(unreachable_patterns)]
            fn from_value(value: &#target) -> Self {
                match value {
                    #back
                    _ => <Self as __config::Config>::hole(),
                }
            }
        }
    }
}

/// Types that differ in shape.
fn shapes(input: &DeriveInput, variants: &[Variant<'_>]) -> Result<(TokenStream, TokenStream, TokenStream)> {
    let types = variants.iter().map(|one| content(input, one)).collect::<Result<Vec<_>>>()?;
    let arms = read_arms(variants);
    Ok((
        quote!(__config::Kind::Shapes(&[#(<#types as __config::Config>::ty),*])),
        quote! {
            let ty = <Self as __config::Config>::ty();
            let __config::Kind::Shapes(shapes) = &ty.kind else { return Self::hole() };
            match __config::by_shape(node, ty, shapes, cx) {
                #(#arms)*
                _ => Self::hole(),
            }
        },
        write_content(variants),
    ))
}

fn read_arms(variants: &[Variant<'_>]) -> Vec<TokenStream> {
    let arm = |(index, one): (usize, &Variant<'_>)| {
        let (ident, ty) = (one.ident, one.ty());
        let value = one.adapted(&quote!(<#ty as __config::Config>::read(node, cx)));
        quote!(::std::option::Option::Some(#index) => Self::#ident(#value),)
    };
    variants.iter().enumerate().map(arm).collect()
}

fn write_content(variants: &[Variant<'_>]) -> TokenStream {
    let arms = variants.iter().map(|one| {
        let (ident, written) = (one.ident, one.written(&quote!(content)));
        quote!(Self::#ident(content) => #written,)
    });
    quote!(match self { #(#arms)* })
}

fn implementation(
    input: &DeriveInput,
    options: &TypeOptions,
    hole: &TokenStream,
    kind: &TokenStream,
    read: &TokenStream,
    write: &TokenStream,
    further: &TokenStream,
) -> TokenStream {
    let ident = &input.ident;
    let name = options.name.clone().unwrap_or_else(|| ident.to_string());
    let doc = documentation(&input.attrs);
    quote! {
        #[automatically_derived]
        const _: () = {
            use ::polylogue_config::derived as __config;
            impl __config::Config for #ident {
                fn ty() -> &'static __config::Type {
                    const { &__config::Type { name: #name, doc: #doc, kind: #kind } }
                }
                fn read(node: &__config::Node, cx: &mut __config::Cx<'_, '_>) -> Self {
                    #read
                }
                fn hole() -> Self {
                    #hole
                }
                fn write(&self) -> __config::Value {
                    #write
                }
            }
            #further
        };
    }
}

#[cfg(test)]
#[path = "alternatives_tests.rs"]
mod tests;
