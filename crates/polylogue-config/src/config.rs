//! The trait of configuration types.

use serde_json::Value;

use crate::cx::Cx;
use crate::types::Type;
use crate::yaml::Node;

/// A type whose values can be read from a configuration file. Derive it.
///
/// Reading is total: a wrong value is reported and replaced by a [`hole`](Config::hole), so that every mistake of a file is
/// found in one run and checks across keys run on typed values. A value is meaningful only if the report has no error.
pub trait Config: Sized + 'static {
    /// Whether a key of this type can be absent; its value is then that of [`absent`](Config::absent).
    const OPTIONAL: bool = false;

    /// Returns the description of the type.
    fn ty() -> &'static Type;

    /// Reads a value, and reports what is wrong with it.
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self;

    /// Returns a placeholder for a value that could not be read.
    fn hole() -> Self;

    /// Returns the value of an absent key.
    fn absent() -> Self {
        Self::hole()
    }

    /// Returns a placeholder for the value of a required key that is missing, which is reported already.
    fn missing(_: &mut Cx<'_, '_>) -> Self {
        Self::hole()
    }

    /// Writes the value as a file would have it.
    fn write(&self) -> Value;
}
