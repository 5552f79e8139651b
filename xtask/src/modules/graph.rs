//! Arrows between the modules of one level, their circles and their layers.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{ModulePath, Tree};

/// The name of a module's own file among the modules within it.
const OWN_FILE: &str = "self";

/// Where a module uses another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) file: String,
    pub(crate) line: usize,
    /// The name that is used.
    pub(crate) name: String,
}

/// The modules within one module, and the arrows between them. What is in the module's own file is one of them, with
/// the name `self`.
#[derive(Debug)]
pub(crate) struct Level {
    /// The module around them, such as `log`; empty for the root of the crate.
    pub(crate) within: String,
    pub(crate) modules: BTreeSet<String>,
    /// The first use for each arrow.
    pub(crate) arrows: BTreeMap<(String, String), Use>,
}

impl Tree {
    /// The levels of the crate, the outermost first.
    pub(crate) fn levels(&self) -> Vec<Level> {
        let mut levels: BTreeMap<ModulePath, Level> = BTreeMap::new();
        for path in self.modules.keys() {
            let Some((name, within)) = path.split_last() else { continue };
            let new = || Level {
                within: within.join("::"),
                modules: BTreeSet::from([OWN_FILE.to_owned()]),
                arrows: BTreeMap::new(),
            };
            levels.entry(within.to_vec()).or_insert_with(new).modules.insert(name.clone());
        }
        for found in self.uses() {
            let common = found.from.iter().zip(&found.to).take_while(|(a, b)| a == b).count();
            let Some(level) = found.from.get(..common).and_then(|within| levels.get_mut(within)) else {
                continue;
            };
            let name = |path: &ModulePath| path.get(common).cloned().unwrap_or_else(|| OWN_FILE.to_owned());
            let arrow = (name(&found.from), name(&found.to));
            let file = self.modules.get(&found.from).map(|module| module.file.clone()).unwrap_or_default();
            level.arrows.entry(arrow).or_insert(Use { file, line: found.line, name: found.name });
        }
        levels.into_values().collect()
    }
}

impl Level {
    /// The modules that use each other in a circle, each with all that it is in a circle with.
    pub(crate) fn cycles(&self) -> Vec<BTreeSet<String>> {
        let mut cycles: Vec<BTreeSet<String>> = Vec::new();
        for module in &self.modules {
            if cycles.iter().any(|cycle| cycle.contains(module)) {
                continue;
            }
            let there = self.reached(module);
            let cycle: BTreeSet<String> =
                there.into_iter().filter(|other| self.reached(other).contains(module)).collect();
            if cycle.len() > 1 {
                cycles.push(cycle);
            }
        }
        cycles
    }

    /// The modules that `module` uses, directly or through others.
    fn reached(&self, module: &str) -> BTreeSet<String> {
        let mut reached = BTreeSet::new();
        let mut next = vec![module];
        while let Some(from) = next.pop() {
            for (_, to) in self.arrows.keys().filter(|(other, _)| other == from) {
                if reached.insert(to.clone()) {
                    next.push(to);
                }
            }
        }
        reached
    }

    /// The modules by layer, from the bottom up: each uses only modules of lower layers. Modules in a circle are
    /// together. The module's own file is left out if it has nothing to do with the others.
    pub(crate) fn layers(&self) -> Vec<Vec<BTreeSet<String>>> {
        let cycles = self.cycles();
        let is_used = |module: &String| {
            module != OWN_FILE || self.arrows.keys().any(|(from, to)| from == module || to == module)
        };
        let single =
            |module: &&String| is_used(module) && !cycles.iter().any(|cycle| cycle.contains(*module));
        let singles = self.modules.iter().filter(single).map(|module| BTreeSet::from([module.clone()]));
        let mut left: Vec<BTreeSet<String>> = singles.chain(cycles.iter().cloned()).collect();
        let mut layers = Vec::new();
        while !left.is_empty() {
            let is_free = |group: &BTreeSet<String>| {
                let uses = |(from, to): &(String, String)| group.contains(from) && !group.contains(to);
                let is_left = |name: &String| left.iter().any(|other| other.contains(name));
                !self.arrows.keys().any(|arrow| uses(arrow) && is_left(&arrow.1))
            };
            let (free, rest): (Vec<_>, Vec<_>) = left.clone().into_iter().partition(|group| is_free(group));
            if free.is_empty() {
                break;
            }
            layers.push(free);
            left = rest;
        }
        layers
    }
}
