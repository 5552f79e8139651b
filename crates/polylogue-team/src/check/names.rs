//! Names are there once, and words are put before the words of somebody.

use std::collections::HashMap;

use super::{Kind, Outline, staff};
use crate::diagnostic::Report;
use crate::private_agents::PrivateRole;
use crate::source::Span;
use crate::suggest;
use crate::yaml::Node;

/// How long the name of a chat can be after which somebody else is named.
const LONGEST_STAFFED: usize = polylogue_core::Name::MAX_CHARS - "_summary".len();

pub(super) fn check(outline: &Outline<'_>, report: &mut Report<'_>) {
    check_unique(outline, report);
    for member in outline.members.iter().filter(|member| member.kind == Kind::Agent) {
        check_prefixes(outline, member.node, report);
    }
}

fn check_unique(outline: &Outline<'_>, report: &mut Report<'_>) {
    let mut seen: HashMap<String, (String, Span)> = HashMap::new();
    for member in &outline.members {
        let at = &member.node.get("name").span;
        if member.name == "user" {
            let hint = "`user` is whoever gives the task; a person in the chat has a name of their own";
            report.error_with_hint(at, format!("no {} can be called `user`", member.kind), hint);
        }
        match seen.get(member.name) {
            Some(_) if report.full() => return,
            Some((kind, first)) => {
                let line = report.source.position(first.start).line;
                report.error(at, format!("there is {kind} `{}` already, in line {line}", member.name));
            }
            None => {
                seen.insert(member.name.to_owned(), (with_article(member.kind), at.clone()));
            }
        }
    }
    check_staff(outline, &seen, report);
}

/// Whoever speaks besides the participants of a chat has a name too, made of the chat's.
fn check_staff(outline: &Outline<'_>, seen: &HashMap<String, (String, Span)>, report: &mut Report<'_>) {
    for (chat, node) in outline.chats() {
        for (role, at) in staff(node) {
            check_author(chat, role, &at, seen, report);
        }
    }
    // What the chat of another file comes to is not known here, so its name is held to the rule in any case.
    for team in outline.members.iter().filter(|member| member.kind == Kind::Team) {
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
    if chat.chars().count() > LONGEST_STAFFED {
        let message = format!("the name of this chat can have {LONGEST_STAFFED} characters at most");
        let hint = format!("{} is called after it, with `{}` behind the name", role.what(), role.suffix());
        report.error_with_hint(at, message, hint);
    } else if let Some((kind, _)) = seen.get(&author) {
        report.error(at, format!("{} is called `{author}`, and so is {kind}", role.what()));
    }
}

fn with_article(kind: Kind) -> String {
    let article = if kind == Kind::Agent { "an" } else { "a" };
    format!("{article} {kind}")
}

fn check_prefixes(outline: &Outline<'_>, agent: &Node, report: &mut Report<'_>) {
    for entry in agent.get("view").get("prefix").entries() {
        if entry.key != "user" && !report.full() && outline.member(&entry.key).is_none() {
            let hint = suggest::hint(&entry.key, outline.names());
            report.error_with_hint(&entry.key_span, format!("nobody is called `{}`", entry.key), hint);
        }
    }
}
