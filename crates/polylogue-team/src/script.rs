//! How a script is described in the schema of team files. What it is, [`polylogue_models::Script`] says.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::text::ScriptText;

/// One model call: the agent's name, and what it replies.
pub(crate) struct StepForm;

impl JsonSchema for StepForm {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Step".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = generator.subschema_for::<BTreeMap<String, ReplyForm>>();
        schema.insert("description".into(), "One model call: the agent's name, and what it replies.".into());
        schema.insert("minProperties".into(), 1.into());
        schema.insert("maxProperties".into(), 1.into());
        schema
    }
}

#[derive(JsonSchema)]
#[schemars(untagged, rename = "Reply")]
#[expect(dead_code, reason = "it is there for its schema")]
enum ReplyForm {
    /// What it says.
    Text(#[schemars(with = "ScriptText")] String),
    /// What it does.
    Full(Box<FullReply>),
}

/// What an agent does with one model call.
#[derive(Default, JsonSchema)]
#[schemars(deny_unknown_fields, default, inline, extend("minProperties" = 1))]
struct FullReply {
    /// What it says.
    #[schemars(with = "Option<ScriptText>")]
    say: Option<String>,
    /// What it thinks before it speaks.
    #[schemars(with = "Option<ScriptText>")]
    think: Option<String>,
    /// The tools it calls.
    calls: Vec<CallForm>,
    /// Milliseconds before the first word.
    #[schemars(range(max = 86_400_000))]
    delay_ms: u64,
    /// Words per second; 0 is at once.
    #[schemars(range(min = 0, max = 10_000))]
    pace: Option<f64>,
    /// What the request has to be like for the step to be played.
    expect: Option<ExpectForm>,
    /// Tokens it claims to have used.
    usage: Option<UsageForm>,
    /// The call fails.
    error: Option<ErrorForm>,
    /// Why the reply ends.
    finish: Option<FinishForm>,
}

/// A tool call.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "ScriptCall")]
#[expect(dead_code, reason = "it is there for its schema")]
struct CallForm {
    /// The tool's name.
    tool: String,
    /// Its arguments: an object, or a text where a model is played that writes no proper JSON.
    #[schemars(default)]
    args: ArgsForm,
    /// The call's id; made up when left out.
    id: Option<String>,
}

#[derive(serde::Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
#[expect(dead_code, reason = "it is there for its schema")]
enum ArgsForm {
    Object(Map<String, Value>),
    Text(#[schemars(with = "ScriptText")] String),
}

impl Default for ArgsForm {
    fn default() -> Self {
        Self::Object(Map::new())
    }
}

/// What a request has to be like; what is left out is not looked at.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "ScriptExpectation")]
#[expect(dead_code, reason = "it is there for its schema")]
struct ExpectForm {
    /// A text that the last entry holds.
    #[schemars(with = "Option<ScriptText>")]
    last: Option<String>,
    /// A text that the system text holds.
    #[schemars(with = "Option<ScriptText>")]
    system: Option<String>,
    /// Exactly the tools that are offered, in any order.
    tools: Option<Vec<String>>,
}

/// Tokens.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "ScriptUsage")]
#[expect(dead_code, reason = "it is there for its schema")]
struct UsageForm {
    /// Tokens read.
    input: Option<u64>,
    /// Tokens written.
    output: Option<u64>,
    /// Those of `input` that came from a cache.
    cached: Option<u64>,
    /// Those of `output` that were reasoning.
    reasoning: Option<u64>,
}

/// How a model call fails.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "ScriptError")]
#[expect(dead_code, reason = "it is there for its schema")]
struct ErrorForm {
    /// The HTTP status; the connection breaks when left out.
    #[schemars(range(min = 100, max = 599))]
    status: Option<u16>,
    /// What happened.
    message: String,
}

/// Why a reply ends.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", rename = "ScriptFinish", inline)]
#[expect(dead_code, reason = "it is there for its schema")]
enum FinishForm {
    /// The model is done.
    Stop,
    /// It wants tools.
    Calls,
    /// It met the limit on tokens.
    Length,
    /// The provider filtered the reply.
    Filter,
    /// The provider does not say.
    Unknown,
}
