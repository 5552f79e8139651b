//! What a team file says of a chat.

use polylogue_core::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::team::Parameters;
use crate::text::{ModelText, NameText, Names, RegexText, Template};

/// A chat: who speaks in which order, how it begins, when it ends and what comes of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chat {
    /// Who speaks when.
    #[serde(default)]
    pub pattern: Pattern,
    /// Who takes part, in the order in which they speak: agents, chats and teams by their names.
    #[schemars(with = "Vec<NameText>", length(min = 1))]
    pub participants: Vec<Name>,
    /// What is said before the first turn: `{{task}}` when left out, nothing when it is an empty list.
    #[serde(default)]
    pub opening: Opening,
    /// What ends the chat: any of the conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// What counts as going in circles, which ends the chat too; `off` never does.
    #[serde(default)]
    pub circles: Circles,
    /// What comes of the chat.
    #[serde(default)]
    pub summary: Summary,
    /// How many turns end the chat when nothing else does.
    #[serde(default = "default_cap")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_turns_cap: u64,
}

const fn default_cap() -> u64 {
    100
}

impl Chat {
    /// The name of the agent that writes a reflected summary of this chat, when it is called `name`.
    #[must_use]
    pub fn summarizer(&self, name: &Name) -> Option<Name> {
        matches!(self.summary, Summary::Reflect(_))
            .then(|| Name::new(summarizer(name.as_str())).ok())
            .flatten()
    }
}

/// The name of the agent that writes the reflected summary of the chat `chat`.
pub(crate) fn summarizer(chat: &str) -> String {
    format!("{chat}_summary")
}

/// A chat that takes part in other chats as if it were one agent: its summary is what it says there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct InnerChat {
    /// Its name.
    #[schemars(with = "NameText")]
    pub name: Name,
    /// What it is for, in a line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How its task is made of the conversation around it.
    #[serde(default)]
    pub brief: Brief,
    /// The chat itself.
    #[serde(flatten)]
    pub chat: Chat,
}

/// Who speaks when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// The participants in their order, again and again until the chat ends.
    #[default]
    InTurn,
    /// Each participant once, in their order.
    OnceEach,
}

/// How the task of a chat within a chat is made of what was said around it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Brief {
    /// The last message it sees.
    #[default]
    Last,
    /// Every message it sees, with the names of those who said them.
    All,
    /// The task of the chat around it.
    Task,
}

/// What is said before the first turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "OpeningForm")]
#[schemars(inline)]
pub struct Opening(#[schemars(with = "OpeningForm")] pub Vec<OpeningLine>);

/// The task, said to everybody by the user.
impl Default for Opening {
    fn default() -> Self {
        Self(vec![OpeningLine::of(Template::new("{{task}}"))])
    }
}

/// One message of an opening.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpeningLine {
    /// Who says it: a participant, or `user` for whoever gave the task.
    #[serde(default = "Name::user")]
    #[schemars(with = "NameText")]
    pub from: Name,
    /// Who sees it: everybody when left out.
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    pub to: Names,
    /// What is said.
    pub text: Template,
}

