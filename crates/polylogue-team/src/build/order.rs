//! Who speaks when, who joins, and what ends a chat.

use std::collections::BTreeMap;
use std::sync::Arc;

use polylogue::policies::group::{self, Group, Pick as Picked, Transitions as Graph};
use polylogue::policies::handoff::{AfterHandoff, handoffs};
use polylogue::policies::{Dag, joining, until};
use polylogue::stop::LoopDetector as CircleLimits;
use polylogue::stop::Reason;
use polylogue::stop::{self, Stop as Ends};
use polylogue::{Error, Name, Policy, Result, Step, Transcript, parallel, round_robin, sequential};
use polylogue_config::At;
use polylogue_core::{JoinHistory, Money, StopReason};

use crate::agent::Agent;
use crate::chat::{self, JoinCondition, LateHistory, LateJoiner, LoopDetection};
use crate::condition::{Condition, judged};
use crate::pattern::{
    self, AllowRepeat, END, Exit, Exits, Pattern, STAY, SelectSpeaker, StateMachine, Transitions,
};
use crate::private_agents::PrivateRole;
use crate::stop::Stop;
use crate::team::Team;
use crate::text::values;

use super::beyond;

/// The order of the chat `name`, with those who join and what ends it.
pub(super) fn of(chat: &chat::Chat, name: &Name, team: &Team) -> Result<Box<dyn Policy>> {
    let mut order = pattern(chat, name, team)?;
    for LateJoiner { who, when, history: sees } in &chat.late_joiners {
        let when = match when {
            JoinCondition::Holds(text) => Some(condition(text)?),
            JoinCondition::Stop(stop) => ends(stop)?,
        };
        let sees = match sees {
            LateHistory::All => JoinHistory::All,
            LateHistory::New => JoinHistory::New,
        };
        if let Some(when) = when {
            order = Box::new(joining(who.value.clone(), when, sees, order));
        }
    }
    ended(chat, order)
}

/// The same with what ends the chat. Tasks are not looked at for circles: "higher" may be said again and again. Neither are
/// turns of which every participant has one: two chats of a sequence without a result are no circle.
pub(super) fn ended(chat: &chat::Chat, mut order: Box<dyn Policy>) -> Result<Box<dyn Policy>> {
    let circles = match &*chat.loop_detection {
        LoopDetection::On(limits) if chat.pattern.tasks().is_empty() && !chat.pattern.has_one_turn_each() => {
            Some(Ends::from(circles(limits)))
        }
        _ => None,
    };
    let given = match &chat.stop {
        Some(stop) => ends(stop)?,
        None => None,
    };
    if let Some(stop) = given.into_iter().chain(circles).reduce(|one, other| one | other) {
        order = Box::new(until(stop, order));
    }
    Ok(Box::new(judged(order)))
}

fn pattern(chat: &chat::Chat, name: &Name, team: &Team) -> Result<Box<dyn Policy>> {
    let first = || chat.participants.first().map(|name| name.value.clone());
    let begins = |start: &Option<Name>| {
        start.clone().or_else(first).ok_or_else(|| Error::config(format!("`{name}` has no participants")))
    };
    Ok(match &chat.pattern {
        Pattern::RoundRobin => Box::new(round_robin()),
        Pattern::Sequential => Box::new(sequential()),
        Pattern::Parallel => Box::new(parallel()),
        Pattern::Group(group) => Box::new(grouped(group, chat, name, &team.agents)?),
        Pattern::StateMachine(states) => {
            let first = || begins(&None).map(|then| Exits(vec![Exit { when: None, then }.into()]));
            let start = states.start.clone().map_or_else(first, Ok)?;
            Box::new(stated(&start, states, chat, &team.agents)?)
        }
        Pattern::Dag(after) => {
            let before =
                |name: &Name| after.get(name).into_iter().flatten().map(ToString::to_string).collect();
            let all = chat.participants.iter().map(|name| (name.to_string(), before(name)));
            Box::new(Dag::new(all)?)
        }
        Pattern::Handoffs(given) => {
            let pattern::Handoffs { start, then } = &given.value;
            let after = match then.as_str() {
                STAY => AfterHandoff::Stay,
                END => AfterHandoff::End,
                _ => AfterHandoff::To(then.clone()),
            };
            Box::new(handoffs(begins(start)?, after))
        }
        Pattern::Debate(debate) => Box::new(beyond::debate(debate)?),
        Pattern::Orchestrator(plan) => Box::new(beyond::plan(plan, chat, team)?),
        Pattern::Graph(graph) => Box::new(beyond::graph(graph, chat)?),
        Pattern::RolePlay(_) | Pattern::GroupSolve(_) | Pattern::Tasks(_) => {
            return Err(Error::Bug("roles and tasks come with those who have them".into()));
        }
    })
}

