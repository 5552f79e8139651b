//! Loops without a limit of their own: chats that only the default limit on turns ends, and replies that nothing limits.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use polylogue::{Limits, Name};
use serde::Serialize;

use super::chat::most_turns;
use super::paths::Order;
use super::visits::most_visits;
use crate::chat::Chat;
use crate::pattern::Pattern;
use crate::source::Source;
use crate::team::Team;

/// A kind of loop that has no limit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopKind {
    /// The turns of a chat.
    Chat,
    /// The replies of an agent.
    Reply,
}

/// A loop to which the file sets no limit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct OpenLoop {
    /// The file of a team within the team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of the chat or agent in its file, from 1.
    pub line: usize,
    /// The kind of loop.
    pub kind: LoopKind,
    /// The chat or agent.
    pub name: String,
    /// The limit that applies by default; `None` if there is none.
    pub default: Option<u64>,
    /// The key that limits it.
    pub key: &'static str,
}

impl fmt::Display for OpenLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, name, key, .. } = self;
        match (self.kind, self.default) {
            (LoopKind::Chat, Some(turns)) => {
                write!(f, "only the default limit of {turns} turns ends the chat `{name}`")?;
            }
            (LoopKind::Chat, None) => write!(f, "nothing ends the chat `{name}`")?,
            (LoopKind::Reply, _) => write!(f, "nothing limits the length of a reply of `{name}`")?,
        }
        let file = self.file.as_ref().map(|file| format!("`{file}`, ")).unwrap_or_default();
        write!(f, " ({file}line {line}): set `{key}`")
    }
}

/// A team, and where its text is.
struct Located<'t> {
    team: &'t Team,
    /// `None` for the outermost one.
    file: Option<&'t str>,
    text: &'t str,
}

impl Located<'_> {
    fn open(&self, (kind, name): (LoopKind, &Name), at: usize, default: Option<u64>) -> OpenLoop {
        let line = Source::new(self.file.unwrap_or_default(), self.text).position(at).line;
        let key = if kind == LoopKind::Chat { "max_turns" } else { "parameters: {max_tokens: ...}" };
        OpenLoop { file: self.file.map(str::to_owned), line, kind, name: name.to_string(), default, key }
    }

    /// Its chats with a loop to which they set no limit.
    fn chats(&self) -> Vec<OpenLoop> {
        let team = self.team;
        let outermost = (&team.name, &team.chat, team.chat.participants.key());
        let inner = team.chats.iter().map(|inner| (&inner.name.value, &inner.chat, &inner.name.span));
        let all = [outermost].into_iter().chain(inner);
        let is_open = |chat: &Chat| {
            let is_limited = chat.max_turns.given().is_some()
                || chat.stop.as_ref().is_some_and(|stop| most_turns(stop, chat).is_some());
            !is_limited && can_repeat(team, chat)
        };
        all.filter(|(_, chat, _)| is_open(chat))
            .map(|(name, chat, span)| self.open((LoopKind::Chat, name), span.start, Some(*chat.max_turns)))
            .collect()
    }

    /// Its agents called `names`, whose models have no known limit on a reply.
    fn replies(&self, names: &BTreeSet<Name>) -> Vec<OpenLoop> {
        let found = self.team.agents.iter().filter(|agent| names.contains(&agent.name.value));
        found.map(|agent| self.open((LoopKind::Reply, &agent.name), agent.name.span.start, None)).collect()
    }
}

/// The loops of `team` to which it sets no limit. `unlimited` are, by team, the agents whose replies have no known limit.
pub(super) fn open_loops(
    team: &Team,
    limits: &Limits,
    unlimited: &BTreeMap<Name, BTreeSet<Name>>,
) -> Vec<OpenLoop> {
    let mut all = Vec::new();
    for (name, located) in located(team) {
        // A limit on the turns of the run is one of each of its chats.
        if limits.turns.is_none() {
            all.extend(located.chats());
        }
        all.extend(unlimited.get(name).into_iter().flat_map(|names| located.replies(names)));
    }
    all.sort();
    all.dedup();
    all
}

/// `team` and all teams within it, as they are called.
fn located(team: &Team) -> Vec<(&Name, Located<'_>)> {
    let files = &team.sources.files;
    let text = team.text().unwrap_or_default();
    let mut all = vec![(&team.name, Located { team, file: None, text })];
    let mut within: Vec<_> = team.teams.iter().collect();
    while let Some(sub) = within.pop() {
        // A team within a team names its files from its own folder.
        let file = sub.file.trim_start_matches("./");
        let text = files.iter().find(|(path, _)| path.ends_with(file)).map(|(_, text)| text.as_str());
        all.push((&sub.name, Located { team: &sub.team, file: Some(file), text: text.unwrap_or_default() }));
        within.extend(&sub.team.teams);
    }
    all
}

/// Whether participants of `chat` can speak repeatedly, with no number in its pattern that ends that.
fn can_repeat(team: &Team, chat: &Chat) -> bool {
    let part = chat.pattern.part();
    if part.has_one_turn_each() || part.has_own_limit() {
        return false;
    }
    let everyone: Vec<&Name> = chat.everyone().map(|name| &name.value).collect();
    match &chat.pattern {
        Pattern::Graph(graph) => most_visits(graph, &everyone).is_none(),
        _ => Order::of(team, chat).is_none_or(|order| has_circle(&order, &everyone, *chat.max_turns)),
    }
}

/// Whether a participant can speak again after its turn, late in the chat: conditions may depend on the number of turns.
fn has_circle(order: &Order<'_>, everyone: &[&Name], turns: u64) -> bool {
    let mut leading: BTreeMap<&Name, Vec<&Name>> =
        everyone.iter().map(|who| (*who, order.after(turns, who))).collect();
    // Those who lead to no one, or only to such, are in no circle.
    loop {
        let left: BTreeSet<&Name> = leading.keys().copied().collect();
        leading.retain(|_, next| next.iter().any(|who| left.contains(who)));
        if leading.len() == left.len() {
            return !left.is_empty();
        }
    }
}
