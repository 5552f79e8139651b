//! Chats: every participant exists, and every name in a chat is one of its participants.

use std::collections::{BTreeSet, HashMap};

use super::{Kind, Outline, Participant, name, patterns, reach, tasks};
use crate::chat::ITSELF;
use crate::diagnostic::Report;
use crate::source::Span;
use crate::suggest;
use crate::yaml::Node;

pub(super) fn check(outline: &Outline<'_>, report: &mut Report<'_>) {
    for (_, chat) in outline.chats() {
        check_participants(outline, chat, report);
        let participants: BTreeSet<&str> = participants_of(chat).map(|(who, _)| who).collect();
        // A chat without participants is reported by the reader.
        if !participants.is_empty() {
            patterns::check(outline, chat, &participants, report);
            check_author(outline, chat.get("summary").get("reflect"), report);
        }
    }
    check_inner(outline, report);
    reach::check(outline, report);
}

/// The participants of a chat, late joiners included, with their nodes.
pub(super) fn participants_of(chat: &Node) -> impl Iterator<Item = (&str, &Node)> + Clone {
    let later = chat.get("late_joiners").items().iter().map(|join| join.get("who"));
    chat.get("participants").items().iter().chain(later).filter_map(|node| Some((name(node)?, node)))
}

fn check_participants(outline: &Outline<'_>, chat: &Node, report: &mut Report<'_>) {
    for (who, node) in participants_of(chat) {
        if who == outline.team && outline.participant(who).is_none() {
            let hint = "it is the outermost chat; chats that take part in others are in `chats`";
            report.error_with_hint(&node.span, format!("`{who}` cannot take part in a chat"), hint);
        }
    }
}

/// Reports a summary author that is not a plain agent with a model.
pub(super) fn check_author(outline: &Outline<'_>, reflect: &Node, report: &mut Report<'_>) {
    let by = reflect.get("by");
    let Some(who) = name(by) else { return };
    for key in ["model", "parameters"] {
        if let Some(entry) = reflect.entry(key) {
            let hint = "remove it, or remove `by` for a private author";
            report.error_with_hint(&entry.key_span, format!("`{who}` uses its own `{key}`"), hint);
        }
    }
    if let Some(why) = outline.participant(who).and_then(tasks::cannot) {
        let hint = "name an agent that replies only by a model";
        report.error_with_hint(&by.span, format!("`{who}` cannot write the summary: {why}"), hint);
    }
}

/// Reports a name that is not a participant of the chat.
pub(super) fn check_takes_part(
    node: &Node,
    participants: &BTreeSet<&str>,
    or_user: bool,
    report: &mut Report<'_>,
) {
    if let Some(who) = name(node) {
        check_who(who, &node.span, participants, or_user, report);
    }
}

/// The same for a name at `at`.
pub(super) fn check_who(
    who: &str,
    at: &Span,
    participants: &BTreeSet<&str>,
    or_user: bool,
    report: &mut Report<'_>,
) {
    if participants.contains(who) || (or_user && who == "user") || report.full() {
        return;
    }
    let hint = suggest::hint(who, participants.iter().copied());
    report.error_with_hint(at, format!("`{who}` does not take part in this chat"), hint);
}

/// Reports conflicts in what inner chats receive from the surrounding chat.
fn check_inner(outline: &Outline<'_>, report: &mut Report<'_>) {
    let beside = Beside::of(outline);
    for participant in outline.participants.iter().filter(|participant| participant.kind == Kind::Chat) {
        let chat = participant.node;
        let carries = chat.entry("carryover").filter(|entry| entry.value.text() != Some("none"));
        if let Some(carries) = carries.filter(|_| chat.get("task_from").text() == Some("all")) {
            let hint = "remove `carryover`, or `task_from`";
            report.error_with_hint(&carries.key_span, "`task_from: all` includes all results already", hint);
        }
        if let (Some(_), Some(brief)) = (chat.entry("task"), chat.entry("task_from")) {
            let hint = "`task` is the whole task; remove one of them";
            report.error_with_hint(&brief.key_span, "`task` and `task_from` cannot both be given", hint);
        }
        // A chat that is only nested in an agent has no participants beside it.
        let of_beside =
            ["include", "exclude"].into_iter().flat_map(|key| chat.get("carryover").get(key).one_or_many());
        for node in of_beside {
            beside.check(participant.name, node, report);
        }
        check_continues(outline, participant, &beside, report);
    }
}

/// The chats of each participant.
struct Beside<'n>(HashMap<&'n str, Vec<usize>>);

impl<'n> Beside<'n> {
    fn of(outline: &Outline<'n>) -> Self {
        let mut chats: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, (_, chat)) in outline.chats().enumerate() {
            participants_of(chat).for_each(|(who, _)| chats.entry(who).or_default().push(at));
        }
        Self(chats)
    }

    /// Reports a name that takes part in no chat together with `chat`.
    fn check(&self, chat: &str, node: &Node, report: &mut Report<'_>) {
        let Some(who) = name(node) else { return };
        let chats = |who: &str| self.0.get(who).map_or(&[][..], Vec::as_slice);
        if !chats(who).iter().any(|at| chats(chat).contains(at)) && !report.full() {
            let message = format!("`{who}` takes part in no chat together with `{chat}`");
            report.error_with_hint(&node.span, message, "name a participant of the same chat");
        }
    }
}

fn check_continues(
    outline: &Outline<'_>,
    chat: &Participant<'_>,
    beside: &Beside<'_>,
    report: &mut Report<'_>,
) {
    let from = chat.node.get("continues");
    let Some(who) = name(from).filter(|who| *who != ITSELF) else { return };
    match outline.participant(who).filter(|participant| !matches!(participant.kind, Kind::Chat | Kind::Team))
    {
        Some(participant) => {
            let hint = format!("name a chat, or `{ITSELF}`");
            let message = format!("the {} `{who}` has no conversation of its own", participant.kind);
            report.error_with_hint(&from.span, message, hint);
        }
        None => beside.check(chat.name, from, report),
    }
}
