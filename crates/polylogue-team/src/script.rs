//! Scripts: the replies of models, for demonstrations and tests.

use std::sync::Arc;

use polylogue_config::types::Type;
use polylogue_config::yaml::Node;
use polylogue_config::{As, Config, Cx, Leaf, Pair};
use polylogue_core::{FinishReason, Name, Usage};
use polylogue_models::{Expectation, Script, ScriptCall, ScriptError, ScriptStep};
use serde_json::{Map, Value};

use crate::text::StepText;

/// The model calls of all agents: for each the agent's name, and its reply.
pub(crate) struct Steps(Vec<Pair<Reply>>);

impl Config for Steps {
    const OPTIONAL: bool = true;

    fn ty() -> &'static Type {
        <Vec<Pair<Reply>> as Config>::ty()
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        Self(Vec::read(node, cx))
    }

    fn hole() -> Self {
        Self(Vec::new())
    }

    fn write(&self) -> Value {
        self.0.write()
    }
}

impl As<Script> for Steps {
    fn into_value(self) -> Script {
        let step = |(who, reply): (String, Reply)| Some(reply.of(Name::new(&who).ok()?));
        self.0.into_iter().filter_map(|pair| pair.0).filter_map(step).collect()
    }

    fn from_value(script: &Script) -> Self {
        let step = |step: &ScriptStep| Pair(Some((step.who.to_string(), Reply::from(step))));
        Self(script.steps().iter().map(step).collect())
    }
}

/// A scripted reply: its text, or a mapping.
#[derive(Config)]
#[config(name = "ScriptReply", by_shape)]
enum Reply {
    /// Text of the reply.
    Text(StepText),
    /// Contents of the reply.
    Full(Box<FullReply>),
}

/// Reply to one scripted model call.
#[derive(Default, Config)]
#[config(name = "ScriptStep", nonempty)]
struct FullReply {
    /// Text of the reply.
    #[key(as = Option<StepText>, none = "nothing")]
    say: Option<String>,
    /// Reasoning text before the reply.
    #[key(as = Option<StepText>, none = "nothing")]
    think: Option<String>,
    /// Tool calls of the reply.
    calls: Vec<CallKeys>,
    /// Delay before the first token in milliseconds.
    #[key(default = 0, range = 0..=86_400_000)]
    delay_ms: u64,
    /// Speed of the reply in words per second. `0` prints it at once.
    #[key(none = "`script_pace`", range = 0..=10_000)]
    pace: Option<f64>,
    /// Expectations on the model request. The call fails if one is not met.
    #[key(as = Option<ExpectKeys>, none = "not checked")]
    expect: Option<Expectation>,
    /// Token usage that the call reports.
    #[key(as = Option<UsageKeys>, none = "none")]
    usage: Option<Usage>,
    /// Error with which the call fails.
    #[key(as = Option<ErrorKeys>, none = "none: the call succeeds")]
    error: Option<ScriptError>,
    /// Finish reason of the reply.
    #[key(as = Option<FinishWord>, none = "`calls` with calls, otherwise `stop`")]
    finish: Option<FinishReason>,
}

/// A tool call.
#[derive(Config)]
#[config(name = "ScriptCall")]
struct CallKeys {
    /// Name of the tool.
    tool: String,
    /// Arguments: an object, or a text that plays a model that writes invalid JSON.
    #[key(default = Arguments::Object(Map::new()))]
    args: Arguments,
    /// Id of the call.
    #[key(none = "a generated id")]
    id: Option<String>,
}

/// Arguments of a tool call.
#[derive(Config)]
#[config(name = "ScriptArguments", by_shape)]
enum Arguments {
    /// Valid arguments.
    Object(Map<String, Value>),
    /// A text that is not JSON.
    Text(StepText),
}

