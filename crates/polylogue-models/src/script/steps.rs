//! Scripts as data: the steps of agents, and conditions on their requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use polylogue_core::{FinishReason, Name, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The scripted replies of agents, in order: the nth step of an agent is its reply to its nth model call.
///
/// A script is data: a list of mappings with one key, the agent. A step that only has a text is a plain string:
///
/// ```
/// use polylogue_models::Script;
/// let script: Script = serde_json::from_str(r#"[
///     {"Trader": "Instruction: read the notes"},
///     {"Programmer": {"calls": [{"tool": "get_history", "args": {"limit": 2}}]}},
///     {"Programmer": {"say": "Solution: done. Next request.", "delay_ms": 400, "pace": 30}}
/// ]"#)?;
/// assert_eq!(script.steps().len(), 3);
/// let model = script.model("demo");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Script {
    steps: Vec<ScriptStep>,
}

impl Script {
    /// Creates a script of `steps`.
    pub fn new(steps: impl IntoIterator<Item = ScriptStep>) -> Self {
        steps.into_iter().collect()
    }

    /// Returns the steps of all agents, in the order in which they were written.
    pub fn steps(&self) -> &[ScriptStep] {
        &self.steps
    }

    /// Returns whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Sets the pace of every step without one to `words_per_second`; 0 is at once.
    #[must_use]
    pub fn paced(mut self, words_per_second: f64) -> Self {
        for step in &mut self.steps {
            step.pace.get_or_insert(words_per_second);
        }
        self
    }

    /// Returns the steps that remain when each agent has finished as many model calls as `finished` says; default: 0. A call
    /// that fails is not finished, so a last step that fails remains.
    pub fn unconsumed(&self, finished: &BTreeMap<Name, u64>) -> Vec<&ScriptStep> {
        let mut seen: BTreeMap<&Name, u64> = BTreeMap::new();
        let left_over = self.steps.iter().filter(|step| {
            let nth = seen.entry(&step.who).or_default();
            *nth += 1;
            *nth > finished.get(&step.who).copied().unwrap_or(0)
        });
        left_over.collect()
    }
}

impl FromIterator<ScriptStep> for Script {
    fn from_iter<I: IntoIterator<Item = ScriptStep>>(steps: I) -> Self {
        Self { steps: steps.into_iter().collect() }
    }
}

impl Extend<ScriptStep> for Script {
    fn extend<I: IntoIterator<Item = ScriptStep>>(&mut self, steps: I) {
        self.steps.extend(steps);
    }
}

/// The reply to one model call of one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptStep {
    /// The agent.
    pub who: Name,
    /// The text of the reply.
    pub say: Option<Arc<str>>,
    /// Reasoning before the text.
    pub think: Option<Arc<str>>,
    /// The tools it calls, after the text.
    pub calls: Vec<ScriptCall>,
    /// Milliseconds before the first piece of the reply.
    pub delay_ms: u64,
    /// Words per second at which reasoning and text are streamed; 0 is at once. Default: [`Script::paced`], else 0.
    pub pace: Option<f64>,
    /// The call fails with this error, after the content of the step was streamed.
    pub error: Option<ScriptError>,
    /// What the request must contain.
    pub expect: Option<Expectation>,
    /// The usage of the reply. Default: unknown.
    pub usage: Usage,
    /// The finish reason. Default: [`FinishReason::Calls`] for a step with calls, else [`FinishReason::Stop`].
    pub finish: Option<FinishReason>,
}

impl ScriptStep {
    pub(super) fn silent(who: Name) -> Self {
        Self {
            who,
            say: None,
            think: None,
            calls: Vec::new(),
            delay_ms: 0,
            pace: None,
            error: None,
            expect: None,
            usage: Usage::default(),
            finish: None,
        }
    }

    /// Creates a step in which `who` says `text`.
    pub fn say(who: Name, text: impl Into<Arc<str>>) -> Self {
        Self { say: Some(text.into()), ..Self::silent(who) }
    }

    /// Creates a step in which `who` calls `tool` with `args`, a JSON object.
    pub fn call(who: Name, tool: impl Into<String>, args: Value) -> Self {
        let call = ScriptCall { tool: tool.into(), args, id: None };
        Self { calls: vec![call], ..Self::silent(who) }
    }

    /// Creates a step in which the model call of `who` fails with `message`, as if the connection had broken.
    pub fn fail(who: Name, message: impl Into<String>) -> Self {
        let error = ScriptError { status: None, message: message.into() };
        Self { error: Some(error), ..Self::silent(who) }
    }
}

/// A tool call of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptCall {
    /// The tool's name.
    pub tool: String,
    /// The arguments: an object, or a text to simulate a model that writes invalid JSON.
    #[serde(default = "no_args")]
    pub args: Value,
    /// The call's id. Default: `<agent>-<call>-<index>`, which is unique within the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

fn no_args() -> Value {
    Value::Object(serde_json::Map::new())
}

/// The error with which a model call of a step fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptError {
    /// The HTTP status, which determines the kind of error. Default: the connection broke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The error message.
    pub message: String,
}

/// Conditions on the request of a step. Omitted conditions are not checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// A text that the last message contains, or the last result of a tool if the request ends with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// A text that the system message contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The exact names of the tools in the request, in any order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}
