//! The items of each event.

use std::sync::Arc;
use std::time::Duration;

use polylogue::layers::code::CALL_ID;
use polylogue::policies::Handoff;
use polylogue_core::{
    Audience, Body, Call, Event, HistoryEntry, Message, ModelReply, Name, Opening, Outcome, Part, Path,
    TurnRequest, plain,
};
use serde_json::Value;

use super::{
    HandoffNote, Item, Kind, Presentation, ResultShown, ShownMessage, Source, ToolResult, Turn, TurnKey,
    value,
};

impl Presentation {
    pub(super) fn fold(&mut self, event: &Event) {
        let at = &event.at;
        self.release(Some(&event.body));
        match &event.body {
            Body::Opened(opening) => self.opened(at, opening),
            Body::TurnStarted { turns } => turns.iter().for_each(|request| self.started(at, request)),
            Body::ModelReplied(reply) => self.replied(at, reply),
            Body::Prompted { who, text } => self.prompted(at, who, text),
            Body::ToolCalled { who, call } => self.called(event, who, call),
            Body::ToolReturned { who, id, outcome } => self.returned(event, who, id, outcome),
            Body::Message(message) => self.ended_with(at, message),
            Body::Posted(message) => {
                let is_note = self.is_note(at, message);
                self.said(at, message, Source::Posted, is_note);
            }
            Body::Sent(message) => self.said(at, message, Source::Posted, false),
            Body::InputRequired(question) => {
                let key = (at.clone(), question.who.clone());
                self.late_results(&key);
                self.turn(&key).approved.extend(question.call.clone());
                self.put(at, Kind::InputRequired(question.clone()));
            }
            Body::InputProvided { to, text } => {
                let kind = Kind::InputProvided { to: to.clone(), text: text.clone(), is_repeated: false };
                self.waiting = Some(Item { at: at.clone(), kind });
            }
            Body::Failed { who, error } => {
                self.prompts(&(at.clone(), who.clone()));
                self.put(at, Kind::Failed { who: who.clone(), error: error.clone() });
            }
            Body::Closed { reason, summary } => {
                let is_shown = summary.trim() == self.last_said.trim();
                self.put(at, Kind::ChatClosed { reason: reason.clone(), summary: summary.clone(), is_shown });
            }
            Body::Reopened { message } => {
                self.put(at, Kind::Reopened);
                message.iter().for_each(|message| self.said(at, message, Source::Reopening, false));
            }
            Body::Remembered { who, entries } => {
                if let Some(HistoryEntry::Sent(text)) = entries.last() {
                    self.turn(&(at.clone(), who.clone())).memory = Some(text.to_string());
                }
            }
            other => self.moved(at, other),
        }
    }

    /// Shows what waits, unless `next` tells the same.
    pub(super) fn release(&mut self, next: Option<&Body>) {
        let Some(mut item) = self.waiting.take() else { return };
        let is_repeated = |text: &str| next.is_some_and(|next| repeats(next, text));
        match &mut item.kind {
            Kind::InputProvided { text, is_repeated: known, .. } => *known = is_repeated(text.trim()),
            Kind::PrivateReply { text, .. } if is_repeated(text) => return,
            _ => {}
        }
        self.out.push(item);
    }

    fn opened(&mut self, at: &Path, opening: &Opening) {
        self.prompts_around(at);
        let task = opening.task.trim();
        let is_quoted = opening.messages.iter().any(|message| message.plain().contains(&*opening.task));
        let is_known = task.is_empty() || is_quoted || (!self.is_whole() && task == self.last_said.trim());
        let task = (!is_known).then(|| Arc::clone(&opening.task));
        self.put(at, Kind::ChatOpened { opening: opening.clone(), task });
        for message in &opening.messages {
            self.said(at, message, Source::Opening, false);
        }
    }

    fn started(&mut self, at: &Path, request: &TurnRequest) {
        let turn = self.turn(&(at.clone(), request.who.clone()));
        *turn = Turn { calls: std::mem::take(&mut turn.calls), ..Turn::of(request.to.clone()) };
        self.put(at, Kind::TurnStarted(request.clone()));
    }

