//! Patterns by which speakers are selected. Each has a file with its keys, its checks and its build.

mod dag;
mod debate;
mod graph;
mod group;
mod group_solve;
mod handoffs;
mod orchestrator;
mod order;
mod part;
mod role_play;
mod state_machine;
mod task;
mod tasks;

use std::collections::BTreeMap;

use polylogue_config::{At, ByName, Config, OneOrMany};
use polylogue_core::Name;

pub use self::debate::Debate;
pub use self::graph::{Edge, Graph};
pub use self::group::{Group, RandomSelection, SelectSpeaker, Selector, Transitions};
pub use self::group_solve::{Completion, DecisionWords, FirstMessage, GroupSolve};
pub use self::handoffs::Handoffs;
pub use self::orchestrator::Orchestrator;
use self::order::Order;
pub(crate) use self::part::{Agents, Built, ChatFrame, Part, listed};
pub use self::role_play::{Critic, Done, Player, RolePlay, RolePlayTexts, Specifier};
pub(crate) use self::state_machine::{CompiledExits, possible_next};
pub use self::state_machine::{Exit, NextStates, StateMachine};
pub use self::task::{Media, Task};
use crate::text::{Member, MemberRef};

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

impl Pattern {
    /// What it does besides reading its keys.
    pub(crate) fn part(&self) -> &dyn Part {
        match self {
            Self::RoundRobin => &Order::RoundRobin,
            Self::Sequential => &Order::Sequential,
            Self::Parallel => &Order::Parallel,
            Self::Group(part) => part,
            Self::StateMachine(part) => part,
            Self::Dag(part) => part,
            Self::Handoffs(part) => part,
            Self::Debate(part) => part,
            Self::Orchestrator(part) => &**part,
            Self::Graph(part) => part,
            Self::RolePlay(part) => &**part,
            Self::GroupSolve(part) => &**part,
            Self::Tasks(part) => part,
        }
    }

    /// The model-based speaker selector.
    pub(crate) const fn selector(&self) -> Option<&At<Box<Selector>>> {
        match self {
            Self::Group(Group { select: SelectSpeaker::Model(selector), .. }) => Some(selector),
            _ => None,
        }
    }

    pub(crate) const fn selector_mut(&mut self) -> Option<&mut Selector> {
        match self {
            Self::Group(Group { select: SelectSpeaker::Model(selector), .. }) => Some(&mut selector.value),
            _ => None,
        }
    }

    /// The media of all tasks that it gives.
    pub(crate) fn media_mut(&mut self) -> Vec<&mut At<Media>> {
        let tasks: Vec<&mut Task> = match self {
            Self::Tasks(tasks) => tasks.iter_mut().collect(),
            Self::GroupSolve(part) => {
                let discussed = part.tasks.iter_mut().map(|task| &mut task.value);
                discussed.chain(&mut part.before).chain(&mut part.after).collect()
            }
            _ => Vec::new(),
        };
        tasks.into_iter().flat_map(|task| &mut task.media).collect()
    }

    /// The person who selects the speakers.
    pub(crate) const fn human_selector(&self) -> Option<&At<Name>> {
        match self {
            Self::Group(Group { select: SelectSpeaker::Human(person), .. }) => Some(person),
            _ => None,
        }
    }
}
