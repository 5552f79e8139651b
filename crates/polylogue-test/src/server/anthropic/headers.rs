//! What Anthropic's servers ask of the headers of a request.

use super::super::Received;
use super::super::rules::Checked;

/// Versions of the API. The newer one refuses parameters of sampling.
pub(super) const VERSIONS: [&str; 2] = ["2023-06-01", "2026-10-21"];

/// The header's value with which thinking can have `block_binding`.
const BINDING: &str = "thinking-binding-controls-2026-08-01";

/// What names of models begin with at Amazon Bedrock.
const AT_AMAZON: &str = "anthropic.";

/// Models for which Amazon Bedrock has only the older version: Claude before 4.7.
const ONLY_OLD: [&str; 9] = [
    "claude-3", "claude-haiku-4-5", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-5",
    "claude-opus-4-6", "claude-sonnet-4-0", "claude-sonnet-4-5", "claude-sonnet-4-6",
];

/// The version that a request asks for.
pub(super) fn version(received: &Received) -> Checked<&str> {
    let version = received.header("anthropic-version").ok_or("anthropic-version: header is required")?;
    let model = received.model().strip_prefix(AT_AMAZON);
    let has_only_old = model.is_some_and(|model| ONLY_OLD.iter().any(|old| model.starts_with(old)));
    if !VERSIONS.contains(&version) || has_only_old && version != VERSIONS[0] {
        return Err(format!("anthropic-version: `{version}` is not a version of the API for this model"));
    }
    let is_bound = received.body.pointer("/thinking/block_binding").is_some();
    if is_bound
        && !received.header("anthropic-beta").is_some_and(|all| all.split(',').any(|beta| beta == BINDING))
    {
        return Err("thinking.block_binding: Extra inputs are not permitted".into());
    }
    Ok(version)
}
