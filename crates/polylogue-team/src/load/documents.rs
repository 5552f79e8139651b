//! Documents of services.

use std::collections::BTreeMap;

use polylogue_tools::openapi::{Document, Operation};

use super::Loader;
use crate::diagnostic::Report;
use crate::yaml::Node;

/// The operations of services, by the names of these.
pub(super) type Operations = BTreeMap<String, Vec<Operation>>;

impl Loader<'_> {
    /// The operations of the services that `root` names.
    pub(super) fn operations(&self, root: &Node, report: &mut Report<'_>) -> Operations {
        let mut all = Operations::new();
        for entry in root.get("openapi").entries() {
            let node = &entry.value;
            let Some(file) = node.get("file").text().filter(|file| !file.is_empty() && !report.full()) else {
                continue;
            };
            let include: Vec<&str> = node.get("include").items().iter().filter_map(Node::text).collect();
            let read = self.work_file(file).and_then(|text| Document::read(&text));
            match read.and_then(|document| document.operations(&include, node.get("base_url").text())) {
                Ok(operations) => drop(all.insert(entry.key.clone(), operations)),
                Err(why) => report.error(&node.get("file").span, format!("`{file}` cannot be used: {why}")),
            }
        }
        all
    }
}

/// The names of the tools that they are.
pub(super) fn names(operations: &Operations) -> impl Iterator<Item = String> {
    let each = operations.values().flatten().map(|operation| operation.name.clone());
    operations.keys().cloned().chain(each)
}
