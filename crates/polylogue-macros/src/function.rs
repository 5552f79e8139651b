//! `#[tool]`: turns a function into a value of a type with its name, which is a tool.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt as _;
use syn::{Attribute, Error, FnArg, Ident, ItemFn, Result, ReturnType, Signature, Type};

use crate::arguments::Arguments;
use crate::describe::description;
use crate::options::Options;

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = Options::parse(attribute)?;
    let mut function: ItemFn = syn::parse2(item)?;
    if let Some(FnArg::Receiver(receiver)) = function.sig.inputs.first() {
        let message = "a tool is a function; for methods, put `#[toolkit]` before the `impl`";
        return Err(Error::new_spanned(receiver, message));
    }
    let parts = Parts::take(&options, &function.attrs, &mut function.sig)?;
    let (visibility, name) = (&function.vis, &function.sig.ident);
    let documentation = function.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let others: Vec<&Attribute> =
        function.attrs.iter().filter(|attribute| !attribute.path().is_ident("doc")).collect();
    let mut run = function.sig.clone();
    run.ident = Ident::new("run", name.span());
    let (block, implementation) =
        (&function.block, parts.implementation(&quote! { #name }, &quote! { #name::run }));
    Ok(quote! {
        #(#documentation)*
        #[allow(non_camel_case_types)]
        #[derive(Debug, Clone, Copy)]
        #visibility struct #name;

        #[allow(clippy::unused_async)]
        impl #name {
            /// The function itself.
            #(#others)*
            #visibility #run #block
        }

        #implementation
    })
}

/// The parts of a tool.
pub(crate) struct Parts {
    spec: TokenStream,
    arguments: Arguments,
    is_async: bool,
    returns_result: bool,
}

impl Parts {
    /// Reads a signature, and removes the attributes that only tools have.
    pub(crate) fn take(
        options: &Options,
        attributes: &[Attribute],
        signature: &mut Signature,
    ) -> Result<Self> {
        if !signature.generics.params.is_empty() {
            return Err(Error::new_spanned(&signature.generics, "a tool has no generic parameters"));
        }
        let spec = spec(options, attributes, signature)?;
        let arguments = Arguments::take(&mut signature.inputs)?;
        let (is_async, returns_result) = (signature.asyncness.is_some(), returns_result(&signature.output));
        Ok(Self { spec, arguments, is_async, returns_result })
    }

    /// The implementation of `Tool` for `kind`, which calls `function`.
    pub(crate) fn implementation(&self, kind: &TokenStream, function: &TokenStream) -> TokenStream {
        let Self { spec, arguments, is_async, returns_result } = self;
        let (definition, names, passed) = (arguments.definition(), arguments.names(), &arguments.passed);
        let wait = is_async.then(|| quote! { .await });
        let returned = match returns_result {
            true => quote! {
                returned.map_err(|error| ::polylogue::kernel::tool::ToolError(::std::string::ToString::to_string(&error)))?
            },
            false => quote! { returned },
        };
        quote! {
            const _: () = {
                #definition

                impl ::polylogue::Tool for #kind {
                    fn spec(&self) -> &::polylogue::kernel::data::ToolSpec {
                        static SPEC: ::std::sync::OnceLock<::polylogue::kernel::data::ToolSpec> = ::std::sync::OnceLock::new();
                        SPEC.get_or_init(|| #spec)
                    }

                    #[allow(unused_variables, clippy::let_unit_value)]
                    async fn call(
                        &self,
                        args: ::polylogue::tools::tool::private::Value,
                        cx: &::polylogue::kernel::tool::ToolCx<'_>,
                    ) -> ::core::result::Result<::polylogue::kernel::data::ToolResult, ::polylogue::kernel::tool::ToolError> {
                        let Args { #(#names),* } = ::polylogue::tools::tool::private::read(self.spec(), args)?;
                        let returned = #function(#(#passed),*)#wait;
                        ::polylogue::tools::tool::private::outcome(self.spec(), #returned)
                    }
                }
            };
        }
    }
}

fn spec(options: &Options, attributes: &[Attribute], signature: &Signature) -> Result<TokenStream> {
    let name = options.name.as_ref().map_or_else(|| own_name(signature), syn::LitStr::value);
    if !is_legal(&name) {
        let message = format!(
            "the name of a tool is 1 to 64 ASCII letters, digits, `_` and `-`, which `{name}` is not: set another one by `#[tool(name = \"...\")]`"
        );
        return Err(Error::new_spanned(&signature.ident, message));
    }
    let text = options.description.as_ref().map(syn::LitStr::value).filter(|text| !text.trim().is_empty());
    let Some(text) = text.or_else(|| description(attributes)) else {
        let message = "a tool needs a description: models choose by it. Say in a doc comment what it does and when to use it";
        return Err(Error::new_spanned(&signature.ident, message));
    };
    let repeatable = options.repeatable.then(|| quote! { .repeatable() });
    let ends_turn = options.ends_turn.then(|| quote! { .ends_turn() });
    Ok(quote! {
        ::polylogue::kernel::data::ToolSpec::new(#name, #text, ::polylogue::tools::tool::private::schema::<Args>())#repeatable #ends_turn
    })
}

/// The name of the function, as models read it.
pub(crate) fn own_name(signature: &Signature) -> String {
    signature.ident.unraw().to_string()
}

/// Whether all providers take the name of the tool.
fn is_legal(name: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&name.len()) && name.chars().all(is_legal)
}

/// Whether it is a `Result`, or an alias of it.
fn returns_result(output: &ReturnType) -> bool {
    let ReturnType::Type(_, kind) = output else { return false };
    match &**kind {
        Type::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == "Result"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(attribute: TokenStream, item: TokenStream) -> String {
        expand(attribute, item).unwrap_err().to_string()
    }

    #[test]
    fn a_tool_without_a_description_does_not_compile() {
        let bare = quote! { fn add(a: i64, b: i64) -> i64 { a + b } };
        let blank = quote! {
            #[doc = " "]
            fn add(a: i64, b: i64) -> i64 { a + b }
        };
        for (attribute, item) in
            [(quote! {}, &bare), (quote! {}, &blank), (quote! { description = " " }, &bare)]
        {
            let said = refusal(attribute, item.clone());
            assert!(said.starts_with("a tool needs a description"), "{said}");
        }
        expand(quote! { description = "Adds two numbers." }, bare).unwrap();
        let documented = quote! {
            /// Adds two numbers.
            fn add(a: i64, b: i64) -> i64 { a + b }
        };
        expand(quote! {}, documented).unwrap();
    }

    #[test]
    fn names_that_a_provider_refuses_do_not_compile() {
        let add = quote! {
            /// Adds two numbers.
            fn add(a: i64, b: i64) -> i64 { a + b }
        };
        for name in ["", "add two", "größer", &"a".repeat(65)] {
            let said = refusal(quote! { name = #name }, add.clone());
            assert!(said.starts_with("the name of a tool is 1 to 64 ASCII letters"), "{name}: {said}");
        }
        expand(quote! { name = "add-two" }, add).unwrap();
    }
}
