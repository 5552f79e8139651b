//! What is reached from where: no chat is within itself, every participant can speak, and there is an end.

use std::collections::{BTreeSet, HashSet};

use polylogue_config::{At, Switch};
use polylogue_core::Name;

use super::flow;
use super::nesting::{self, Inner, agent_tools_of, inner_chats};
use crate::agent::Agent;
use crate::chat::{Chat, InnerChat};
use crate::codes;
use crate::compaction::CompactionKeys;
use crate::diagnostic::Report;
use crate::nested_chats::NestedContext;
use crate::outline::{Outline, Participant};
use crate::team::Team;

pub(super) fn check(team: &Team, teams: &[Option<Team>], outline: &Outline<'_>, report: &mut Report<'_>) {
    let inner = inner_chats(team);
    check_cycles(team, outline, &inner, report);
    if !report.failed() {
        nesting::check(team, teams, outline, &inner, report);
    }
    // A misspelled name does not speak: that is said once.
    if !report.failed() {
        warn_of_unused(team, outline, &inner, report);
        flow::check(team, outline, report);
    }
}

fn check_cycles<'t>(team: &'t Team, outline: &Outline<'t>, inner: &Inner<'t>, report: &mut Report<'_>) {
    let mut walk = Walk {
        outline,
        inner,
        around: Vec::new(),
        owners: Vec::new(),
        done: HashSet::new(),
        met: HashSet::new(),
    };
    let mut chats = team.checked_chats();
    if let Some((name, chat)) = chats.next() {
        walk.enter(name, chat, report);
    }
    // What is not reached from the outermost chat is looked at by itself: first what has an owner.
    for agent in outline.agents() {
        walk.enter_nested(agent, false, report);
    }
    for (name, chat) in chats {
        if !walk.met.contains(name) {
            walk.enter(name, chat, report);
        }
    }
}

/// A walk from chats to the chats within them.
struct Walk<'o, 't> {
    outline: &'o Outline<'t>,
    inner: &'o Inner<'t>,
    /// The chats around the current one, the outermost first, and itself.
    around: Vec<&'t Name>,
    /// The agents in whose nested chats the walk is: they are without nested chats there.
    owners: Vec<&'t Name>,
    done: HashSet<(&'t Name, Vec<&'t Name>)>,
    /// The chats that were entered.
    met: HashSet<&'t Name>,
}

