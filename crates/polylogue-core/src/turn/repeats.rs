//! Detects that an agent makes the same tool call repeatedly within its turn.

use std::sync::Arc;

use crate::{Body, Event, StopReason, ToolCall, ToolResult};

/// The stop reason if `calls` are one repetition too many: equal to the previous calls, which all had equal results.
/// Different results are progress, as when polling a job. 0 means no limit.
pub(super) fn repeated_calls(journal: &[Arc<Event>], calls: &[ToolCall], limit: usize) -> Option<StopReason> {
    let first = calls.first().filter(|_| limit > 0)?;
    let is_equal = |call: &ToolCall| call.tool == first.tool && call.args == first.args;
    let now = calls.iter().take_while(|call| is_equal(call)).count();
    let before = equal_before(journal, is_equal);
    if before.len() + now <= limit {
        return None;
    }
    Some(StopReason::repeated_calls(before.into_iter().rev().collect()))
}

/// The last calls of the turn, newest first, as long as they are equal and have equal results.
fn equal_before(journal: &[Arc<Event>], is_equal: impl Fn(&ToolCall) -> bool) -> Vec<u64> {
    let result = |id: &str| {
        journal.iter().rev().find_map(|event| match &event.body {
            Body::ToolReturned { id: of, result: outcome, .. } if of == id => Some(outcome),
            _ => None,
        })
    };
    let mut last: Option<Option<&ToolResult>> = None;
    let called = journal.iter().rev().filter_map(|event| match &event.body {
        Body::ToolCalled { call, .. } => Some((event.seq, call)),
        _ => None,
    });
    called
        .take_while(|(_, call)| {
            let outcome = result(&call.id);
            is_equal(call) && *last.get_or_insert(outcome) == outcome
        })
        .map(|(seq, _)| seq)
        .collect()
}