    fn replied(&mut self, at: &Path, reply: &ModelReply) {
        let key = (at.clone(), reply.who.clone());
        self.draft(&key);
        self.put(at, Kind::ModelReplied { who: reply.who.clone(), cached: reply.cached });
        self.thoughts(&key, &reply.parts);
        let text = plain(&reply.parts).into_owned();
        let own = reply.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call.id.clone()),
            _ => None,
        });
        let turn = self.turn(&key);
        turn.own_calls = own.collect();
        if turn.own_calls.is_empty() {
            turn.draft = Some(text);
        } else if !text.trim().is_empty() {
            turn.narrated = Some(text.clone());
            let to = turn.audience.clone();
            self.put(at, Kind::Narration { who: key.1, to, text });
        }
    }

    fn thoughts(&mut self, key: &TurnKey, parts: &[Part]) {
        for part in parts {
            let Part::Thought(text) = part else { continue };
            let turn = self.turn(key);
            if !part.is_blank() && !turn.thoughts.iter().any(|known| **known == **text) {
                turn.thoughts.push(text.to_string());
                let to = turn.audience.clone();
                self.put(&key.0, Kind::Reasoning { who: key.1.clone(), to, text: text.clone() });
            }
        }
    }

    /// A prompt of an agent to its own model. In a private turn it waits for the reply: those who follow a run need not read
    /// again and again how agents are asked about their tasks.
    fn prompted(&mut self, at: &Path, who: &Name, text: &str) {
        let key = (at.clone(), who.clone());
        self.draft(&key);
        let is_alone =
            matches!(self.audience(&key), Audience::Only(names) if names.iter().all(|name| name == who));
        self.turn(&key).prompts.push(text.to_owned());
        if !is_alone || self.is_whole() {
            self.prompts(&key);
        }
    }

    /// Shows the prompts of `key` that wait.
    fn prompts(&mut self, key: &TurnKey) {
        for text in std::mem::take(&mut self.turn(key).prompts) {
            self.put(&key.0, Kind::Prompted { who: key.1.clone(), text });
        }
    }

    /// Shows the prompts of those in whose turns the chat `at` begins.
    fn prompts_around(&mut self, at: &Path) {
        let is_around = |key: &&TurnKey| at.ancestors().any(|around| around == key.0);
        let mut around: Vec<TurnKey> = self.turns.keys().filter(is_around).cloned().collect();
        around.sort();
        around.iter().for_each(|key| self.prompts(key));
    }

    /// Shows the last reply as a draft, if it did not become a message.
    fn draft(&mut self, key: &TurnKey) {
        let draft = self.turn(key).draft.take().filter(|draft| !draft.trim().is_empty());
        if let Some(text) = draft.filter(|_| self.is_whole()) {
            self.put(&key.0, Kind::Draft { who: key.1.clone(), text });
        }
    }

    fn called(&mut self, event: &Event, who: &Name, call: &Call) {
        let key = (event.at.clone(), who.clone());
        let (is_code, is_requested) = self.origin(&key, &call.id);
        self.turn(&key).calls.push((call.clone(), event.time));
        let (who, call) = (who.clone(), call.clone());
        self.put(&event.at, Kind::ToolCalled { who, call, is_code, is_requested });
    }

    /// Whether the call runs code of a message, and whether a message of another participant requested it.
    fn origin(&mut self, key: &TurnKey, id: &str) -> (bool, bool) {
        let is_own = self.turn(key).own_calls.iter().any(|own| own == id);
        let is_requested = !is_own && self.requested.keys().any(|(at, _, asked)| *at == key.0 && asked == id);
        (!is_own && !is_requested && id.starts_with(CALL_ID), is_requested)
    }

    fn returned(&mut self, event: &Event, who: &Name, id: &str, outcome: &Outcome) {
        let key = (event.at.clone(), who.clone());
        let (is_code, is_requested) = self.origin(&key, id);
        self.prompts(&key);
        let is_whole = self.is_whole();
        let turn = self.turn(&key);
        let unknown = || (Call { id: id.to_owned(), tool: id.to_owned(), args: ().into() }, event.time);
        let (call, begun) = turn.take_call(id).unwrap_or_else(unknown);
        let note = note_of_handoff(&call, outcome);
        let shown = if is_code && !is_whole { ResultShown::InMessage } else { ResultShown::Here };
        match shown {
            ResultShown::InMessage => turn.held.push((call.clone(), outcome.clone())),
            _ => turn.returned.push(outcome.clone()),
        }
        let is_approved = turn.approved.contains(&call);
        let (to, took) = (turn.audience.clone(), event.time.0.saturating_sub(begun.0));
        if shown == ResultShown::Here {
            self.handed = note.as_ref().map(|note| (key, note.text.clone()));
        }
        let (who, outcome, took) = (who.clone(), outcome.clone(), Duration::from_millis(took));
        let returned =
            ToolResult { who, to, call, outcome, took, shown, is_code, is_requested, is_approved, note };
        self.put(&event.at, Kind::ToolReturned(returned));
    }

    /// Shows the results of `key` that no message had.
    pub(super) fn late_results(&mut self, key: &TurnKey) {
        let turn = self.turn(key);
        let to = turn.audience.clone();
        for (call, outcome) in std::mem::take(&mut turn.held) {
            let (who, to, took) = (key.1.clone(), to.clone(), Duration::ZERO);
            let (shown, is_code, note) = (ResultShown::Late, true, None);
            let (is_requested, is_approved) = (false, false);
            let returned =
                ToolResult { who, to, call, outcome, took, shown, is_code, is_requested, is_approved, note };
            self.put(&key.0, Kind::ToolReturned(returned));
        }
    }

    /// A turn ended with `message`.
    fn ended_with(&mut self, at: &Path, message: &Message) {
        let key = (at.clone(), message.from.clone());
        let decision = value::decision(&message.parts);
        let turn = self.turn(&key);
        turn.draft.take_if(|draft| **draft == *message.plain());
        if decision.is_some() {
            turn.prompts.clear();
        }
        self.draft(&key);
        self.prompts(&key);
        let output = self.turn(&key).output_in(message);
        if output.is_some() {
            self.turn(&key).held.clear();
        }
        self.late_results(&key);
        match decision {
            _ if !message.to.is_private() || self.is_whole() => {
                self.said(at, message, Source::Turn, false);
                if let Some(Item { kind: Kind::Message(said), .. }) = self.out.last_mut() {
                    said.output = output.unwrap_or_default();
                }
            }
            Some(text) => self.put(at, Kind::Decision { who: message.from.clone(), text }),
            None => self.aside(at, message),
        }
        self.end_turn(&key);
    }

    /// A private reply waits for its effect.
    fn aside(&mut self, at: &Path, message: &Message) {
        let text = message.plain();
        let data = message.parts.iter().find_map(|part| match part {
            Part::Data(value) if text.trim().is_empty() => Some(value.to_string()),
            _ => None,
        });
        let text = data.unwrap_or_else(|| text.into_owned());
        self.waiting =
            Some(Item { at: at.clone(), kind: Kind::PrivateReply { who: message.from.clone(), text } });
    }

    /// Shows `message`.
    fn said(&mut self, at: &Path, message: &Message, source: Source, is_note: bool) {
        let key = (at.clone(), message.from.clone());
        if source == Source::Turn {
            self.thoughts(&key, &message.parts);
        }
        let mut answered = Vec::new();
        for part in &message.parts {
            match part {
                Part::Outcome(came) => {
                    let asked = (at.clone(), came.to.clone(), came.id.clone());
                    answered.extend(self.requested.remove(&asked));
                }
                Part::Call(call) => {
                    let asks = (at.clone(), message.from.clone(), call.id.clone());
                    self.requested.insert(asks, call.clone());
                }
                _ => {}
            }
        }
        let parts = match self.turns.get(&key).filter(|_| source == Source::Turn) {
            Some(turn) => turn.not_shown_of(message, self.is_whole()),
            None => message.parts.clone(),
        };
        self.last_said = message.plain().into_owned();
        let (message, output) = (message.clone(), Vec::new());
        self.put(at, Kind::Message(ShownMessage { message, parts, output, source, is_note, answered }));
    }

    fn end_turn(&mut self, key: &TurnKey) {
        self.prompts(key);
        self.late_results(key);
        self.draft(key);
        let calls = std::mem::take(&mut self.turn(key).calls);
        if calls.is_empty() {
            self.turns.remove(key);
        } else {
            *self.turn(key) = Turn { calls, ..Turn::default() };
        }
        self.put(&key.0, Kind::TurnEnded { who: key.1.clone() });
    }

    fn moved(&mut self, at: &Path, body: &Body) {
        let who = match body {
            Body::Passed { who } => {
                let key = (at.clone(), who.clone());
                if let Some(text) = self.turn(&key).memory.take() {
                    self.end_turn(&key);
                    if self.is_whole() {
                        self.put(at, Kind::Remembered { who: key.1, text });
                    }
                    return;
                }
                who
            }
            Body::Left { who, .. } | Body::Stopped { who, .. } | Body::Joined { who, .. } => who,
            Body::Cleared { who, .. } => who,
            Body::CapabilityMissing { .. } | Body::ContinuationFailed { .. } => {
                return self.put(at, Kind::Notice(body.clone()));
            }
            _ => return,
        };
        self.end_turn(&(at.clone(), who.clone()));
        self.put(at, Kind::Notice(body.clone()));
    }

    /// Whether `message` is the note of the handoff whose call was shown last, and nothing else.
    fn is_note(&mut self, at: &Path, message: &Message) -> bool {
        self.handed.take().is_some_and(|((chat, who), note)| {
            chat == *at && who == message.from && *note == *message.plain() && message.parts.len() == 1
        })
    }
}

/// Whether `next` tells `text`, which was written in private before it: a summary, an answer that becomes a message, passes or
/// leaves, or a selection.
fn repeats(next: &Body, text: &str) -> bool {
    match next {
        Body::Closed { summary, .. } => summary.trim() == text.trim(),
        Body::Message(message) => message.plain().trim() == text.trim(),
        Body::Passed { .. } => text.trim().is_empty(),
        Body::Left { .. } | Body::Stopped { .. } => true,
        Body::TurnStarted { turns } => {
            turns.iter().any(|request| request.choice.is_some() && !request.to.is_private())
        }
        _ => false,
    }
}

/// The note with which `call` hands over, which is its result.
fn note_of_handoff(call: &Call, outcome: &Outcome) -> Option<HandoffNote> {
    let text = call.tool.starts_with(Handoff::PREFIX).then(|| value::result_text(outcome))?;
    let fields = call.args.as_object().into_iter().flat_map(serde_json::Map::values);
    let in_arguments = fields.filter_map(Value::as_str).any(|value| value.trim() == text.trim());
    (!text.trim().is_empty()).then_some(HandoffNote { text, in_arguments })
}
