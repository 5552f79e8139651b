//! The timeline of a conversation: its model calls, tool calls and questions to people, with times and usage.

use std::collections::HashMap;
use std::sync::Arc;

use polylogue_core::{Body, Event, ModelReply, Money, Name, Path, Timestamp, ToolCall, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A model call, a tool call or a question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallRow {
    /// The `seq` of the event of its result. Without a result: the event with which it began.
    pub seq: u64,
    /// The chat.
    pub chat: Path,
    /// The agent that calls, or asks.
    pub who: Name,
    /// The time at which it began. Of a model call: when its agent had everything for it.
    pub start_ms: Timestamp,
    /// The time at which its result was stored; `None` while it has none.
    pub end_ms: Option<Timestamp>,
    /// The kind of call.
    #[serde(flatten)]
    pub kind: CallKind,
}

/// The kind of call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CallKind {
    /// A model.
    Model {
        /// The number of the call among the agent's model calls, counted from 1.
        call: u64,
        /// The model, as `provider:model`.
        model: Arc<str>,
        /// Tokens; unknown counts are omitted.
        usage: Usage,
        /// Money; `None` if it is unknown.
        cost: Option<Money>,
        /// Whether the reply came from a cache on this machine.
        replayed: bool,
    },
    /// A tool.
    Tool {
        /// The name of the tool.
        tool: String,
        /// The status of the result; `None` while it runs.
        status: Option<String>,
        /// The event of an earlier call of the same tool by the same agent with the same arguments.
        repeats: Option<u64>,
    },
    /// A person.
    Person {
        /// Whether the answer is there.
        answered: bool,
    },
}

/// Returns the calls of a conversation, in the order of their events.
pub fn call_rows(events: &[Event]) -> Vec<CallRow> {
    let mut timeline = Timeline::default();
    events.iter().for_each(|event| timeline.add(event));
    timeline.rows
}

/// Whose turn it is in which chat.
type Place = (Path, Name);

/// Finds when model calls begin, from the events of a log: a call lasts from the latest event of its turn, which is what it
/// waited for, to its reply.
#[derive(Debug, Clone, Default)]
pub struct CallStarts(HashMap<Path, HashMap<Name, Timestamp>>);

impl CallStarts {
    /// Takes the next event. Returns when the model call began whose reply it is, if it is one.
    pub fn take(&mut self, event: &Event) -> Option<Timestamp> {
        match &event.body {
            Body::TurnStarted { turns } => turns.iter().for_each(|turn| self.is_ready(event, &turn.who)),
            Body::ModelReplied(reply) => {
                let start = self.of(&event.chat, &reply.who).unwrap_or(event.time);
                self.is_ready(event, &reply.who);
                return Some(start);
            }
            Body::InputProvided { to: who, .. }
            | Body::ToolReturned { who, .. }
            | Body::Prompted { who, .. }
            | Body::Failed { who, .. } => self.is_ready(event, who),
            // A chat within a turn: its agent continues.
            Body::Closed { .. } => self.chat_closed(event),
            _ => {}
        }
        None
    }

    /// Returns when the call of `who` in the chat `at` began that has no reply yet.
    pub fn of(&self, at: &Path, who: &Name) -> Option<Timestamp> {
        self.0.get(at)?.get(who).copied()
    }

    fn is_ready(&mut self, event: &Event, who: &Name) {
        self.0.entry(event.chat.clone()).or_default().insert(who.clone(), event.time);
    }

    /// Agents of the chats around the one that has closed continue. Only these are looked at: a log can have any number of chats.
    fn chat_closed(&mut self, event: &Event) {
        for at in event.chat.ancestors().filter(|at| event.chat.as_background_of(at).is_none()) {
            if let Some(agents) = self.0.get_mut(&at) {
                agents.values_mut().for_each(|ready| *ready = event.time);
            }
        }
    }
}

