//! What a team file says of who speaks when.

mod graph;
mod society;

use std::collections::BTreeMap;

use polylogue_core::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::graph::{Flow, Join, Way, Ways};
pub use self::society::{Critic, Done, Player, RolePlayTexts, Society, Specifier};
use crate::parameters::Parameters;
use crate::task::{Solve, Task};
use crate::text::{ConditionText, ModelText, NameText, Names, OptionText};

/// Who speaks when.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// The participants in their order, again and again until the chat ends.
    #[default]
    InTurn,
    /// Each participant once, in their order.
    OnceEach,
    /// Every participant once, at the same time; nobody hears the others.
    AllAtOnce,
    /// One of the participants after the other: in turn, by chance, or as a model or a person picks.
    Group(Group),
    /// A speaker for every state, and conditions that lead from one to the next.
    States(States),
    /// Chats by what has to be finished before them. A participant that is not named comes after nobody; all that wait
    /// for nothing run at the same time.
    After(#[schemars(with = "BTreeMap<String, Names>", extend("minProperties" = 1))] BTreeMap<Name, Names>),
    /// Whoever speaks may hand over to somebody else; see `handoffs` of agents.
    Handoffs(Handoffs),
    /// Rounds of arguments, then a vote.
    Debate(Debate),
    /// A planner makes a plan, and before each turn keeps a ledger of how the work stands and who is next.
    Plan(Plan),
    /// A graph: who speaks after whom, several at the same time if need be.
    Flow(Flow),
    /// Two roles that do a task by talking, one of which instructs.
    Society(Box<Society>),
    /// Two or more that solve their tasks by talking, until a limit or until they hold them to be complete.
    Solve(Box<Solve>),
    /// Tasks that are solved alone, one after the other.
    Tasks(#[schemars(length(min = 1))] Vec<Task>),
}

/// Who speaks next in a group.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Group {
    /// Who or what picks the next speaker: `round_robin` when left out.
    pub pick: Pick,
    /// Who may speak after whom. Whatever picks, it holds; where nobody may speak, the chat ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transitions: Option<Transitions>,
    /// Whether the last speaker may speak again: `true`, `false`, or the names of those who may. `true` when left out.
    /// Where there are `transitions`, they say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
}

/// Who or what picks the next speaker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "PickForm", rename_all = "snake_case")]
#[schemars(inline)]
pub enum Pick {
    /// The order of the participants.
    #[default]
    RoundRobin,
    /// Chance.
    Random(Chance),
    /// A model, which is called `NAME_selector` after the chat.
    Model(Box<Selector>),
    /// A person, who takes no other part in the chat.
    Person(#[schemars(with = "NameText")] Name),
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum PickForm {
    Word(PickWord),
    Full(PickFull),
}

/// Who or what picks the next speaker.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum PickWord {
    /// The order of the participants.
    RoundRobin,
    /// Chance.
    Random,
    /// A model.
    Model,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum PickFull {
    /// Chance.
    Random(Chance),
    /// A model.
    Model(Box<Selector>),
    /// A person, by name, who takes no other part in the chat.
    Person(#[schemars(with = "NameText")] Name),
}

impl From<PickForm> for Pick {
    fn from(form: PickForm) -> Self {
        match form {
            PickForm::Word(PickWord::RoundRobin) => Self::RoundRobin,
            PickForm::Word(PickWord::Random) => Self::Random(Chance::default()),
            PickForm::Word(PickWord::Model) => Self::Model(Box::default()),
            PickForm::Full(PickFull::Random(chance)) => Self::Random(chance),
            PickForm::Full(PickFull::Model(selector)) => Self::Model(selector),
            PickForm::Full(PickFull::Person(name)) => Self::Person(name),
        }
    }
}

/// Chance picks the next speaker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Chance {
    /// What makes it repeatable. When left out, it is taken of the time at which the chat begins; the log has it in any
    /// case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub seed: Option<u64>,
}

/// How a model picks the next speaker. `{roles}` in a text is the list of those it picks among, with their
/// descriptions; `{agentlist}` is their names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Selector {
    /// Its model, as `provider:model`, where it is not the team's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ModelText>")]
    pub model: Option<String>,
    /// How it writes.
    #[serde(skip_serializing_if = "Parameters::is_none")]
    pub parameters: Parameters,
    /// Its system text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// What it is asked after it has read the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// What it is told when it named nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub none: Option<String>,
    /// What it is told when it named several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub several: Option<String>,
    /// In which role it is asked: as a `user`, which every model takes, or as the `system`, which some models follow more
    /// strictly and others refuse within a conversation. Default: `user`.
    pub role: Role,
    /// How often it is asked in all before the next in order speaks.
    #[schemars(range(min = 1, max = 20))]
    pub attempts: u32,
    /// Whether it replies by a schema, which a model has to be able to. Else whoever it names is picked.
    pub constrained: bool,
}

impl Default for Selector {
    fn default() -> Self {
        Self {
            model: None,
            parameters: Parameters::default(),
            system: None,
            prompt: None,
            none: None,
            several: None,
            role: Role::User,
            attempts: 3,
            constrained: false,
        }
    }
}

/// Who asks a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The system.
    System,
    /// A user.
    #[default]
    User,
}

