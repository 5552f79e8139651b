//! The options of `#[tool(...)]`.

use proc_macro2::TokenStream;
use syn::parse::Parser;
use syn::{Attribute, LitStr, Result};

/// The options of `#[tool(...)]`.
#[derive(Default)]
pub(crate) struct Options {
    /// The name of the tool. Default: the name of the function.
    pub(crate) name: Option<LitStr>,
    /// The description for models. Default: the doc comment.
    pub(crate) description: Option<LitStr>,
    pub(crate) repeatable: bool,
    pub(crate) ends_turn: bool,
}

impl Options {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| {
            if meta.path.is_ident("name") {
                options.name = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("description") {
                options.description = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("repeatable") {
                options.repeatable = true;
            } else if meta.path.is_ident("ends_turn") {
                options.ends_turn = true;
            } else {
                return Err(meta.error("a tool has `name`, `description`, `repeatable` and `ends_turn`"));
            }
            Ok(())
        });
        parser.parse2(tokens)?;
        Ok(options)
    }

    /// The options of a method's attribute `#[tool]` or `#[tool(...)]`.
    pub(crate) fn of(attribute: &Attribute) -> Result<Self> {
        match &attribute.meta {
            syn::Meta::Path(_) => Ok(Self::default()),
            syn::Meta::List(list) => Self::parse(list.tokens.clone()),
            syn::Meta::NameValue(meta) => {
                Err(syn::Error::new_spanned(meta, "write `#[tool]` or `#[tool(...)]`"))
            }
        }
    }
}
