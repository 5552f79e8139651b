//! The turns of each pattern.

use std::collections::{BTreeMap, BTreeSet};

use polylogue::policies::debate::Tie;
use polylogue::policies::graph::Join;
use polylogue::policies::group::Repeat;
use polylogue::{Name, Result};
use polylogue_config::At;
use polylogue_core::Params;

use super::amount::Sum;
use super::case::{PROMPT, SCHEMA};
use super::parts::Parts;
use super::paths::{Order, names};
use super::scene::{Scene, overhead};
use super::visits::{sum_of, visits};
use super::walk::Walk;
use crate::build::AgentBuilder;
use crate::chat::Chat;
use crate::pattern::{Debate, Edge, Graph, Group, Pattern, SelectSpeaker, Selector, possible_next};
use crate::private_agents::PrivateRole;

impl Walk<'_> {
    /// The turns of `chat`.
    pub(super) fn pattern<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (name, chat): (&Name, &'a Chat),
    ) -> Result<()> {
        let (turns, everyone) = (self.turns(chat), names(chat));
        match &chat.pattern {
            Pattern::RoundRobin => self.in_order(builder, scene, chat, turns),
            Pattern::Sequential => self.once_each(builder, scene, &everyone, turns),
            Pattern::Dag(before) => {
                let each = |(to, from): (&'a At<Name>, &'a Vec<At<Name>>)| {
                    from.iter().map(move |from| (&from.value, &to.value))
                };
                let order = by_level(everyone, before.iter().flat_map(each));
                self.once_each(builder, scene, &order, turns)
            }
            Pattern::Parallel => self.say_at_once(builder, scene, &everyone),
            Pattern::Group(group) => self.group(builder, scene, (name, chat), (group, turns)),
            // With fewer turns than participants, the conditions of edges decide who has them.
            Pattern::Graph(graph) if each_once(graph) && turns >= everyone.len() as u128 => {
                let each = |(from, edges): (&'a At<Name>, &'a Vec<Edge>)| {
                    edges.iter().map(move |edge| (&from.value, &edge.to))
                };
                let order = by_level(everyone, graph.edges.iter().flat_map(each));
                self.once_each(builder, scene, &order, turns)
            }
            Pattern::StateMachine(_) | Pattern::Handoffs(_) => {
                let first = if scene.continues() { everyone.clone() } else { first_of(chat, &everyone)? };
                if self.case.is_typical() {
                    return self.evenly_in_order(builder, scene, (chat, first, turns), None);
                }
                match self.order(builder, scene, (chat, turns)) {
                    Some(order) => self.follow(builder, scene, (first, &order, turns), None),
                    None => {
                        self.repeat(scene, (turns, 1), |walk, scene, _| walk.say(builder, scene, &everyone))
                    }
                }
            }
            Pattern::Graph(graph) => {
                let visits = visits(graph, &everyone);
                let turns = turns.min(sum_of(&visits));
                self.along_graph(builder, scene, (&everyone, turns), visits)
            }
            Pattern::Debate(debate) => self.debate(builder, scene, debate, &everyone),
            Pattern::Orchestrator(plan) => self.orchestrator(builder, scene, (plan, turns), &everyone),
            Pattern::RolePlay(role_play) => self.role_play(builder, scene, role_play),
            Pattern::GroupSolve(solve) => self.group_solve(builder, scene, solve),
            Pattern::Tasks(tasks) => tasks.iter().try_for_each(|task| self.alone(builder, scene, task)),
        }
    }

    fn once_each<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        everyone: &[&Name],
        turns: u128,
    ) -> Result<()> {
        let most = usize::try_from(turns).unwrap_or(usize::MAX);
        everyone.iter().take(most).try_for_each(|who| self.say(builder, scene, &[*who]))
    }

    /// So many `turns` of any of `everyone`, each of whom has at most so many `visits`: the parts by agent have no more turns than these.
    fn along_graph<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (everyone, turns): (&[&'a Name], u128),
        visits: BTreeMap<&'a Name, u128>,
    ) -> Result<()> {
        if self.case.is_typical() {
            let is_left = |who: &Name, had: u128| visits.get(who).is_none_or(|most| had < *most);
            return self.evenly(builder, scene, turns, None, |_, _, had| {
                let left = everyone.iter().filter(|who| is_left(who, had.get(**who).copied().unwrap_or(0)));
                Ok(left.copied().collect())
            });
        }
        let mut parts = Parts::new(&scene.chat);
        parts.turns = visits;
        self.repeat(scene, (turns, 1), |walk, scene, _| {
            walk.measured(&mut parts, everyone, |walk| walk.say(builder, scene, everyone))
        })?;
        self.limit(builder, parts);
        Ok(())
    }

    fn in_order<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        chat: &'a Chat,
        turns: u128,
    ) -> Result<()> {
        let everyone = names(chat);
        if !chat.late_joiners.is_empty() || !chat.background.participants.is_empty() {
            if self.case.is_typical() {
                return self.evenly(builder, scene, turns, None, |_, _, _| Ok(everyone.clone()));
            }
            return self.repeat(scene, (turns, 1), |walk, scene, _| walk.say(builder, scene, &everyone));
        }
        let first: Vec<&Name> = first_in_order(chat, &everyone, scene.continues()).into_iter().collect();
        let circle = Order::circle(builder.team, chat);
        if self.case.is_typical() || (first.len() == 1 && circle.is_none()) {
            let is_first = |who: &&Name| first.first() == Some(who);
            let begin = everyone.iter().position(is_first).unwrap_or_default() as u128;
            let count = everyone.len() as u128;
            return self.repeat(scene, (turns, count), |walk, scene, nth| {
                let at = usize::try_from((begin + nth) % count.max(1)).unwrap_or_default();
                everyone.get(at).map_or(Ok(()), |who| walk.say(builder, scene, &[who]))
            });
        }
        // People who leave are skipped from then on.
        let order =
            circle.unwrap_or_else(|| Order::Circle(everyone.iter().map(|who| (*who, false)).collect()));
        if self.is_followed(scene, turns) {
            return self.follow(builder, scene, (first, &order, turns), None);
        }
        self.repeat(scene, (turns, 1), |walk, scene, _| walk.say(builder, scene, &everyone))
    }

    fn group<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        (name, chat): (&Name, &'a Chat),
        (group, turns): (&'a Group, u128),
    ) -> Result<()> {
        let (everyone, cycle) = (names(chat), scene.cycle());
        // Turns for tools that agents execute for others come between.
        let has_executors = builder.team.agents.iter().any(|agent| !agent.executes_tools.is_empty());
        let is_in_order = matches!(group.select, SelectSpeaker::RoundRobin) && !has_executors;
        if is_in_order && group.transitions.is_none() && may_repeat(group) {
            return self.in_order(builder, scene, chat, turns);
        }
        let selects = match &group.select {
            SelectSpeaker::Model(selector) => Some((name, chat, &***selector)),
            SelectSpeaker::RoundRobin | SelectSpeaker::Random(_) | SelectSpeaker::Human(_) => None,
        };
        if self.case.is_typical() {
            return self.evenly_in_order(builder, scene, (chat, everyone, turns), selects);
        }
        if let Some(order) = self.order(builder, scene, (chat, turns)) {
            return self.follow(builder, scene, (everyone, &order, turns), selects);
        }
        self.repeat(scene, (turns, cycle), |walk, scene, _| {
            if let Some((name, chat, selector)) = selects {
                let sum = walk.selection(builder, scene, (name, chat), selector)?;
                walk.note_selection(name, sum);
                scene.sum.add(sum);
            }
            walk.say(builder, scene, &everyone)
        })
    }

    /// One selection of a speaker by a model.
    pub(super) fn selection(
        &mut self,
        builder: &AgentBuilder<'_>,
        scene: &Scene,
        (name, chat): (&Name, &Chat),
        selector: &Selector,
    ) -> Result<Sum> {
        let Some(who) = PrivateRole::Selector.of(name) else { return Ok(Sum::default()) };
        let each = |who: &Name| builder.team.description_of(who).len() as u128 + overhead(who.as_str().len());
        let roles = chat.everyone().map(|who| each(who)).fold(PROMPT, u128::saturating_add);
        let given = [&selector.system, &selector.prompt, &selector.none, &selector.several];
        let texts: u128 = given.into_iter().flatten().map(|text| text.len() as u128).sum();
        let prompt = texts.saturating_add(roles).saturating_add(2 * PROMPT);
        let schema = if selector.constrained { prompt.saturating_add(SCHEMA) } else { 0 };
        let params = Params::from(selector.parameters.value.clone());
        let system = prompt.saturating_add(schema);
        let model = selector.model.as_deref().map(String::as_str);
        let speaker = self.private(builder, &who, (model, params), (system, 0))?;
        let tries = self.case.times(selector.attempts.into(), 1);
        let mut effect = speaker.react(self.case, scene.shared.saturating_add(prompt), 0, (tries - 1, false));
        effect.sum.base = effect.sum.base.saturating_add(prompt);
        Ok(effect.sum)
    }

    /// The order in which the turns of `chat` are followed one by one, if they are.
    fn order<'c>(
        &self,
        builder: &AgentBuilder<'c>,
        scene: &Scene,
        (chat, turns): (&'c Chat, u128),
    ) -> Option<Order<'c>> {
        Order::of(builder.team, chat).filter(|_| self.is_followed(scene, turns))
    }

    fn debate<'a>(
        &mut self,
        builder: &AgentBuilder<'a>,
        scene: &mut Scene,
        debate: &Debate,
        everyone: &[&Name],
    ) -> Result<()> {
        let again = if let Tie::Again(rounds) = debate.tie { self.case.times(rounds.into(), 0) } else { 0 };
        let options: u128 = debate.options.iter().map(|option| option.len() as u128 + 16).sum();
        let ballot = options.saturating_add(PROMPT);
        let voters: Vec<&Name> =
            if debate.voters.is_empty() { everyone.to_vec() } else { debate.voters.iter().collect() };
        let round = |walk: &mut Self, scene: &mut Scene| match debate.one_by_one {
            true => everyone.iter().try_for_each(|who| walk.say(builder, scene, &[*who])),
            false => walk.say_at_once(builder, scene, everyone),
        };
        // An unclear vote is asked for again.
        let votes = self.case.times(2, 1);
        let vote = |walk: &mut Self, scene: &mut Scene, who: &Name| {
            (0..votes).try_for_each(|_| walk.ask(builder, scene, who, ballot).map(|_| ()))
        };
        self.repeat(scene, (debate.rounds.into(), 1), |walk, scene, _| round(walk, scene))?;
        self.repeat(scene, (1 + again, 1), |walk, scene, nth| {
            if nth > 0 {
                round(walk, scene)?;
            }
            voters.iter().try_for_each(|who| vote(walk, scene, who))
        })?;
        match &debate.tie {
            Tie::Chair(chair) if !self.case.is_typical() => vote(self, scene, chair),
            _ => Ok(()),
        }
    }
}

