//! Checks that need several parts of a team: what takes part where, is reachable, fits together and is used.
//!
//! They run on the typed values as far as these could be read, so that they find their mistakes in the same run in which
//! the reader finds its own. A value that could not be read is skipped.

mod agents;
mod approval;
mod calls;
mod chats;
mod compaction;
mod conditions;
mod endpoints;
mod fallback;
mod flow;
mod handoff_texts;
mod mcp;
mod models;
mod names;
mod nesting;
mod parameters;
mod prices;
mod reach;
mod reasoning;
mod received;
mod replies;
mod script;
mod secrets;
mod sentence;
mod state_keys;
mod stop_texts;
mod texts;
mod tool_texts;
mod unasked;
mod waits;
mod web;
mod working;

use polylogue_core::Name;

use crate::diagnostic::Report;
use crate::memory::TeamMemory;
use crate::source::Source;
use crate::team::Team;
use crate::yaml::Node;

/// What is known of a team besides its file.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    /// The teams that the file includes, `None` for those with mistakes.
    pub(crate) teams: &'a [Option<Team>],
    /// The speakers of the teams that the file includes, if known.
    pub(crate) answering_models: Option<&'a [Name]>,
    /// The model with which the caller replaces those of the file.
    pub(crate) model: Option<&'a str>,
    /// Whether the file is included by another one.
    pub(crate) is_included: bool,
}

/// Reports mistakes in a file that involve several parts.
pub(crate) fn check(root: &Node, team: &Team, around: Around<'_>, report: &mut Report<'_>) {
    let outline = team.outline();
    names::check(team, &outline, report);
    agents::check(team, &outline, report);
    compaction::check(team, &outline, report);
    reasoning::check(&outline, report);
    approval::check(team, &outline, report);
    working::check(team, &outline, report);
    chats::check(team, around.teams, &outline, report);
    script::check(team, &outline, root, around.answering_models, report);
    endpoints::check(team, report);
    prices::check(root, team, report);
    // What is said of a team with mistakes may be a consequence of these.
    if !report.failed() {
        conditions::check(root, team, (&outline, around.is_included), report);
        models::check(team, &outline, around.model, report);
        handoff_texts::check(team, &outline, report);
        tool_texts::check(team, &outline, report);
        texts::check(root, team, &outline, report);
        unasked::check(team, &outline, report);
        team.all_chats().for_each(|(_, chat)| working::check_background(chat, &outline, report));
        secrets::check(root, report);
    }
}

/// Reports conflicts among the teams that a file includes. A team with mistakes is `None`.
pub(crate) fn check_teams(team: &Team, teams: &[Option<Team>], report: &mut Report<'_>) {
    endpoints::check_teams(team, teams, report);
    mcp::check_teams(team, teams, report);
}

/// Hides the secrets of the file in diagnostics.
pub(crate) fn hide_secrets(root: &Node, report: &mut Report<'_>) {
    secrets::hide(root, report);
}

/// The same in a text whose mistakes another reader reports.
pub(crate) fn hide_secrets_in<'s>(source: &'s Source<'s>) {
    secrets::hide_in(source);
}

/// Reports what cannot be built, or is not used. `model` is the one with which the caller replaces those of the file.
pub(crate) fn check_built(team: &Team, model: Option<&str>, report: &mut Report<'_>) {
    fallback::check_built(team, model, report);
    working::check_declared(team, report);
    mcp::check_built(team, report);
    web::check_built(team, report);
    calls::check_built(team, report);
    let memories = team.agents.iter().filter_map(|agent| Some((&*agent.name, &agent.model()?.memory)));
    TeamMemory::check(&team.memory, &team.name, memories, team.needs_memory(), report);
    for (name, chat) in team.all_chats() {
        chat.pattern.part().check_built(&chat.frame(name), report);
    }
}
