//! Names are there once; people are no models; words are put before the words of somebody.

use std::collections::HashMap;

use super::{Kind, Outline};
use crate::chat::summarizer;
use crate::diagnostic::Report;
use crate::source::Span;
use crate::suggest;
use crate::yaml::Node;

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
    check_summarizers(outline, &seen, report);
}

/// The authors of summaries have names too, made of those of the chats.
fn check_summarizers(outline: &Outline<'_>, seen: &HashMap<String, (String, Span)>, report: &mut Report<'_>) {
    let reflected =
        |(chat, node): (_, &Node)| Some((chat, node.get("summary").entry("reflect")?.key_span.clone()));
    let teams = outline.members.iter().filter(|member| member.kind == Kind::Team);
    // What the chat of another file comes to is not known here, so its name is held to the rule in any case.
    let teams = teams.map(|team| (team.name, team.node.get("name").span.clone()));
    for (chat, at) in outline.chats().filter_map(reflected).chain(teams) {
        let author = summarizer(chat);
        if chat.chars().count() > LONGEST_SUMMARIZED {
            let message = format!("the name of this chat can have {LONGEST_SUMMARIZED} characters at most");
            let hint = "the author of its summary is called after it, with `_summary` behind the name";
            report.error_with_hint(&at, message, hint);
        } else if let Some((kind, _)) = seen.get(&author) {
            report.error(&at, format!("the author of its summary is called `{author}`, and so is {kind}"));
        }
    }
}

fn with_article(kind: Kind) -> String {
    let article = if kind == Kind::Agent { "an" } else { "a" };
    format!("{article} {kind}")
}

fn check_person(person: &Node, report: &mut Report<'_>) {
    for key in ["system", "model", "parameters", "tools", "sees"] {
        if let Some(entry) = person.entry(key) {
            let hint = format!("leave out `{key}`, or `human: true`");
            report.error_with_hint(&entry.key_span, format!("a person has no `{key}`"), hint);
        }
    }
}

fn check_prefixes(outline: &Outline<'_>, agent: &Node, report: &mut Report<'_>) {
    for entry in agent.get("sees").get("prefix").entries() {
        if entry.key != "user" && !report.full() && outline.member(&entry.key).is_none() {
            let hint = suggest::hint(&entry.key, outline.names());
            report.error_with_hint(&entry.key_span, format!("nobody is called `{}`", entry.key), hint);
        }
    }
}
