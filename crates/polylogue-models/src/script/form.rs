//! The serialized form of a step: `Agent: text`, or `Agent: {say: text, ...}`.

use std::fmt;
use std::sync::Arc;

use polylogue_core::{FinishReason, Name, Usage};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::steps::{Expectation, ScriptCall, ScriptError, ScriptStep};

/// A step without its agent.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Action {
    #[serde(skip_serializing_if = "Option::is_none")]
    say: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<ScriptCall>,
    #[serde(skip_serializing_if = "is_zero")]
    delay_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pace: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ScriptError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expect: Option<Expectation>,
    #[serde(skip_serializing_if = "Tokens::is_unknown")]
    usage: Tokens,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish: Option<FinishReason>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// [`Usage`], but rejects unknown keys.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Tokens {
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    written_long: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<u64>,
}

impl Tokens {
    fn is_unknown(&self) -> bool {
        Usage::from(self).is_unknown()
    }
}

impl From<&Tokens> for Usage {
    fn from(tokens: &Tokens) -> Self {
        let Tokens { input, output, cached, written, written_long, audio, reasoning } = *tokens;
        Self { input, output, cached, written, written_long, audio, reasoning }
    }
}

impl From<Usage> for Tokens {
    fn from(Usage { input, output, cached, written, written_long, audio, reasoning }: Usage) -> Self {
        Self { input, output, cached, written, written_long, audio, reasoning }
    }
}

impl Action {
    /// The error in it, if there is one.
    fn flaw(&self) -> Option<&'static str> {
        if self.pace.is_some_and(|pace| !pace.is_finite() || pace < 0.0) {
            return Some("`pace` is a number of words per second, from 0 (at once)");
        }
        let empty =
            self.say.is_none() && self.think.is_none() && self.calls.is_empty() && self.error.is_none();
        empty.then_some("the step does nothing; give it `say`, `think`, `calls` or `error`")
    }

    fn of(self, who: Name) -> ScriptStep {
        let Self { say, think, calls, delay_ms, pace, error, expect, usage, finish } = self;
        let usage = Usage::from(&usage);
        ScriptStep { who, say, think, calls, delay_ms, pace, error, expect, usage, finish }
    }
}

impl From<&ScriptStep> for Action {
    fn from(step: &ScriptStep) -> Self {
        let ScriptStep { who: _, say, think, calls, delay_ms, pace, error, expect, usage, finish } =
            step.clone();
        Self { say, think, calls, delay_ms, pace, error, expect, usage: usage.into(), finish }
    }
}

impl Serialize for ScriptStep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match &self.say {
            Some(text) if *self == Self::say(self.who.clone(), Arc::clone(text)) => {
                map.serialize_entry(&self.who, text)?;
            }
            _ => map.serialize_entry(&self.who, &Action::from(self))?,
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ScriptStep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(StepVisitor)
    }
}

struct StepVisitor;

impl<'de> Visitor<'de> for StepVisitor {
    type Value = ScriptStep;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a step, which is a mapping of one key: the agent's name, with what it replies")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ScriptStep, A::Error> {
        let Some(who) = map.next_key::<Name>()? else {
            return Err(A::Error::custom("the step names no agent; write `- Agent: text`"));
        };
        let step = map.next_value::<ReplyForm>()?.0.of(who);
        if let Some(second) = map.next_key::<String>()? {
            let first = &step.who;
            let message = format!(
                "the step has two keys, `{first}` and `{second}`; a step is of one agent, what else it does stands below the name"
            );
            return Err(A::Error::custom(message));
        }
        Ok(step)
    }
}

/// The reply of a step: a text, or a mapping.
struct ReplyForm(Action);

impl<'de> Deserialize<'de> for ReplyForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let action = deserializer.deserialize_any(ReplyVisitor)?;
        action.flaw().map_or(Ok(Self(action)), |flaw| Err(D::Error::custom(flaw)))
    }
}

struct ReplyVisitor;

impl<'de> Visitor<'de> for ReplyVisitor {
    type Value = Action;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or a mapping with `say`, `think`, `calls` or `error`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Action, E> {
        Ok(Action { say: Some(text.into()), ..Action::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Action, A::Error> {
        Action::deserialize(MapAccessDeserializer::new(map))
    }
}
