//! The items of each event.

use std::sync::Arc;
use std::time::Duration;

use polylogue::layers::code::CALL_ID;
use polylogue::policies::Handoff;
use polylogue_core::{
    Body, CallPurpose, Chooser, Event, HistoryEntry, Message, ModelReply, Name, Opening, Part, Path,
    Responder, ToolCall, ToolResult, ToolStatus, TurnRequest, text_of,
};
use polylogue_models::written_call_hint;
use serde_json::Value;

use super::{
    HandoffNote, Item, Kind, Presentation, ResultShown, ShownMessage, ShownToolResult, Source, Turn, TurnKey,
    value, waiting,
};

impl Presentation {
    pub(super) fn fold(&mut self, event: &Event) {
        let at = &event.chat;
        self.release(Some(event));
        match &event.body {
            Body::Opened(opening) => self.opened(at, opening),
            Body::TurnStarted { turns } => turns.iter().for_each(|request| self.started(at, request)),
            // A summary is shown with the compaction that it leads to.
            Body::ModelReplied(reply) if reply.purpose == CallPurpose::Compaction => {}
            Body::ModelReplied(reply) => self.replied(at, reply),
            Body::Prompted { who, text } => self.prompted(at, who, text),
            Body::ToolCalled { who, call } => self.called(event, who, call),
            Body::ToolReturned { who, id, result } => self.returned(event, who, id, result),
            Body::Message(message) => self.ended_with(at, message),
            Body::Posted(message) => {
                let result_of = self.note_in(at, message);
                self.said(at, message, Source::Posted, result_of);
            }
            Body::Sent(message) => self.said(at, message, Source::Posted, None),
            Body::InputRequired(question) => {
                let key = (at.clone(), question.who.clone());
                self.late_results(&key);
                self.turn(&key).approved.extend(question.call.clone());
                self.put(at, Kind::InputRequired(question.clone()));
            }
            Body::InputProvided { to, text, by } => {
                let (to, text, by) = (to.clone(), text.clone(), by.clone());
                // That no person answered is nothing that a later message says.
                if by == Responder::Timeout {
                    self.put(at, Kind::Notice(event.body.clone()));
                }
                let kind = Kind::InputProvided { to, text, is_repeated: false, by };
                self.waiting.push(Item { chat: at.clone(), kind });
            }
            Body::Failed { who, error } => {
                self.failed_prompt(&(at.clone(), who.clone()));
                self.put(at, Kind::Failed { who: who.clone(), error: error.clone() });
            }
            Body::Closed { reason, summary } => {
                let (reason, summary) = (reason.clone(), summary.clone());
                let source = self.said.closed(at, &summary);
                self.put(at, Kind::ChatClosed { reason, summary, source });
            }
            Body::Reopened { message, .. } => {
                // An agent that is called for the first time continues nothing.
                if self.said.has_begun(at) {
                    self.put(at, Kind::Reopened);
                }
                message.iter().for_each(|message| self.said(at, message, Source::Reopening, None));
            }
            Body::Remembered { who, entries } => {
                if let Some(HistoryEntry::Sent(text)) = entries.last() {
                    self.turn(&(at.clone(), who.clone())).memory = Some(text.to_string());
                }
            }
            Body::Paused | Body::Resumed => {
                let was_paused = std::mem::replace(&mut self.is_paused, event.body == Body::Paused);
                // That a run is to continue is logged also where nothing was paused.
                if was_paused || self.is_paused {
                    self.put(at, Kind::Notice(event.body.clone()));
                }
            }
            other => self.moved(at, other),
        }
    }

    /// Shows what waits and is not shown by `next` or what may follow it.
    pub(super) fn release(&mut self, next: Option<&Event>) {
        let shown = waiting::released(&mut self.waiting, next);
        self.out.extend(shown);
    }

    fn opened(&mut self, at: &Path, opening: &Opening) {
        let task = opening.task.trim();
        let is_quoted = opening.messages.iter().any(|message| message.text().contains(&*opening.task));
        let is_known = task.is_empty() || is_quoted || self.said.is_known_around(at, task);
        let task = (!is_known).then(|| Arc::clone(&opening.task));
        self.put(at, Kind::ChatOpened { opening: opening.clone(), task });
        for message in &opening.messages {
            self.said(at, message, Source::Opening, None);
        }
    }

