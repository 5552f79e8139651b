//! Models that make a run as expensive as they can.

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{
    AnyModel, Bound, Call, Capabilities, DeltaSink, Finish, Model, ModelError, Money, Params, Part, Reply,
    Request, ToolSpec, Usage,
};
use serde_json::{Map, Value, json};

/// How a model behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behavior {
    /// Calls tools as long as the agent allows it, then writes the longest reply.
    Worst,
    /// Writes the longest reply that is allowed, and calls no tool.
    Longest,
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
    /// Any of these, at random.
    Any,
}

impl Behavior {
    pub(super) const ALL: [Self; 12] = [
        Self::Worst,
        Self::Longest,
        Self::EndlessCalls,
        Self::WrongTool,
        Self::SameId,
        Self::Echo,
        Self::Thanks,
        Self::Empty,
        Self::Done,
        Self::NeverDone,
        Self::Slow,
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
}

/// Bytes of a token, as a bound assumes.
const BYTES: usize = 8;

impl Adversary {
    pub(super) fn new(behavior: Behavior, seed: u64) -> Self {
        Self { behavior, seed, output: 400, window: None }
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

    fn longest(&self, request: &Request<'_>) -> Vec<Part> {
        let nth = request.origin.nth.to_string();
        let text = format!("{nth} {}", "so on and on ".repeat(self.bytes(request.params) / 13 + 1));
        self.text(&text, request.params)
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

    /// As many calls of the offered tools as fit into a reply.
    fn calls(&self, request: &Request<'_>) -> Vec<Part> {
        let most = usize::try_from(self.tokens(request.params) / 8).unwrap().max(1);
        let call = |(at, tool): (usize, &ToolSpec)| {
            let id = format!("c{}-{at}", request.origin.nth);
            Part::Call(Call { id, tool: tool.name.clone(), args: arguments(tool, request.origin.nth, at) })
        };
        request.tools.iter().cycle().take(most).enumerate().map(call).collect()
    }
}

/// Arguments that no other call of the conversation has.
fn arguments(tool: &ToolSpec, nth: u64, at: usize) -> Value {
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
        Part::Call(Call { id: (*id).to_owned(), tool: (*tool).to_owned(), args: json!({}) })
    };
    tools.iter().zip(ids).map(call).collect()
}

impl Model for Adversary {
    fn name(&self) -> &str {
        "adversary:model"
    }

    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let last = request.entries.last().map(|entry| polylogue_core::plain(entry.parts()).into_owned());
        let last = last.unwrap_or_default();
        let first = request.tools.first().map(|tool| tool.name.as_str());
        let may_call = first.is_some() && !last.contains("You have used all tool calls of this turn");
        let text = |text: &str| self.text(text, request.params);
        let parts = match (self.behavior(request), first) {
            (Behavior::Worst, _) if may_call => self.calls(request),
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
            _ => self.longest(request),
        };
        let has_calls = parts.iter().any(|part| matches!(part, Part::Call(_)));
        let input = Bound::of(self, request).input;
        let output = Some(self.tokens(request.params));
        Ok(Reply {
            parts,
            finish: if has_calls { Finish::Calls } else { Finish::Length },
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
