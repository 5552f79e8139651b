//! Who speaks when.

mod graph;
mod role_play;

use std::collections::BTreeMap;

use polylogue_config::types::{Kind, Type};
use polylogue_config::yaml::{Data, Node};
use polylogue_config::{ByName, Config, Cx, OneOrMany, Same};
use polylogue_core::Name;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::graph::{Edge, Graph, Join};
pub use self::role_play::{Critic, Done, Player, RolePlay, RolePlayTexts, Specifier};
use crate::parameters::Parameters;
use crate::task::{GroupSolve, Task};
use crate::text::{ConditionText, ModelText, Participant, ParticipantRef};

/// Who speaks when.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Config)]
pub enum Pattern {
    /// The participants in their order, again and again until the chat ends.
    #[default]
    RoundRobin,
    /// Each participant once, in their order.
    Sequential,
    /// Every participant once, at the same time. None sees the others' messages.
    Parallel,
    /// One participant after the other, selected by order, chance, a model or a person.
    Group(Group),
    /// A state machine: a speaker for every state, and conditions that select the next.
    StateMachine(StateMachine),
    /// By dependencies: for each participant, the ones that must finish before it. Participants that depend on none run at
    /// the same time.
    #[key(as = ByName<Participant, OneOrMany<ParticipantRef>>, nonempty)]
    Dag(BTreeMap<Name, Vec<Name>>),
    /// The speaker can hand over to another participant; see `handoffs` of agents.
    Handoffs(Handoffs),
    /// Rounds of arguments, then a vote.
    Debate(Debate),
    /// A planner writes a plan and keeps a ledger of the progress, by which it selects the next speaker.
    Orchestrator(Orchestrator),
    /// A graph: who speaks after whom, several at the same time where it branches.
    Graph(Graph),
    /// Two roles that solve a task by talking; one instructs.
    RolePlay(Box<RolePlay>),
    /// Agents that solve their tasks by talking, until a limit or until they judge them complete.
    GroupSolve(Box<GroupSolve>),
    /// Tasks that are solved alone, one after the other.
    #[key(nonempty)]
    Tasks(Vec<Task>),
}

/// Who speaks next in a group.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Config)]
pub struct Group {
    /// How the next speaker is selected.
    #[key(default = SelectSpeaker::RoundRobin)]
    pub select: SelectSpeaker,
    /// Who may speak after whom, however speakers are selected. The chat ends if none may.
    #[key(none = "everybody after everybody")]
    pub transitions: Option<Transitions>,
    /// Whether the last speaker may speak again: `true`, `false`, or the names of those who may. With `transitions`, these
    /// decide.
    #[key(none = "`true`")]
    pub allow_repeat_speaker: Option<AllowRepeat>,
}

/// How the next speaker is selected.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Config)]
pub enum SelectSpeaker {
    /// By the order of the participants.
    #[default]
    RoundRobin,
    /// By chance.
    Random(Chance),
    /// By a model. It is called `NAME_selector` after the chat.
    Model(Box<Selector>),
    /// By a person, who is not a participant of the chat.
    #[key(as = ParticipantRef)]
    Human(Name),
}

/// Random selection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
pub struct Chance {
    /// Makes it repeatable. The log always has the seed.
    #[key(none = "from the time at which the chat begins")]
    pub seed: Option<u64>,
}

/// Selection by a model. `{roles}` in a text is the list of the candidates with their descriptions, `{agentlist}` their names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
pub struct Selector {
    /// Its model, as `provider:model`.
    #[key(as = Option<ModelText>, none = "the team's")]
    pub model: Option<String>,
    /// How it writes.
    pub parameters: Parameters,
    /// Its system message.
    #[key(none = "a built-in text")]
    pub system: Option<String>,
    /// Its prompt, after the conversation.
    #[key(none = "a built-in text")]
    pub prompt: Option<String>,
    /// The prompt after a reply that names no candidate.
    #[key(none = "a built-in text")]
    pub none: Option<String>,
    /// The prompt after a reply that names several.
    #[key(none = "a built-in text")]
    pub several: Option<String>,
    /// The role of the prompts: `user`, which every model takes, or `system`, which some models follow more strictly and
    /// others reject within a conversation.
    #[key(default = Role::User)]
    pub role: Role,
    /// Maximum number of requests for a selection. Then the next participant in order speaks.
    #[key(default = 3, range = 1..=20)]
    pub attempts: u32,
    /// Whether its reply is constrained by a schema, which the model must support.
    #[key(default = false)]
    pub constrained: bool,
}