impl OpeningLine {
    fn of(text: Template) -> Self {
        Self { from: Name::user(), to: Names::default(), text }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum OpeningForm {
    Lines(Vec<LineForm>),
    Line(OpeningLine),
    Text(Template),
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum LineForm {
    Line(OpeningLine),
    Text(Template),
}

impl From<OpeningForm> for Opening {
    fn from(form: OpeningForm) -> Self {
        Self(match form {
            OpeningForm::Text(text) => vec![OpeningLine::of(text)],
            OpeningForm::Line(line) => vec![line],
            OpeningForm::Lines(lines) => lines.into_iter().map(OpeningLine::from).collect(),
        })
    }
}

impl From<LineForm> for OpeningLine {
    fn from(form: LineForm) -> Self {
        match form {
            LineForm::Text(text) => Self::of(text),
            LineForm::Line(line) => line,
        }
    }
}

/// What ends a chat: any of the conditions that are given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("minProperties" = 1))]
pub struct Stop {
    /// Somebody says a text: the text, or a mapping that says more of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub says: Option<Says>,
    /// A message matches a regular expression: the expression, or a mapping that says more of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<Matches>,
    /// This many turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_turns: Option<u64>,
    /// This many messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_messages: Option<u64>,
    /// This many tokens read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// This many dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_cost: Option<f64>,
    /// This many seconds, waiting for people not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub max_time_s: Option<f64>,
    /// All of these hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub all: Vec<Stop>,
    /// One of these holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub any: Vec<Stop>,
}

/// Somebody says a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "SaysForm")]
#[schemars(inline)]
pub struct Says {
    /// The text.
    pub text: String,
    /// Whose messages count: everybody's when left out.
    #[serde(skip_serializing_if = "Names::is_empty")]
    pub by: Names,
    /// Whether the text has to be the whole message, white space around it not counted.
    pub whole: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum SaysForm {
    Text(#[schemars(length(min = 1))] String),
    Full(FullSays),
}

/// Somebody says a text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Says")]
struct FullSays {
    /// The text.
    #[schemars(length(min = 1))]
    text: String,
    /// Whose messages count: everybody's when left out.
    #[serde(default)]
    by: Names,
    /// Whether the text has to be the whole message, white space around it not counted.
    #[serde(default)]
    whole: bool,
}

impl From<SaysForm> for Says {
    fn from(form: SaysForm) -> Self {
        match form {
            SaysForm::Text(text) => Self { text, by: Names::default(), whole: false },
            SaysForm::Full(FullSays { text, by, whole }) => Self { text, by, whole },
        }
    }
}

/// A message matches a regular expression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "MatchesForm")]
#[schemars(inline)]
pub struct Matches {
    /// The expression, in the syntax of Rust's `regex`.
    pub pattern: String,
    /// Whose messages count: everybody's when left out.
    #[serde(skip_serializing_if = "Names::is_empty")]
    pub by: Names,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum MatchesForm {
    Pattern(#[schemars(with = "RegexText")] String),
    Full(FullMatches),
}

/// A message matches a regular expression.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Matches")]
struct FullMatches {
    /// The expression, in the syntax of Rust's `regex`: it is looked for anywhere in the message.
    #[schemars(with = "RegexText")]
    pattern: String,
    /// Whose messages count: everybody's when left out.
    #[serde(default)]
    by: Names,
}

impl From<MatchesForm> for Matches {
    fn from(form: MatchesForm) -> Self {
        match form {
            MatchesForm::Pattern(pattern) => Self { pattern, by: Names::default() },
            MatchesForm::Full(FullMatches { pattern, by }) => Self { pattern, by },
        }
    }
}

/// What counts as going in circles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Circles {
    /// Nothing does.
    Off(Off),
    /// These do.
    On(CircleLimits),
}

impl Default for Circles {
    fn default() -> Self {
        Self::On(CircleLimits::default())
    }
}

/// The word `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Off {
    /// It is not looked for.
    Off,
}

/// What counts as going in circles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Circles")]
pub struct CircleLimits {
    /// This many times nearly the same message of one speaker.
    #[schemars(range(min = 2))]
    pub repetition: u32,
    /// How alike two messages are that are nearly the same: 1 is equal.
    #[schemars(range(min = 0.1, max = 1))]
    pub similarity: f64,
    /// This many farewells in a row.
    #[schemars(range(min = 2))]
    pub farewells: u32,
    /// This many empty messages in a row.
    #[schemars(range(min = 1))]
    pub silence: u32,
    /// This many times the same tool call in a row.
    #[schemars(range(min = 2))]
    pub calls: u32,
}

impl Default for CircleLimits {
    fn default() -> Self {
        Self { repetition: 3, similarity: 0.9, farewells: 4, silence: 2, calls: 3 }
    }
}

/// What comes of a chat.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Summary {
    /// Its last message.
    #[default]
    Last,
    /// Nothing.
    None,
    /// What a model writes of it when it has ended. The author is called `NAME_summary`, after the chat.
    Reflect(Reflect),
}

impl Summary {
    pub(crate) fn forget_model(&mut self) {
        if let Self::Reflect(reflect) = self {
            reflect.model = None;
        }
    }
}

/// How a model writes a summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reflect {
    /// What it is asked after it has read the chat.
    pub prompt: Template,
    /// Its model, as `provider:model`, where it is not the team's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ModelText>")]
    pub model: Option<String>,
    /// How it writes.
    #[serde(skip_serializing_if = "Parameters::is_none")]
    pub parameters: Parameters,
}

impl Default for Reflect {
    fn default() -> Self {
        let prompt =
            "Summarise what came of the conversation above, in a few sentences. Add nothing of your own.";
        Self { prompt: Template::new(prompt), model: None, parameters: Parameters::default() }
    }
}
