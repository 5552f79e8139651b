//! Configuration files as types: one definition per key.
//!
//! A key is a field of a struct with `#[derive(Config)]`. From it come the reader, which finds every mistake of a file in
//! one run, each with its line and a suggestion; the [JSON Schema](schema::schema); the [reference](reference::reference);
//! the default; and the writer.
//!
//! # Example: a file with three mistakes
//!
//! ```
//! use polylogue_config::{Config, Cx, Vars, diagnostic::Report, source::Source, yaml};
//!
//! /// Drafts and critique.
//! #[derive(Config)]
//! struct Refine {
//!     /// The critic.
//!     #[key(none = "the agent itself")]
//!     critic: Option<String>,
//!     /// Maximum number of rounds.
//!     #[key(default = 3, range = 0..=100)]
//!     rounds: u32,
//! }
//!
//! let source = Source::new("refine.yaml", "critic: 7\nround: 2\nrounds: 1000\n");
//! let mut report = Report::new(&source);
//! let node = yaml::parse(&mut report).expect("it is YAML");
//! let mut vars = Vars::default();
//! let refine = Refine::read(&node, &mut Cx::new("a refinement", &mut report, &mut vars));
//! assert_eq!(refine.critic.as_deref(), Some(""));
//! let found: Vec<String> = report.finish().iter().map(|one| one.message.clone()).collect();
//! assert_eq!(found, [
//!     "`critic` must be a text, not a number",
//!     "unknown key `round`",
//!     "`rounds` must be at most 100",
//! ]);
//! ```

mod adapter;
mod choice;
pub mod codes;
mod config;
mod cx;
pub mod diagnostic;
mod fields;
mod foreign;
mod leaf;
mod names;
pub mod reference;
mod references;
pub mod schema;
pub mod source;
pub mod suggest;
pub mod types;
mod values;
pub mod vars;
mod wrap;
mod wrong;
pub mod yaml;

pub use adapter::{As, Same};
pub use config::Config;
pub use cx::{Cx, Filled, Label};
pub use fields::Keys;
pub use foreign::Foreign;
pub use leaf::{Leaf, TextKind};
pub use names::{NameKind, Names};
pub use polylogue_config_derive::Config;
pub use references::{ByName, NewName, Ref};
pub use types::Illegal;
pub use values::{Verbatim, text};
pub use vars::Vars;
pub use wrap::{At, OneOrMany, Pair, Switch};

/// What derived code calls.
#[doc(hidden)]
pub mod derived {
    pub use serde_json::{Map, Value};

    pub use crate::choice::{Chosen, by_shape, choose};
    pub use crate::fields::Fields;
    pub use crate::types::{Key, Kind, KindOf, Limits, Literal, Struct, Type, Variant};
    pub use crate::wrong::mismatch;
    pub use crate::yaml::Node;
    pub use crate::{As, Config, Cx, Keys};
}
