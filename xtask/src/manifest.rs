//! A crate's `Cargo.toml`, as far as the checks care.

use toml::de::{DeTable, DeValue};

use crate::finding::{Finding, line_at};

/// A crate of the workspace.
pub(crate) struct Manifest {
    /// Its `Cargo.toml`, relative to the repository.
    pub(crate) file: String,
    /// The package's name.
    pub(crate) name: String,
    /// Whether it has a description.
    pub(crate) described: bool,
    /// Whether it names its license or takes it from the workspace.
    pub(crate) licensed: bool,
    /// Whether it takes its lints from the workspace.
    pub(crate) linted: bool,
    /// What it depends on.
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency.
pub(crate) struct Dependency {
    /// The package's name, not what it is renamed to.
    pub(crate) name: String,
    /// Where it is declared, counted from 1.
    pub(crate) line: usize,
    /// Whether only tests, examples and benches get it.
    pub(crate) dev: bool,
    /// The features asked for here.
    pub(crate) features: Vec<String>,
}

impl Manifest {
    /// Reads the text of `file`.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, Finding> {
        let root = parse(file, text)?;
        let package = root.get("package").map(|package| package.get_ref());
        let entry = |key| package.and_then(|package| package.get(key)).map(|value| value.get_ref());
        let Some(name) = entry("name").and_then(DeValue::as_str) else {
            return Err(Finding::new(file, 1, "the package has no name", "add `name` to `[package]`"));
        };
        Ok(Self {
            file: file.to_owned(),
            name: name.to_owned(),
            described: entry("description")
                .and_then(DeValue::as_str)
                .is_some_and(|text| !text.trim().is_empty()),
            licensed: entry("license").is_some_and(|value| value.is_str() || inherited(value)),
            linted: root.get("lints").is_some_and(|lints| inherited(lints.get_ref())),
            dependencies: dependencies(&root, text),
        })
    }
}

/// The features that the workspace's own `Cargo.toml` gives to the dependency `name`.
pub(crate) fn workspace_features(text: &str, name: &str) -> Vec<String> {
    let Ok(root) = parse("Cargo.toml", text) else { return Vec::new() };
    let path = ["workspace", "dependencies", name];
    let entry = path.iter().try_fold(&root, |value, key| value.get(key).map(|value| value.get_ref()));
    entry.map(features).unwrap_or_default()
}

fn parse<'t>(file: &str, text: &'t str) -> Result<DeValue<'t>, Finding> {
    match DeTable::parse(text) {
        Ok(table) => Ok(DeValue::Table(table.into_inner())),
        Err(error) => {
            let line = line_at(text, error.span().map_or(0, |span| span.start));
            Err(Finding::new(
                file,
                line,
                format!("no TOML: {}", error.message()),
                "see the TOML specification",
            ))
        }
    }
}

fn inherited(value: &DeValue<'_>) -> bool {
    value.get("workspace").and_then(|value| value.get_ref().as_bool()) == Some(true)
}

fn dependencies(root: &DeValue<'_>, text: &str) -> Vec<Dependency> {
    let mut found = of_one_target(root, text);
    let targets = root.get("target").and_then(|targets| targets.get_ref().as_table());
    for target in targets.into_iter().flat_map(|targets| targets.values()) {
        found.extend(of_one_target(target.get_ref(), text));
    }
    found
}

fn of_one_target(table: &DeValue<'_>, text: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    for (section, dev) in [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
    {
        let entries = table.get(section).and_then(|entries| entries.get_ref().as_table());
        for (key, value) in entries.into_iter().flatten() {
            let value = value.get_ref();
            let package = value.get("package").and_then(|name| name.get_ref().as_str());
            found.push(Dependency {
                name: package.unwrap_or(key.get_ref()).to_owned(),
                line: line_at(text, key.span().start),
                dev,
                features: features(value),
            });
        }
    }
    found
}

fn features(value: &DeValue<'_>) -> Vec<String> {
    let list = value.get("features").and_then(|list| list.get_ref().as_array());
    let names = list.into_iter().flatten().filter_map(|name| name.get_ref().as_str());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_every_section_are_read() {
        let text = r#"
[package]
name = "a"
description = "does a"
license.workspace = true
[lints]
workspace = true
[dependencies]
b = "1"
c = { package = "real-c", version = "1", features = ["x", "y"] }
d.workspace = true
[dependencies.e]
version = "2"
[dev-dependencies]
f = "1"
[build-dependencies]
g = "1"
[target.'cfg(unix)'.dependencies]
h = "1"
"#;
        let manifest = Manifest::parse("a/Cargo.toml", text).unwrap();
        assert!(manifest.described && manifest.licensed && manifest.linted);
        let found: Vec<_> = manifest.dependencies.iter().map(|d| (d.name.as_str(), d.line, d.dev)).collect();
        let wanted = [
            ("b", 9, false),
            ("real-c", 10, false),
            ("d", 11, false),
            ("e", 12, false),
            ("g", 17, false),
            ("f", 15, true),
            ("h", 19, false),
        ];
        assert_eq!(found, wanted);
        assert_eq!(manifest.dependencies.get(1).unwrap().features, ["x", "y"]);
    }

    #[test]
    fn features_of_the_workspace_are_read() {
        let text = "[workspace.dependencies]\ntokio = { version = \"1\", features = [\"net\"] }\n";
        assert_eq!(workspace_features(text, "tokio"), ["net"]);
        assert!(workspace_features(text, "serde").is_empty());
    }
}