impl Default for Selector {
    fn default() -> Self {
        Self::absent()
    }
}

/// The role of a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
pub enum Role {
    /// `system`.
    System,
    /// `user`.
    #[default]
    User,
}

/// Who may speak after whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
pub enum Transitions {
    /// After each participant, only these may speak. After one that is not listed, none may.
    #[key(as = ByName<Participant, OneOrMany<ParticipantRef>>)]
    Allowed(BTreeMap<Name, Vec<Name>>),
    /// After each participant, all may speak except these.
    #[key(as = ByName<Participant, OneOrMany<ParticipantRef>>)]
    Disallowed(BTreeMap<Name, Vec<Name>>),
}

/// Whether the last speaker may speak again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(by_shape)]
pub enum AllowRepeat {
    /// All may, or none.
    All(bool),
    /// These may.
    #[key(as = OneOrMany<ParticipantRef>)]
    Only(Vec<Name>),
}

/// A state machine: a speaker for every state, and conditions that select the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "StateMachine")]
pub struct StateMachine {
    /// Who speaks first: a name, or a list of conditions of which the first that holds counts.
    #[key(none = "the first participant")]
    pub start: Option<Exits>,
    /// Who speaks after each participant: a name, `end`, or a list of conditions of which the first that holds counts. The
    /// chat ends if none holds.
    #[key(as = ByName<Participant, Same<Exits>>, required, nonempty)]
    pub after: BTreeMap<Name, Exits>,
}

/// The name that stands for the end of a chat among the speakers of states and handoffs.
pub(crate) const END: &str = "end";
/// The name that stands for the last speaker.
pub(crate) const STAY: &str = "stay";

/// The transitions from a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exits(pub Vec<Exit>);

/// A name alone is always taken.
impl Config for Exits {
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Shapes(&[ParticipantRef::ty, <Vec<Exit> as Config>::ty]) } }
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        if matches!(node.data, Data::List(_)) {
            return Self(Vec::read(node, cx));
        }
        Self(vec![Exit { when: None, then: ParticipantRef::read(node, cx).0 }])
    }

    fn hole() -> Self {
        Self(Vec::new())
    }

    fn write(&self) -> Value {
        match self.0.as_slice() {
            [Exit { when: None, then }] => Value::String(then.to_string()),
            exits => exits.iter().map(Exit::write).collect(),
        }
    }
}

/// A transition from a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "Transition")]
pub struct Exit {
    /// Its condition, in CEL.
    #[key(as = Option<ConditionText>, none = "always", nonempty)]
    pub when: Option<String>,
    /// The next speaker, or `end`.
    #[key(as = ParticipantRef)]
    pub then: Name,
}

/// Handoffs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
pub struct Handoffs {
    /// Who speaks first.
    #[key(as = Option<ParticipantRef>, none = "the first participant")]
    pub start: Option<Name>,
    /// Who speaks after a turn without a handoff: `stay` (the same speaker), `end` (the chat ends), or a name.
    #[key(as = ParticipantRef)]
    pub then: Name,
}

/// Rounds of arguments, then a vote. The result is the option that won.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
pub struct Debate {
    /// The options, at least two.
    #[key(required, nonempty)]
    pub options: Vec<String>,
    /// Number of rounds of arguments before the vote.
    #[key(default = 1, range = 0..=1000)]
    pub rounds: u32,
    /// Whether participants argue one after the other instead of at the same time.
    #[key(default = false)]
    pub one_by_one: bool,
    /// Who votes. Voters that are not participants are a jury.
    #[key(as = OneOrMany<ParticipantRef>, none = "the participants")]
    pub voters: Vec<Name>,
    /// What decides a tie.
    #[key(default = Tie::First)]
    pub tie: Tie,
}

