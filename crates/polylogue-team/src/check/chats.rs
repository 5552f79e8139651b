//! Chats: their participants, summaries and what inner chats receive.

use std::collections::HashMap;

use polylogue_config::At;
use polylogue_core::{Name, TaskFrom};

use super::reach;
use crate::chat::{Chat, ITSELF, InnerChat};
use crate::diagnostic::Report;
use crate::outline::{Outline, Participant};
use crate::team::Team;

pub(super) fn check(team: &Team, teams: &[Option<Team>], outline: &Outline<'_>, report: &mut Report<'_>) {
    for (name, chat) in team.checked_chats() {
        check_participants(team, outline, chat, report);
        chat.check(name, outline, report);
    }
    check_inner(team, outline, report);
    reach::check(team, teams, outline, report);
}

fn check_participants(team: &Team, outline: &Outline<'_>, chat: &Chat, report: &mut Report<'_>) {
    for who in chat.everyone().filter(|who| who.ok && **who == team.name) {
        if outline.participant(who).is_none() {
            let hint = "it is the outermost chat; chats that take part in others are in `chats`";
            report.error_with_hint(&who.span, format!("`{who}` cannot take part in a chat"), hint);
        }
    }
}

/// Reports conflicts in what inner chats receive from the surrounding chat.
fn check_inner(team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    let by_participant = ChatsByParticipant::of(team);
    for chat in team.named_chats() {
        let carries = chat.carryover.as_ref().filter(|carried| !carried.is_nothing());
        if let Some(carries) = carries.filter(|_| *chat.task_from == TaskFrom::All) {
            let hint = "remove `carryover`, or `task_from`";
            report.error_with_hint(carries.key(), "`task_from: all` already includes all results", hint);
        }
        if let (Some(_), Some(at)) = (&chat.task, chat.task_from.given()) {
            let hint = "`task` is the whole task; remove one of them";
            report.error_with_hint(at, "`task` and `task_from` cannot both be given", hint);
        }
        // A chat that is only nested in an agent has no participants next to it.
        for who in chat.carryover.iter().flat_map(|of| of.include.iter().flatten().chain(&of.exclude)) {
            by_participant.check(&chat.name, who, report);
        }
        check_continues(outline, chat, &by_participant, report);
    }
}

/// The chats of each participant.
struct ChatsByParticipant<'t>(HashMap<&'t Name, Vec<usize>>);

impl<'t> ChatsByParticipant<'t> {
    fn of(team: &'t Team) -> Self {
        let mut chats: HashMap<&Name, Vec<usize>> = HashMap::new();
        for (at, (_, chat)) in team.checked_chats().enumerate() {
            chat.everyone().for_each(|who| chats.entry(&who.value).or_default().push(at));
        }
        Self(chats)
    }

    /// Reports a name that takes part in no chat together with `chat`.
    fn check(&self, chat: &Name, who: &At<Name>, report: &mut Report<'_>) {
        let chats = |who: &Name| self.0.get(who).map_or(&[][..], Vec::as_slice);
        if who.ok && !chats(who).iter().any(|at| chats(chat).contains(at)) && !report.full() {
            let message = format!("`{who}` takes part in no chat together with `{chat}`");
            report.error_with_hint(&who.span, message, "name a participant of the same chat");
        }
    }
}

fn check_continues(
    outline: &Outline<'_>,
    chat: &InnerChat,
    by_participant: &ChatsByParticipant<'_>,
    report: &mut Report<'_>,
) {
    let Some(from) = chat.continues.as_ref().filter(|from| from.as_str() != ITSELF) else { return };
    match outline.participant(from).filter(|other| matches!(other, Participant::Agent(_))) {
        Some(other) if from.ok => {
            let hint = format!("name a chat, or `{ITSELF}`");
            let message = format!("the {} `{from}` has no conversation of its own", other.noun());
            report.error_with_hint(&from.span, message, hint);
        }
        _ => by_participant.check(&chat.name, from, report),
    }
}
