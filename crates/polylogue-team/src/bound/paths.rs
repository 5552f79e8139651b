//! Turns in an order that depends on who spoke last: only those count that can follow each other.

use std::collections::BTreeMap;

use polylogue::policies::group::Repeat;
use polylogue::{Name, Result};

use super::amount::Sum;
use super::parts::{Parts, most_of};
use super::scene::{Messages, Scene};
use super::walk::Walk;
use crate::agent::Agent;
use crate::build::AgentBuilder;
use crate::chat::Chat;
use crate::pattern::{CompiledExits, Group, Handoffs, Pattern, Selector, Transitions, possible_next};
use crate::private_agents::PrivateRole;
use crate::team::Team;

/// Chats of more turns are not followed one by one.
const TURNS: u128 = 300;

/// The participants, late joiners included.
pub(super) fn names(chat: &Chat) -> Vec<&Name> {
    chat.everyone().map(|name| &name.value).collect()
}

/// Who can speak after whom.
pub(super) enum Order<'c> {
    /// One after the other, and whether each can leave: it is skipped then.
    Circle(Vec<(&'c Name, bool)>),
    /// The transitions from each state, compiled once: they are asked about each turn of each speaker.
    States(BTreeMap<&'c Name, CompiledExits>, Vec<&'c Name>),
    Group(&'c Group, Vec<&'c Name>),
    Handoffs(&'c Handoffs, Vec<&'c Name>),
}

impl<'c> Order<'c> {
    /// The order of `chat`, if it depends on the last speaker alone, or on the number of turns. Turns for tools that agents execute for others, and
    /// for results from the background, come between.
    pub(super) fn of(team: &'c Team, chat: &'c Chat) -> Option<Self> {
        let comes_between = |agent: &Agent| !agent.executes_tools.is_empty() || agent.starts_background();
        if !chat.late_joiners.is_empty()
            || !chat.background.participants.is_empty()
            || team.agents.iter().any(comes_between)
        {
            return None;
        }
        match &chat.pattern {
            Pattern::StateMachine(states) => {
                let exits = states.after.iter().map(|(from, next)| Some((&from.value, next.compile().ok()?)));
                Some(Self::States(exits.collect::<Option<_>>()?, names(chat)))
            }
            Pattern::Group(group) if group.transitions.is_some() || group.allow_repeat_speaker.is_some() => {
                Some(Self::Group(group, names(chat)))
            }
            Pattern::Handoffs(handoffs) if hands_over_by_name(team, chat) => {
                Some(Self::Handoffs(handoffs, names(chat)))
            }
            _ => None,
        }
    }

    /// The order of the participants of `chat` if some of several can leave it, so that others follow each other. Of two, one is no chat.
    pub(super) fn circle(team: &'c Team, chat: &'c Chat) -> Option<Self> {
        let can_leave = |who: &Name| {
            let agent = team.agents.iter().find(|agent| agent.name == *who);
            agent.is_some_and(Agent::can_leave)
        };
        let all: Vec<(&Name, bool)> = names(chat).into_iter().map(|who| (who, can_leave(who))).collect();
        (all.len() > 2 && all.iter().any(|(_, can_leave)| *can_leave)).then_some(Self::Circle(all))
    }

    /// Who can speak after a turn of `who`, the last one of `turns`.
    pub(super) fn after(&self, turns: u64, who: &Name) -> Vec<&'c Name> {
        let all = match self {
            Self::Circle(all) => return next_in_circle(all, who),
            Self::States(states, all) => {
                let exits = states.get(who).map_or(&[][..], Vec::as_slice);
                let next = possible_next(exits, turns, who.as_str());
                return all.iter().copied().filter(|who| next.contains(who)).collect();
            }
            Self::Group(_, all) | Self::Handoffs(_, all) => all,
        };
        all.iter().copied().filter(|next| self.may_follow(who, next)).collect()
    }

    fn may_follow(&self, last: &Name, next: &Name) -> bool {
        match self {
            Self::Circle(_) | Self::States(..) => true,
            // Only the target of `then` can keep the word, if it was handed over to.
            Self::Handoffs(handoffs, _) => last != next || handoffs.then == *next,
            Self::Group(group, _) => {
                match (group.transitions.as_deref(), group.allow_repeat_speaker.as_deref()) {
                    (Some(transitions), _) => transitions.allow(last, next),
                    (None, Some(Repeat::No)) => last != next,
                    (None, Some(Repeat::Only(names))) => last != next || names.contains(last),
                    (None, Some(Repeat::Yes) | None) => true,
                }
            }
        }
    }
}

/// Those of `all` that can speak after `who`: the next one, and those behind it where all between them can have left.
fn next_in_circle<'c>(all: &[(&'c Name, bool)], who: &Name) -> Vec<&'c Name> {
    let begin = all.iter().position(|(name, _)| *name == who).map_or(0, |at| at + 1);
    let mut behind = all.iter().cycle().skip(begin).take(all.len());
    let mut next = Vec::new();
    for (name, can_leave) in behind.by_ref() {
        // Alone, it would end the chat.
        if *name != who || all.len() == 1 {
            next.push(*name);
        }
        if !can_leave {
            break;
        }
    }
    next
}

