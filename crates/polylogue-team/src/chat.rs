//! What a team file says of a chat.

use polylogue_core::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parameters::Parameters;
use crate::pattern::{Group, Pattern, Pick};
use crate::staff::Role;
use crate::stop::Stop;
use crate::text::{ConditionText, ModelText, NameText, Names, Template};

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
    /// What every participant is told first of all: `true` for who the others are, by their names and descriptions, or a
    /// text. It is no message of the chat.
    #[serde(default, skip_serializing_if = "Introductions::is_none")]
    pub introductions: Introductions,
    /// Who may join later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub joins: Vec<Join>,
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
    /// Leaves it to the team which models speak for this chat.
    pub(crate) fn forget_models(&mut self) {
        if let Summary::Reflect(reflect) = &mut self.summary {
            reflect.model = None;
        }
        if let Pattern::Group(Group { pick: Pick::Model(selector), .. }) = &mut self.pattern {
            selector.model = None;
        }
    }

    /// Whoever speaks in this chat by a model and is no participant, when it is called `name`: whoever picks the next
    /// speaker, the author of a reflected summary.
    #[must_use]
    pub fn staff(&self, name: &Name) -> Vec<Name> {
        let picks = matches!(&self.pattern, Pattern::Group(Group { pick: Pick::Model(_), .. }));
        let reflects = matches!(&self.summary, Summary::Reflect(reflect) if reflect.by.is_none());
        let staff = [(picks, Role::Picker), (reflects, Role::Summary)];
        staff.into_iter().filter(|(is, _)| *is).filter_map(|(_, role)| role.of(name)).collect()
    }
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
    /// Its task as a text of its own; then `brief` is left out. What came of the chats before is put behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Template>,
    /// What of the chats before is put behind its task: with a `message`, what came of all of them when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carryover: Option<Carryover>,
    /// Whose conversation it goes on with when it has a turn again: `self`, or another chat that takes part where it
    /// does. When left out, every turn is a conversation of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NameText>")]
    pub goes_on_from: Option<Name>,
    /// The chat itself.
    #[serde(flatten)]
    pub chat: Chat,
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

/// The name that stands for a chat itself.
pub(crate) const ITSELF: &str = "self";

/// What of the chats before is put behind the task of a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Carryover {
    /// All or nothing.
    Word(CarryWord),
    /// A part, or more.
    Of(Carried),
}

/// All or nothing of the chats before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum CarryWord {
    /// What came of every chat that is finished.
    All,
    /// Nothing.
    None,
}

/// What is put behind the task of a chat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("minProperties" = 1))]
pub struct Carried {
    /// These texts come first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub also: Vec<Template>,
    /// What came of these chats only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<Names>,
    /// What came of all chats but these.
    #[serde(skip_serializing_if = "Names::is_empty")]
    pub but: Names,
}

/// What every participant is told first of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Introductions {
    /// Who the others are, or nothing.
    Others(bool),
    /// A text of its own.
    Text(#[schemars(length(min = 1))] String),
}

impl Default for Introductions {
    fn default() -> Self {
        Self::Others(false)
    }
}

impl Introductions {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Somebody who joins a chat later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// Who: somebody who is no participant from the beginning.
    #[schemars(with = "NameText")]
    pub who: Name,
    /// When: a condition, or what could stand in `stop`.
    pub when: JoinsWhen,
    /// What they see of what was said without them.
    #[serde(default)]
    pub sees: JoinSees,
}

/// When somebody joins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum JoinsWhen {
    /// A condition, in CEL.
    Holds(#[schemars(with = "ConditionText")] String),
    /// As what ends a chat.
    Stop(Box<Stop>),
}

/// What somebody who joins sees of what was said without them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JoinSees {
    /// Everything.
    #[default]
    All,
    /// Nothing: only what is said from then on.
    New,
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
    /// This many equal tool calls in a row with equal results: of an agent within one turn, or asked for in messages.
    #[schemars(range(min = 2))]
    pub calls: u32,
}

impl Default for CircleLimits {
    fn default() -> Self {
        Self { repetition: 3, similarity: 0.9, farewells: 4, silence: 2, calls: 8 }
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
    /// Its last message, with these texts taken out.
    Without(Texts),
    /// What a model writes of it when it has ended. The author is called `NAME_summary`, after the chat, if it is nobody else.
    Reflect(Box<Reflect>),
}

/// One text or a list of texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "TextsForm")]
#[schemars(inline)]
pub struct Texts(#[schemars(with = "TextsForm")] pub Vec<String>);

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum TextsForm {
    One(#[schemars(length(min = 1))] String),
    Many(#[schemars(length(min = 1))] Vec<String>),
}

impl From<TextsForm> for Texts {
    fn from(form: TextsForm) -> Self {
        Self(match form {
            TextsForm::One(text) => vec![text],
            TextsForm::Many(texts) => texts,
        })
    }
}

/// How a model writes a summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reflect {
    /// What it is asked after it has read the chat.
    pub prompt: Template,
    /// Who writes it, an agent with its own system text and model: then there is no other author.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NameText>")]
    pub by: Option<Name>,
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
        Self { prompt: Template::new(prompt), by: None, model: None, parameters: Parameters::default() }
    }
}
