//! The attributes of Polylogue. Their documentation, with examples, is at `polylogue::tool` and `polylogue::toolkit`.

mod arguments;
mod describe;
mod function;
mod options;
mod toolkit;

use proc_macro::TokenStream;
use quote::quote;

/// Turns a function into a tool. See `polylogue::tool`.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expanded(function::expand(attribute.into(), item.into()))
}

/// Turns the methods of a type into tools. See `polylogue::toolkit`.
#[proc_macro_attribute]
pub fn toolkit(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expanded(toolkit::expand(attribute.into(), item.into()))
}

fn expanded(tokens: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    let tokens = tokens.unwrap_or_else(|error| {
        let errors = error.into_compile_error();
        quote! { #errors }
    });
    tokens.into()
}
