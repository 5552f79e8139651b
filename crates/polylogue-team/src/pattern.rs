//! Patterns by which speakers are selected.

mod graph;
mod role_play;

use std::collections::BTreeMap;

use polylogue::policies::orchestrator as lib;
use polylogue_config::types::{Kind, Type};
use polylogue_config::yaml::{Data, Node};
use polylogue_config::{At, ByName, Config, Cx, OneOrMany, Ref, Same};
use polylogue_core::Name;
use serde_json::Value;

pub use self::graph::{Edge, Graph, Join};
pub use self::role_play::{Critic, Done, Player, RolePlay, RolePlayTexts, Specifier};
use crate::parameters::Parameters;
use crate::task::{GroupSolve, Task};
use crate::text::{
    ConditionText, Member, MemberOrEnd, MemberOrStay, MemberRef, ModelText, Participant, ParticipantRef,
};
pub(crate) use crate::text::{END, STAY};

/// Pattern by which the next speaker of a chat is selected.
#[derive(Debug, Clone, Default, PartialEq, Config)]
pub enum Pattern {
    /// Participants speak in order, repeatedly, until the chat ends.
    #[default]
    RoundRobin,
    /// Each participant speaks once, in order.
    Sequential,
    /// Every participant speaks once, concurrently. None sees the messages of the others.
    Parallel,
    /// One participant speaks at a time, selected by order, at random, by a model or by a person.
    Group(Group),
    /// State machine: each state has a speaker, and conditions select the next state.
    StateMachine(StateMachine),
    /// Dependency graph: for each participant, the participants that must finish before it. Participants without
    /// unfinished dependencies run concurrently.
    #[key(as = ByName<Member, OneOrMany<At<MemberRef>>>, nonempty)]
    Dag(BTreeMap<At<Name>, Vec<At<Name>>>),
    /// The speaker can hand over to another participant with a tool call. See `handoffs` of agents.
    Handoffs(At<Handoffs>),
    /// Debate: rounds of arguments, then a vote.
    Debate(Debate),
    /// Orchestrator: a planner writes a plan, keeps a progress ledger and selects the next speaker from it.
    Orchestrator(Box<Orchestrator>),
    /// Graph of who speaks after whom. Branches run concurrently.
    Graph(At<Graph>),
    /// Role-play: two roles solve a task by talking; one instructs, the other solves.
    RolePlay(Box<RolePlay>),
    /// Agents discuss their tasks until a limit is reached or they judge them complete.
    GroupSolve(Box<GroupSolve>),
    /// Tasks that agents solve alone, one after the other.
    #[key(nonempty)]
    Tasks(Vec<Task>),
}

/// Speaker selection in a group.
#[derive(Debug, Clone, Default, PartialEq, Config)]
pub struct Group {
    /// Method by which the next speaker is selected.
    #[key(default = SelectSpeaker::RoundRobin)]
    pub select: SelectSpeaker,
    /// Allowed or disallowed speaker transitions, for every selection method. The chat ends if no participant is
    /// allowed to speak.
    #[key(none = "every participant after every participant")]
    pub transitions: Option<At<Transitions>>,
    /// Whether the last speaker can be selected again: `true`, `false`, or the names of the participants that can.
    /// Ignored if `transitions` is given.
    #[key(none = "`true`")]
    pub allow_repeat_speaker: Option<At<AllowRepeat>>,
}

/// Method by which the next speaker is selected.
#[derive(Debug, Clone, Default, PartialEq, Config)]
pub enum SelectSpeaker {
    /// In the order of the participants.
    #[default]
    RoundRobin,
    /// At random.
    Random(Chance),
    /// By a model. The selector is called `NAME_selector` after the chat.
    Model(At<Box<Selector>>),
    /// By a person who does not take part in the chat.
    #[key(as = ParticipantRef)]
    Human(At<Name>),
}

/// Settings of random selection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Config)]
pub struct Chance {
    /// Seed of the random selection, which makes it repeatable. The seed is always logged.
    #[key(none = "derived from the start time")]
    pub seed: Option<u64>,
}