    fn started(&mut self, at: &Path, request: &TurnRequest) {
        let turn = self.turn(&(at.clone(), request.who.clone()));
        *turn = Turn { calls: std::mem::take(&mut turn.calls), ..Turn::of(request.to.clone()) };
        let handed = self.handed.take_if(|((chat, _), _)| *chat == *at);
        let is_handoff = request.choice.as_ref().is_some_and(|choice| choice.by == Chooser::Handoff);
        let is_announced = is_handoff && handed.is_some();
        self.put(at, Kind::TurnStarted { request: request.clone(), is_announced });
    }

    fn replied(&mut self, at: &Path, reply: &ModelReply) {
        let key = (at.clone(), reply.who.clone());
        self.draft(&key);
        self.put(at, Kind::ModelReplied { who: reply.who.clone(), cached: reply.cached });
        self.fell_back(at, reply);
        if let Some(change) = self.prefixes.read(at, reply) {
            self.put(at, Kind::PromptCacheMissed { who: reply.who.clone(), change });
        }
        let dropped = reply.verbatim.as_ref().and_then(|verbatim| verbatim.dropped_seals);
        if let Some(bytes) = dropped.filter(|_| self.is_whole()) {
            let (who, model) = (reply.who.clone(), Arc::clone(&reply.model));
            self.put(at, Kind::SealsDropped { who, model, bytes });
        }
        self.thoughts(&key, &reply.parts);
        let text = text_of(&reply.parts).into_owned();
        self.written_call(at, reply, &text);
        let own = reply.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call.id.clone()),
            _ => None,
        });
        let turn = self.turn(&key);
        turn.prompt = None;
        turn.own_calls = own.collect();
        if turn.own_calls.is_empty() {
            turn.draft = Some(text);
        } else if !text.trim().is_empty() {
            turn.narrated = Some(text.clone());
            let to = turn.audience.clone();
            self.put(at, Kind::Narration { who: key.1, to, text });
        }
    }

    /// Shows that another model replied than the one that was asked, once until that changes.
    fn fell_back(&mut self, at: &Path, reply: &ModelReply) {
        let Some(asked) = &reply.requested_model else {
            self.fallbacks.remove(&reply.who);
            return;
        };
        let (who, model) = (reply.who.clone(), Arc::clone(&reply.model));
        if self.fallbacks.insert(who.clone(), Arc::clone(&model)).as_ref() != Some(&model) {
            let (asked, because) = (Arc::clone(asked), reply.because.clone());
            self.put(at, Kind::FellBack { who, model, asked, because });
        }
    }

    /// Shows that the model wrote a call as `text`, once for each agent and model.
    fn written_call(&mut self, at: &Path, reply: &ModelReply, text: &str) {
        if reply.parts.iter().any(|part| matches!(part, Part::ToolCall(_))) {
            return;
        }
        let Some(hint) = written_call_hint(&reply.model, text) else { return };
        let (who, model) = (reply.who.clone(), Arc::clone(&reply.model));
        if self.written_calls.insert((who.clone(), Arc::clone(&model))) {
            self.put(at, Kind::CallWritten { who, model, hint });
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

    /// A prompt of an agent to its own model. Those who follow a run need not read repeatedly how agents are asked about
    /// their tasks and how to call tools.
    fn prompted(&mut self, at: &Path, who: &Name, text: &str) {
        let key = (at.clone(), who.clone());
        self.draft(&key);
        if self.is_whole() {
            self.put(at, Kind::Prompted { who: who.clone(), text: text.to_owned() });
        } else {
            self.turn(&key).prompt = Some(text.to_owned());
        }
    }

    /// Shows the last prompt of `key`, whose turn fails.
    fn failed_prompt(&mut self, key: &TurnKey) {
        if let Some(text) = self.turn(key).prompt.take() {
            self.put(&key.0, Kind::Prompted { who: key.1.clone(), text });
        }
    }

    /// Shows the last reply as a draft, if it did not become a message.
    fn draft(&mut self, key: &TurnKey) {
        let draft = self.turn(key).draft.take().filter(|draft| !draft.trim().is_empty());
        if let Some(text) = draft.filter(|_| self.is_whole()) {
            self.turn(key).drafts.push(text.clone());
            self.put(&key.0, Kind::Draft { who: key.1.clone(), text });
        }
    }

    fn called(&mut self, event: &Event, who: &Name, call: &ToolCall) {
        let key = (event.chat.clone(), who.clone());
        let (is_code, is_requested) = self.origin(&key, &call.id);
        self.draft(&key);
        self.turn(&key).calls.push((call.clone(), event.time));
        let (who, call) = (who.clone(), call.clone());
        self.put(&event.chat, Kind::ToolCalled { who, call, is_code, is_requested });
    }

    /// Whether the call runs code of a message, and whether a message of another participant requested it.
    fn origin(&mut self, key: &TurnKey, id: &str) -> (bool, bool) {
        let is_own = self.turn(key).own_calls.iter().any(|own| own == id);
        let is_requested = !is_own && self.requested.keys().any(|(at, _, asked)| *at == key.0 && asked == id);
        (!is_own && !is_requested && id.starts_with(CALL_ID), is_requested)
    }

    fn returned(&mut self, event: &Event, who: &Name, id: &str, result: &ToolResult) {
        let key = (event.chat.clone(), who.clone());
        let (is_code, is_requested) = self.origin(&key, id);
        let is_whole = self.is_whole();
        let turn = self.turn(&key);
        let unknown = || (ToolCall { id: id.to_owned(), tool: id.to_owned(), args: ().into() }, event.time);
        let (call, begun) = turn.take_call(id).unwrap_or_else(unknown);
        let returned = ShownToolResult {
            who: who.clone(),
            to: turn.audience.clone(),
            result: result.clone(),
            took: Duration::from_millis(event.time.0.saturating_sub(begun.0)),
            shown: if is_code && !is_whole { ResultShown::InMessage } else { ResultShown::Here },
            is_code,
            is_requested,
            is_approved: turn.approved.contains(&call),
            note: note_of_handoff(&call, result),
            call,
            repeats: self.said.is_known_within(&event.chat, &value::result_text(result)),
        };
        if returned.shown == ResultShown::InMessage {
            self.turn(&key).held.push(returned.clone());
        } else {
            if returned.note.is_some() {
                self.handed = Some((key.clone(), returned.clone()));
            }
            self.turn(&key).returned.push(returned.clone());
        }
        self.put(&event.chat, Kind::ToolReturned(returned));
    }

    /// Shows the results of `key` that no message had.
    pub(super) fn late_results(&mut self, key: &TurnKey) {
        for held in std::mem::take(&mut self.turn(key).held) {
            let late = ShownToolResult { shown: ResultShown::Late, took: Duration::ZERO, ..held };
            self.put(&key.0, Kind::ToolReturned(late));
        }
    }

    /// A turn ended with `message`.
    fn ended_with(&mut self, at: &Path, message: &Message) {
        let key = (at.clone(), message.from.clone());
        let decision = value::decision(&message.parts);
        let turn = self.turn(&key);
        let result_of = turn.result_in(message);
        turn.draft.take_if(|draft| **draft == *message.text());
        self.draft(&key);
        let output = self.turn(&key).output_in(message);
        if output.is_some() {
            self.turn(&key).held.clear();
        }
        self.late_results(&key);
        match decision {
            _ if !message.to.is_private() || self.is_whole() => {
                self.said(at, message, Source::Turn, result_of);
                if let Some(Item { kind: Kind::Message(said), .. }) = self.out.last_mut() {
                    said.output = output.unwrap_or_default();
                }
                // The selection shows it.
                if message.to.is_private() && value::only_selects(&message.parts) {
                    self.waiting.extend(self.out.pop());
                }
            }
            Some(text) => self.put(at, Kind::Decision { who: message.from.clone(), text }),
            None => self.private_reply(at, message),
        }
        self.end_turn(&key);
    }

    /// A private reply waits for its effect.
    fn private_reply(&mut self, at: &Path, message: &Message) {
        let text = message.text();
        let data = message.parts.iter().find_map(|part| match part {
            Part::Data(value) if text.trim().is_empty() => Some(value.to_string()),
            _ => None,
        });
        let text = data.unwrap_or_else(|| text.into_owned());
        let kind = Kind::PrivateReply { who: message.from.clone(), text };
        self.waiting.push(Item { chat: at.clone(), kind });
    }

    /// Shows `message`, which may be the result of a call that was shown.
    fn said(&mut self, at: &Path, message: &Message, source: Source, result_of: Option<String>) {
        let key = (at.clone(), message.from.clone());
        if source == Source::Turn {
            self.thoughts(&key, &message.parts);
        }
        let mut answered = Vec::new();
        for part in &message.parts {
            match part {
                Part::ToolResult(came) => {
                    let asked = (at.clone(), came.to.clone(), came.id.clone());
                    answered.extend(self.requested.remove(&asked));
                }
                Part::ToolCall(call) => {
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
        let repeats = self.repeats(at, message, source);
        if source == Source::Turn || !repeats {
            self.said.add(at, &message.from, &message.text());
        }
        let (message, output) = (message.clone(), Vec::new());
        let said = ShownMessage { message, parts, output, source, result_of, answered, repeats };
        self.put(at, Kind::Message(said));
    }

    /// Whether `message` passes on what another chat has shown: the result of a chat within its turn, or what a nested chat
    /// begins with.
    fn repeats(&self, at: &Path, message: &Message, source: Source) -> bool {
        let text = message.text();
        match source {
            Source::Turn => self.said.is_known_within(at, &text),
            Source::Opening | Source::Reopening => self.said.is_known_around(at, &text),
            Source::Posted => false,
        }
    }

    fn end_turn(&mut self, key: &TurnKey) {
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
            // Others come from options of a command, which are on the screen, or from an answer.
            Body::LimitsChanged { more, changes, by, .. }
                if changes.is_empty() || (!self.is_whole() && by.is_none() && more.is_empty()) =>
            {
                return;
            }
            body if body.is_of_run() => return self.put(at, Kind::Notice(body.clone())),
            Body::NextSpeaker { .. }
            | Body::ReplyInterrupted { .. }
            | Body::TooLong { .. }
            | Body::Compacted(_)
            | Body::CapabilityMissing { .. }
            | Body::SealsRefused { .. }
            | Body::ParametersIgnored { .. }
            | Body::OutputLimited(_)
            | Body::BackgroundStarted(_)
            | Body::BackgroundEnded(_)
            | Body::ContinuationFailed { .. } => {
                return self.put(at, Kind::Notice(body.clone()));
            }
            _ => return,
        };
        self.end_turn(&(at.clone(), who.clone()));
        self.put(at, Kind::Notice(body.clone()));
    }

    /// The id of the last handoff that was shown, if `message` is its note and nothing else.
    fn note_in(&self, at: &Path, message: &Message) -> Option<String> {
        let ((chat, who), handed) = self.handed.as_ref()?;
        let note = handed.note.as_ref().filter(|_| *chat == *at && *who == message.from)?;
        (*note.text == *message.text() && message.parts.len() == 1).then(|| handed.call.id.clone())
    }
}

/// The note with which `call` hands over, which is its result.
fn note_of_handoff(call: &ToolCall, result: &ToolResult) -> Option<HandoffNote> {
    let is_done = call.tool.starts_with(Handoff::PREFIX) && result.status == ToolStatus::Done;
    let text = is_done.then(|| value::result_text(result))?;
    let fields = call.args.as_object().into_iter().flat_map(serde_json::Map::values);
    let in_arguments = fields.filter_map(Value::as_str).any(|value| value.trim() == text.trim());
    (!text.trim().is_empty()).then_some(HandoffNote { text, in_arguments })
}
