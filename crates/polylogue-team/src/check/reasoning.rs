//! Reasoning and output blocks: the keys fit together, and the named agents are suitable.

use std::collections::BTreeSet;

use super::{Kind, Outline, Participant, name, tasks};
use crate::diagnostic::Report;
use crate::yaml::{Entry, Node};

/// The reasoning strategies.
const WAYS: [&str; 5] = ["react", "plan_and_solve", "rewoo", "refine", "best"];
/// Keys that an agent with `reasoning` cannot have: its reasoning chat has no other participants.
const NEED_OTHERS: [&str; 3] = ["suggests_tools", "handoffs", "output_blocks"];
/// What an agent does as it speaks by itself, and not when tools are called in a way of their own.
const OF_PLAIN: [&str; 6] =
    ["tool_calling", "tool_history", "output_schema", "output_retries", "agent_tools", "memory"];
/// What is for the model of an agent that leaves all to others.
const OF_SPEAKERS: [&str; 4] = ["system", "parameters", "examples", "view"];

pub(super) fn check(outline: &Outline<'_>, report: &mut Report<'_>) {
    for participant in outline.participants.iter().filter(|participant| participant.kind == Kind::Agent) {
        if let Some(reasons) = participant.node.entry("reasoning") {
            check_reasons(outline, participant, reasons, report);
        }
        check_blocks(participant.node, report);
    }
    if !report.failed() {
        warn_of_unread(outline, report);
    }
}

/// Who is named by the way in which an agent reasons.
pub(super) fn others(agent: &Node) -> impl Iterator<Item = (&str, &Node)> {
    let reasons = agent.get("reasoning");
    let ways = WAYS.into_iter().map(|way| reasons.get(way));
    let named = ways.flat_map(|way| ["planner", "solver", "critic"].into_iter().map(|key| way.get(key)));
    named.filter_map(|node| Some((name(node)?, node)))
}

fn check_reasons(
    outline: &Outline<'_>,
    participant: &Participant<'_>,
    reasons: &Entry,
    report: &mut Report<'_>,
) {
    let agent = participant.node;
    for (who, at) in others(agent) {
        check_other(outline, participant, who, at, report);
    }
    let way = WAYS.into_iter().find(|way| is_way(&reasons.value, way)).unwrap_or_default();
    for key in NEED_OTHERS {
        without(agent, key, "an agent that `reasoning` has no", "leave it out, or `reasoning`", report);
    }
    let [planner, solver] = ["planner", "solver"].map(|key| name(reasons.value.get(way).get(key)).is_some());
    match way {
        "react" | "rewoo" => {
            for key in OF_PLAIN {
                without(
                    agent,
                    key,
                    &format!("an agent that reasons by `{way}` has no"),
                    "leave it out, or `reasoning`",
                    report,
                );
            }
            if agent.get("tools").items().is_empty() {
                let hint = "give it `tools`, or leave `reasoning` out";
                report.error_with_hint(
                    &reasons.key_span,
                    format!("`{way}` calls tools, and there are none"),
                    hint,
                );
            }
        }
        "plan_and_solve" if solver => {
            for key in ["tools", "agent_tools", "output_schema"] {
                without(
                    agent,
                    key,
                    "the steps are solved by another, who uses none of its",
                    "give it to the `solver`",
                    report,
                );
            }
        }
        _ => {}
    }
    if planner && solver {
        for key in OF_SPEAKERS {
            without(
                agent,
                key,
                "two others plan and solve, who have nothing of its",
                "give it to them",
                report,
            );
        }
    }
}

fn is_way(reasons: &Node, way: &str) -> bool {
    reasons.text() == Some(way) || reasons.entry(way).is_some()
}

fn without(agent: &Node, key: &str, message: &str, hint: &str, report: &mut Report<'_>) {
    if let Some(entry) = agent.entry(key) {
        report.error_with_hint(&entry.key_span, format!("{message} `{key}`"), hint.to_owned());
    }
}

fn check_other(
    outline: &Outline<'_>,
    participant: &Participant<'_>,
    who: &str,
    at: &Node,
    report: &mut Report<'_>,
) {
    match outline.participant(who) {
        Some(_) if who == participant.name => {
            let hint = "leave it out: then the agent does it itself; for criticism by a fresh mind, name another agent";
            report.error_with_hint(&at.span, format!("`{who}` is the agent itself"), hint);
        }
        Some(other) => {
            if let Some(why) = tasks::cannot(other) {
                let hint = "name an agent that replies only by a model";
                report.error_with_hint(&at.span, format!("`{who}` cannot be asked for this: {why}"), hint);
            }
        }
        None => {}
    }
}

fn check_blocks(agent: &Node, report: &mut Report<'_>) {
    let Some(blocks) = agent.entry("output_blocks") else { return };
    if let Some(answers) = agent.entry("output_schema") {
        let hint = "leave out one of them";
        report.error_with_hint(
            &answers.key_span,
            "all that it says is JSON then, and has no `output_blocks`",
            hint,
        );
    }
    let mut seen = BTreeSet::new();
    for kind in blocks.value.items().iter().map(|block| block.get("kind")) {
        if let Some(twice) = kind.text().filter(|text| !seen.insert(*text)) {
            report.error(&kind.span, format!("there are blocks of the kind `{twice}` already"));
        }
    }
}

/// Warns of output blocks that no agent writes.
fn warn_of_unread(outline: &Outline<'_>, report: &mut Report<'_>) {
    let blocks =
        || outline.participants.iter().flat_map(|participant| participant.node.get("output_blocks").items());
    let kinds: BTreeSet<&str> = blocks().filter_map(|block| block.get("kind").text()).collect();
    for participant in &outline.participants {
        for entry in participant.node.get("runs_output_blocks").get("code").entries() {
            if !kinds.contains(&*entry.key) {
                let message = format!("no agent writes `output_blocks` of the kind `{}`", entry.key);
                let hint = "add `output_blocks` of this kind to their author, with a `begin` and an `end`";
                report.warning(&entry.key_span, message, hint);
            }
        }
    }
}