/// Speaker selection by a model. `{roles}` in a text is replaced by the candidates with their descriptions,
/// `{agentlist}` by their names.
#[derive(Debug, Clone, PartialEq, Config)]
pub struct Selector {
    /// Model that selects, as `provider:model`.
    #[key(as = Option<ModelText>, none = "the model of the team")]
    pub model: Option<String>,
    /// Sampling parameters of the model.
    pub parameters: Parameters,
    /// System message of the selector.
    #[key(none = "a built-in text")]
    pub system: Option<String>,
    /// Prompt for the selection, after the messages of the chat.
    #[key(none = "a built-in text")]
    pub prompt: Option<String>,
    /// Prompt for a retry after a reply that names no candidate.
    #[key(none = "a built-in text")]
    pub none: Option<String>,
    /// Prompt for a retry after a reply that names several candidates.
    #[key(none = "a built-in text")]
    pub several: Option<String>,
    /// Role of the prompts: `user`, which every model supports, or `system`, which some models follow more strictly and
    /// others reject within a conversation.
    #[key(default = Role::User)]
    pub role: Role,
    /// Maximum number of model calls per selection. Then the next participant in order speaks.
    #[key(default = 3, range = 1..=20)]
    pub attempts: u32,
    /// Constrains the reply by a JSON Schema. The model must support schemas.
    #[key(default = false)]
    pub constrained: bool,
}

impl Default for Selector {
    fn default() -> Self {
        Self::absent()
    }
}

/// Role of a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Config)]
pub enum Role {
    /// `system`.
    System,
    /// `user`.
    #[default]
    User,
}

/// Allowed or disallowed speaker transitions.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub enum Transitions {
    /// For each participant, the only participants that can speak after it. After a participant that is not listed,
    /// none can speak.
    #[key(as = At<ByName<Member, OneOrMany<At<MemberRef>>>>)]
    Allowed(At<BTreeMap<At<Name>, Vec<At<Name>>>>),
    /// For each participant, the participants that cannot speak after it. All others can.
    #[key(as = At<ByName<Member, OneOrMany<At<MemberRef>>>>)]
    Disallowed(At<BTreeMap<At<Name>, Vec<At<Name>>>>),
}

/// Whether the last speaker can be selected again.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(by_shape)]
pub enum AllowRepeat {
    /// All participants can, or none.
    All(bool),
    /// These participants can.
    #[key(as = OneOrMany<MemberRef>)]
    Only(Vec<Name>),
}

/// State machine: each state has a speaker, and conditions select the next state.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "StateMachine")]
pub struct StateMachine {
    /// First speaker: a name, or a list of transitions of which the first whose condition holds is taken.
    #[key(none = "the first participant")]
    pub start: Option<Exits>,
    /// Transitions by current speaker: a name, `end`, or a list of transitions of which the first whose condition holds
    /// is taken. The chat ends if none holds.
    #[key(as = ByName<Member, Same<Exits>>, required, nonempty)]
    pub after: BTreeMap<At<Name>, Exits>,
}

/// The transitions from a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exits(pub Vec<At<Exit>>);

/// A name alone is always taken.
impl Config for Exits {
    fn ty() -> &'static Type {
        const {
            &Type {
                name: "",
                doc: "",
                kind: Kind::Shapes(&[Ref::<MemberOrEnd>::ty, <Vec<At<Exit>> as Config>::ty]),
            }
        }
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        if matches!(node.data, Data::List(_)) {
            return Self(Vec::read(node, cx));
        }
        Self(vec![Exit { when: None, then: Ref::<MemberOrEnd>::read(node, cx).0 }.into()])
    }

    fn hole() -> Self {
        Self(Vec::new())
    }

    fn write(&self) -> Value {
        match self.0.as_slice() {
            [At { value: Exit { when: None, then }, .. }] => Value::String(then.to_string()),
            exits => exits.iter().map(At::write).collect(),
        }
    }
}

/// A transition of a state machine.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "Transition")]
pub struct Exit {
    /// Condition of the transition, in CEL.
    #[key(as = Option<ConditionText>, none = "always", nonempty)]
    pub when: Option<String>,
    /// Next speaker, or `end`.
    #[key(as = Ref<MemberOrEnd>)]
    pub then: Name,
}

/// Settings of the handoffs pattern.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct Handoffs {
    /// First speaker.
    #[key(as = Option<MemberRef>, none = "the first participant")]
    pub start: Option<Name>,
    /// Next speaker after a turn without a handoff: `stay` (the same speaker), `end` (the chat ends), or a name.
    #[key(as = Ref<MemberOrStay>)]
    pub then: Name,
}

