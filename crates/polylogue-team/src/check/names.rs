//! Names are there once; people are no models; words are put before the words of somebody.

use std::collections::HashMap;

use super::{Kind, Outline};
use crate::chat::summarizer;
use crate::diagnostic::Report;
use crate::source::Span;
use crate::suggest;

/// How long a name can be whose chat has an author of summaries, named after it.
const LONGEST_SUMMARIZED: usize = polylogue_core::Name::MAX_CHARS - "_summary".len();

pub(super) fn check(outline: &Outline<'_>, report: &mut Report<'_>) {
    check_unique(outline, report);
    for member in &outline.members {
        match member.kind {
            Kind::Person => check_person(member.node, report),
            Kind::Agent => check_prefixes(outline, member.node, report),
            Kind::Chat | Kind::Team => {}
        }
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
            Some((kind, first)) => {
                let line = report.source.position(first.start).line;
                report.error(at, format!("there is {kind} `{}` already, in line {line}", member.name));
            }
            None => {
                seen.insert(member.name.to_owned(), (with_article(member.kind), at.clone()));
            }
        }
    }
    for (chat, node) in outline.chats() {
        let Some(reflect) = node.get("summary").entry("reflect") else { continue };
        if chat.chars().count() > LONGEST_SUMMARIZED {
            let message = format!(
                "the name of a chat with a reflected summary has at most {LONGEST_SUMMARIZED} characters"
            );
            let hint = "the author of the summary is called after the chat, with `_summary` behind it";
            report.error_with_hint(&reflect.key_span, message, hint);
        } else if let Some((kind, _)) = seen.get(&summarizer(chat)) {
            let message =
                format!("the author of this summary is called `{}`, and so is {kind}", summarizer(chat));
            report.error(&reflect.key_span, message);
        }
    }
}

fn with_article(kind: Kind) -> String {
    let article = if kind == Kind::Agent { "an" } else { "a" };
    format!("{article} {kind}")
}

fn check_person(person: &crate::yaml::Node, report: &mut Report<'_>) {
    for key in ["system", "model", "parameters", "tools", "sees"] {
        if let Some(entry) = person.entry(key) {
            let hint = format!("leave out `{key}`, or `human: true`");
            report.error_with_hint(&entry.key_span, format!("a person has no `{key}`"), hint);
        }
    }
}

fn check_prefixes(outline: &Outline<'_>, agent: &crate::yaml::Node, report: &mut Report<'_>) {
    for entry in agent.get("sees").get("prefix").entries() {
        if entry.key != "user" && outline.member(&entry.key).is_none() {
            let hint = suggest::hint(&entry.key, outline.names());
            report.error_with_hint(&entry.key_span, format!("nobody is called `{}`", entry.key), hint);
        }
    }
}