/// Who may speak after whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transitions {
    /// After a participant, only these may speak. After one that is not named here, nobody may.
    Allowed(#[schemars(with = "BTreeMap<String, Names>")] BTreeMap<Name, Names>),
    /// After a participant, all may speak but these.
    Disallowed(#[schemars(with = "BTreeMap<String, Names>")] BTreeMap<Name, Names>),
}

/// Whether the last speaker may speak again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Repeat {
    /// Everybody may, or nobody.
    All(bool),
    /// These may.
    Only(Names),
}

/// A speaker for every state, and conditions that lead from one to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct States {
    /// Who speaks first: a name, or a list of conditions of which the first that holds counts; the first participant when left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Exits>,
    /// Who speaks after whom: a name, `end`, or a list of conditions of which the first that holds counts. Where none
    /// holds, the chat ends.
    #[schemars(with = "BTreeMap<String, Exits>", extend("minProperties" = 1))]
    pub after: BTreeMap<Name, Exits>,
}

/// The name that stands for the end of a chat among the speakers of states and handoffs.
pub(crate) const END: &str = "end";
/// The name that stands for whoever speaks.
pub(crate) const STAY: &str = "stay";

/// What comes after a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "ExitsForm")]
#[schemars(inline)]
pub struct Exits(pub Vec<Exit>);

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum ExitsForm {
    One(#[schemars(with = "NameText")] Name),
    Many(#[schemars(length(min = 1))] Vec<Exit>),
}

impl From<ExitsForm> for Exits {
    fn from(form: ExitsForm) -> Self {
        match form {
            ExitsForm::One(then) => Self(vec![Exit { when: None, then }]),
            ExitsForm::Many(exits) => Self(exits),
        }
    }
}

/// A way out of a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// The condition; always when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ConditionText>")]
    pub when: Option<String>,
    /// Who speaks then, or `end`.
    #[schemars(with = "NameText")]
    pub then: Name,
}

/// Whoever speaks may hand over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Handoffs {
    /// Who speaks first; the first participant when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NameText>")]
    pub start: Option<Name>,
    /// What comes after a turn in which nobody was handed to: `stay` (the same speaks again), `end`, or a name.
    #[schemars(with = "NameText")]
    pub then: Name,
}

/// Rounds of arguments, then a vote. What came of the chat is the option that won.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Debate {
    /// What is voted on, at least two.
    #[schemars(with = "Vec<OptionText>", length(min = 1))]
    pub options: Vec<String>,
    /// How many rounds of arguments there are before the vote; with 0 there is only the vote.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1000))]
    pub rounds: u32,
    /// Whether they argue one after the other. Else all argue at the same time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_turn: bool,
    /// Who votes: the participants when left out. Others are a jury that takes no other part.
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    pub voters: Names,
    /// What decides when several options have the most votes.
    #[serde(default)]
    pub tie: Tie,
}

const fn one() -> u32 {
    1
}

/// What decides when several options have the most votes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tie {
    /// The first of them, in the order of the options.
    #[default]
    First,
    /// Nothing is decided.
    Undecided,
    /// This one, who is asked.
    Chair(#[schemars(with = "NameText")] Name),
    /// So many further rounds, each with a vote after it.
    Again(#[schemars(range(min = 1, max = 1000))] u32),
}

/// A planner makes a plan, and before each turn keeps a ledger of how the work stands and who is next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Who plans: an agent that takes no other part in the chat.
    #[schemars(with = "NameText")]
    pub planner: Name,
    /// Who keeps the ledger, where it is not the planner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NameText>")]
    pub keeper: Option<Name>,
    /// How many turns there are at most, 20 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_turns: Option<u64>,
    /// After how many turns without progress the plan is made anew, 3 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_stalls: Option<u64>,
    /// How many plans are made at most, 3 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_plans: Option<u64>,
    /// How often a ledger that cannot be read is asked for again, 3 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub max_retries: Option<u32>,
    /// What the planner is asked.
    #[serde(default, skip_serializing_if = "PlanWords::is_default")]
    pub words: PlanWords,
}

/// What a planner is asked. In the texts `{task}`, `{team}`, `{names}`, `{facts}`, `{plan}`, `{schema}` and `{flaw}` stand
/// for what they say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlanWords {
    /// For the facts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<String>,
    /// For a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// What the others are told of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub briefing: Option<String>,
    /// For the ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// For the ledger again, when it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// For the facts anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts_again: Option<String>,
    /// For another plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_again: Option<String>,
    /// For the final answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

impl PlanWords {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Pattern {
    /// Those who are asked beside the room: a planner, a jury, a chair. Not a person who picks, who is another kind of agent.
    pub(crate) fn beside(&self) -> Vec<&Name> {
        match self {
            Self::Debate(Debate { voters, tie, .. }) => {
                let chair = if let Tie::Chair(chair) = tie { Some(chair) } else { None };
                voters.0.iter().chain(chair).collect()
            }
            Self::Plan(Plan { planner, keeper, .. }) => std::iter::once(planner).chain(keeper).collect(),
            Self::Society(society) => society.beside().collect(),
            _ => Vec::new(),
        }
    }

    /// Whether every participant has one turn and no more.
    pub(crate) const fn has_one_turn_each(&self) -> bool {
        matches!(self, Self::OnceEach | Self::AllAtOnce | Self::After(_))
    }

    /// All tasks that it gives.
    pub(crate) fn tasks(&self) -> Vec<&Task> {
        match self {
            Self::Solve(solve) => {
                let Solve { tasks, before, after, .. } = &**solve;
                tasks.iter().chain(before).chain(after).collect()
            }
            Self::Tasks(tasks) => tasks.iter().collect(),
            _ => Vec::new(),
        }
    }
}
