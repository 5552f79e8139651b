//! Chats within chats: how deep they are, and how many are built.

use std::collections::HashMap;

use polylogue_config::At;
use polylogue_core::Name;

use crate::agent::Agent;
use crate::chat::InnerChat;
use crate::diagnostic::Report;
use crate::outline::{Outline, Participant};
use crate::team::Team;

/// How deep chats, and agents with chats or agents of their own, can be within each other: the highest limit on depth of a run. Building and
/// running a team recurse once for each level.
const DEEPEST: usize = 64;
/// How many chats and such agents a team can be built of. Each way from the outermost chat to a chat is a chat of its own, so that 30
/// pairs of chats, each with both of the next pair, would be a billion.
const MOST: usize = 10_000;

/// The inner chats by name.
pub(super) type Inner<'t> = HashMap<&'t Name, &'t InnerChat>;

/// The names of agents, chats and teams that the model of `agent` can call as tools.
pub(super) fn agent_tools_of(agent: &Agent) -> impl Iterator<Item = &At<Name>> {
    agent.model().into_iter().flat_map(|keys| keys.agent_tools.iter()).map(|tool| &tool.who)
}

/// Reports chats that are nested too deep, or in too many ways. No chat may be within itself.
pub(super) fn check<'t>(team: &'t Team, outline: &Outline<'t>, inner: &Inner<'t>, report: &mut Report<'_>) {
    let mut nesting = Nesting { outline, inner, sizes: HashMap::new(), too_deep: None };
    let size = nesting.of_all(&team.chat.everyone().collect::<Vec<_>>(), 0);
    if let Some(who) = nesting.too_deep {
        let hint = "let it take part in a chat further out";
        let message = format!("`{who}` is more than {DEEPEST} levels of chats and agents deep");
        report.error_with_hint(&who.span, message, hint);
    } else if size.count > MOST {
        let message = format!("more than {MOST} ways lead to the chats of this team");
        let hint = "each way from the outermost chat to a chat is a chat of its own: let fewer of them take part in several others";
        report.error_with_hint(team.chat.participants.key(), message, hint);
    }
}

/// How many chats, and agents with chats or agents of their own, something is built of, and how many levels of them it has.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    count: usize,
    levels: usize,
}

struct Nesting<'o, 't> {
    outline: &'o Outline<'t>,
    inner: &'o Inner<'t>,
    /// Those that are known; while one is computed, it is empty: an agent has no nested chats of its own within these.
    sizes: HashMap<&'t Name, Size>,
    /// The first participant that is too deep.
    too_deep: Option<&'t At<Name>>,
}

impl<'t> Nesting<'_, 't> {
    /// The size of all of `names`, within so many levels.
    fn of_all(&mut self, names: &[&'t At<Name>], level: usize) -> Size {
        let mut all = Size::default();
        for who in names.iter().copied().filter(|who| who.ok) {
            let size = self.of(who, level);
            all.count = all.count.saturating_add(size.count);
            all.levels = all.levels.max(size.levels);
        }
        all
    }

    fn of(&mut self, who: &'t At<Name>, level: usize) -> Size {
        let size = match self.sizes.get(&who.value) {
            Some(known) => *known,
            None => self.computed(who, level),
        };
        if level + size.levels > DEEPEST {
            self.too_deep.get_or_insert(who);
        }
        size
    }

    fn computed(&mut self, who: &'t At<Name>, level: usize) -> Size {
        let within: Vec<&'t At<Name>> = match self.outline.participant(who) {
            Some(Participant::Chat(_)) => {
                self.inner.get(&who.value).into_iter().flat_map(|inner| inner.chat.everyone()).collect()
            }
            Some(Participant::Agent(agent)) => brought_along(agent),
            Some(Participant::Team(_)) | None => Vec::new(),
        };
        if within.is_empty() {
            return Size::default();
        }
        if level >= DEEPEST {
            self.too_deep.get_or_insert(who);
            return Size::default();
        }
        self.sizes.insert(&who.value, Size::default());
        let inner = self.of_all(&within, level + 1);
        let size = Size { count: inner.count.saturating_add(1), levels: inner.levels + 1 };
        self.sizes.insert(&who.value, size);
        size
    }
}

/// The chats that are nested in `agent`, and those that its model calls as tools.
fn brought_along(agent: &Agent) -> Vec<&At<Name>> {
    let nested = agent.nested_chats.iter().map(|nested| &nested.chat);
    nested.chain(agent_tools_of(agent)).collect()
}
