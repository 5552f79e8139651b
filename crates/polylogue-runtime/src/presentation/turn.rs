//! The open turns of a conversation.

use polylogue::layers::code::reply_of;
use polylogue_core::{Audience, Message, Part, Timestamp, ToolCall, ToolResult};

use super::ShownToolResult;

/// An open turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    pub(super) audience: Audience,
    /// The text with the last tool calls.
    pub(super) narrated: Option<String>,
    /// The text of the last reply: it becomes a message, or was a draft.
    pub(super) draft: Option<String>,
    /// The drafts that were shown.
    pub(super) drafts: Vec<String>,
    /// The reasoning that was shown.
    pub(super) thoughts: Vec<String>,
    /// The ids of the calls in the last reply.
    pub(super) own_calls: Vec<String>,
    /// Calls without a result, and when they began.
    pub(super) calls: Vec<(ToolCall, Timestamp)>,
    /// The results that were shown.
    pub(super) returned: Vec<ShownToolResult>,
    /// Calls whose results the message is going to have.
    pub(super) held: Vec<ShownToolResult>,
    /// The last prompt, which is shown if the turn fails.
    pub(super) prompt: Option<String>,
    /// The calls that a person was asked to approve.
    pub(super) approved: Vec<ToolCall>,
    /// What the participant is going to remember to have said.
    pub(super) memory: Option<String>,
}

impl Turn {
    pub(super) fn of(audience: Audience) -> Self {
        Self { audience, ..Self::default() }
    }

    pub(super) fn take_call(&mut self, id: &str) -> Option<(ToolCall, Timestamp)> {
        let index = self.calls.iter().position(|(call, _)| call.id == id)?;
        Some(self.calls.remove(index))
    }

    /// The content of `message` that was not shown with calls; results of code were shown there if `with_code`.
    pub(super) fn not_shown_of(&self, message: &Message, with_code: bool) -> Vec<Part> {
        let rest = besides_results(message, &outcomes(&self.returned)).filter(|_| with_code);
        let mut parts = rest.unwrap_or_else(|| message.parts.clone());
        let is_narrated = self.narrated.as_ref().is_some_and(|narrated| **narrated == *message.text());
        parts.retain(|part| match part {
            Part::ToolResult(came) => !self.returned.iter().any(|shown| shown.result == came.result),
            Part::Text(text) => !is_narrated && !self.drafts.iter().any(|draft| **draft == **text),
            _ => true,
        });
        parts
    }

    /// The parts of `message` that are the results that wait for it, if it has all of them.
    pub(super) fn output_in(&self, message: &Message) -> Option<Vec<Part>> {
        let held = outcomes(&self.held);
        besides_results(message, &held).map(|_| reply_of(&held))
    }

    /// The id of the call whose result `message` is, if that was shown and no model wrote the message.
    pub(super) fn result_in(&self, message: &Message) -> Option<String> {
        let is_result =
            |shown: &&ShownToolResult| !shown.is_code && shown.result.for_model() == message.parts;
        let is_of_tool = self.draft.is_none() && !message.parts.is_empty();
        self.returned.iter().find(is_result).filter(|_| is_of_tool).map(|shown| shown.call.id.clone())
    }
}

fn outcomes(results: &[ShownToolResult]) -> Vec<ToolResult> {
    results.iter().map(|result| result.result.clone()).collect()
}

fn besides_results(message: &Message, outcomes: &[ToolResult]) -> Option<Vec<Part>> {
    let results = if outcomes.is_empty() { return None } else { reply_of(outcomes) };
    let has_all = results.iter().all(|result| message.parts.contains(result));
    has_all.then(|| message.parts.iter().filter(|part| !results.contains(part)).cloned().collect())
}
