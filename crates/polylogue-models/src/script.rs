//! Scripted models, for demonstrations without a network and for tests.

mod form;
mod model;
mod pieces;
mod steps;

pub use model::{Scripted, Unconsumed, scripted};
pub use steps::{Expectation, Script, ScriptCall, ScriptError, ScriptStep};
