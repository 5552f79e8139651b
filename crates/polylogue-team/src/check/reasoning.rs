//! Reasoning and output blocks: the keys fit together, and the named agents are suitable.

use std::collections::BTreeSet;

use polylogue_config::At;
use polylogue_core::Name;

use crate::agent::{Agent, ModelKeys};
use crate::codes;
use crate::diagnostic::Report;
use crate::outline::Outline;
use crate::output_blocks::OutputBlock;
use crate::reasoning::Reasoning;
use crate::source::Span;

/// Keys, each with its name and where the file gives it.
type GivenKeys<'k> = [(&'static str, Option<&'k Span>)];

pub(super) fn check(outline: &Outline<'_>, report: &mut Report<'_>) {
    for agent in outline.agents() {
        let Some(keys) = agent.model() else { continue };
        if let Some(reasoning) = &keys.reasoning {
            check_reasoning(outline, agent, keys, reasoning, report);
        }
        check_blocks(keys, report);
    }
    if !report.failed() {
        warn_of_unread(outline, report);
    }
}

fn check_reasoning(
    outline: &Outline<'_>,
    agent: &Agent,
    keys: &ModelKeys,
    reasoning: &At<Reasoning>,
    report: &mut Report<'_>,
) {
    for other in reasoning.others() {
        check_other(outline, agent, other, report);
    }
    // A strategy that could not be read may be another one.
    if !reasoning.ok {
        return;
    }
    // Its reasoning has no other participants.
    let need_others = [
        ("suggests_tools", keys.suggests_tools.given()),
        ("handoffs", keys.handoffs.given()),
        ("output_blocks", keys.output_blocks.given()),
    ];
    without(&need_others, "an agent with `reasoning` has no", "leave it out, or `reasoning`", report);
    if let Some(strategy) = reasoning.calls_tools() {
        check_tools(keys, reasoning, strategy, report);
    }
    let (planner, solver) = reasoning.planner_and_solver();
    if solver && matches!(reasoning.value, Reasoning::PlanAndSolve(_)) {
        check_steps(keys, report);
    }
    if planner && solver {
        check_speaker(keys, report);
    }
}

/// A strategy that calls tools needs tools, and calls them in its own way.
fn check_tools(keys: &ModelKeys, reasoning: &At<Reasoning>, strategy: &str, report: &mut Report<'_>) {
    let of_others = [
        ("tool_calling", keys.tool_calling.given()),
        ("tool_history", keys.tool_history.given()),
        ("max_tool_rounds", keys.max_tool_rounds.given()),
        // A plan of ReWOO has all tools.
        ("tool_search", keys.tool_search.given().filter(|_| strategy == "rewoo")),
        ("output_schema", keys.output_schema.as_ref().map(At::key)),
        ("output_retries", keys.output_retries.as_ref().map(At::key)),
        ("agent_tools", keys.agent_tools.given()),
        ("memory", keys.memory.given()),
    ];
    let message = format!("an agent that reasons by `{strategy}` has no");
    without(&of_others, &message, "leave it out, or `reasoning`", report);
    if keys.tools.is_empty() && keys.tools.ok {
        let message = format!("`{strategy}` calls tools, but the agent has none");
        report.error_with_hint(reasoning.key(), message, "give it `tools`, or leave `reasoning` out");
    }
}

/// Steps of a plan that another agent solves use nothing of this one.
fn check_steps(keys: &ModelKeys, report: &mut Report<'_>) {
    let of_steps = [
        ("tools", keys.tools.given()),
        ("agent_tools", keys.agent_tools.given()),
        ("output_schema", keys.output_schema.as_ref().map(At::key)),
    ];
    let message = "the steps are solved by another, who uses none of its";
    without(&of_steps, message, "give it to the `solver`", report);
}

/// An agent for which two others plan and solve has no request of its own.
fn check_speaker(keys: &ModelKeys, report: &mut Report<'_>) {
    let of_speakers = [
        ("system", keys.system.given()),
        ("parameters", keys.parameters.given()),
        ("examples", keys.examples.given()),
        ("view", keys.view.given()),
    ];
    let message = "two others plan and solve, who have nothing of its";
    without(&of_speakers, message, "give it to them", report);
}

fn without(keys: &GivenKeys<'_>, message: &str, hint: &str, report: &mut Report<'_>) {
    for (key, at) in keys {
        if let Some(at) = at {
            report.error_with_hint(at, format!("{message} `{key}`"), hint);
        }
    }
}

fn check_other(outline: &Outline<'_>, agent: &Agent, other: &At<Name>, report: &mut Report<'_>) {
    if *other == agent.name {
        let hint =
            "leave it out: then the agent does it itself; for criticism by a fresh mind, name another agent";
        report.error_with_hint(&other.span, format!("`{other}` is the agent itself"), hint);
    } else if let Some(why) = outline.participant(other).and_then(|other| other.why_not_plain()) {
        let hint = "name an agent that replies only by a model";
        report.error_with_hint(&other.span, format!("`{other}` cannot be asked for this: {why}"), hint);
    }
}

fn check_blocks(keys: &ModelKeys, report: &mut Report<'_>) {
    if let (Some(_), Some(schema)) = (keys.output_blocks.given(), &keys.output_schema) {
        let message = "all that it says is JSON then, and has no `output_blocks`";
        report.error_with_hint(schema.key(), message, "leave out one of them");
    }
    OutputBlock::check(&keys.output_blocks, report);
}

/// Warns of output blocks that no agent writes.
fn warn_of_unread(outline: &Outline<'_>, report: &mut Report<'_>) {
    let blocks = outline.agents().filter_map(Agent::model).flat_map(|keys| keys.output_blocks.iter());
    let kinds: BTreeSet<&str> = blocks.map(|block| block.kind.as_str()).collect();
    for runs in outline.agents().filter_map(|agent| agent.runs_output_blocks.as_ref()) {
        for (kind, tool) in runs.code.iter().filter(|(kind, _)| !kinds.contains(kind.as_str())) {
            let message = format!("no agent writes `output_blocks` of the kind `{kind}`");
            let hint = "add `output_blocks` of this kind to their author, with a `begin` and an `end`";
            report.warning(codes::NO_EFFECT, tool.key(), message, hint);
        }
    }
}
