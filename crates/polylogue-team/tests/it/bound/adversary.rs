//! Models that make a run as expensive as they can.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use polylogue_core::{
    AnyModel, Bound, Capabilities, DeltaRef, DeltaSink, Entry, FinishReason, Model, ModelError, Money,
    Params, Part, Reply, Request, ToolCall, ToolSpec, Usage,
};
use serde_json::{Map, Value, json};

mod broken;
mod formal;

use self::broken::fail;
pub(super) use self::broken::{Broken, FAILS};

/// How a model behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behavior {
    /// Calls tools as long as the agent allows it, then writes the longest reply.
    Worst,
    /// The same with tools that do not exist.
    Mistaken,
    /// Writes the longest reply that is allowed, and calls no tool.
    Longest,
    /// The same as the first, but silent in every second turn: most turns for few messages.
    Sparse,
    /// The longest replies without tools in the first turns, so that the history is long when the first behavior follows.
    Late,
    /// The same as the first, but each tool is called once, and background tasks are listed as often as it fits into a reply: as many tasks
    /// are started as can be open, and their results are awaited.
    Waiting,
    /// The same as the first, with programs in its replies that print as much as they may.
    Coder,
    /// Begins the longest replies with a word in capitals of its system message, such as one that leads to another turn.
    Word,
    /// Answers as the prompts of the program want it, at the last moment: objects after as many replies without one as the seed says, yes or
    /// no after an unclear answer. Otherwise the same as the first.
    Formal,
    /// Calls tools in each reply.
    EndlessCalls,
    /// Calls a tool that does not exist.
    WrongTool,
    /// Gives two calls the same id.
    SameId,
    /// Repeats the last message.
    Echo,
    /// Thanks for the thanks.
    Thanks,
    /// Says nothing.
    Empty,
    /// Claims to be done when it is not.
    Done,
    /// Never claims it.
    NeverDone,
    /// Waits a minute before each reply.
    Slow,
    /// Sends its reply in small pieces, with a second between two of them.
    Drip,
    /// Any of these, at random.
    Any,
    /// Writes 10 MB, whatever is allowed, and says that it was less.
    Huge,
}

impl Behavior {
    /// All but `Huge`, on whose replies no bound rests, and `Coder`, whose programs take their time.
    pub(super) const ALL: [Self; 19] = [
        Self::Worst,
        Self::Mistaken,
        Self::Longest,
        Self::Sparse,
        Self::Late,
        Self::Word,
        Self::Formal,
        Self::EndlessCalls,
        Self::WrongTool,
        Self::SameId,
        Self::Echo,
        Self::Thanks,
        Self::Empty,
        Self::Done,
        Self::NeverDone,
        Self::Slow,
        Self::Drip,
        Self::Waiting,
        Self::Any,
    ];
}

/// A model of a server that charges the most that it may: as many tokens as are reserved for the call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Adversary {
    pub(super) behavior: Behavior,
    pub(super) seed: u64,
    /// The most tokens of a reply.
    pub(super) output: u64,
    pub(super) window: Option<u64>,
    /// Replies that make one text: all but the last one are cut off.
    pub(super) pieces: usize,
    /// In so many turns of the conversation, texts have one piece: histories grow in fewer calls.
    pub(super) swift: u64,
    /// Which half of the agents has long turns, if not all of them: a bit of the sum of their names, and its value.
    pub(super) only: Option<u64>,
    /// How many turns of agents have begun in the conversation.
    pub(super) turn: u64,
    /// Replies without an object since the last one with one.
    pub(super) formless: u64,
    /// Attempts that break before each reply.
    pub(super) fails: u64,
}

/// Bytes of a token, as a bound assumes.
const BYTES: usize = 8;

/// The replies of one text by default: one that is cut off is continued three times.
const PIECES: usize = 4;

/// The bytes of a huge reply.
const HUGE: usize = 10_000_000;

impl Adversary {
    pub(super) fn new(behavior: Behavior, seed: u64) -> Self {
        Self {
            behavior,
            seed,
            output: 400,
            window: None,
            pieces: PIECES,
            swift: 0,
            only: None,
            turn: 0,
            formless: 0,
            fails: 0,
        }
    }

    pub(super) fn model(self) -> AnyModel {
        AnyModel::new(self)
    }

