//! What a team file says of how models are made to call tools.

use polylogue::{AnyTool, Outcome, StateScope};
use polylogue_tools::Bounded;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::duration::Time;
use crate::text::{OptionText, ToolText};

/// How a model is made to call tools, and to answer in a form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ToolsBy {
    /// By the best way that the model knows.
    #[default]
    Auto,
    /// By the provider's function calls.
    Native,
    /// By replies that are held to a JSON Schema.
    Schema,
    /// Step by step, with the provider's JSON mode where JSON is asked for.
    Json,
    /// Step by step, with nothing but text.
    Text,
}

impl ToolsBy {
    pub(crate) fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// What an agent remembers of a turn in which it called tools step by step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Trace {
    /// What it said in the end.
    #[default]
    Answer,
    /// The task, that the tool can be used, that it is to be used, its arguments, and what it returned, which is also what
    /// the agent says.
    FiveMessages,
}

impl Trace {
    pub(crate) fn is_answer(&self) -> bool {
        *self == Self::Answer
    }
}

/// How long a call of an agent's tools may take, and how much of what it returns the agent is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("minProperties" = 1))]
pub struct ToolLimits {
    /// How long a call may take. One that takes longer is given up and fails; the agent goes on. As long as the tool takes when
    /// left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// How many bytes of text and data a call may return, 65536 when left out. What is beyond that is left out, of a long text
    /// from the middle, and the agent is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 65_536))]
    pub bytes: Option<u32>,
}

impl ToolLimits {
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// `tool` within these limits.
    pub(crate) fn around(self, tool: AnyTool) -> AnyTool {
        if self.is_none() {
            return tool;
        }
        let bytes = self.bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(Outcome::MAX_BYTES);
        let tool = Bounded::new(tool).at_most(bytes);
        AnyTool::new(match self.time {
            Some(time) => tool.within(time.into()),
            None => tool,
        })
    }
}

/// A tool of an agent or a task: its name, or a mapping that says how it is taught.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "OwnToolForm")]
#[schemars(inline, with = "OwnToolForm")]
pub struct OwnTool {
    /// Its name.
    pub tool: String,
    /// To what the state belongs that it keeps, if that is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<StateScope>,
    /// Whether it has to be used in every turn in which the agent speaks to others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mandatory: bool,
    /// Examples that a model reads before it writes arguments as text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
    /// How often in a row the tool may refuse what it is called with as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_errors: Option<u32>,
    /// How often in a row arguments as text may not fit the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_call_errors: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum OwnToolForm {
    Name(#[schemars(with = "ToolText")] String),
    Full(FullTool),
}

/// A tool, and how it is taught.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OwnTool")]
struct FullTool {
    /// Its name.
    #[schemars(with = "ToolText")]
    tool: String,
    /// To what the state belongs that `set_state` and `chess` keep: to the `team` (default), chats within chats and their next runs
    /// included, or to one run of the `chat`.
    #[serde(default)]
    #[schemars(with = "Option<ScopeForm>")]
    scope: Option<StateScope>,
    /// Whether it has to be used in every turn in which the agent speaks to others.
    #[serde(default)]
    mandatory: bool,
    /// Examples that a model reads before it writes arguments as text. They stay in no history.
    #[serde(default)]
    examples: Vec<Example>,
    /// How often in a row the tool may refuse what it is called with as text, 5 when left out. One error more ends the chat.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000))]
    max_errors: Option<u32>,
    /// How often in a row arguments as text may not fit the tool, 5 when left out. One error more ends the chat.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000))]
    max_call_errors: Option<u32>,
}

impl From<OwnToolForm> for OwnTool {
    fn from(form: OwnToolForm) -> Self {
        match form {
            OwnToolForm::Name(tool) => Self::named(tool),
            OwnToolForm::Full(FullTool { tool, scope, mandatory, examples, max_errors, max_call_errors }) => {
                Self { tool, scope, mandatory, examples, max_errors, max_call_errors }
            }
        }
    }
}

impl OwnTool {
    fn named(tool: String) -> Self {
        let (examples, max_errors, max_call_errors) = (Vec::new(), None, None);
        Self { tool, scope: None, mandatory: false, examples, max_errors, max_call_errors }
    }
}

/// A tool that an agent runs for others: its name, or a mapping that says to what its state belongs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "RunToolForm", into = "RunToolForm")]
#[schemars(inline, with = "RunToolForm")]
pub struct RunTool {
    /// Its name.
    pub tool: String,
    /// To what the state belongs that it keeps, if that is said.
    pub scope: Option<StateScope>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum RunToolForm {
    Name(#[schemars(with = "ToolText")] String),
    Full(FullRunTool),
}

/// A tool that is run for others, and to what its state belongs.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RunTool")]
struct FullRunTool {
    /// Its name.
    #[schemars(with = "ToolText")]
    tool: String,
    /// To what the state belongs that `set_state` and `chess` keep: to the `team` (default), chats within chats and their next runs
    /// included, or to one run of the `chat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ScopeForm>")]
    scope: Option<StateScope>,
}

impl From<RunToolForm> for RunTool {
    fn from(form: RunToolForm) -> Self {
        match form {
            RunToolForm::Name(tool) => Self { tool, scope: None },
            RunToolForm::Full(FullRunTool { tool, scope }) => Self { tool, scope },
        }
    }
}

impl From<RunTool> for RunToolForm {
    fn from(RunTool { tool, scope }: RunTool) -> Self {
        match scope {
            None => Self::Name(tool),
            scope => Self::Full(FullRunTool { tool, scope }),
        }
    }
}

/// To what the state of a tool belongs.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum ScopeForm {
    /// To the team: to the outermost chat and all chats within it, and to their next runs.
    Team,
    /// To one run of one chat.
    Chat,
}

/// An example of how a tool is called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ToolExample")]
pub struct Example {
    /// What is asked for, in words.
    #[schemars(with = "OptionText")]
    pub asked: String,
    /// The arguments for that.
    pub args: Map<String, Value>,
}
