//! The arrows between modules: those of one level use each other in no circle.
//!
//! The modules within a module are one level, and its own file is one of them, called `self`: so a folder's file may
//! use what is in the folder, or the folder may use what is in the file, not both. An arrow is any use of an item from
//! one to the other, wherever in their subtrees. Re-exports are no uses, and neither are method calls, because they
//! name no module: `impl` blocks of one type may be spread over several files.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::modules::{Level, Tree};
use crate::repo::Repo;

/// The crate of the kernel, and its layers from the bottom up: each uses only those before it.
const KERNEL: &str = "polylogue-core";
const KERNEL_LAYERS: [&str; 12] = [
    "data", "limits", "log", "transcript", "view", "model", "tool", "turn", "agent", "policy", "chat", "run",
];

const HINT: &str =
    "move what both need into a module below them, or an `impl` block up to the module that it calls";
const KERNEL_HINT: &str = "the order is `KERNEL_LAYERS` in xtask/src/checks/modules.rs; see ARCHITECTURE.md";

/// The modules of each crate that has any: `lib.rs`, then `main.rs`.
pub(crate) fn crates(repo: &Repo) -> Vec<(String, Tree)> {
    let roots = repo.crates.iter().flat_map(|krate| {
        let folder = krate.file.strip_suffix("Cargo.toml").unwrap_or_default();
        ["lib", "main"].map(|root| (krate.name.clone(), format!("{folder}src/{root}.rs")))
    });
    roots.filter_map(|(name, root)| Some((name, Tree::of(repo, &root)?))).collect()
}

pub(super) fn check(repo: &Repo) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, tree) in crates(repo) {
        for level in tree.levels() {
            found.extend(level.cycles().iter().filter_map(|cycle| circle(&name, &level, cycle)));
            if name == KERNEL && level.within.is_empty() {
                found.extend(kernel(&level));
            }
        }
    }
    found
}

/// The name of a level.
fn title(level: &Level) -> &str {
    if level.within.is_empty() { "crate" } else { &level.within }
}

/// A circle, with its arrows.
fn circle(name: &str, level: &Level, cycle: &BTreeSet<String>) -> Option<Finding> {
    let round = |(from, to): &(String, String)| cycle.contains(from) && cycle.contains(to);
    let arrows: Vec<_> = level.arrows.iter().filter(|(arrow, _)| round(arrow)).collect();
    let (_, first) = arrows.first()?;
    let shown = arrows
        .iter()
        .map(|((from, to), at)| format!("\n    {from} -> {to}: `{}` at {}:{}", at.name, at.file, at.line));
    let names: Vec<_> = cycle.iter().map(String::as_str).collect();
    let what = format!("`{name}`, {}: {} use each other in a circle", title(level), names.join(", "));
    Some(Finding::new(&first.file, first.line, what + &shown.collect::<String>(), HINT))
}

/// The order of the kernel's layers.
fn kernel(level: &Level) -> Vec<Finding> {
    let place = |name: &str| KERNEL_LAYERS.iter().position(|layer| *layer == name);
    let mut found = Vec::new();
    for name in level.modules.iter().filter(|name| *name != "self" && place(name).is_none()) {
        found.push(Finding::new(
            "xtask/src/checks/modules.rs",
            1,
            format!("the module `{name}` of the kernel is in no layer"),
            KERNEL_HINT,
        ));
    }
    for ((from, to), at) in &level.arrows {
        if let (Some(upper), Some(lower)) = (place(from), place(to))
            && upper < lower
        {
            let flaw =
                format!("the layer `{from}` of the kernel uses `{}` of `{to}`, which is above it", at.name);
            found.push(Finding::new(&at.file, at.line, flaw, KERNEL_HINT));
        }
    }
    found
}

#[cfg(test)]
#[path = "modules_tests.rs"]
mod tests;