#[derive(Default)]
struct Timeline {
    rows: Vec<CallRow>,
    starts: CallStarts,
    /// Model calls so far.
    calls: HashMap<Name, u64>,
    /// The rows of tool calls without a result, by the id of the call.
    open_tools: HashMap<(Place, String), usize>,
    /// The rows of questions without an answer.
    open_questions: HashMap<Place, Vec<usize>>,
    /// The first call of a tool with some arguments.
    first: HashMap<(Name, String, String), u64>,
}

impl Timeline {
    fn add(&mut self, event: &Event) {
        let start = self.starts.take(event).unwrap_or(event.time);
        match &event.body {
            Body::ModelReplied(reply) => self.model(event, reply, start),
            Body::ToolCalled { who, call } => self.tool(event, who, call),
            Body::ToolReturned { who, id, result: outcome } => {
                let status = serde_json::to_value(outcome.status).ok();
                let status = status.and_then(|status| status.as_str().map(str::to_owned));
                let key = ((event.chat.clone(), who.clone()), id.clone());
                if let Some(row) = self.open_tools.remove(&key).and_then(|row| self.rows.get_mut(row)) {
                    (row.seq, row.end_ms) = (event.seq, Some(event.time));
                    if let CallKind::Tool { status: of, .. } = &mut row.kind {
                        *of = status;
                    }
                }
            }
            Body::InputRequired(question) => {
                let place = (event.chat.clone(), question.who.clone());
                self.open_questions.entry(place).or_default().push(self.rows.len());
                self.push(event, &question.who, event.time, CallKind::Person { answered: false });
            }
            Body::InputProvided { to, .. } => {
                let open = self.open_questions.remove(&(event.chat.clone(), to.clone()));
                for row in open.into_iter().flatten() {
                    if let Some(row) = self.rows.get_mut(row) {
                        (row.seq, row.end_ms) = (event.seq, Some(event.time));
                        row.kind = CallKind::Person { answered: true };
                    }
                }
            }
            _ => {}
        }
    }

    fn model(&mut self, event: &Event, reply: &ModelReply, start: Timestamp) {
        let call = self.calls.entry(reply.who.clone()).or_default();
        *call += 1;
        let kind = CallKind::Model {
            call: *call,
            model: reply.model.clone(),
            usage: reply.usage,
            cost: reply.cost,
            replayed: reply.cached,
        };
        self.push(event, &reply.who, start, kind);
        if let Some(row) = self.rows.last_mut() {
            row.end_ms = Some(event.time);
        }
    }

    fn tool(&mut self, event: &Event, who: &Name, call: &ToolCall) {
        let key = (who.clone(), call.tool.clone(), call.args.to_string());
        let first = *self.first.entry(key).or_insert(event.seq);
        let repeats = Some(first).filter(|first| *first != event.seq);
        let place = (event.chat.clone(), who.clone());
        self.open_tools.insert((place, call.id.clone()), self.rows.len());
        let kind = CallKind::Tool { tool: call.tool.clone(), status: None, repeats };
        self.push(event, who, event.time, kind);
    }

