//! Finds the module that defines a name.

use super::names::Mention;
use super::tree::{ModulePath, Tree};

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Module(ModulePath),
    /// An item, by the module that defines it.
    Item(ModulePath),
}

/// A use of an item that another module defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) from: ModulePath,
    pub(super) to: ModulePath,
    pub(super) name: String,
    pub(super) line: usize,
}

/// How many re-exports a name may pass through.
const MAX_STEPS: usize = 12;

impl Tree {
    /// Every use of an item that another module defines, by module and line.
    pub(super) fn uses(&self) -> Vec<Found> {
        let mut found = Vec::new();
        for (from, module) in &self.modules {
            let names = &module.names;
            let mut add = |mention: &Mention| {
                if let Some(Target::Item(to)) = self.resolve(from, &mention.path, MAX_STEPS)
                    && to != *from
                {
                    let name = mention.path.last().cloned().unwrap_or_default();
                    found.push(Found { from: from.clone(), to, name, line: mention.line });
                }
            };
            names.mentions.iter().for_each(&mut add);
            // A re-export is a use only if the module itself mentions the name, and then that is the use.
            names.imports.iter().filter(|import| !import.is_reexport).for_each(|import| add(&import.from));
        }
        found.sort_by(|a: &Found, b| (&a.from, a.line).cmp(&(&b.from, b.line)));
        found
    }

    fn resolve(&self, from: &ModulePath, path: &[String], steps: usize) -> Option<Target> {
        let steps = steps.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        let start = match first.as_str() {
            "crate" => Target::Module(Vec::new()),
            "self" => Target::Module(from.clone()),
            "super" => Target::Module(from.split_last()?.1.to_vec()),
            _ => self.lookup(from, first, rest.is_empty(), steps)?,
        };
        rest.iter().enumerate().try_fold(start, |target, (index, name)| match target {
            Target::Item(_) => Some(target),
            Target::Module(at) if name == "super" => Some(Target::Module(at.split_last()?.1.to_vec())),
            Target::Module(at) => self.lookup(&at, name, index + 1 == rest.len(), steps),
        })
    }

    /// What `name` is in the module `at`. The last name of a path is an item rather than a module.
    fn lookup(&self, at: &ModulePath, name: &str, is_last: bool, steps: usize) -> Option<Target> {
        let names = &self.modules.get(at)?.names;
        let inner = [at.as_slice(), &[name.to_owned()]].concat();
        let module = self.has(&inner).then_some(Target::Module(inner));
        if !is_last && module.is_some() {
            return module;
        }
        if names.items.iter().any(|item| item == name) {
            return Some(Target::Item(at.clone()));
        }
        let import = names.imports.iter().find(|import| import.name == name);
        // `use log::Log` in the module that declares `log` begins at that module itself.
        let imported = import.and_then(|import| self.resolve(at, &import.from.path, steps));
        imported.or(module).or_else(|| {
            let globs = names.globs.iter().filter_map(|glob| self.resolve(at, &glob.path, steps));
            globs.filter_map(|target| self.within(target, name, is_last, steps)).next()
        })
    }

    /// What `name` is in a target of which everything is imported.
    fn within(&self, target: Target, name: &str, is_last: bool, steps: usize) -> Option<Target> {
        match target {
            Target::Module(at) => self.lookup(&at, name, is_last, steps.checked_sub(1)?),
            // The variants of an enum: names of its own module are found there already.
            Target::Item(_) => None,
        }
    }
}
