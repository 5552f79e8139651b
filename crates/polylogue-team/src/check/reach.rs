//! What is reached from where: no chat is within itself, everybody gets to speak, and there is an end.

use std::collections::HashSet;

use super::chats::participants_of;
use super::patterns::beside;
use super::reasoning;
use super::working::consults;
use super::{Kind, Outline, Participant, name};
use crate::diagnostic::Report;
use crate::pattern::END;
use crate::yaml::Node;

pub(super) fn check(outline: &Outline<'_>, report: &mut Report<'_>) {
    check_cycles(outline, report);
    // What is misspelt does not speak: that is said once.
    if !report.failed() {
        warn_of_strangers(outline, report);
        warn_of_endless(outline, report);
    }
}

fn check_cycles(outline: &Outline<'_>, report: &mut Report<'_>) {
    let mut walk =
        Walk { outline, around: Vec::new(), owners: Vec::new(), done: HashSet::new(), met: HashSet::new() };
    let mut chats = outline.chats();
    if let Some((chat, node)) = chats.next() {
        walk.enter(chat, node, report);
    }
    // What is not reached from the outermost chat is looked at by itself: first what has an owner.
    for owner in &outline.participants {
        walk.enter_nested(owner, false, report);
    }
    for (chat, node) in chats {
        if !walk.met.contains(chat) {
            walk.enter(chat, node, report);
        }
    }
}

/// The chats nested in an agent, with where that is said.
fn nested(agent: &Node) -> impl Iterator<Item = (&str, &Node)> {
    agent
        .get("nested_chats")
        .items()
        .iter()
        .filter_map(|nested| Some((name(nested.get("chat"))?, nested.get("chat"))))
}

/// Who sums up for the chats nested in an agent what was said around them.
fn authors(agent: &Node) -> impl Iterator<Item = &str> {
    agent
        .get("nested_chats")
        .items()
        .iter()
        .filter_map(|nested| name(nested.get("context").get("reflect").get("by")))
}

/// A walk from chats to the chats within them.
struct Walk<'o, 'n> {
    outline: &'o Outline<'n>,
    /// The chats around the current one, the outermost first, and itself.
    around: Vec<&'n str>,
    /// The agents in whose nested chats the walk is: they are without nested chats there.
    owners: Vec<&'n str>,
    done: HashSet<(&'n str, Vec<&'n str>)>,
    /// The chats that were entered.
    met: HashSet<&'n str>,
}

impl<'n> Walk<'_, 'n> {
    /// How deep chats are looked through. Deeper nesting is refused when a team runs.
    const DEEPEST: usize = 64;
    /// How many ways are looked through; no team that people write has more.
    const MOST: usize = 10_000;

    fn enter(&mut self, chat: &'n str, node: &'n Node, report: &mut Report<'_>) {
        let new = self.done.len() < Self::MOST && self.done.insert((chat, self.owners.clone()));
        if !new || self.around.len() >= Self::DEEPEST {
            return;
        }
        self.met.insert(chat);
        self.around.push(chat);
        for (who, at) in participants_of(node) {
            self.meet(who, at, report);
            if let Some(participant) = self.outline.participant(who).filter(|_| !self.owners.contains(&who)) {
                self.enter_nested(participant, true, report);
            }
        }
        self.around.pop();
    }

    /// Enters the chats nested in `owner`: those that were entered before only if they are to be entered `again`.
    fn enter_nested(&mut self, owner: &Participant<'n>, again: bool, report: &mut Report<'_>) {
        self.owners.push(owner.name);
        for (chat, at) in nested(owner.node) {
            if again || !self.met.contains(chat) {
                self.meet(chat, at, report);
            }
        }
        for (who, at, _) in consults(owner.node) {
            match self.outline.participant(who) {
                Some(participant) if participant.kind == Kind::Chat && (again || !self.met.contains(who)) => {
                    self.meet(who, at, report);
                }
                Some(participant) if participant.kind == Kind::Agent && self.is_new(who) => {
                    self.enter_nested(participant, again, report);
                }
                _ => {}
            }
        }
        self.owners.pop();
    }

    /// Whether an agent that is asked was not looked at in this place.
    fn is_new(&mut self, who: &'n str) -> bool {
        let is_open = !self.owners.contains(&who) && self.done.len() < Self::MOST;
        is_open && self.done.insert((who, self.owners.clone()))
    }

    fn meet(&mut self, who: &'n str, at: &Node, report: &mut Report<'_>) {
        if let Some(first) = self.around.iter().position(|outer| *outer == who) {
            let cycle = self.around.iter().skip(first).chain([&who]).copied().collect::<Vec<_>>().join(" > ");
            report.error(&at.span, format!("the chat `{who}` takes part in itself: {cycle}"));
        } else if let Some(participant) =
            self.outline.participant(who).filter(|participant| participant.kind == Kind::Chat)
        {
            self.enter(who, participant.node, report);
        }
    }
}

