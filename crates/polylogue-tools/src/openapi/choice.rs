//! The choice of operations that become tools.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use super::document::{Document, Entry, legal};
use super::operation::Operation;

/// Maximum number of operations without a selection; a model cannot choose from more.
const MOST_TOOLS: usize = 64;

/// The operations of a document that were chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChosenOperations {
    /// The operations that can be called.
    pub operations: Vec<Operation>,
    /// The operations that cannot be called, if none was named.
    pub left_out: Vec<LeftOutOperation>,
}

/// An operation that cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOutOperation {
    /// The name that its tool would have.
    pub name: String,
    /// Why it cannot be called, as a clause.
    pub why: String,
}

impl Document {
    /// Returns the operations that `only` names, as [`choose`](Self::choose) finds them.
    ///
    /// # Errors
    /// As [`choose`](Self::choose).
    pub fn operations(&self, only: &[impl AsRef<str>], base: Option<&str>) -> Result<Vec<Operation>, String> {
        self.choose(only, base).map(|chosen| chosen.operations)
    }

    /// Chooses the operations that `only` names, by their names or as `get /pets/{id}`; all that can be called if it names
    /// none. They are called at `base`, or where the document says.
    ///
    /// # Errors
    /// When one does not exist or, being named, cannot be called; when there are more than 64 and none is named; when there is no
    /// address.
    pub fn choose(&self, only: &[impl AsRef<str>], base: Option<&str>) -> Result<ChosenOperations, String> {
        let base = self.base(base)?;
        let mut names = HashMap::new();
        let (mut found, mut left_out) = (Vec::new(), Vec::new());
        let mut wanted: Vec<&str> = only.iter().map(AsRef::as_ref).collect();
        let mut known = Vec::new();
        for entry in self.entries() {
            if only.is_empty() && found.len() > MOST_TOOLS {
                break;
            }
            let name = unique(&mut names, &entry);
            let id = entry.says.get("operationId").and_then(Value::as_str).unwrap_or_default();
            let line = format!("{} {}", entry.verb, entry.path);
            let is_wanted = |one: &str| one == name || one == id || one.eq_ignore_ascii_case(&line);
            let before = wanted.len();
            wanted.retain(|one| !is_wanted(one));
            if !only.is_empty() && wanted.len() == before {
                known.push(name);
                continue;
            }
            match Operation::of(self, &entry, name.clone(), &base) {
                Ok(operation) => found.push(operation),
                Err(why) if !only.is_empty() => {
                    return Err(format!("the operation `{name}` cannot be called: {why}"));
                }
                Err(why) => left_out.push(LeftOutOperation { name, why }),
            }
        }
        if let Some(missing) = wanted.first() {
            known.truncate(12);
            return Err(format!("there is no operation `{missing}`; there is `{}`", known.join("`, `")));
        }
        match found.len() {
            0 => Err("none of its operations can be called".into()),
            count if count > MOST_TOOLS && only.is_empty() => Err(format!(
                "it has {} operations, more than a model can choose from; name some of them in `include`",
                self.entries().count()
            )),
            _ => Ok(ChosenOperations { operations: found, left_out }),
        }
    }
}

/// A legal name of an operation that is not among `names`, which have the number of the last operation with each name: numbers
/// are not tried again for each of many operations with the same name.
fn unique(names: &mut HashMap<String, usize>, entry: &Entry<'_>) -> String {
    const MOST: usize = 60;
    let id = entry.says.get("operationId").and_then(Value::as_str).filter(|id| !id.is_empty());
    let text = id.map_or_else(|| format!("{}{}", entry.verb, entry.path), str::to_owned);
    let name = legal(&text, MOST);
    let Some(last) = names.get(&name).copied() else {
        names.insert(name.clone(), 1);
        return name;
    };
    let mut number = last + 1;
    while names.contains_key(&format!("{name}_{number}")) {
        number += 1;
    }
    let numbered = format!("{name}_{number}");
    names.insert(name, number);
    names.insert(numbered.clone(), 1);
    numbered
}