/// Debate: rounds of arguments, then a vote. The result is the winning option.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct Debate {
    /// Options to vote on, at least two.
    #[key(required, nonempty)]
    pub options: Vec<At<String>>,
    /// Number of rounds of arguments before the vote.
    #[key(default = 1, range = 0..=1000)]
    pub rounds: u32,
    /// Participants argue one after the other instead of concurrently.
    #[key(default = false)]
    pub one_by_one: bool,
    /// Agents and people who vote. Voters that do not take part in the chat form a jury.
    #[key(as = OneOrMany<Ref<Participant>>, none = "the participants")]
    pub voters: Vec<Name>,
    /// Rule for a tied vote.
    #[key(default = Tie::First)]
    pub tie: Tie,
}

/// Rule for a tied vote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
pub enum Tie {
    /// The first of the tied options wins.
    #[default]
    First,
    /// The vote remains undecided.
    Undecided,
    /// This agent or person decides.
    #[key(as = Ref<Participant>)]
    Chair(Name),
    /// Up to this many further rounds, each with a vote.
    #[key(range = 1..=1000)]
    Again(u32),
}

/// Orchestrator: a planner writes a plan, and the next speaker is selected from a progress ledger.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "Orchestrator")]
pub struct Orchestrator {
    /// Agent that writes the plan. It does not take part in the chat.
    #[key(as = ParticipantRef)]
    pub planner: At<Name>,
    /// Agent that writes the progress ledger.
    #[key(as = Option<ParticipantRef>, none = "the planner")]
    pub scribe: Option<At<Name>>,
    /// Maximum number of turns.
    #[key(default = lib::Orchestrator::DEFAULT_MAX_TURNS, range = 1..=1_000_000)]
    pub max_turns: u64,
    /// Number of turns without progress after which the planner writes a new plan.
    #[key(default = lib::Orchestrator::DEFAULT_MAX_STALLS, range = 1..=1_000_000)]
    pub max_stalls: u64,
    /// Maximum number of plans.
    #[key(default = lib::Orchestrator::DEFAULT_MAX_PLANS, range = 1..=1000)]
    pub max_plans: u64,
    /// Maximum number of retries after a ledger that cannot be parsed.
    #[key(default = lib::Orchestrator::DEFAULT_MAX_RETRIES, range = 0..=100)]
    pub max_retries: u32,
    /// Prompts that replace the built-in ones.
    pub prompts: OrchestratorPrompts,
}

/// Prompts of the orchestrator. `{task}`, `{team}`, `{names}`, `{facts}`, `{plan}`, `{schema}` and `{flaw}` are
/// replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
#[config(name = "OrchestratorPrompts")]
pub struct OrchestratorPrompts {
    /// Prompt for the known facts.
    #[key(none = "a built-in text")]
    pub facts: Option<String>,
    /// Prompt for the plan.
    #[key(none = "a built-in text")]
    pub plan: Option<String>,
    /// Message that presents the task, the facts and the plan to the participants.
    #[key(none = "a built-in text")]
    pub briefing: Option<String>,
    /// Prompt for the progress ledger.
    #[key(none = "a built-in text")]
    pub progress: Option<String>,
    /// Prompt for a retry after a ledger that cannot be parsed.
    #[key(none = "a built-in text")]
    pub unreadable: Option<String>,
    /// Prompt for updated facts, before a new plan.
    #[key(none = "a built-in text")]
    pub updated_facts: Option<String>,
    /// Prompt for a new plan.
    #[key(none = "a built-in text")]
    pub updated_plan: Option<String>,
    /// Prompt for the final answer.
    #[key(none = "a built-in text")]
    pub answer: Option<String>,
}

impl Pattern {
    /// Agents that the pattern asks and that do not take part: a planner, a jury, a tie-breaker. A human selector is another
    /// kind of agent and not included.
    pub(crate) fn beside(&self) -> Vec<&Name> {
        match self {
            Self::Debate(Debate { voters, tie, .. }) => {
                let chair = if let Tie::Chair(chair) = tie { Some(chair) } else { None };
                voters.iter().chain(chair).collect()
            }
            Self::Orchestrator(given) => {
                std::iter::once(&*given.planner).chain(given.scribe.as_deref()).collect()
            }
            Self::RolePlay(role_play) => role_play.beside().collect(),
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
                tasks.iter().map(|task| &task.value).chain(before).chain(after).collect()
            }
            Self::Tasks(tasks) => tasks.iter().collect(),
            _ => Vec::new(),
        }
    }
}
