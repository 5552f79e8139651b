//! The JSON Schema and the reference page of team files.

use std::sync::OnceLock;

use polylogue_config::Config as _;
use serde_json::Value;

use crate::team::Team;

/// Writes the JSON Schema (draft 2020-12) of team files, for editors and for programs that write such files.
///
/// It is made of the same types that read files, so a file that an editor accepts has no wrong keys and types. What a schema
/// cannot express, such as that a participant exists, only [`load`](crate::load) checks.
pub fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| polylogue_config::schema::schema(Team::ty()))
}

/// Writes the reference of team files as Markdown, `docs/reference/team-file.md`: a section per type with a table of its keys
/// (key, type, default, meaning), made of the types that read files.
pub fn reference() -> String {
    INTRODUCTION.to_owned() + &polylogue_config::reference::reference(Team::ty())
}

const INTRODUCTION: &str = "# Reference of team files

Every key of a team file: its type with an example where it has a form of its own, its default and its meaning. Start at [Team](#team) and follow the links. [The tutorial](../team-file.md)
has complete examples.

This page is generated from the types that read team files. Change their doc comments in `crates/polylogue-team/src`, then run
`UPDATE=1 cargo test -p polylogue-team schema`.

";
