//! Models for Polylogue.

// (module lines)
mod cassette;
mod script;

pub use cassette::{Cassette, CassetteError, Recorder, Recording, Replayer};
pub use script::{Expectation, Script, ScriptCall, ScriptError, ScriptStep, Scripted, Unconsumed};
