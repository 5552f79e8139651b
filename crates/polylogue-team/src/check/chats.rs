//! Chats: whoever takes part is there, no chat is within itself, and everybody gets to speak.

use std::collections::{BTreeSet, HashSet};

use super::{Kind, Outline, name};
use crate::diagnostic::Report;
use crate::suggest;
use crate::yaml::Node;

pub(super) fn check(outline: &Outline<'_>, report: &mut Report<'_>) {
    for (_, chat) in outline.chats() {
        check_participants(outline, chat, report);
        let room: BTreeSet<&str> = participants(chat).map(|(who, _)| who).collect();
        // Where nobody takes part, the mistake is another.
        if !room.is_empty() {
            check_opening(chat, &room, report);
            check_stop(chat.get("stop"), &room, report);
        }
    }
    check_cycles(outline, report);
    // What is misspelt does not speak: that is said once.
    if !report.failed() {
        warn_of_strangers(outline, report);
        warn_of_endless(outline, report);
    }
}

fn participants(chat: &Node) -> impl Iterator<Item = (&str, &Node)> + Clone {
    chat.get("participants").items().iter().filter_map(|node| Some((name(node)?, node)))
}

fn check_participants(outline: &Outline<'_>, chat: &Node, report: &mut Report<'_>) {
    let mut seen = HashSet::new();
    for (who, node) in participants(chat) {
        if report.full() {
            return;
        }
        if !seen.insert(who) {
            report.error(&node.span, format!("`{who}` takes part already"));
        } else if outline.member(who).is_some() || outline.members.is_empty() {
            // Where nobody is, the mistake is another.
        } else if who == outline.team {
            let hint = "it is the outermost chat; one that takes part in others stands in `chats`";
            report.error_with_hint(&node.span, format!("`{who}` cannot take part in a chat"), hint);
        } else {
            let message = format!("there is no agent, chat or team `{who}`");
            report.error_with_hint(&node.span, message, suggest::hint(who, outline.names()));
        }
    }
}

fn check_opening(chat: &Node, room: &BTreeSet<&str>, report: &mut Report<'_>) {
    for line in chat.get("opening").one_or_many() {
        for who in line.get("to").one_or_many() {
            check_member(who, room, false, report);
        }
        check_member(line.get("from"), room, true, report);
    }
}

fn check_stop(stop: &Node, room: &BTreeSet<&str>, report: &mut Report<'_>) {
    for condition in ["says", "matches"] {
        for who in stop.get(condition).get("by").one_or_many() {
            check_member(who, room, true, report);
        }
    }
    for inner in stop.get("all").items().iter().chain(stop.get("any").items()) {
        check_stop(inner, room, report);
    }
}

/// Reports a name of nobody who takes part in the chat.
fn check_member(node: &Node, room: &BTreeSet<&str>, or_user: bool, report: &mut Report<'_>) {
    let Some(who) = name(node) else { return };
    if room.contains(who) || (or_user && who == "user") || report.full() {
        return;
    }
    let hint = suggest::hint(who, room.iter().copied());
    report.error_with_hint(&node.span, format!("`{who}` does not take part in this chat"), hint);
}

fn check_cycles(outline: &Outline<'_>, report: &mut Report<'_>) {
    let mut walk = Walk { outline, around: Vec::new(), done: HashSet::new() };
    for (chat, node) in outline.chats().skip(1) {
        walk.enter(chat, node, report);
    }
}

/// A walk from chats to the chats within them.
struct Walk<'o, 'n> {
    outline: &'o Outline<'n>,
    /// The chats around the current one, the outermost first, and itself.
    around: Vec<&'n str>,
    done: HashSet<&'n str>,
}

impl<'n> Walk<'_, 'n> {
    /// How deep chats are looked through. Deeper nesting is refused when a team runs.
    const DEEPEST: usize = 64;

    fn enter(&mut self, chat: &'n str, node: &'n Node, report: &mut Report<'_>) {
        if !self.done.insert(chat) || self.around.len() >= Self::DEEPEST {
            return;
        }
        self.around.push(chat);
        for (who, at) in participants(node) {
            if let Some(first) = self.around.iter().position(|outer| *outer == who) {
                let cycle =
                    self.around.iter().skip(first).chain([&who]).copied().collect::<Vec<_>>().join(" > ");
                report.error(&at.span, format!("the chat `{who}` takes part in itself: {cycle}"));
            } else if let Some(member) = self.outline.member(who).filter(|member| member.kind == Kind::Chat) {
                self.enter(who, member.node, report);
            }
        }
        self.around.pop();
    }
}

fn warn_of_strangers(outline: &Outline<'_>, report: &mut Report<'_>) {
    let mut reached: HashSet<&str> = HashSet::new();
    let mut chats = vec![outline.root.get("chat")];
    while let Some(chat) = chats.pop() {
        for (who, _) in participants(chat) {
            let member = outline.member(who).filter(|_| reached.insert(who));
            chats.extend(member.filter(|member| member.kind == Kind::Chat).map(|member| member.node));
        }
    }
    for member in outline.members.iter().filter(|member| !reached.contains(member.name)) {
        let message = format!("the {} `{}` takes part in nothing", member.kind, member.name);
        let hint = "name it among the `participants` of a chat that is reached from `chat`, or leave it out";
        report.warning(&member.node.get("name").span, message, hint);
    }
}

fn warn_of_endless(outline: &Outline<'_>, report: &mut Report<'_>) {
    for (name, chat) in outline.chats() {
        let once = chat.get("pattern").text() == Some("once_each");
        if !once && chat.get("stop").is_null() && chat.get("max_turns_cap").is_null() {
            let at = chat.entries().first().map_or(&chat.span, |entry| &entry.key_span);
            let message = format!("nothing ends the chat `{name}` before its 100th turn");
            report.warning(at, message, "give it a `stop`, such as `stop: {max_turns: 20}`");
        }
    }
}
