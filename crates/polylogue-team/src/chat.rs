//! Chats.

use polylogue_config::types::Type;
use polylogue_config::yaml::Node;
use polylogue_config::{Config, Cx, OneOrMany};
use polylogue_core::Name;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::parameters::Parameters;
use crate::pattern::{Group, Pattern, SelectSpeaker};
use crate::private_agents::PrivateRole;
use crate::stop::Stop;
use crate::text::{ConditionText, ModelText, NewParticipant, ParticipantRef, Template};

/// A chat: who speaks in which order, how it begins, when it ends and what its result is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
pub struct Chat {
    /// Who speaks when.
    #[key(default = Pattern::RoundRobin)]
    pub pattern: Pattern,
    /// Agents, chats and teams by their names, in the order in which they speak.
    #[key(as = Vec<ParticipantRef>, required, nonempty)]
    pub participants: Vec<Name>,
    /// What every participant receives first: `true` for the names and descriptions of the others, or a text. It is not a
    /// message of the chat.
    #[key(default = Introductions::Others(false))]
    pub introductions: Introductions,
    /// Participants that can join later.
    #[key(nonempty)]
    pub late_joiners: Vec<LateJoiner>,
    /// The messages before the first turn; an empty list for none.
    #[key(default = Opening::default())]
    pub opening: Opening,
    /// What ends the chat: any of the conditions.
    #[key(none = "the pattern, or `max_turns`")]
    pub stop: Option<Stop>,
    /// What counts as a loop, which ends the chat; `off` for nothing.
    #[key(default = LoopDetection::On(LoopLimits::default()))]
    pub loop_detection: LoopDetection,
    /// The result of the chat.
    #[key(default = Summary::Last)]
    pub summary: Summary,
    /// Maximum number of turns, if nothing else ends the chat.
    #[key(default = 100, range = 1..=1_000_000)]
    pub max_turns: u64,
}

impl Chat {
    /// Leaves it to the team which models speak for this chat.
    pub(crate) fn forget_models(&mut self) {
        if let Summary::Reflect(reflect) = &mut self.summary {
            reflect.model = None;
        }
        if let Pattern::Group(Group { select: SelectSpeaker::Model(selector), .. }) = &mut self.pattern {
            selector.model = None;
        }
    }

    /// Whoever speaks in this chat by a model and is no participant, when it is called `name`: whoever picks the next
    /// speaker, the author of a reflected summary.
    #[must_use]
    pub fn staff(&self, name: &Name) -> Vec<Name> {
        let picks = matches!(&self.pattern, Pattern::Group(Group { select: SelectSpeaker::Model(_), .. }));
        let reflects = matches!(&self.summary, Summary::Reflect(reflect) if reflect.by.is_none());
        let staff = [(picks, PrivateRole::Picker), (reflects, PrivateRole::Summary)];
        staff.into_iter().filter(|(is, _)| *is).filter_map(|(_, role)| role.of(name)).collect()
    }
}

/// A chat that takes part in other chats like an agent. What it says there is its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
pub struct InnerChat {
    /// Its name.
    #[key(as = NewParticipant)]
    pub name: Name,
    /// What it is for, in one line.
    #[key(default = String::new())]
    pub description: String,
    /// Which part of the surrounding conversation is its task.
    #[key(default = TaskFrom::Last)]
    pub task_from: TaskFrom,
    /// Its task as a text. The results of the chats before are added to it.
    #[key(none = "by `task_from`")]
    pub task: Option<Template>,
    /// Which results of the chats before are added to its task.
    #[key(none = "`all` with `message`, otherwise `none`")]
    pub carryover: Option<CarryoverSpec>,
    /// The conversation that it continues when it has another turn: `self`, or another chat that takes part where it does.
    #[key(as = Option<ParticipantRef>, none = "every turn begins a new conversation")]
    pub continues: Option<Name>,
    /// The chat itself.
    #[key(flatten)]
    pub chat: Chat,
}

/// Which part of a conversation is the task of a chat within it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
pub enum TaskFrom {
    /// The last message that it sees.
    #[default]
    Last,
    /// Every message that it sees, with the names of the speakers.
    All,
    /// The task of the surrounding chat.
    Task,
}

/// The name that stands for a chat itself.
pub(crate) const ITSELF: &str = "self";

/// Which results of the chats before are added to the task of a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "CarryoverValue", by_shape)]
pub enum CarryoverSpec {
    /// All or nothing.
    Word(CarryWord),
    /// Some, or further texts.
    Of(Carried),
}

/// All or nothing of the chats before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Config)]
pub enum CarryWord {
    /// The result of every chat that is finished.
    All,
    /// Nothing.
    None,
}

/// What is added to the task of a chat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "Carryover", nonempty)]
pub struct Carried {
    /// These texts, first.
    #[key(nonempty)]
    pub context: Vec<Template>,
    /// The results of these chats only.
    #[key(as = Option<OneOrMany<ParticipantRef>>, none = "of all")]
    pub include: Option<Vec<Name>>,
    /// The results of all chats except these.
    #[key(as = OneOrMany<ParticipantRef>)]
    pub exclude: Vec<Name>,
}

