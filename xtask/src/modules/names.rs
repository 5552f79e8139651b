//! The names that one module defines, imports and mentions.

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Item, UseTree, Visibility};

/// A path as written, and the line where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

/// A name made available by `use`.
#[derive(Debug, Clone)]
pub(super) struct Import {
    pub(super) name: String,
    pub(super) from: Mention,
    /// Whether other modules see it, too: it is then a use only if the module itself mentions it.
    pub(super) is_reexport: bool,
}

/// The names of one module.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Items that it defines.
    pub(super) items: Vec<String>,
    pub(super) imports: Vec<Import>,
    /// Modules and enums of which it imports everything.
    pub(super) globs: Vec<Mention>,
    /// The paths in its code.
    pub(super) mentions: Vec<Mention>,
}

impl Names {
    /// The names of a module with these items. Modules inside are modules of their own.
    pub(super) fn of(items: &[Item]) -> Self {
        let mut names = Self::default();
        for item in items {
            names.items.extend(defined(item));
            names.visit_item(item);
        }
        names
    }

    fn import(&mut self, tree: &UseTree, before: &[String], is_reexport: bool) {
        let line = tree.span().start().line;
        let after = |name: String| [before, &[name]].concat();
        match tree {
            UseTree::Path(path) => self.import(&path.tree, &after(path.ident.to_string()), is_reexport),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, before, is_reexport));
            }
            UseTree::Glob(_) => self.globs.push(Mention { path: before.to_vec(), line }),
            UseTree::Name(name) if name.ident == "self" => {
                let from = Mention { path: before.to_vec(), line };
                self.imports.extend(before.last().map(|name| Import {
                    name: name.clone(),
                    from,
                    is_reexport,
                }));
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                self.imports.push(Import {
                    from: Mention { path: after(name.clone()), line },
                    name,
                    is_reexport,
                });
            }
            UseTree::Rename(rename) => {
                let from = Mention { path: after(rename.ident.to_string()), line };
                self.imports.push(Import { name: rename.rename.to_string(), from, is_reexport });
            }
        }
    }

    /// Paths among the tokens of a macro call: identifiers joined by `::`.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path: Option<Mention> = None;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    let line = ident.span().start().line;
                    match path.as_mut().filter(|_| colons == 2) {
                        Some(path) => path.path.push(ident.to_string()),
                        None => {
                            self.mentions.extend(path.take());
                            path = Some(Mention { path: vec![ident.to_string()], line });
                        }
                    }
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.mentions.extend(path.take());
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.scan(group.stream());
                    }
                }
            }
        }
        self.mentions.extend(path);
    }
}

/// The name that an item defines.
fn defined(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::TraitAlias(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        _ => return None,
    })
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_reexport = !matches!(item.vis, Visibility::Inherited);
        self.import(&item.tree, &[], is_reexport);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let line = path.span().start().line;
        let names = path.segments.iter().map(|segment| segment.ident.to_string());
        if path.leading_colon.is_none() {
            self.mentions.push(Mention { path: names.collect(), line });
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.scan(call.tokens.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Names {
        Names::of(&syn::parse_file(text).unwrap().items)
    }

    fn mentions(text: &str) -> Vec<String> {
        names(text).mentions.iter().map(|mention| mention.path.join("::")).collect()
    }

    #[test]
    fn imports_are_read_in_every_form() {
        let names = names("use a::{self, b as c, d::e};\npub(crate) use f::g;\nuse h::*;");
        let found: Vec<_> =
            names.imports.iter().map(|i| (i.name.as_str(), i.from.path.join("::"), i.is_reexport)).collect();
        let wanted = [
            ("a", "a".to_owned(), false),
            ("c", "a::b".to_owned(), false),
            ("e", "a::d::e".to_owned(), false),
            ("g", "f::g".to_owned(), true),
        ];
        assert_eq!(found, wanted);
        assert_eq!(names.globs, [Mention { path: vec!["h".into()], line: 3 }]);
    }

    #[test]
    fn paths_are_found_in_types_expressions_patterns_and_macros() {
        assert_eq!(mentions("fn f(a: x::A) -> y::B { z::c() }"), ["x::A", "y::B", "z::c"]);
        assert_eq!(mentions("fn f() { if let w::A::B = v {} }"), ["w::A::B", "v"]);
        let wanted = ["assert", "a::b", "c", "d::E", "f"];
        assert_eq!(mentions("fn f() { assert!(a::b(c), [d::E { f: 1 }]); }"), wanted);
        assert_eq!(mentions("mod inner { fn f() { a::b() } }"), Vec::<String>::new());
        assert_eq!(mentions("#[serde(with = \"a\")] struct A;"), Vec::<String>::new());
    }
}
