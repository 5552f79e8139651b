//! The tree of a crate's modules.

use std::collections::BTreeMap;

use syn::{Expr, Item, ItemMod, Lit, Meta};

use super::names::Names;
use crate::repo::Repo;
use crate::source::Source;

/// The path of a module in its crate; empty for the root.
pub(crate) type ModulePath = Vec<String>;

/// One module.
pub(super) struct Module {
    /// The file that it is in.
    pub(super) file: String,
    pub(super) names: Names,
}

/// The modules of one crate.
pub(crate) struct Tree {
    pub(super) modules: BTreeMap<ModulePath, Module>,
}

impl Tree {
    /// The modules of the crate with this root, such as `crates/a/src/lib.rs`. Tests are left out. `None` if there is
    /// no such file.
    pub(crate) fn of(repo: &Repo, root: &str) -> Option<Self> {
        let sources = repo.sources.iter().map(|source| (source.file.as_str(), source)).collect();
        let mut tree = Self { modules: BTreeMap::new() };
        let loader = Loader { sources };
        let source = loader.sources.get(root)?;
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        loader.load(&mut tree, Vec::new(), (root, folder), &source.code.items);
        Some(tree)
    }

    /// Whether there is a module `path`.
    pub(super) fn has(&self, path: &[String]) -> bool {
        self.modules.contains_key(path)
    }
}

struct Loader<'r> {
    sources: BTreeMap<&'r str, &'r Source>,
}

impl Loader<'_> {
    /// Adds the module `path` with these items: it is in `file`, and the files of its modules in `folder`.
    fn load(&self, tree: &mut Tree, path: ModulePath, (file, folder): (&str, &str), items: &[Item]) {
        for item in items {
            let Item::Mod(module) = item else { continue };
            let name = module.ident.to_string();
            let inner = [path.as_slice(), std::slice::from_ref(&name)].concat();
            let below = format!("{folder}/{name}");
            match &module.content {
                Some((_, items)) => self.load(tree, inner, (file, &below), items),
                None => {
                    if let Some((file, source)) = self.find(module, file, folder) {
                        self.load(tree, inner, (file, &below), &source.code.items);
                    }
                }
            }
        }
        tree.modules.insert(path, Module { file: file.to_owned(), names: Names::of(items) });
    }

    fn find(&self, module: &ItemMod, file: &str, folder: &str) -> Option<(&str, &Source)> {
        let name = &module.ident;
        let parent = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let given = path_of(module).map(|path| format!("{parent}/{path}"));
        let usual = [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")];
        let place = given.into_iter().chain(usual).find(|place| self.sources.contains_key(place.as_str()))?;
        self.sources.get_key_value(place.as_str()).map(|(file, source)| (*file, *source))
    }
}

/// The file in `#[path = ".."]`.
fn path_of(module: &ItemMod) -> Option<String> {
    let given = module.attrs.iter().find(|attribute| attribute.path().is_ident("path"))?;
    let Meta::NameValue(pair) = &given.meta else { return None };
    match &pair.value {
        Expr::Lit(value) => match &value.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}