impl<'t> Walk<'_, 't> {
    /// How deep chats are looked through. Deeper nesting is refused when a team runs.
    const DEEPEST: usize = 64;
    /// How many ways are looked through; no team that people write has more.
    const MOST: usize = 10_000;

    fn enter(&mut self, name: &'t Name, chat: &'t Chat, report: &mut Report<'_>) {
        let new = self.done.len() < Self::MOST && self.done.insert((name, self.owners.clone()));
        if !new || self.around.len() >= Self::DEEPEST {
            return;
        }
        self.met.insert(name);
        self.around.push(name);
        for who in chat.everyone().filter(|who| who.ok) {
            self.meet(who, report);
            let agent = self.outline.participant(who).and_then(Participant::agent);
            if let Some(agent) = agent.filter(|_| !self.owners.contains(&&who.value)) {
                self.enter_nested(agent, true, report);
            }
        }
        self.around.pop();
    }

    /// Enters the chats nested in `owner`: those that were entered before only if they are to be entered `again`.
    fn enter_nested(&mut self, owner: &'t Agent, again: bool, report: &mut Report<'_>) {
        self.owners.push(&owner.name);
        for chat in owner.nested_chats.iter().map(|nested| &nested.chat).filter(|chat| chat.ok) {
            if again || !self.met.contains(&chat.value) {
                self.meet(chat, report);
            }
        }
        for who in agent_tools_of(owner).filter(|who| who.ok) {
            match self.outline.participant(who) {
                Some(Participant::Chat(_)) if again || !self.met.contains(&who.value) => {
                    self.meet(who, report)
                }
                Some(Participant::Agent(agent)) if agent.model().is_some() && self.is_new(who) => {
                    self.enter_nested(agent, again, report);
                }
                _ => {}
            }
        }
        self.owners.pop();
    }

    /// Whether an agent that is asked was not looked at in this place.
    fn is_new(&mut self, who: &'t Name) -> bool {
        let is_open = !self.owners.contains(&who) && self.done.len() < Self::MOST;
        is_open && self.done.insert((who, self.owners.clone()))
    }

    /// The inner chat `who`, unless it is another participant.
    fn chat(&self, who: &Name) -> Option<&'t InnerChat> {
        let is_chat = matches!(self.outline.participant(who), Some(Participant::Chat(_)));
        self.inner.get(who).copied().filter(|_| is_chat)
    }

    fn meet(&mut self, who: &'t At<Name>, report: &mut Report<'_>) {
        let is_agent = self.outline.participant(who).and_then(Participant::agent).is_some();
        if is_agent && self.around.contains(&&who.value) {
            let message = format!("the agent `{who}` cannot take part in the chat `{who}`");
            let hint = "give them different names; the outermost chat has that of the team";
            report.error_with_hint(&who.span, message, hint);
        } else if let Some(first) = self.around.iter().position(|outer| who == *outer) {
            let cycle = self.around.iter().skip(first).copied().chain([&who.value]).map(Name::as_str);
            let cycle = cycle.collect::<Vec<_>>().join(" > ");
            let message = format!("the chat `{who}` takes part in itself: {cycle}");
            let hint = format!("remove `{who}` here: it would wait for its own end");
            report.error_with_hint(&who.span, message, hint);
        } else if let Some(inner) = self.chat(who) {
            self.enter(&inner.name, &inner.chat, report);
        }
    }
}

/// The names of those that an agent brings along: its nested chats, the authors of their summaries, the agents that it
/// asks, and those that reason with it.
fn brought_along(agent: &Agent) -> impl Iterator<Item = &At<Name>> {
    let nested = agent.nested_chats.iter().flat_map(|nested| {
        let author = match &nested.context {
            NestedContext::Reflect(reflect) => Some(&reflect.by),
            _ => None,
        };
        std::iter::once(&nested.chat).chain(author)
    });
    let reasoning = agent.model().and_then(|keys| keys.reasoning.as_ref());
    let others = reasoning.into_iter().flat_map(|reasoning| reasoning.others());
    let author = agent.model().and_then(|keys| author_of(keys.compaction.as_ref()?));
    nested.chain(agent_tools_of(agent)).chain(others).chain(author)
}

fn author_of(compaction: &At<Switch<CompactionKeys>>) -> Option<&At<Name>> {
    compaction.on()?.by.as_ref().filter(|by| by.ok)
}

fn warn_of_unused<'t>(team: &'t Team, outline: &Outline<'t>, inner: &Inner<'t>, report: &mut Report<'_>) {
    let mut reached: BTreeSet<&Name> = BTreeSet::new();
    let mut chats = vec![&team.chat];
    while let Some(chat) = chats.pop() {
        let mut met: Vec<&Name> =
            chat.everyone().map(|name| &name.value).chain(chat.other_agents()).collect();
        while let Some(who) = met.pop() {
            let Some(participant) = outline.participant(who).filter(|_| reached.insert(who)) else {
                continue;
            };
            match participant {
                Participant::Agent(agent) => met.extend(brought_along(agent).map(|name| &name.value)),
                Participant::Chat(name) => chats.extend(inner.get(&name.value).map(|inner| &inner.chat)),
                Participant::Team(_) => {}
            }
        }
    }
    reached.extend(team.compaction.as_ref().and_then(author_of).map(|by| &by.value));
    for participant in outline.participants().iter().filter(|one| !reached.contains(&one.name().value)) {
        let message = format!("the {} `{}` takes part in nothing", participant.noun(), participant.name());
        let hint = "name it among the `participants` of a chat that is reached from `chat`, or leave it out";
        report.warning(codes::UNREACHABLE, &participant.name().span, message, hint);
    }
}
