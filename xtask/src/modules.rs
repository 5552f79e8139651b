//! The modules of a crate, and which of them use which.
//!
//! Read from the source text: `use` declarations and paths, also within macro calls, are resolved to the module that
//! defines the name, through re-exports. Method calls name no module, so they are invisible here: `impl` blocks of one
//! type may be spread over several modules.

mod graph;
mod names;
mod resolve;
mod tree;

pub(crate) use self::graph::Level;
pub(crate) use self::tree::Tree;