/// What every participant receives first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(by_shape)]
pub enum Introductions {
    /// Who the others are, or nothing.
    Others(bool),
    /// A text.
    Text(String),
}

/// A participant that joins a chat later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
#[config(name = "LateJoiner")]
pub struct LateJoiner {
    /// An agent, chat or team that is not a participant from the beginning.
    #[key(as = ParticipantRef)]
    pub who: Name,
    /// When it joins: a condition in CEL, or a mapping like `stop`.
    pub when: JoinCondition,
    /// Which earlier messages it sees.
    #[key(default = LateHistory::All)]
    pub history: LateHistory,
}

/// When a participant joins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
#[config(by_shape)]
pub enum JoinCondition {
    /// A condition, in CEL.
    #[key(as = ConditionText)]
    Holds(String),
    /// Like `stop` of a chat.
    Stop(Box<Stop>),
}

/// Which earlier messages a participant sees that joins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
pub enum LateHistory {
    /// All.
    #[default]
    All,
    /// None: only what is said from then on.
    New,
}

/// The messages before the first turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening(pub Vec<OpeningLine>);

/// The task, said to everybody by the user.
impl Default for Opening {
    fn default() -> Self {
        Self(vec![OpeningLine::of(Template::new("{{task}}"))])
    }
}

impl Config for Opening {
    fn ty() -> &'static Type {
        OneOrMany::<OpeningLine>::ty()
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        Self(OneOrMany::read(node, cx).0)
    }

    fn hole() -> Self {
        Self(Vec::new())
    }

    fn write(&self) -> Value {
        match self.0.as_slice() {
            [] => Value::Array(Vec::new()),
            lines => OneOrMany(lines.to_vec()).write(),
        }
    }
}

/// A message of an opening: its text, or a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "OpeningMessage", shorthand = "text")]
pub struct OpeningLine {
    /// The sender: a participant, or `user` for the person who gave the task.
    #[key(as = ParticipantRef, default = Name::user())]
    pub from: Name,
    /// Who sees it.
    #[key(as = OneOrMany<ParticipantRef>, none = "everybody")]
    pub to: Vec<Name>,
    /// The text.
    pub text: Template,
}

impl OpeningLine {
    fn of(text: Template) -> Self {
        Self { from: Name::user(), to: Vec::new(), text }
    }
}

/// What counts as a loop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Config)]
#[config(name = "LoopDetectionValue", by_shape)]
pub enum LoopDetection {
    /// Nothing does.
    Off(Off),
    /// These do.
    On(LoopLimits),
}

/// The word `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Config)]
pub enum Off {
    /// Loops are not detected.
    Off,
}

/// What counts as a loop.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Config)]
#[config(name = "LoopDetection")]
pub struct LoopLimits {
    /// Number of nearly equal messages of one speaker.
    #[key(default = 3, range = 2..)]
    pub repetition: u32,
    /// Similarity from which two messages are nearly equal; 1 is equal.
    #[key(default = 0.9, range = 0.1..=1.0)]
    pub similarity: f64,
    /// Number of farewells in a row.
    #[key(default = 4, range = 2..)]
    pub farewells: u32,
    /// Number of empty messages in a row.
    #[key(default = 2, range = 1..)]
    pub silence: u32,
    /// Number of equal tool calls in a row with equal results, within one turn or between turns.
    #[key(default = 8, range = 2..)]
    pub calls: u32,
}

impl Default for LoopLimits {
    fn default() -> Self {
        Self::absent()
    }
}

/// The result of a chat.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Config)]
pub enum Summary {
    /// Its last message.
    #[default]
    Last,
    /// Nothing.
    None,
    /// Its last message without these texts.
    #[key(as = OneOrMany<String>, nonempty)]
    Without(Vec<String>),
    /// A summary that a model writes at the end. The author is called `NAME_summary` after the chat, unless `by` names an
    /// agent.
    Reflect(Box<Reflect>),
}

/// How a model writes a summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
#[config(name = "ReflectedSummary")]
pub struct Reflect {
    /// The prompt, after the chat.
    #[key(default = Template::new(SUMMARISE))]
    pub prompt: Template,
    /// The author: an agent with its own system message and model.
    #[key(as = Option<ParticipantRef>, none = "an author for this alone")]
    pub by: Option<Name>,
    /// Its model, as `provider:model`.
    #[key(as = Option<ModelText>, none = "the team's")]
    pub model: Option<String>,
    /// How it writes.
    pub parameters: Parameters,
}

const SUMMARISE: &str =
    "Summarise what came of the conversation above, in a few sentences. Add nothing of your own.";

impl Default for Reflect {
    fn default() -> Self {
        Self::absent()
    }
}
