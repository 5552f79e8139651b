//! A Rust file with its tests taken out.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, ImplItem, Item, ItemMod, Meta, Stmt, Token};

use crate::finding::Finding;

/// A Rust file that is not a test.
pub(crate) struct Source {
    /// Relative to the repository, with `/`.
    pub(crate) file: String,
    /// How many lines it has, tests included.
    pub(crate) lines: usize,
    /// What is in it, items that are compiled only for tests left out.
    pub(crate) code: syn::File,
    /// The modules of tests inside it: their first line and how many lines they have.
    pub(crate) test_modules: Vec<(usize, usize)>,
    /// The files that are modules of tests, without `.rs`.
    pub(crate) test_files: Vec<String>,
}

impl Source {
    /// Reads the text of `file`.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, Finding> {
        let mut code = syn::parse_file(text).map_err(|error| {
            Finding::new(file, error.span().start().line, format!("no Rust: {error}"), "see `cargo check`")
        })?;
        let mut strip = Strip { file, test_modules: Vec::new(), test_files: Vec::new() };
        strip.visit_file_mut(&mut code);
        let Strip { test_modules, test_files, .. } = strip;
        Ok(Self { file: file.to_owned(), lines: text.lines().count(), code, test_modules, test_files })
    }

    /// Whether it is the module `path` (without `.rs`) or one of its submodules.
    pub(crate) fn is_or_is_below(&self, path: &str) -> bool {
        self.file.strip_prefix(path).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    }

    /// Its tokens; comments and documentation are none.
    pub(crate) fn tokens(&self) -> Vec<TokenTree> {
        let mut flat = Vec::new();
        flatten(self.code.to_token_stream(), &mut flat);
        flat
    }
}

/// Groups come before what they hold, so that a macro's name, `!` and group follow each other.
fn flatten(tokens: TokenStream, flat: &mut Vec<TokenTree>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) if is_doc(&group) => {}
            TokenTree::Group(group) => {
                let inner = group.stream();
                flat.push(TokenTree::Group(group));
                flatten(inner, flat);
            }
            other => flat.push(other),
        }
    }
}

/// Whether `group` is the `[doc = ".."]` that a documentation comment stands for.
pub(crate) fn is_doc(group: &proc_macro2::Group) -> bool {
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Bracket
        && matches!(first, Some(TokenTree::Ident(ident)) if ident == "doc")
}

/// Takes items out that are compiled only for tests, and notes where they were.
struct Strip<'f> {
    file: &'f str,
    test_modules: Vec<(usize, usize)>,
    test_files: Vec<String>,
}

impl Strip<'_> {
    fn strip(&mut self, items: &mut Vec<Item>) {
        items.retain(|item| {
            let test = attributes(item).iter().any(is_for_tests);
            if let (true, Item::Mod(module)) = (test, item) {
                self.note(module);
            }
            !test
        });
    }

    fn note(&mut self, module: &ItemMod) {
        if module.content.is_some() {
            let (first, last) = (module.span().start().line, module.span().end().line);
            self.test_modules.push((first, last - first + 1));
        } else {
            self.test_files.push(module_path(self.file, module));
        }
    }
}

impl VisitMut for Strip<'_> {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        if file.attrs.iter().any(is_for_tests) {
            file.items.clear();
        }
        self.strip(&mut file.items);
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut ItemMod) {
        if let Some((_, items)) = &mut module.content {
            self.strip(items);
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, item: &mut syn::ItemImpl) {
        item.items.retain(|item| !matches!(item, ImplItem::Fn(f) if f.attrs.iter().any(is_for_tests)));
        visit_mut::visit_item_impl_mut(self, item);
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        block
            .stmts
            .retain(|stmt| !matches!(stmt, Stmt::Item(item) if attributes(item).iter().any(is_for_tests)));
        visit_mut::visit_block_mut(self, block);
    }
}

/// Where the module that `file` declares is, without `.rs`.
fn module_path(file: &str, module: &ItemMod) -> String {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    for attribute in &module.attrs {
        if let Meta::NameValue(meta) = &attribute.meta
            && meta.path.is_ident("path")
            && let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) = &meta.value
        {
            return format!("{folder}/{}", path.value().trim_end_matches(".rs"));
        }
    }
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => format!("{folder}/{}", module.ident),
        _ => format!("{folder}/{}/{}", name.trim_end_matches(".rs"), module.ident),
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether what carries the attribute is compiled only for tests: `#[test]`, `#[tokio::test]`, `#[cfg(test)]`.
fn is_for_tests(attribute: &Attribute) -> bool {
    let named = |path: &syn::Path| path.segments.last().is_some_and(|segment| segment.ident == "test");
    match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args::<Meta>().is_ok_and(|condition| needs_test(&condition))
        }
        meta => named(meta.path()),
    }
}

/// Whether the condition of a `cfg` holds only in tests.
fn needs_test(condition: &Meta) -> bool {
    let Meta::List(list) = condition else { return condition.path().is_ident("test") };
    let Ok(inner) = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated) else {
        return false;
    };
    if list.path.is_ident("all") {
        inner.iter().any(needs_test)
    } else {
        list.path.is_ident("any") && !inner.is_empty() && inner.iter().all(needs_test)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str) -> String {
        Source::parse("c/src/lib.rs", text).unwrap().code.to_token_stream().to_string()
    }

    #[test]
    fn tests_are_taken_out() {
        for test in [
            "#[test] fn a() {}",
            "#[tokio::test(start_paused = true)] async fn a() {}",
            "#[cfg(test)] mod tests { fn b() {} }",
            "#[cfg(all(unix, test))] use a::b;",
            "#[cfg(any(all(test, unix), test))] const A: u8 = 1;",
        ] {
            assert_eq!(left(test), "", "{test}");
        }
        assert_eq!(left("#![cfg(test)] fn a() {}"), "# ! [cfg (test)]");
        assert_eq!(left("impl A { #[cfg(test)] fn a() {} }"), "impl A { }");
        assert_eq!(left("fn a() { #[cfg(test)] use b; }"), "fn a () { }");
        assert_eq!(left("mod a { #[test] fn b() {} }"), "mod a { }");
    }

    #[test]
    fn what_is_compiled_without_tests_too_is_kept() {
        for kept in [
            "#[cfg(not(test))] fn a () { }",
            "#[cfg(any(test, feature = \"x\"))] fn a () { }",
            "fn test () { }",
        ] {
            assert!(left(kept).ends_with("fn a () { }") || left(kept).ends_with("fn test () { }"), "{kept}");
        }
    }

    #[test]
    fn modules_of_tests_are_noted() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n\n}\n";
        assert_eq!(Source::parse("c/src/lib.rs", text).unwrap().test_modules, [(3, 4)]);
        for (file, found) in
            [("c/src/a.rs", "c/src/a/t"), ("c/src/a/mod.rs", "c/src/a/t"), ("c/src/lib.rs", "c/src/t")]
        {
            assert_eq!(Source::parse(file, "#[cfg(test)] mod t;").unwrap().test_files, [found]);
        }
    }
}
