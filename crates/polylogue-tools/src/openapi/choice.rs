//! The choice of operations that become tools.

use std::collections::HashSet;

use serde_json::Value;

use super::document::{Document, Entry, legal};
use super::operation::Operation;

/// Maximum number of operations without a selection; a model cannot choose from more.
const MOST_TOOLS: usize = 64;

impl Document {
    /// The operations that `only` names, by their names or as `get /pets/{id}`; all if it names none. They are called at
    /// `base`, or where the document says.
    ///
    /// # Errors
    /// When one does not exist or cannot be called; when there are more than 64 and none is named; when there is no address.
    pub fn operations(&self, only: &[impl AsRef<str>], base: Option<&str>) -> Result<Vec<Operation>, String> {
        let base = self.base(base)?;
        let mut names = HashSet::new();
        let mut found = Vec::new();
        let mut wanted: Vec<&str> = only.iter().map(AsRef::as_ref).collect();
        let mut known = Vec::new();
        for entry in self.entries() {
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
                // Without being named it is not missed.
                Err(_) => {}
            }
        }
        if let Some(missing) = wanted.first() {
            known.truncate(12);
            return Err(format!("there is no operation `{missing}`; there is `{}`", known.join("`, `")));
        }
        match found.len() {
            0 => Err("none of its operations can be called".into()),
            count if count > MOST_TOOLS && only.is_empty() => Err(format!(
                "it has {count} operations, more than a model can choose from; name some of them in `include`"
            )),
            _ => Ok(found),
        }
    }
}

/// A legal, unique name of an operation.
fn unique(names: &mut HashSet<String>, entry: &Entry<'_>) -> String {
    const MOST: usize = 60;
    let id = entry.says.get("operationId").and_then(Value::as_str).filter(|id| !id.is_empty());
    let text = id.map_or_else(|| format!("{}{}", entry.verb, entry.path), str::to_owned);
    let name = legal(&text, MOST);
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !names.contains(name));
    let name = free.unwrap_or(name);
    names.insert(name.clone());
    name
}