    fn push(&mut self, event: &Event, who: &Name, start_ms: Timestamp, kind: CallKind) {
        let Event { seq, chat: ref at, .. } = *event;
        self.rows.push(CallRow { seq, chat: at.clone(), who: who.clone(), start_ms, end_ms: None, kind });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(seq: u64, time: u64, body: Value) -> Event {
        let mut event = json!({"seq": seq, "time_ms": time});
        event.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    fn replied(seq: u64, time: u64, who: &str, cost: Option<u64>) -> Event {
        let mut reply = json!({
            "type": "model_replied", "who": who, "model": "m", "request": "0".repeat(32), "parts": [], "finish": "stop",
        });
        if let Some(cost) = cost {
            reply["cost"] = cost.into();
        }
        event(seq, time, reply)
    }

    fn called(seq: u64, time: u64, id: &str, args: Value) -> Event {
        let call = json!({"id": id, "tool": "add", "args": args});
        event(seq, time, json!({"type": "tool_called", "who": "Ann", "call": call}))
    }

    #[test]
    fn a_model_call_lasts_from_what_its_agent_waited_for_to_its_reply() {
        let returned = |seq, time, id: &str| {
            let outcome = json!({"status": "failed", "parts": []});
            event(seq, time, json!({"type": "tool_returned", "who": "Ann", "id": id, "result": outcome}))
        };
        let rows = call_rows(&[
            event(0, 10, json!({"type": "turn_started", "turns": [{"who": "Ann"}, {"who": "Bob"}]})),
            replied(1, 40, "Bob", None),
            replied(2, 50, "Ann", Some(7)),
            called(3, 51, "a", json!({"x": 1})),
            returned(4, 80, "a"),
            replied(5, 95, "Ann", Some(7)),
            called(6, 96, "b", json!({"x": 1})),
            called(7, 97, "c", json!({"x": 2})),
        ]);
        let times = |row: &CallRow| (row.who.to_string(), row.start_ms.0, row.end_ms.map(|end| end.0));
        let all = [
            ("Bob", 10, Some(40)),
            ("Ann", 10, Some(50)),
            ("Ann", 51, Some(80)),
            ("Ann", 80, Some(95)),
            ("Ann", 96, None),
            ("Ann", 97, None),
        ];
        let all = all.map(|(who, start, end)| (who.to_owned(), start, end));
        assert_eq!(rows.iter().map(times).collect::<Vec<_>>(), all);
        let kinds = json!(rows);
        assert_eq!((&kinds[1]["call"], &kinds[3]["call"]), (&json!(1), &json!(2)));
        assert_eq!((&kinds[0]["cost"], &kinds[1]["cost"]), (&json!(null), &json!(7)));
        assert_eq!((&kinds[2]["status"], &kinds[2]["repeats"]), (&json!("failed"), &json!(null)));
        assert_eq!((&kinds[4]["repeats"], &kinds[5]["repeats"]), (&json!(3), &json!(null)));
    }

    #[test]
    fn a_call_waits_for_the_chats_within_its_turn_and_for_no_others() {
        let started = |seq, at: &str| {
            event(seq, seq, json!({"type": "turn_started", "chat": at, "turns": [{"who": "Ann"}]}))
        };
        let closed = |seq, at: &str| {
            event(seq, seq, json!({"type": "closed", "chat": at, "reason": "finished", "summary": ""}))
        };
        let (outer, inner, other) = ("", "/Ann.1", "/Bob.1");
        let mut starts = CallStarts::default();
        for one in [started(1, outer), started(2, inner), started(3, other), closed(4, inner)] {
            assert_eq!(starts.take(&one), None);
        }
        let ann = Name::new("Ann").unwrap();
        let begun = [outer, inner, other].map(|at| starts.of(&started(9, at).chat, &ann).map(|time| time.0));
        assert_eq!(begun, [Some(4), Some(2), Some(3)]);
        assert_eq!(starts.of(&started(9, "/Ann.2").chat, &ann), None);
    }

    #[test]
    fn a_question_ends_with_its_answer() {
        let required =
            event(0, 10, json!({"type": "input_required", "who": "Pat", "text": "?", "format": "text"}));
        let provided =
            event(1, 90, json!({"type": "input_provided", "to": "Pat", "text": "!", "by": "timeout"}));
        let open = call_rows(std::slice::from_ref(&required));
        assert_eq!((open[0].end_ms, open[0].kind.clone()), (None, CallKind::Person { answered: false }));
        let rows = call_rows(&[required, provided]);
        assert_eq!((rows.len(), rows[0].seq, rows[0].end_ms), (1, 1, Some(Timestamp(90))));
        assert_eq!(rows[0].kind, CallKind::Person { answered: true });
    }
}