fn grouped(given: &pattern::Group, chat: &chat::Chat, name: &Name, agents: &[Agent]) -> Result<Group> {
    let group = match &given.select {
        SelectSpeaker::RoundRobin => Group::round_robin(),
        SelectSpeaker::Random(chance) => Group::random(chance.seed),
        SelectSpeaker::Model(_) => Group::selected_by(Name::new(PrivateRole::Selector.name(name.as_str()))?),
        SelectSpeaker::Human(person) => Group::selected_by(person.value.clone()),
    };
    let names = |map: &BTreeMap<At<Name>, Vec<At<Name>>>| {
        let of = |names: &[At<Name>]| values(names).collect::<Vec<_>>();
        map.iter().map(|(name, names)| (name.value.clone(), of(names))).collect::<Vec<_>>()
    };
    let group = match given.transitions.as_deref() {
        None => group,
        Some(Transitions::Allowed(map)) => group.transitions(Graph::allowed(names(map))),
        Some(Transitions::Disallowed(map)) => group.transitions(Graph::disallowed(names(map))),
    };
    let group = match given.allow_repeat_speaker.as_deref() {
        None => group,
        Some(AllowRepeat::All(true)) => group.repeat(group::Repeat::Yes),
        Some(AllowRepeat::All(false)) => group.repeat(group::Repeat::No),
        Some(AllowRepeat::Only(names)) => group.repeat(group::Repeat::Only(names.clone())),
    };
    Ok(owned(group, chat, agents))
}

/// The group, which knows who runs which tools for the others.
fn owned(group: Group, chat: &chat::Chat, agents: &[Agent]) -> Group {
    let takes_part = |name: &Name| chat.everyone().any(|participant| participant == name);
    let owners = agents.iter().filter(|agent| takes_part(&agent.name) && !agent.executes_tools.is_empty());
    owners.fold(group, |group, agent| {
        group.runs(&agent.name, agent.executes_tools.iter().map(|run| run.tool.value.clone()))
    })
}

/// State machine: the transitions of the last speaker select the next one.
fn stated(
    start: &Exits,
    states: &StateMachine,
    chat: &chat::Chat,
    agents: &[Agent],
) -> Result<impl Policy + use<>> {
    let compiled = |exit: &At<Exit>| Ok((exit.when.as_deref().map(compile).transpose()?, exit.then.clone()));
    let mut exits = BTreeMap::new();
    for (name, given) in &states.after {
        exits.insert(name.value.clone(), given.0.iter().map(compiled).collect::<Result<Vec<_>>>()?);
    }
    let start = start.0.iter().map(compiled).collect::<Result<Vec<_>>>()?;
    let next = Arc::new(move |chat: &Transcript| {
        let last = chat.last_speaker().filter(|last| chat.participants().contains(last));
        let holds = |when: &Option<Condition>| when.as_ref().is_none_or(|when| when.holds_or_notes(chat));
        last.map_or(Some(&start), |last| exits.get(last))?
            .iter()
            .find(|(when, _)| holds(when))
            .map(|(_, then)| then.clone())
    });
    let rule = Arc::clone(&next);
    let group = Group::by(move |chat, _| rule(chat).map_or(Picked::End, Picked::Name));
    let group = owned(group, chat, agents);
    Ok(move |chat: &Transcript| {
        // Tool calls are answered first, without evaluating a condition.
        if chat.ended_by().is_some() || !chat.pending_calls().is_empty() {
            return group.next(chat);
        }
        match next(chat) {
            Some(name) if name.as_str() == END => Step::close(StopReason::Finished, chat),
            Some(name) if !chat.present().any(|here| *here == name) => {
                Step::close(StopReason::from(Reason::NoSpeaker { after: chat.last_speaker().cloned() }), chat)
            }
            _ => group.next(chat),
        }
    })
}

pub(super) fn compile(text: &str) -> Result<Condition> {
    Condition::new(text).map_err(|error| Error::config(format!("`{text}` is no condition: {}", error.why)))
}

fn condition(text: &str) -> Result<Ends> {
    let condition = compile(text)?;
    Ok(stop::when(text, move |chat| condition.holds_or_notes(chat)))
}

pub(super) fn circles(limits: &chat::LoopLimits) -> CircleLimits {
    let count = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
    CircleLimits {
        repetition: count(limits.repetition),
        similarity: limits.similarity,
        farewells: count(limits.farewells),
        silence: count(limits.silence),
        calls: count(limits.calls),
    }
}

/// Any of the conditions that are given; `None` when there are none.
pub(super) fn ends(given: &Stop) -> Result<Option<Ends>> {
    let mut any: Vec<Ends> = Vec::new();
    if let Some(says) = &given.says {
        let text = if says.whole { stop::says(&says.text).whole() } else { stop::says(&says.text) };
        any.push(says.by.iter().cloned().fold(text, stop::Says::by).into());
    }
    if let Some(matches) = &given.matches {
        let regex = stop::matches(&matches.pattern, matches.by.clone());
        any.push(regex.map_err(|error| Error::config(error.to_string()))?);
    }
    if let Some(when) = &given.when {
        any.push(condition(when)?);
    }
    any.extend(given.max_turns.map(stop::max_turns));
    any.extend(given.max_messages.map(stop::max_messages));
    any.extend(given.max_tokens.map(stop::max_tokens));
    any.extend(given.max_cost.map(|dollars| stop::max_cost(Money::dollars(dollars))));
    any.extend(given.max_time_s.map(|seconds| stop::max_time_ms(milliseconds(seconds))));
    any.extend(joined(&given.all, |one, other| one & other)?);
    any.extend(joined(&given.any, |one, other| one | other)?);
    Ok(any.into_iter().reduce(|one, other| one | other))
}

fn joined(stops: &[Stop], join: impl Fn(Ends, Ends) -> Ends) -> Result<Option<Ends>> {
    let mut all: Vec<Ends> = Vec::new();
    for stop in stops {
        all.extend(ends(stop)?);
    }
    Ok(all.into_iter().reduce(join))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0).round() as u64
}
