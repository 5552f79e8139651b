//! Chats: their participants, summaries and what inner chats receive.

use std::collections::HashMap;

use polylogue_config::At;
use polylogue_core::Name;

use super::{Outline, Participant, patterns, reach};
use crate::chat::{CarryWord, CarryoverSpec, Chat, ITSELF, InnerChat, Summary, TaskFrom};
use crate::diagnostic::Report;

pub(super) fn check(outline: &Outline<'_>, report: &mut Report<'_>) {
    for (_, chat) in outline.chats() {
        check_participants(outline, chat, report);
        // A chat without participants is reported by the reader.
        if chat.everyone().any(|name| name.ok) {
            patterns::check(outline, chat, report);
            check_summary(outline, &chat.summary, report);
        }
    }
    check_inner(outline, report);
    reach::check(outline, report);
}

fn check_participants(outline: &Outline<'_>, chat: &Chat, report: &mut Report<'_>) {
    for who in chat.everyone().filter(|who| who.ok && **who == outline.team.name) {
        if outline.participant(who).is_none() {
            let hint = "it is the outermost chat; chats that take part in others are in `chats`";
            report.error_with_hint(&who.span, format!("`{who}` cannot take part in a chat"), hint);
        }
    }
}

fn check_summary(outline: &Outline<'_>, summary: &Summary, report: &mut Report<'_>) {
    let Summary::Reflect(reflect) = summary else { return };
    let Some(by) = &reflect.by else { return };
    let model = ("model", reflect.model.as_ref().map(At::key));
    for (key, at) in [model, ("parameters", reflect.parameters.given())] {
        if let Some(at) = at {
            let hint = "remove it, or remove `by` for a private author";
            report.error_with_hint(at, format!("`{by}` uses its own `{key}`"), hint);
        }
    }
    check_author(outline, by, report);
}

/// Reports a summary author that is not a plain agent with a model.
pub(super) fn check_author(outline: &Outline<'_>, by: &At<Name>, report: &mut Report<'_>) {
    let author = outline.participant(by).filter(|_| by.ok);
    if let Some(why) = author.and_then(|author| author.why_not_plain()) {
        let hint = "name an agent that replies only by a model";
        report.error_with_hint(&by.span, format!("`{by}` cannot write the summary: {why}"), hint);
    }
}

/// Reports conflicts in what inner chats receive from the surrounding chat.
fn check_inner(outline: &Outline<'_>, report: &mut Report<'_>) {
    let beside = Beside::of(outline);
    for chat in outline.participants.iter().filter_map(|participant| participant.chat()) {
        let carryover = chat.carryover.as_ref();
        let carries = carryover.filter(|given| ***given != CarryoverSpec::Word(CarryWord::None));
        if let Some(carries) = carries.filter(|_| *chat.task_from == TaskFrom::All) {
            let hint = "remove `carryover`, or `task_from`";
            report.error_with_hint(carries.key(), "`task_from: all` includes all results already", hint);
        }
        if let (Some(_), Some(at)) = (&chat.task, chat.task_from.given()) {
            let hint = "`task` is the whole task; remove one of them";
            report.error_with_hint(at, "`task` and `task_from` cannot both be given", hint);
        }
        // A chat that is only nested in an agent has no participants beside it.
        if let Some(CarryoverSpec::Of(given)) = carryover.map(|given| &given.value) {
            for who in given.include.iter().flatten().chain(&given.exclude) {
                beside.check(&chat.name, who, report);
            }
        }
        check_continues(outline, chat, &beside, report);
    }
}

/// The chats of each participant.
struct Beside<'t>(HashMap<&'t Name, Vec<usize>>);

impl<'t> Beside<'t> {
    fn of(outline: &Outline<'t>) -> Self {
        let mut chats: HashMap<&Name, Vec<usize>> = HashMap::new();
        for (at, (_, chat)) in outline.chats().enumerate() {
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

fn check_continues(outline: &Outline<'_>, chat: &InnerChat, beside: &Beside<'_>, report: &mut Report<'_>) {
    let Some(from) = chat.continues.as_ref().filter(|from| from.as_str() != ITSELF) else { return };
    match outline.participant(from).filter(|other| matches!(other, Participant::Agent(_))) {
        Some(other) if from.ok => {
            let hint = format!("name a chat, or `{ITSELF}`");
            let message = format!("the {} `{from}` has no conversation of its own", other.noun());
            report.error_with_hint(&from.span, message, hint);
        }
        _ => beside.check(&chat.name, from, report),
    }
}
