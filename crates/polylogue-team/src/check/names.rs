//! Names: each is unique, and prefixes belong to known participants.

use std::collections::HashMap;

use super::{Kind, Outline, private_agents};
use polylogue_core::Name;

use crate::diagnostic::Report;
use crate::private_agents::PrivateRole;
use crate::source::Span;

pub(super) fn check(outline: &Outline<'_>, report: &mut Report<'_>) {
    check_unique(outline, report);
}

fn check_unique(outline: &Outline<'_>, report: &mut Report<'_>) {
    let mut seen: HashMap<String, (String, Span)> = HashMap::new();
    for participant in &outline.participants {
        let at = &participant.node.get("name").span;
        if participant.name == "user" {
            let hint = "`user` is the person who gives the task; give a person who takes part another name";
            report.error_with_hint(at, format!("no {} can be called `user`", participant.kind), hint);
        }
        seen.entry(participant.name.to_owned()).or_insert((with_article(participant.kind), at.clone()));
    }
    check_private_agents(outline, &seen, report);
}

/// Reports names of private agents that are too long or taken.
fn check_private_agents(
    outline: &Outline<'_>,
    seen: &HashMap<String, (String, Span)>,
    report: &mut Report<'_>,
) {
    for (chat, node) in outline.chats() {
        for (role, at) in private_agents(node) {
            check_author(chat, role, &at, seen, report);
        }
    }
    // The pattern and summary of a chat in another file are unknown here, so its name must leave room for all roles.
    for team in outline.participants.iter().filter(|participant| participant.kind == Kind::Team) {
        for role in PrivateRole::ALL {
            check_author(team.name, role, &team.node.get("name").span, seen, report);
        }
    }
}

fn check_author(
    chat: &str,
    role: PrivateRole,
    at: &Span,
    seen: &HashMap<String, (String, Span)>,
    report: &mut Report<'_>,
) {
    let author = role.name(chat);
    let longest = Name::MAX_CHARS - role.suffix().len();
    if chat.chars().count() > longest {
        let message = format!("the name of this chat can have at most {longest} characters");
        let hint = format!("{} gets this name with `{}` appended", role.what(), role.suffix());
        report.error_with_hint(at, message, hint);
    } else if let Some((kind, _)) = seen.get(&author) {
        report.error(at, format!("{} is called `{author}`, and so is {kind}", role.what()));
    }
}

fn with_article(kind: Kind) -> String {
    let article = if kind == Kind::Agent { "an" } else { "a" };
    format!("{article} {kind}")
}