/// What decides a tie.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
pub enum Tie {
    /// The order of the options: the first wins.
    #[default]
    First,
    /// Nothing: the vote is undecided.
    Undecided,
    /// This agent or person.
    #[key(as = ParticipantRef)]
    Chair(Name),
    /// Up to so many further rounds, each with a vote.
    #[key(range = 1..=1000)]
    Again(u32),
}

/// A planner that writes a plan, and a ledger of the progress by which the next speaker is selected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "Orchestrator")]
pub struct Orchestrator {
    /// The agent that plans; it is not a participant of the chat.
    #[key(as = ParticipantRef)]
    pub planner: Name,
    /// The agent that keeps the ledger.
    #[key(as = Option<ParticipantRef>, none = "the planner")]
    pub scribe: Option<Name>,
    /// Maximum number of turns.
    #[key(none = "20", range = 1..=1_000_000)]
    pub max_turns: Option<u64>,
    /// Number of turns without progress after which a new plan is made.
    #[key(none = "3", range = 1..=1_000_000)]
    pub max_stalls: Option<u64>,
    /// Maximum number of plans.
    #[key(none = "3", range = 1..=1000)]
    pub max_plans: Option<u64>,
    /// How often a ledger that cannot be read is requested again.
    #[key(none = "3", range = 0..=100)]
    pub max_retries: Option<u32>,
    /// Prompts of the planner.
    pub prompts: OrchestratorPrompts,
}

/// Prompts of a planner. `{task}`, `{team}`, `{names}`, `{facts}`, `{plan}`, `{schema}` and `{flaw}` are replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "OrchestratorPrompts")]
pub struct OrchestratorPrompts {
    /// For the facts.
    #[key(none = "a built-in text")]
    pub facts: Option<String>,
    /// For a plan.
    #[key(none = "a built-in text")]
    pub plan: Option<String>,
    /// For the others, about the plan.
    #[key(none = "a built-in text")]
    pub briefing: Option<String>,
    /// For the ledger.
    #[key(none = "a built-in text")]
    pub progress: Option<String>,
    /// For the ledger again, if it cannot be read.
    #[key(none = "a built-in text")]
    pub unreadable: Option<String>,
    /// For updated facts.
    #[key(none = "a built-in text")]
    pub updated_facts: Option<String>,
    /// For another plan.
    #[key(none = "a built-in text")]
    pub updated_plan: Option<String>,
    /// For the final answer.
    #[key(none = "a built-in text")]
    pub answer: Option<String>,
}

impl Pattern {
    /// Those who are asked beside the room: a planner, a jury, a chair. Not a person who picks, who is another kind of agent.
    pub(crate) fn beside(&self) -> Vec<&Name> {
        match self {
            Self::Debate(Debate { voters, tie, .. }) => {
                let chair = if let Tie::Chair(chair) = tie { Some(chair) } else { None };
                voters.iter().chain(chair).collect()
            }
            Self::Orchestrator(Orchestrator { planner, scribe, .. }) => {
                std::iter::once(planner).chain(scribe).collect()
            }
            Self::RolePlay(society) => society.beside().collect(),
            _ => Vec::new(),
        }
    }

    /// Whether every participant has one turn and no more.
    pub(crate) const fn has_one_turn_each(&self) -> bool {
        matches!(self, Self::Sequential | Self::Parallel | Self::Dag(_))
    }

    /// All tasks that it gives.
    pub(crate) fn tasks(&self) -> Vec<&Task> {
        match self {
            Self::GroupSolve(solve) => {
                let GroupSolve { tasks, before, after, .. } = &**solve;
                tasks.iter().chain(before).chain(after).collect()
            }
            Self::Tasks(tasks) => tasks.iter().collect(),
            _ => Vec::new(),
        }
    }
}
