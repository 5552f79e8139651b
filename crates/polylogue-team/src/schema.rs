//! The JSON Schema of team files.

use std::sync::OnceLock;

use polylogue_config::Config as _;
use serde_json::Value;

use crate::team::Team;

/// The JSON Schema (draft 2020-12) of team files, for editors and for programs that write such files.
///
/// It is made of the same types that read files, so a file that an editor accepts has no wrong keys and types. What a schema
/// cannot express, such as that a participant exists, only [`load`](crate::load) checks.
#[must_use]
pub fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| polylogue_config::schema::schema(Team::ty()))
}
