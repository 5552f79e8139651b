//! Chats.

use polylogue_config::types::Type;
use polylogue_config::yaml::Node;
use polylogue_config::{At, Config, Cx, NewName, OneOrMany, Ref};
use polylogue_core::Name;
use serde_json::Value;

use crate::parameters::Parameters;
use crate::pattern::{Group, Pattern, SelectSpeaker};
use crate::private_agents::PrivateRole;
use crate::stop::Stop;
use crate::text::{
    AgentRef, ConditionText, Listed, MemberOrUser, MemberRef, ModelText, NeighborRef, OfChat, Template,
};

/// A chat: its participants, who speaks when, how it begins, when it ends and what its result is.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(scope)]
pub struct Chat {
    /// Pattern by which the next speaker is selected.
    #[key(default = Pattern::RoundRobin)]
    pub pattern: Pattern,
    /// Names of the agents, chats and teams that take part, in speaking order.
    #[key(as = At<Vec<At<NewName<Listed>>>>, required, nonempty)]
    pub participants: At<Vec<At<Name>>>,
    /// Text that every participant receives before the first message: `true` for the names and descriptions of the
    /// other participants, or a custom text. It is not a message of the chat.
    #[key(default = Introductions::Others(false))]
    pub introductions: At<Introductions>,
    /// Participants that join during the chat.
    #[key(nonempty)]
    pub late_joiners: At<Vec<LateJoiner>>,
    /// Messages before the first turn. An empty list for none.
    #[key(default = Opening::default())]
    pub opening: At<Opening>,
    /// Termination conditions. The chat ends when one of them is met.
    #[key(none = "the pattern, or `max_turns`")]
    pub stop: Option<Stop>,
    /// Limits on repetition. The chat ends when one is reached. `off` disables loop detection.
    #[key(default = LoopDetection::On(LoopLimits::default()))]
    pub loop_detection: At<LoopDetection>,
    /// Result of the chat.
    #[key(default = Summary::Last)]
    pub summary: Summary,
    /// Maximum number of turns. The chat ends when it is reached, whatever the pattern and `stop` say.
    #[key(default = 100, range = 1..=1_000_000)]
    pub max_turns: At<u64>,
}

impl Chat {
    /// The participants, late joiners included.
    pub(crate) fn everyone(&self) -> impl Iterator<Item = &At<Name>> + Clone {
        self.participants.iter().chain(self.late_joiners.iter().map(|join| &join.who))
    }

    /// Removes the models of its private agents, which then use the team's model.
    pub(crate) fn forget_models(&mut self) {
        if let Summary::Reflect(reflect) = &mut self.summary {
            reflect.value.model = None;
        }
        if let Pattern::Group(Group { select: SelectSpeaker::Model(selector), .. }) = &mut self.pattern {
            selector.value.model = None;
        }
    }

    /// The private agents of this chat if it is called `name`: the model-based speaker selector and the author of a
    /// reflected summary. They are not participants.
    #[must_use]
    pub fn private_agents(&self, name: &Name) -> Vec<Name> {
        let picks = matches!(&self.pattern, Pattern::Group(Group { select: SelectSpeaker::Model(_), .. }));
        let reflects = matches!(&self.summary, Summary::Reflect(reflect) if reflect.by.is_none());
        let private_agents = [(picks, PrivateRole::Selector), (reflects, PrivateRole::Summary)];
        private_agents.into_iter().filter(|(is, _)| *is).filter_map(|(_, role)| role.of(name)).collect()
    }
}

/// A chat that takes part in other chats like an agent. Its reply is its summary.
#[derive(Debug, Clone, PartialEq, Config)]
pub struct InnerChat {
    /// Name of the chat as a participant.
    #[key(as = At<NewName<OfChat>>)]
    pub name: At<Name>,
    /// One-line description of what the chat is for. Other participants see it.
    #[key(default = String::new())]
    pub description: String,
    /// Part of the surrounding conversation that becomes the chat's task.
    #[key(default = TaskFrom::Last)]
    pub task_from: At<TaskFrom>,
    /// Task of the chat as a text. The results that `carryover` selects are appended to it.
    #[key(none = "as `task_from` says")]
    pub task: Option<At<Template>>,
    /// Results of earlier chats that are added to the task.
    #[key(none = "`all` with `task`, otherwise `none`")]
    pub carryover: Option<At<CarryoverSpec>>,
    /// Conversation that the chat continues in its next turn: `self` for its own, or another participant chat of the
    /// same surrounding chat.
    #[key(as = Option<NeighborRef>, none = "every turn begins a new conversation")]
    pub continues: Option<At<Name>>,
    /// The chat itself.
    #[key(flatten)]
    pub chat: Chat,
}

/// Part of the surrounding conversation that becomes the task of an inner chat or team.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Config)]
pub enum TaskFrom {
    /// The last message that it sees.
    #[default]
    Last,
    /// All messages that it sees, with the names of the speakers.
    All,
    /// The task of the surrounding chat.
    Task,
}

/// The name that stands for a chat itself.
pub(crate) const ITSELF: &str = "self";

/// Results of earlier chats that are added to the task of a chat.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "CarryoverValue", by_shape)]
pub enum CarryoverSpec {
    /// All or nothing.
    Word(CarryWord),
    /// Some, or further texts.
    Of(Carried),
}