/// Who can speak first in `chat`, in which `everyone` speaks in order: the one after the author of the last message of the opening, or the
/// first one. A blank message of the user is none; without any, the last one of a conversation that it `continues` counts.
fn first_in_order<'c>(chat: &'c Chat, everyone: &[&'c Name], continues: bool) -> BTreeSet<&'c Name> {
    let mut first = BTreeSet::new();
    for line in chat.opening.0.iter().rev() {
        let author = everyone.iter().position(|who| **who == line.from);
        first.extend(everyone.get(author.map_or(0, |at| (at + 1) % everyone.len())).copied());
        let is_text = !line.text.fill("").trim().is_empty() || !line.media.is_empty();
        if is_text || line.from != Name::user() {
            return first;
        }
    }
    first.extend(everyone.iter().take(if continues { everyone.len() } else { 1 }).copied());
    first
}

/// Who can speak first in `chat`, whose order depends on the last speaker.
fn first_of<'c>(chat: &'c Chat, everyone: &[&'c Name]) -> Result<Vec<&'c Name>> {
    let mut first: BTreeSet<Name> = BTreeSet::new();
    let start = match &chat.pattern {
        Pattern::StateMachine(states) => {
            let opened = chat.opening.0.iter().filter_map(|line| states.after.get(&line.from));
            for next in states.start.iter().chain(opened) {
                first.extend(possible_next(&next.compile()?, 0, "").into_iter().cloned());
            }
            states.start.is_some()
        }
        Pattern::Handoffs(handoffs) => {
            first.extend(handoffs.start.clone());
            handoffs.start.is_some()
        }
        _ => false,
    };
    if !start {
        first.extend(everyone.first().map(|who| (*who).clone()));
    }
    Ok(first.iter().filter_map(|who| everyone.iter().copied().find(|one| *one == who)).collect())
}

fn may_repeat(group: &Group) -> bool {
    group.allow_repeat_speaker.as_deref().is_none_or(|repeat| *repeat == Repeat::Yes)
}

/// Whether no participant of the graph speaks twice: there is no way back, and all wait for all edges.
fn each_once(graph: &Graph) -> bool {
    let mut open: BTreeSet<&Name> = graph.edges.values().flatten().map(|edge| &edge.to).collect();
    open.extend(graph.edges.keys().map(|from| &from.value));
    loop {
        let ends: Vec<&Name> = open.iter().copied().filter(|who| !leads_to(graph, who, &open)).collect();
        if ends.is_empty() {
            break;
        }
        open.retain(|who| !ends.contains(who));
    }
    open.is_empty() && graph.join.values().all(|join| *join != Join::Any)
}

/// `names` by how many others come before them along `edges`, which have no way back: in this order, each sees what it can see.
fn by_level<'c>(
    mut names: Vec<&'c Name>,
    edges: impl Iterator<Item = (&'c Name, &'c Name)>,
) -> Vec<&'c Name> {
    let edges: Vec<(&Name, &Name)> = edges.collect();
    let mut levels: BTreeMap<&Name, usize> = BTreeMap::new();
    for _ in 0..names.len() {
        for (from, to) in &edges {
            let before = levels.get(from).copied().unwrap_or_default();
            let level = levels.entry(to).or_default();
            *level = (*level).max(before + 1);
        }
    }
    names.sort_by_key(|name| levels.get(name).copied().unwrap_or_default());
    names
}

fn leads_to(graph: &Graph, from: &Name, open: &BTreeSet<&Name>) -> bool {
    let edges = graph.edges.iter().filter(|(of, _)| of.value == *from).flat_map(|(_, edges)| edges);
    edges.into_iter().any(|edge| open.contains(&edge.to))
}
