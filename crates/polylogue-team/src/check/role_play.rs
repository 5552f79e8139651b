//! Role-plays: two roles of two agents, and suitable agents beside them.

use std::collections::BTreeSet;

use polylogue_config::At;
use polylogue_core::Name;

use super::Outline;
use super::patterns::takes_part;
use crate::chat::Chat;
use crate::diagnostic::Report;
use crate::pattern::RolePlay;

/// Reports mistakes in a role-play.
pub(super) fn check(outline: &Outline<'_>, chat: &Chat, given: &RolePlay, report: &mut Report<'_>) {
    let without = [
        ("opening", chat.opening.given(), "the user role receives the opening of `texts`"),
        ("introductions", chat.introductions.given(), "the rules of the roles say who the other one is"),
        ("late_joiners", chat.late_joiners.given(), "two talk, from the beginning to the end"),
        ("max_turns", chat.max_turns.given(), "it ends by `max_rounds`"),
    ];
    for (key, at, why) in without {
        if let Some(at) = at {
            let message = format!("a role-play has no `{key}`");
            report.error_with_hint(at, message, format!("leave it out: {why}"));
        }
    }
    check_roles(outline, chat, given, report);
    check_beside(outline, chat, given, report);
    let text = &given.done.text;
    if text.ok && !text.is_empty() && text.trim().is_empty() {
        report.error(&text.span, "a marker of nothing but white space is never found");
    }
}

/// The two who talk have the two roles.
fn check_roles(outline: &Outline<'_>, chat: &Chat, given: &RolePlay, report: &mut Report<'_>) {
    let (user, assistant) = (&given.user.who, &given.assistant.who);
    for who in [user, assistant] {
        check_speaker(outline, who, false, report);
    }
    if !user.ok || !assistant.ok {
        return;
    }
    if user == assistant {
        report.error(&assistant.span, format!("`{user}` cannot have both roles"));
    }
    for who in chat.participants.iter().filter(|who| who.ok && *who != user && *who != assistant) {
        let hint = "a role-play has two participants: the user role and the assistant role";
        report.error_with_hint(&who.span, format!("`{who}` takes part, and has no role"), hint);
    }
}

/// Those beside the two take no part, and have one task each.
fn check_beside(outline: &Outline<'_>, chat: &Chat, given: &RolePlay, report: &mut Report<'_>) {
    let specifier = given.specifier.iter().map(|specifier| (&specifier.who, false));
    let planner = given.planner.iter().map(|planner| (planner, false));
    let critic = given.critic.iter().map(|critic| (&critic.who, true));
    let mut seen = BTreeSet::new();
    for (who, can_be_person) in specifier.chain(planner).chain(critic).filter(|(who, _)| who.ok) {
        check_speaker(outline, who, can_be_person, report);
        if takes_part(who, chat) {
            let hint = "remove it from `participants`: it does not take part in the chat";
            report.error_with_hint(
                &who.span,
                format!("`{who}` takes part, and has no other role besides"),
                hint,
            );
        } else if !seen.insert(who) {
            report.error(&who.span, format!("`{who}` has a part already"));
        }
    }
}

/// Reports roles whose agent does not reply only by a model; a critic can also be a person.
fn check_speaker(outline: &Outline<'_>, who: &At<Name>, can_be_person: bool, report: &mut Report<'_>) {
    let Some(found) = outline.participant(who).filter(|_| who.ok) else { return };
    if can_be_person && found.agent().is_some_and(|agent| agent.is_human()) {
        return;
    }
    if let Some(why) = found.why_not_plain() {
        let hint = "name an agent that replies only by a model";
        report.error_with_hint(&who.span, format!("`{who}` cannot have a part in a role-play: {why}"), hint);
    }
}
