//! Societies: two roles of two agents, and everybody is able to do what is asked of them.

use std::collections::BTreeSet;

use super::{Kind, Outline, name, tasks};
use crate::diagnostic::Report;
use crate::yaml::Node;

/// Keys that a role-play does not use, and why.
const WITHOUT: [(&str, &str); 4] = [
    ("opening", "the user role receives the opening of `texts`"),
    ("introductions", "the rules of the roles say who the other one is"),
    ("late_joiners", "two talk, from the beginning to the end"),
    ("max_turns", "it ends by `max_rounds`"),
];

/// Reports mistakes in a role-play with these participants.
pub(super) fn check(
    outline: &Outline<'_>,
    chat: &Node,
    participants: &BTreeSet<&str>,
    report: &mut Report<'_>,
) {
    let role_play = chat.get("pattern").get("role_play");
    if role_play.is_null() {
        return;
    }
    for (key, why) in WITHOUT {
        if let Some(entry) = chat.entry(key) {
            report.error_with_hint(
                &entry.key_span,
                format!("a role-play has no `{key}`"),
                format!("leave it out: {why}"),
            );
        }
    }
    check_roles(chat, role_play, report);
    // An unknown name is reported as not taking part.
    for player in ["user", "assistant"].map(|key| who(role_play.get(key))) {
        if name(player).is_some_and(|who| outline.participant(who).is_some()) {
            check_speaker(outline, player, false, report);
        }
    }
    let private_agents = ["specifier", "planner", "critic"].map(|key| (key, who(role_play.get(key))));
    for (key, node) in private_agents {
        check_speaker(outline, node, key == "critic", report);
    }
    let mut seen = BTreeSet::new();
    for (_, node) in private_agents {
        let Some(name) = name(node) else { continue };
        if participants.contains(name) {
            let hint = "remove it from `participants`: it does not take part in the chat";
            report.error_with_hint(
                &node.span,
                format!("`{name}` takes part, and has no other role besides"),
                hint,
            );
        } else if !seen.insert(name) {
            report.error(&node.span, format!("`{name}` has a part already"));
        }
    }
    let done = role_play.get("done");
    for marker in [done, done.get("text")] {
        if marker.text().is_some_and(|text| !text.is_empty() && text.trim().is_empty()) {
            report.error(&marker.span, "a marker of nothing but white space is never found");
        }
    }
}

/// The name that a node is or holds.
fn who(node: &Node) -> &Node {
    if node.text().is_some() { node } else { node.get("who") }
}

/// The two who talk have the two roles.
fn check_roles(chat: &Node, role_play: &Node, report: &mut Report<'_>) {
    let [user, assistant] = ["user", "assistant"].map(|key| who(role_play.get(key)));
    let (Some(first), Some(second)) = (name(user), name(assistant)) else { return };
    if first == second {
        report.error(&assistant.span, format!("`{first}` cannot have both roles"));
    }
    let all = chat.get("participants").items().iter().filter_map(|node| Some((name(node)?, node)));
    for (name, node) in all.filter(|(name, _)| ![first, second].contains(name)) {
        let hint = "a role-play has two participants: the user role and the assistant role";
        report.error_with_hint(&node.span, format!("`{name}` takes part, and has no role"), hint);
    }
}

/// Reports roles whose agent does not reply only by a model; a critic can also be a person.
fn check_speaker(outline: &Outline<'_>, node: &Node, or_person: bool, report: &mut Report<'_>) {
    let Some(who) = name(node) else { return };
    match outline.participant(who) {
        Some(participant) if or_person && participant.kind == Kind::Person => {}
        Some(participant) => {
            if let Some(why) = tasks::cannot(participant) {
                let hint = "name an agent that replies only by a model";
                report.error_with_hint(
                    &node.span,
                    format!("`{who}` cannot have a part in a role-play: {why}"),
                    hint,
                );
            }
        }
        None => {}
    }
}

/// Who is asked beside the two.
pub(super) fn beside(pattern: &Node) -> impl Iterator<Item = &str> {
    let role_play = pattern.get("role_play");
    ["specifier", "planner", "critic"].into_iter().filter_map(|key| name(who(role_play.get(key))))
}