/// Whether the results of earlier chats are added to the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Config)]
pub enum CarryWord {
    /// The results of all finished chats.
    All,
    /// No results.
    None,
}

/// Texts and results of earlier chats that are added to the task of a chat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
#[config(name = "Carryover", nonempty)]
pub struct Carried {
    /// Custom texts, which come first.
    #[key(nonempty)]
    pub context: Vec<Template>,
    /// Chats whose results are added.
    #[key(as = Option<OneOrMany<NeighborRef>>, none = "all finished chats")]
    pub include: Option<Vec<At<Name>>>,
    /// Chats whose results are not added.
    #[key(as = OneOrMany<NeighborRef>)]
    pub exclude: Vec<At<Name>>,
}

/// Text that every participant receives before the first message.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(by_shape)]
pub enum Introductions {
    /// Whether every participant receives the names and descriptions of the others.
    Others(bool),
    /// A custom text.
    Text(String),
}

/// A participant that joins during a chat.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(name = "LateJoiner")]
pub struct LateJoiner {
    /// Agent, chat or team that joins. It must not be in `participants`.
    #[key(as = At<NewName<Listed>>)]
    pub who: At<Name>,
    /// Condition under which the participant joins: CEL, or a mapping like `stop`.
    pub when: JoinCondition,
    /// Earlier messages that the participant sees.
    #[key(default = LateHistory::All)]
    pub history: LateHistory,
}

/// Condition under which a participant joins.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(by_shape)]
pub enum JoinCondition {
    /// A condition in CEL.
    #[key(as = ConditionText)]
    Holds(String),
    /// A mapping like `stop` of a chat.
    Stop(Box<Stop>),
}

/// Earlier messages that a late joiner sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Config)]
pub enum LateHistory {
    /// All earlier messages.
    #[default]
    All,
    /// No earlier messages.
    New,
}

/// The messages before the first turn.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "OpeningMessage", shorthand = "text")]
pub struct OpeningLine {
    /// Sender of the message: a participant, or `user` for the person who gave the task.
    #[key(as = Ref<MemberOrUser>, default = Name::user())]
    pub from: Name,
    /// Participants who see the message.
    #[key(as = OneOrMany<MemberRef>, none = "all participants")]
    pub to: Vec<Name>,
    /// Text of the message.
    pub text: Template,
}

impl OpeningLine {
    fn of(text: Template) -> Self {
        Self { from: Name::user(), to: Vec::new(), text }
    }
}

/// Limits on repetition, or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Config)]
#[config(name = "LoopDetectionValue", by_shape)]
pub enum LoopDetection {
    /// Loop detection is off.
    Off(Off),
    /// Loop detection with these limits.
    On(LoopLimits),
}

/// The word `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Config)]
pub enum Off {
    /// Loops are not detected.
    Off,
}

/// Limits on repetition. A chat ends when one is reached.
#[derive(Debug, Clone, Copy, PartialEq, Config)]
#[config(name = "LoopDetection")]
pub struct LoopLimits {
    /// Number of nearly equal messages of one speaker.
    #[key(default = 3, range = 2..)]
    pub repetition: u32,
    /// Similarity at which two messages count as nearly equal, from 0.1 to 1. `1` means equal.
    #[key(default = 0.9, range = 0.1..=1.0)]
    pub similarity: f64,
    /// Number of consecutive farewells.
    #[key(default = 4, range = 2..)]
    pub farewells: u32,
    /// Number of consecutive empty messages.
    #[key(default = 2, range = 1..)]
    pub silence: u32,
    /// Number of consecutive equal tool calls with equal results, within one turn or across turns.
    #[key(default = 8, range = 2..)]
    pub calls: u32,
}

impl Default for LoopLimits {
    fn default() -> Self {
        Self::absent()
    }
}

/// Result of a chat.
#[derive(Debug, Clone, Default, PartialEq, Config)]
pub enum Summary {
    /// Last message of the chat.
    #[default]
    Last,
    /// No result.
    None,
    /// Last message of the chat, without these texts.
    #[key(as = OneOrMany<String>, nonempty)]
    Without(Vec<String>),
    /// Summary that a model writes when the chat ends. The author is called `NAME_summary` after the chat, unless `by`
    /// names an agent.
    Reflect(At<Box<Reflect>>),
}

/// Settings of a summary that a model writes.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(name = "ReflectedSummary")]
pub struct Reflect {
    /// Prompt for the summary. The model receives it after the messages of the chat.
    #[key(default = Template::new(SUMMARISE))]
    pub prompt: Template,
    /// Agent that writes the summary, with its own system message and model.
    #[key(as = Option<AgentRef>, none = "a private author")]
    pub by: Option<At<Name>>,
    /// Model of the author, as `provider:model`.
    #[key(as = Option<At<ModelText>>, none = "the model of the team")]
    pub model: Option<At<String>>,
    /// Sampling parameters of the author's model.
    pub parameters: At<Parameters>,
}

const SUMMARISE: &str =
    "Summarise what came of the conversation above, in a few sentences. Add nothing of your own.";

impl Default for Reflect {
    fn default() -> Self {
        Self::absent()
    }
}