    /// The behavior in this call.
    fn behavior(&self, request: &Request<'_>) -> Behavior {
        if self.behavior != Behavior::Any {
            return self.behavior;
        }
        let mut state = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(request.origin.nth);
        for byte in request.origin.who.as_str().bytes() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(u64::from(byte) + 1);
        }
        let others = Behavior::ALL.len() as u64 - 1;
        Behavior::ALL[usize::try_from((state >> 33) % others).unwrap()]
    }

    /// The turn from which on [`Behavior::Late`] is at its worst.
    fn is_late(&self) -> bool {
        const TURNS: [u64; 8] = [3, 6, 12, 25, 40, 60, 80, 92];
        self.turn > TURNS[usize::try_from(self.seed).unwrap() % TURNS.len()]
    }

    /// A program whose output is as long as a result can be, and like no other.
    fn program(&self, request: &Request<'_>) -> String {
        let seed = self.seed * 1_000_003 + request.origin.nth;
        format!("```python\nimport random\nrandom.seed({seed})\nprint(random.randbytes(32700).hex())\n```\n")
    }

    /// One of the words in capitals that the system message has.
    fn word(&self, request: &Request<'_>) -> String {
        let system = request.system.unwrap_or_default();
        let is_part = |c: char| c.is_alphanumeric() || c == '?';
        let words: Vec<&str> = system.split(|c| !is_part(c)).filter(|word| is_in_capitals(word)).collect();
        if self.seed == ALL_WORDS {
            return words.join(" ") + " ";
        }
        let at = (self.seed + request.origin.nth * (self.seed % 3)) % words.len().max(1) as u64;
        words.get(usize::try_from(at).unwrap()).map_or_else(String::new, |word| format!("{word} "))
    }

    fn longest(&self, request: &Request<'_>) -> Vec<Part> {
        // No two texts are alike, so that they are no loop.
        let mut state =
            request.origin.who.as_str().bytes().fold(self.seed ^ request.origin.nth << 20, |state, byte| {
                state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(u64::from(byte))
            });
        let mut text = match self.behavior(request) {
            Behavior::Coder => self.program(request),
            Behavior::Word => self.word(request),
            _ => String::new(),
        };
        while text.len() < self.bytes(request.params) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text += &format!("{:x} ", state >> 16);
        }
        self.text(&text, request.params)
    }

    /// The pieces of a text in this turn.
    const fn pieces(&self) -> usize {
        if self.turn <= self.swift { 1 } else { self.pieces }
    }

    /// Whether the reply is the last piece of a text.
    fn is_last_piece(&self, request: &Request<'_>, last: &str) -> bool {
        let is_rest = last.starts_with("Your last message was cut off");
        let written = request.entries.iter().rev().find_map(|entry| match entry {
            Entry::Assistant { parts, .. } => Some(polylogue_core::text_of(parts).len()),
            _ => None,
        });
        let whole = (self.pieces() - 1) * self.bytes(request.params);
        self.pieces() == 1 || is_rest && written.is_some_and(|written| written >= whole * 9 / 10)
    }

    /// In a round of tools: the longest text, which is continued as often as it can be, and then calls.
    fn worst(&self, request: &Request<'_>, last: &str) -> Vec<Part> {
        match self.is_last_piece(request, last) || request.params.max_tokens.is_some() {
            // Calls that others execute end the turn: not before the last round.
            true if self.behavior(request) == Behavior::Mistaken
                && rounds(request.entries) % (ROUNDS + 1) < ROUNDS =>
            {
                self.mistakes(request)
            }
            true => self.calls(request),
            false => self.longest(request),
        }
    }

    /// Whether an agent replies briefly because another one is to have the long turns.
    fn is_brief(&self, request: &Request<'_>) -> bool {
        let of = request.origin.who.as_str().bytes().map(u64::from).sum::<u64>();
        // Some bits, so that one of them differs for most names.
        self.is_public(request) && self.only.is_some_and(|only| (of >> (only / 2)) % 2 != only % 2)
    }

    /// Whether it is the turn of a participant, and not of an agent that selects, votes or summarizes.
    fn is_public(&self, request: &Request<'_>) -> bool {
        !request.origin.who.as_str().contains('_')
    }

    fn bytes(&self, params: &Params) -> usize {
        usize::try_from(self.tokens(params)).unwrap() * BYTES
    }

    fn tokens(&self, params: &Params) -> u64 {
        params.max_tokens.map_or(self.output, u64::from).min(self.output)
    }

    fn text(&self, text: &str, params: &Params) -> Vec<Part> {
        let text = &text[..text.floor_char_boundary(self.bytes(params))];
        if text.trim().is_empty() { Vec::new() } else { vec![Part::Text(Arc::from(text))] }
    }

    /// As many calls of a tool that does not exist.
    fn mistakes(&self, request: &Request<'_>) -> Vec<Part> {
        let most = usize::try_from(self.tokens(request.params) / 8).unwrap().max(1);
        let ids: Vec<String> = (0..most).map(|at| id(request, at)).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        // No two calls are alike, so that they are no loop.
        let tool = "no_such_tool".repeat(5);
        let mut calls = named(&vec![tool.as_str(); most], &ids);
        for (at, call) in calls.iter_mut().enumerate() {
            if let Part::ToolCall(call) = call {
                call.args = json!({"x": format!("{} {at}", request.origin.nth)});
            }
        }
        calls
    }

    /// As many calls of the offered tools as fit into a reply.
    fn calls(&self, request: &Request<'_>) -> Vec<Part> {
        let most = usize::try_from(self.tokens(request.params) / 8).unwrap().max(1);
        let mut again: Vec<&ToolSpec> = request.tools.iter().collect();
        let lists = self.behavior(request) == Behavior::Waiting && again.iter().any(|tool| tool.name == LIST);
        let once = again
            .clone()
            .into_iter()
            .filter(|tool| !lists || tool.name != "wait_for_task" || rounds(request.entries) < AWAITED);
        again.retain(|tool| !lists || tool.name == LIST);
        let call = |(at, tool): (usize, &ToolSpec)| {
            let mut args = arguments(tool, request.origin.nth, at);
            // A list has the beginning of each task.
            if let Some(task) = args.get_mut("task").filter(|_| lists) {
                *task = json!(format!("{} {at} {}", request.origin.nth, "x".repeat(100)));
            }
            Part::ToolCall(ToolCall { id: id(request, at), tool: tool.name.clone(), args })
        };
        once.chain(again.into_iter().cycle()).take(most).enumerate().map(call).collect()
    }
}

