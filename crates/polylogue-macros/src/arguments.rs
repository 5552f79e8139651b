//! The parameters of a function as the arguments of a tool.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::punctuated::Punctuated;
use syn::token::Comma;
use syn::{Attribute, Error, Expr, FnArg, Ident, Meta, Pat, PatType, Result, Type};

/// The parameters of a function.
#[derive(Default)]
pub(crate) struct Arguments {
    arguments: Vec<Argument>,
    /// The arguments of the function call, in order: names of arguments, and `cx`.
    pub(crate) passed: Vec<Ident>,
}

struct Argument {
    name: Ident,
    kind: Type,
    /// Its doc comments and attributes of `serde` and `schemars`.
    attributes: Vec<Attribute>,
    default: Option<Expr>,
}

impl Arguments {
    /// Reads the parameters, and removes the attributes that only tools have.
    pub(crate) fn take(inputs: &mut Punctuated<FnArg, Comma>) -> Result<Self> {
        let mut taken = Self::default();
        for input in inputs {
            let FnArg::Typed(input) = input else { continue };
            if is_context(&input.ty) {
                taken.passed.push(format_ident!("cx"));
                continue;
            }
            let argument = Argument::take(input)?;
            taken.passed.push(argument.name.clone());
            taken.arguments.push(argument);
        }
        Ok(taken)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Ident> {
        self.arguments.iter().map(|argument| &argument.name)
    }

    /// The struct `Args` that they are deserialized as, and functions for their defaults.
    pub(crate) fn definition(&self) -> TokenStream {
        let fields = self.arguments.iter().map(Argument::field);
        let defaults = self.arguments.iter().filter_map(Argument::default_function);
        quote! {
            #[derive(::polylogue::tools::tool::private::serde::Deserialize, ::polylogue::tools::tool::private::schemars::JsonSchema)]
            #[serde(crate = "::polylogue::tools::tool::private::serde", deny_unknown_fields)]
            #[schemars(crate = "::polylogue::tools::tool::private::schemars")]
            struct Args { #(#fields),* }
            #(#defaults)*
        }
    }
}

impl Argument {
    fn take(input: &mut PatType) -> Result<Self> {
        let Pat::Ident(pattern) = &*input.pat else {
            return Err(Error::new_spanned(&input.pat, "an argument of a tool needs a name"));
        };
        if let Type::Reference(reference) = &*input.ty {
            let message =
                "an argument of a tool is owned: it comes out of JSON. Take a `String` for a `&str`";
            return Err(Error::new_spanned(reference, message));
        }
        let (name, mut default) = (pattern.ident.clone(), None);
        let mut attributes = Vec::new();
        for attribute in std::mem::take(&mut input.attrs) {
            let path = attribute.path();
            if path.is_ident("default") {
                default = Some(default_of(&attribute)?);
            } else if ["doc", "serde", "schemars"].iter().any(|known| path.is_ident(known)) {
                attributes.push(attribute);
            } else {
                input.attrs.push(attribute);
            }
        }
        Ok(Self { name, kind: (*input.ty).clone(), attributes, default })
    }

    fn field(&self) -> TokenStream {
        let Self { name, kind, attributes, default } = self;
        let default = default.as_ref().map(|_| {
            let function = default_name(name).to_string();
            quote! { #[serde(default = #function)] }
        });
        quote! { #(#attributes)* #default #name: #kind }
    }

    fn default_function(&self) -> Option<TokenStream> {
        let Self { name, kind, default, .. } = self;
        let (default, function) = (default.as_ref()?, default_name(name));
        // A literal is converted: `#[default("USD")] to: String`.
        let value = match default {
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
                quote! { ::core::convert::Into::into(#text) }
            }
            other => quote! { #other },
        };
        Some(quote! { fn #function() -> #kind { #value } })
    }
}

fn default_name(argument: &Ident) -> Ident {
    format_ident!("default_{argument}")
}

fn default_of(attribute: &Attribute) -> Result<Expr> {
    match &attribute.meta {
        Meta::List(list) => list.parse_args(),
        _ => Err(Error::new_spanned(attribute, "write the value in brackets: `#[default(10)]`")),
    }
}

/// Whether this is a reference to a `ToolCx`: not an argument, but the context of the call.
fn is_context(kind: &Type) -> bool {
    let Type::Reference(reference) = kind else { return false };
    let Type::Path(path) = &*reference.elem else { return false };
    path.path.segments.last().is_some_and(|segment| segment.ident == "ToolCx")
}