/// Expectations on a model request.
#[derive(Config)]
#[config(name = "ScriptExpectation", for = Expectation)]
struct ExpectKeys {
    /// Text that the last message must contain.
    #[key(as = Option<StepText>, none = "not checked")]
    last: Option<String>,
    /// Text that the system message must contain.
    #[key(as = Option<StepText>, none = "not checked")]
    system: Option<String>,
    /// Names of the tools in the request, in any order.
    #[key(none = "not checked")]
    tools: Option<Vec<String>>,
}

/// Token usage.
#[derive(Config)]
#[config(name = "ScriptUsage", for = Usage)]
struct UsageKeys {
    /// Number of input tokens.
    #[key(none = "unknown")]
    input: Option<u64>,
    /// Number of output tokens.
    #[key(none = "unknown")]
    output: Option<u64>,
    /// Number of input tokens read from a cache.
    #[key(none = "unknown")]
    cached: Option<u64>,
    /// Number of input tokens written to a cache.
    #[key(none = "unknown")]
    written: Option<u64>,
    /// Number of those with a lifetime of an hour or more.
    #[key(none = "unknown")]
    written_long: Option<u64>,
    /// Number of input tokens of sound.
    #[key(none = "unknown")]
    audio: Option<u64>,
    /// Number of output tokens used for reasoning.
    #[key(none = "unknown")]
    reasoning: Option<u64>,
}

/// Error of a model call.
#[derive(Config)]
#[config(name = "ScriptError", for = ScriptError)]
struct ErrorKeys {
    /// HTTP status.
    #[key(none = "the connection fails", range = 100..=599)]
    status: Option<u16>,
    /// Error message.
    message: String,
}

/// Finish reason of a reply.
#[derive(Config)]
#[config(name = "ScriptFinish", for = FinishReason)]
enum FinishWord {
    /// The reply is complete.
    Stop,
    /// The model calls tools.
    Calls,
    /// The reply reached the token limit.
    Length,
    /// The provider filtered the reply.
    Filter,
    /// The provider reports no reason.
    Unknown,
}

impl Reply {
    fn of(self, who: Name) -> ScriptStep {
        match self {
            Self::Text(text) => ScriptStep::say(who, text.0),
            Self::Full(full) => full.of(who),
        }
    }
}

impl FullReply {
    fn of(self, who: Name) -> ScriptStep {
        let Self { say, think, calls, delay_ms, pace, expect, usage, error, finish } = self;
        let text = |text: Option<String>| text.map(Arc::from);
        ScriptStep {
            who,
            say: text(say),
            think: text(think),
            calls: calls.into_iter().map(CallKeys::call).collect(),
            delay_ms,
            pace,
            error,
            expect,
            usage: usage.unwrap_or_default(),
            finish,
        }
    }
}

impl CallKeys {
    fn call(self) -> ScriptCall {
        let args = match self.args {
            Arguments::Object(object) => Value::Object(object),
            Arguments::Text(text) => Value::String(text.0),
        };
        ScriptCall { tool: self.tool, args, id: self.id }
    }
}

impl From<&ScriptStep> for Reply {
    fn from(step: &ScriptStep) -> Self {
        if let Some(text) =
            step.say.as_ref().filter(|text| ScriptStep::say(step.who.clone(), text.to_string()) == *step)
        {
            return Self::Text(Leaf(text.to_string()));
        }
        let step = step.clone();
        let text = |text: Option<Arc<str>>| text.map(|text| text.to_string());
        Self::Full(Box::new(FullReply {
            say: text(step.say),
            think: text(step.think),
            calls: step.calls.into_iter().map(CallKeys::from).collect(),
            delay_ms: step.delay_ms,
            pace: step.pace,
            expect: step.expect,
            usage: (!step.usage.is_unknown()).then_some(step.usage),
            error: step.error,
            finish: step.finish,
        }))
    }
}

impl From<ScriptCall> for CallKeys {
    fn from(ScriptCall { tool, args, id }: ScriptCall) -> Self {
        let args = match args {
            Value::Object(object) => Arguments::Object(object),
            Value::String(text) => Arguments::Text(Leaf(text)),
            other => Arguments::Text(Leaf(other.to_string())),
        };
        Self { tool, args, id }
    }
}