impl Transitions {
    fn allow(&self, last: &Name, next: &Name) -> bool {
        let (Self::Allowed(lists) | Self::Disallowed(lists)) = self;
        let is_listed = lists.get(last).is_some_and(|to| to.iter().any(|to| to.value == *next));
        is_listed == matches!(self, Self::Allowed(_))
    }
}

/// Whether the word goes only to others: each handoff names another participant, and no other tool can hand over. A person keeps it, or passes
/// it back.
fn hands_over_by_name(team: &Team, chat: &Chat) -> bool {
    let is_plain = |who: &Name| {
        let agent = team.agents.iter().find(|agent| agent.name == *who);
        agent.is_some_and(|agent| {
            let keys = agent.model().filter(|_| !agent.is_layered());
            keys.is_some_and(|keys| keys.tools.is_empty() && keys.agent_tools.is_empty())
        })
    };
    match &chat.pattern {
        Pattern::Handoffs(handoffs) => {
            chat.everyone().any(|who| who.value == handoffs.then) && chat.everyone().all(|who| is_plain(who))
        }
        _ => false,
    }
}

/// A chat before a turn, and the most turns that each participant has had: the most of all ways.
type After<'c> = (Scene, BTreeMap<&'c Name, u128>);

/// How a speaker is selected.
pub(super) type Selects<'s> = Option<(&'s Name, &'s Chat, &'s Selector)>;

impl Walk<'_> {
    /// Whether the turns of `chat` are followed one by one, in `order`.
    pub(super) fn is_followed(&self, scene: &Scene, turns: u128) -> bool {
        !self.case.is_typical() && turns <= TURNS && !matches!(scene.messages, Messages::Every(..))
    }

    /// So many `turns` in `order`, beginning with one of `first`: for each speaker, the most of all ways that lead to it.
    pub(super) fn follow<'c>(
        &mut self,
        builder: &AgentBuilder<'_>,
        scene: &mut Scene,
        (first, order, turns): (Vec<&'c Name>, &Order<'c>, u128),
        selects: Selects<'_>,
    ) -> Result<()> {
        let (mut selected, mut parts) = (Sum::default(), Parts::new(&scene.chat));
        let mut before: BTreeMap<&Name, After<'c>> = BTreeMap::new();
        let begun = self.selected(builder, scene.clone(), (first.len(), selects), &mut selected)?;
        before.extend(first.into_iter().map(|who| (who, (begun.clone(), BTreeMap::new()))));
        for turn in 1..=u64::try_from(turns).unwrap_or(u64::MAX) {
            self.note_selected(selects, &mut selected);
            let mut after: BTreeMap<&Name, After<'c>> = BTreeMap::new();
            for (who, (mut then, mut had)) in before {
                *had.entry(who).or_default() += 1;
                most_of(&mut parts.turns, &had);
                self.measured(&mut parts, &[who], |walk| walk.say(builder, &mut then, &[who]))?;
                scene.merge(&then);
                let next = order.after(turn, who);
                if u128::from(turn) < turns && !next.is_empty() {
                    let then = self.selected(builder, then, (next.len(), selects), &mut selected)?;
                    for who in next {
                        after
                            .entry(who)
                            .and_modify(|(other, most)| {
                                other.merge(&then);
                                most_of(most, &had);
                            })
                            .or_insert_with(|| (then.clone(), had.clone()));
                    }
                }
            }
            before = after;
        }
        self.limit(builder, parts);
        Ok(())
    }

    /// `scene` after a selection among `count` participants: a single one is not asked about.
    fn selected(
        &mut self,
        builder: &AgentBuilder<'_>,
        mut scene: Scene,
        (count, selects): (usize, Selects<'_>),
        most: &mut Sum,
    ) -> Result<Scene> {
        if let Some((name, chat, selector)) = selects.filter(|_| count > 1) {
            let sum = self.selection(builder, &scene, (name, chat), selector)?;
            *most = most.max(sum);
            scene.sum.add(sum);
        }
        Ok(scene)
    }

    /// Counts the most expensive selection of a turn, as that of the selector.
    fn note_selected(&mut self, selects: Selects<'_>, most: &mut Sum) {
        let sum = std::mem::take(most);
        if let Some((name, ..)) = selects.filter(|_| sum.total.calls > 0) {
            self.note_selection(name, sum);
        }
    }

    /// Counts what the selector of the chat `name` took.
    pub(super) fn note_selection(&mut self, name: &Name, sum: Sum) {
        if let Some(who) = PrivateRole::Selector.of(name) {
            self.note(name.as_str(), who.as_str(), sum);
        }
    }
}
