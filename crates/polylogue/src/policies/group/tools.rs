//! Routes tool calls to the participants that run them, and the results back to the caller.

use std::collections::BTreeMap;

use polylogue_core::text::enumerated;
use polylogue_core::{Audience, Body, Choice, Chooser, Event, Name, Part, Step, Transcript, TurnRequest};

/// Who runs which tool.
#[derive(Debug, Clone, Default)]
pub(super) struct Owners(BTreeMap<String, Name>);

impl Owners {
    pub(super) fn add(&mut self, owner: &Name, tools: impl IntoIterator<Item = impl Into<String>>) {
        self.0.extend(tools.into_iter().map(|tool| (tool.into(), owner.clone())));
    }

    /// The step for open tool calls: turns of the participants that run them, in parallel; then a turn of the caller.
    /// `None` if there are no such calls.
    pub(super) fn route(&self, chat: &Transcript) -> Option<Step> {
        if self.0.is_empty() {
            return None;
        }
        let had_turns = ran_tools(chat);
        // They can be private agents; participants who left, or have not joined, run nothing.
        let here = |name: &&Name| {
            !chat.left().iter().any(|(gone, _)| gone == *name)
                && !chat.late_joiners().any(|other| other == *name)
        };
        let mut owners: Vec<&Name> = Vec::new();
        for owner in chat.pending_calls().iter().filter_map(|(_, call)| self.0.get(&call.tool)).filter(here) {
            if !had_turns.contains(&owner) && !owners.contains(&owner) {
                owners.push(owner);
            }
        }
        if !owners.is_empty() {
            return Some(Step::Parallel(owners.into_iter().map(|owner| request(owner, None)).collect()));
        }
        let unknown = self.unknown(chat, !had_turns.is_empty());
        if had_turns.is_empty() && unknown.is_none() {
            return None;
        }
        let caller = caller(chat)?;
        here(&caller).then(|| Step::Turn(request(caller, unknown.as_deref())))
    }

    /// The error for the caller of an unknown tool: at once, but not in two turns in a row.
    fn unknown(&self, chat: &Transcript, ran_others: bool) -> Option<String> {
        let (who, call) = chat.pending_calls().iter().find(|(_, call)| !self.0.contains_key(&call.tool))?;
        let was_prompted = |requests: &[TurnRequest]| requests.iter().any(|request| request.prompt.is_some());
        let at_once = ran_others || chat.last_speaker() == Some(who);
        if !at_once || last_requests(chat).next().is_some_and(was_prompted) {
            return None;
        }
        let tools: Vec<String> = self.0.iter().map(|(tool, owner)| format!("`{tool}` ({owner})")).collect();
        let verb = if tools.len() == 1 { "is" } else { "are" };
        Some(format!("Nobody here runs the tool `{}`. There {verb} {}.", call.tool, enumerated(tools)))
    }
}

/// The turn request for `who` to run or receive tool calls.
fn request(who: &Name, prompt: Option<&str>) -> TurnRequest {
    let choice = Choice { of: vec![who.clone()], by: Chooser::Tools, reply: None };
    TurnRequest { prompt: prompt.map(Into::into), ..TurnRequest::to_all(who.clone()) }.with_choice(choice)
}

/// The turn requests in the chat, newest first, since it was last opened.
fn last_requests(chat: &Transcript) -> impl Iterator<Item = &[TurnRequest]> {
    let since_opened =
        |event: &&Event| !matches!(event.body, Body::Opened(_) | Body::Reopened { message: Some(_), .. });
    let events = chat.events().iter().rev().map(|event| -> &Event { event }).take_while(since_opened);
    events.filter_map(|event| match &event.body {
        Body::TurnStarted { turns: requests }
            if !requests.iter().all(|request| request.to == Audience::private()) =>
        {
            Some(&**requests)
        }
        _ => None,
    })
}

/// The participants that had turns to run tools since the last call.
fn ran_tools(chat: &Transcript) -> Vec<&Name> {
    let for_tools =
        |request: &TurnRequest| request.choice.as_ref().is_some_and(|choice| choice.by == Chooser::Tools);
    let mut turns =
        last_requests(chat).take_while(|requests| requests.iter().all(for_tools)).flatten().peekable();
    if turns.peek().is_none() {
        return Vec::new();
    }
    let caller = caller(chat);
    turns.map(|request| &request.who).take_while(|who| Some(*who) != caller).collect()
}

/// The participant with the last tool calls.
fn caller(chat: &Transcript) -> Option<&Name> {
    let asks = |part: &Part| matches!(part, Part::ToolCall(_));
    chat.messages().rev().find(|line| line.message.parts.iter().any(asks)).map(|line| &line.message.from)
}