fn warn_of_strangers(outline: &Outline<'_>, report: &mut Report<'_>) {
    let mut reached: HashSet<&str> = HashSet::new();
    let mut chats = vec![outline.root.get("chat")];
    while let Some(chat) = chats.pop() {
        let author = name(chat.get("summary").get("reflect").get("by"));
        let beside = beside(chat.get("pattern")).chain(author);
        let mut met: Vec<&str> = participants_of(chat).map(|(who, _)| who).chain(beside).collect();
        while let Some(who) = met.pop() {
            let Some(participant) = outline.participant(who).filter(|_| reached.insert(who)) else {
                continue;
            };
            met.extend(nested(participant.node).map(|(chat, _)| chat));
            met.extend(authors(participant.node));
            met.extend(consults(participant.node).map(|(who, ..)| who));
            met.extend(reasoning::others(participant.node).map(|(who, _)| who));
            chats.extend((participant.kind == Kind::Chat).then_some(participant.node));
        }
    }
    for participant in outline.participants.iter().filter(|participant| !reached.contains(participant.name)) {
        let message = format!("the {} `{}` takes part in nothing", participant.kind, participant.name);
        let hint = "name it among the `participants` of a chat that is reached from `chat`, or leave it out";
        report.warning(&participant.node.get("name").span, message, hint);
    }
}

fn warn_of_endless(outline: &Outline<'_>, report: &mut Report<'_>) {
    for (name, chat) in outline.chats() {
        let limited = !chat.get("stop").is_null() || !chat.get("max_turns").is_null();
        if !limited && !ends_itself(chat.get("pattern")) && !is_ended(outline, chat) {
            let at = chat.entries().first().map_or(&chat.span, |entry| &entry.key_span);
            let message = format!("nothing ends the chat `{name}` before its 100th turn");
            report.warning(at, message, "give it a `stop`, such as `stop: {max_turns: 20}`");
        }
    }
}

/// Whether a pattern may come to its end.
fn ends_itself(pattern: &Node) -> bool {
    let once = matches!(pattern.text(), Some("sequential" | "parallel"));
    let handed = pattern.get("handoffs").get("then").text() == Some(END);
    let constrained = !pattern.get("group").get("transitions").is_null();
    let others =
        ["state_machine", "dag", "debate", "orchestrator", "graph", "role_play", "group_solve", "tasks"];
    once || handed || constrained || others.iter().any(|key| !pattern.get(key).is_null())
}

/// Whether a participant may end the chat.
fn is_ended(outline: &Outline<'_>, chat: &Node) -> bool {
    let keys = ["human_input", "terminate_on", "max_auto_replies"];
    let ends = |participant: &Participant<'_>| keys.iter().any(|key| participant.node.entry(key).is_some());
    participants_of(chat).filter_map(|(who, _)| outline.participant(who)).any(ends)
}
