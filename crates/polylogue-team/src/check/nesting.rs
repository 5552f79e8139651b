//! Chats within chats and teams within teams: how deep they are, and how many are built.

use std::collections::HashMap;

use polylogue_config::At;
use polylogue_core::Name;

use crate::agent::Agent;
use crate::chat::InnerChat;
use crate::diagnostic::Report;
use crate::outline::{Outline, Participant};
use crate::team::{SubTeam, Team};

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

/// The inner chats of `team`. Of two with the same name, the first.
pub(super) fn inner_chats(team: &Team) -> Inner<'_> {
    let mut inner = HashMap::new();
    for chat in team.named_chats() {
        inner.entry(&chat.name.value).or_insert(chat);
    }
    inner
}

/// Reports chats that are nested too deep, or in too many ways, also within the `teams` that the file includes, `None` for those with
/// mistakes. No chat may be within itself.
pub(super) fn check<'t>(
    team: &'t Team,
    teams: &'t [Option<Team>],
    outline: &Outline<'t>,
    inner: &Inner<'t>,
    report: &mut Report<'_>,
) {
    let within = team.teams.iter().zip(teams).filter_map(|(sub, team)| Some((sub, team.as_ref()?)));
    let mut nesting = Nesting::new(outline, inner, within);
    let size = nesting.of_all(&team.chat.everyone().collect::<Vec<_>>(), 0);
    if let Some((who, files)) = nesting.too_deep {
        let hint = "let it take part in a chat further out";
        let through = match files.is_empty() {
            true => String::new(),
            false => format!(", through the team files {}", files.join(" > ")),
        };
        let message = format!("`{who}` is more than {DEEPEST} levels of chats and agents deep{through}");
        report.error_with_hint(&who.span, message, hint);
    } else if size.count > MOST {
        let of = if teams.is_empty() { "this team" } else { "this team and the teams within it" };
        let message = format!("more than {MOST} ways lead to the chats of {of}");
        let hint = "each way from the outermost chat to a chat is a chat of its own: let fewer of them take part in several others";
        report.error_with_hint(team.chat.participants.key(), message, hint);
    }
}

/// How many chats, and agents with chats or agents of their own, something is built of, and how many levels of them it has.
#[derive(Debug, Clone, Default)]
struct Size<'t> {
    count: usize,
    levels: usize,
    /// The team files on the way to the deepest level, each included by the one before, as that names it.
    files: Vec<&'t str>,
}

impl Size<'_> {
    /// That of what has this within it.
    fn around(self) -> Self {
        Self { count: self.count.saturating_add(1), levels: self.levels + 1, ..self }
    }
}

/// The size of `team`, which another one includes from `file`.
fn of_team<'t>(file: &'t str, team: &'t Team) -> Size<'t> {
    let (outline, inner) = (team.outline(), inner_chats(team));
    let mut nesting = Nesting::new(&outline, &inner, team.teams.iter().map(|sub| (sub, &*sub.team)));
    let within = nesting.of_all(&team.chat.everyone().collect::<Vec<_>>(), 0);
    let Size { count, levels, files } = within.around();
    Size { count, levels, files: std::iter::once(file).chain(files).collect() }
}

struct Nesting<'o, 't> {
    outline: &'o Outline<'t>,
    inner: &'o Inner<'t>,
    /// Those that are known; while one is computed, it is empty: an agent has no nested chats of its own within these.
    sizes: HashMap<&'t Name, Size<'t>>,
    /// The first participant that is too deep, and the team files on the way from it to the deepest level.
    too_deep: Option<(&'t At<Name>, Vec<&'t str>)>,
}

impl<'o, 't> Nesting<'o, 't> {
    fn new(
        outline: &'o Outline<'t>,
        inner: &'o Inner<'t>,
        teams: impl Iterator<Item = (&'t SubTeam, &'t Team)>,
    ) -> Self {
        let named = teams.filter(|(sub, _)| sub.name.ok);
        let sizes = named.map(|(sub, team)| (&sub.name.value, of_team(sub.file.as_str(), team))).collect();
        Self { outline, inner, sizes, too_deep: None }
    }

    /// The size of all of `names`, within so many levels.
    fn of_all(&mut self, names: &[&'t At<Name>], level: usize) -> Size<'t> {
        let mut all = Size::default();
        for who in names.iter().copied().filter(|who| who.ok) {
            let size = self.of(who, level);
            all.count = all.count.saturating_add(size.count);
            if size.levels > all.levels {
                (all.levels, all.files) = (size.levels, size.files);
            }
        }
        all
    }

    fn of(&mut self, who: &'t At<Name>, level: usize) -> Size<'t> {
        let size = match self.sizes.get(&who.value) {
            Some(known) => known.clone(),
            None => self.computed(who, level),
        };
        if level + size.levels > DEEPEST {
            self.too_deep.get_or_insert_with(|| (who, size.files.clone()));
        }
        size
    }

    fn computed(&mut self, who: &'t At<Name>, level: usize) -> Size<'t> {
        let within: Vec<&'t At<Name>> = match self.outline.participant(who) {
            Some(Participant::Chat(_)) => {
                self.inner.get(&who.value).into_iter().flat_map(|inner| inner.chat.everyone()).collect()
            }
            Some(Participant::Agent(agent)) => brought_along(agent),
            // One with mistakes.
            Some(Participant::Team(_)) | None => Vec::new(),
        };
        if within.is_empty() {
            return Size::default();
        }
        if level >= DEEPEST {
            self.too_deep.get_or_insert((who, Vec::new()));
            return Size::default();
        }
        self.sizes.insert(&who.value, Size::default());
        let size = self.of_all(&within, level + 1).around();
        self.sizes.insert(&who.value, size.clone());
        size
    }
}

/// The chats that are nested in `agent`, and those that its model calls as tools.
fn brought_along(agent: &Agent) -> Vec<&At<Name>> {
    let nested = agent.nested_chats.iter().map(|nested| &nested.chat);
    nested.chain(agent_tools_of(agent)).collect()
}