/// The rounds of calls in which background tasks are awaited. Those of the last calls are posted, for which there is another turn.
const AWAITED: usize = 7;

/// The tool that lists background tasks.
const LIST: &str = "list_tasks";

/// The rounds of calls by default, but the last one.
const ROUNDS: usize = 15;

/// Whether `entry` is a prompt, but not for the rest of a reply.
fn is_prompt(entry: &Entry) -> bool {
    let is_rest = || polylogue_core::text_of(entry.parts()).starts_with("Your last message was cut off");
    matches!(entry, Entry::User { .. }) && !is_rest()
}

/// Whether no more calls may follow in the turn.
fn is_over(entries: &[Entry]) -> bool {
    let last = entries.iter().rev().find(|entry| matches!(entry, Entry::Tool { .. }) || is_prompt(entry));
    last.is_some_and(|entry| polylogue_core::text_of(entry.parts()).contains("You have used all tool calls"))
}

/// The rounds of calls since the last prompt.
fn rounds(entries: &[Entry]) -> usize {
    let recent = entries.iter().rev().take_while(|entry| !is_prompt(entry));
    let has_calls = |entry: &&Entry| entry.parts().iter().any(|part| matches!(part, Part::ToolCall(_)));
    recent.filter(has_calls).count()
}

/// The longest id of a call that is kept.
fn id(request: &Request<'_>, at: usize) -> String {
    format!("{:020}-{at:011}", request.origin.nth)
}

/// The seed with which [`Behavior::Word`] writes all words.
const ALL_WORDS: u64 = 6;

fn is_in_capitals(word: &str) -> bool {
    word.len() > 2 && word.chars().all(|c| !c.is_lowercase())
}

/// Arguments that no other call of the conversation has.
fn arguments(tool: &ToolSpec, nth: u64, at: usize) -> Value {
    match tool.name.as_str() {
        // As much as a search can find, and a tool of which the model has no definition.
        "search_tools" => return json!({"query": format!("number of words {nth} {at}"), "limit": 20}),
        // All that are running.
        "wait_for_task" => return json!({}),
        "call_tool" => return json!({"name": "x_buy", "arguments": {"words": format!("{nth} {at}")}}),
        _ => {}
    }
    let properties = tool.parameters.get("properties").and_then(Value::as_object);
    let value = |schema: &Value| match schema.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => json!(nth * 100 + at as u64),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!(format!("{nth} + {at}")),
    };
    let all = properties.into_iter().flatten().take(2).map(|(name, schema)| (name.clone(), value(schema)));
    Value::Object(all.collect::<Map<_, _>>())
}

fn named(tools: &[&str], ids: &[&str]) -> Vec<Part> {
    let call = |(tool, id): (&&str, &&str)| {
        Part::ToolCall(ToolCall { id: (*id).to_owned(), tool: (*tool).to_owned(), args: json!({}) })
    };
    tools.iter().zip(ids).map(call).collect()
}

