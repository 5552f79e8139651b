//! Fallback: keys without a list of models, and without a failure after which the next model is asked.

use crate::codes;
use crate::diagnostic::Report;
use crate::source::Span;
use crate::team::Team;

/// Nothing is said if the caller has `given` another model: the file can be right without it.
pub(super) fn check_built(team: &Team, given: Option<&str>, report: &mut Report<'_>) {
    if given.is_some() {
        return;
    }
    let (failures, returns) = (team.fallback.given(), team.fallback_return.given());
    if team.may_have_several_models() {
        if let Some(at) = failures.filter(|_| team.fallback.is_empty()) {
            let message =
                "`fallback` names no failure: after none of them, the next model of a list is asked";
            let hint =
                "name some, as in `fallback: [rate, overload]`, or remove `fallback` for all but `refusal`";
            report.warning(codes::NO_EFFECT, at, message, hint);
        }
        return;
    }
    let mut warn = |key: &str, at: &Span| {
        let message = format!("`{key}` has no effect: no agent has a list of models");
        let hint = format!(
            "name several models, as in `model: [openai:gpt-5, anthropic:claude-sonnet-4-5]`, or remove `{key}`"
        );
        report.warning(codes::NO_EFFECT, at, message, hint);
    };
    if let Some(at) = failures {
        warn("fallback", at);
    }
    if let Some(at) = returns {
        warn("fallback_return", at);
    }
}
