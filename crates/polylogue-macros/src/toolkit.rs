//! `#[toolkit]`: turns methods of a type into tools that share a value of it.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::Parser;
use syn::{Attribute, Error, FnArg, ImplItem, ImplItemFn, ItemImpl, LitStr, Result};

use crate::function::{Parts, own_name};
use crate::options::Options;

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let prefix = prefix(attribute)?;
    let mut block: ItemImpl = syn::parse2(item)?;
    if let Some((_, path, _)) = &block.trait_ {
        return Err(Error::new_spanned(
            path,
            "the tools of a toolkit must be methods of the type, not of a trait",
        ));
    }
    if !block.generics.params.is_empty() {
        return Err(Error::new_spanned(&block.generics, "a toolkit has no generic parameters"));
    }
    let (kind, mut tools) = (block.self_ty.clone(), Vec::new());
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item
            && let Some(options) = options(method)?
        {
            tools.push(tool(&kind, &prefix, options, method)?);
        }
    }
    if tools.is_empty() {
        return Err(Error::new_spanned(&kind, "no method of this toolkit has the attribute `#[tool]`"));
    }
    Ok(quote! {
        #block

        impl #kind {
            /// Returns the tools of this toolkit. They share it.
            #[must_use]
            pub fn tools(self) -> ::std::vec::Vec<::polylogue::kernel::tool::AnyTool> {
                let kit = ::std::sync::Arc::new(self);
                ::std::vec![#(#tools),*]
            }
        }
    })
}

/// The prefix of the names of all tools.
fn prefix(attribute: TokenStream) -> Result<String> {
    let mut prefix = String::new();
    let parser = syn::meta::parser(|meta| {
        if !meta.path.is_ident("prefix") {
            return Err(meta.error("a toolkit has a `prefix`, and nothing else"));
        }
        prefix = meta.value()?.parse::<LitStr>()?.value();
        Ok(())
    });
    parser.parse2(attribute)?;
    Ok(prefix)
}

/// The options of a method's attribute `#[tool]`, if it has one. Removes the attribute.
fn options(method: &mut ImplItemFn) -> Result<Option<Options>> {
    let is_tool =
        |attribute: &Attribute| attribute.path().segments.last().is_some_and(|last| last.ident == "tool");
    let Some(at) = method.attrs.iter().position(is_tool) else { return Ok(None) };
    Options::of(&method.attrs.remove(at)).map(Some)
}

/// The expression of the tool that calls `method` of `kit`.
fn tool(kind: &syn::Type, prefix: &str, options: Options, method: &mut ImplItemFn) -> Result<TokenStream> {
    match method.sig.inputs.first() {
        Some(FnArg::Receiver(receiver)) if receiver.reference.is_some() && receiver.mutability.is_none() => {}
        Some(FnArg::Receiver(receiver)) => {
            let message = "tools are called at the same time: take `&self`";
            return Err(Error::new_spanned(receiver, message));
        }
        _ => return Err(Error::new_spanned(&method.sig.ident, "a tool of a toolkit takes `&self`")),
    }
    let span = method.sig.ident.span();
    let own = options.name.as_ref().map_or_else(|| own_name(&method.sig), LitStr::value);
    let name = Some(LitStr::new(&format!("{prefix}{own}"), span));
    let parts = Parts::take(&Options { name, ..options }, &method.attrs, &mut method.sig)?;
    let name = &method.sig.ident;
    let handle = format_ident!("Tool");
    let implementation = parts.implementation(&quote! { #handle }, &quote! { self.0.#name });
    Ok(quote! {{
        struct #handle(::std::sync::Arc<#kind>);
        #implementation
        ::polylogue::kernel::tool::AnyTool::new(#handle(::std::sync::Arc::clone(&kit)))
    }})
}
