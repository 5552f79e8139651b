//! The rules of every request, as a value of the kernel and as JSON on the wire.

use polylogue_core::Request;

pub use crate::server::{History, validate, validate_as};

/// Checks the rules of a request of the kernel.
///
/// Returns the first entry that breaks a rule, and the rule; see [`Request::check`].
/// Names the first entry that breaks a rule, and the rule; see [`Request::check`].
pub fn check(request: &Request<'_>) -> Result<(), String> {
    request.check()
}
