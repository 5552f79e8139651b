//! Codes of what can be wrong with any file, whatever its types are.

/// A value does not fit its key.
pub const INVALID: &str = "invalid-value";
/// The text is not YAML, or uses parts of YAML that are not supported.
pub const SYNTAX: &str = "syntax";
/// A key is unknown.
pub const UNKNOWN_KEY: &str = "unknown-key";
/// A required key is missing.
pub const MISSING_KEY: &str = "missing-key";
/// A name is not defined.
pub const UNKNOWN_NAME: &str = "unknown-name";
/// A name is defined twice.
pub const DUPLICATE_NAME: &str = "duplicate-name";
/// A variable is not defined.
pub const UNKNOWN_VARIABLE: &str = "unknown-variable";