impl Model for Adversary {
    fn name(&self) -> &str {
        "adversary:model"
    }

    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let last = request.entries.last().map(|entry| polylogue_core::text_of(entry.parts()).into_owned());
        let last = last.unwrap_or_default();
        let first = request.tools.first().map(|tool| tool.name.as_str());
        let may_call = first.is_some() && !is_over(request.entries);
        let text = |text: &str| self.text(text, request.params);
        let parts = match (self.behavior(request), first) {
            _ if self.is_brief(request) => text(&format!("ok {}", request.origin.nth)),
            (Behavior::Coder | Behavior::Formal, _) if let Some(name) = self.selects(request, &last) => {
                text(&name)
            }
            (Behavior::Sparse, _) if self.is_public(request) && self.turn.is_multiple_of(2) => Vec::new(),
            (Behavior::Late, _) if !self.is_late() => self.longest(request),
            (
                Behavior::Worst
                | Behavior::Mistaken
                | Behavior::Sparse
                | Behavior::Late
                | Behavior::Waiting
                | Behavior::Coder,
                _,
            ) if may_call => self.worst(request, &last),
            (Behavior::Formal, _) if let Some(parts) = self.formal(request, &last) => parts,
            (Behavior::Formal, _) if may_call => self.worst(request, &last),
            (Behavior::EndlessCalls, Some(_)) => self.calls(request),
            (Behavior::WrongTool, Some(_)) => named(&["no_such_tool"], &["w"]),
            (Behavior::SameId, Some(tool)) => named(&[tool, tool], &["1", "1"]),
            (Behavior::Echo, _) => text(&last),
            (Behavior::Thanks, _) => text("Thank you, and thank you again."),
            (Behavior::Empty, _) => Vec::new(),
            (Behavior::Done, _) => text("TERMINATE. APPROVED. The task is done. yes"),
            (Behavior::NeverDone, _) => text(&format!("Not yet, {}. no", request.origin.nth)),
            (Behavior::Slow, _) => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                self.longest(request)
            }
            (Behavior::Drip, _) => {
                for _ in 0..8 {
                    deltas.push(DeltaRef::Text("so "));
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                text(&"so ".repeat(8))
            }
            (Behavior::Huge, _) => vec![Part::text("so on and on ".repeat(HUGE / 13))],
            _ => self.longest(request),
        };
        let has_calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
        let is_whole = self.is_brief(request) || self.pieces() < PIECES && self.is_last_piece(request, &last);
        let text_end = if is_whole { FinishReason::Stop } else { FinishReason::Length };
        let input = Bound::of(self, request).input;
        let output = Some(self.tokens(request.params));
        Ok(Reply {
            parts,
            finish: if has_calls { FinishReason::Calls } else { text_end },
            usage: Usage { input: Some(input), written: Some(input), output, ..Usage::default() },
            cached: false,
            verbatim: None,
            answered_by: None,
        })
    }

    /// 1 for a token of input, 2 for one that is written to the cache, 5 for one of output.
    fn cost(&self, usage: &Usage) -> Option<Money> {
        let input = usage.input?.saturating_add(usage.written.unwrap_or_default());
        Some(Money { picodollars: input.saturating_add(usage.output?.saturating_mul(5)) })
    }

    fn max_output(&self, params: &Params) -> Option<u64> {
        Some(self.tokens(params))
    }

    fn context_window(&self) -> Option<u64> {
        self.window
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}

/// A model that plays another adversary in each conversation, so that a team is built once.
#[derive(Clone, Default)]
pub(super) struct Switched(Arc<Mutex<Adversary>>);

impl Switched {
    pub(super) fn play(&self, adversary: Adversary) {
        *self.0.lock().unwrap() = adversary;
    }

    fn now(&self) -> Adversary {
        *self.0.lock().unwrap()
    }
}

impl Default for Adversary {
    fn default() -> Self {
        Self::new(Behavior::Worst, 0)
    }
}

impl Model for Switched {
    fn name(&self) -> &str {
        "adversary:model"
    }

    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let adversary = {
            let mut adversary = self.0.lock().unwrap();
            let begins = request.origin.last_model.is_none() && adversary.is_public(request);
            adversary.turn += u64::from(begins);
            let before = *adversary;
            if let Some(is_object) = adversary.writes_object(request) {
                adversary.formless = if is_object { 0 } else { before.formless + 1 };
            }
            before
        };
        fail(request, adversary.fails).await?;
        adversary.complete(request, deltas).await
    }

    fn cost(&self, usage: &Usage) -> Option<Money> {
        self.now().cost(usage)
    }

    fn max_output(&self, params: &Params) -> Option<u64> {
        self.now().max_output(params)
    }

    fn context_window(&self) -> Option<u64> {
        self.now().context_window()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}
