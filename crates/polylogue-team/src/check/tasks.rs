//! Tasks: every participant has one, and its agent can do what is asked.

use std::collections::{BTreeMap, BTreeSet};

use polylogue::tasks::EndMode;
use polylogue_config::At;
use polylogue_core::Name;

use super::patterns::check_takes_part;
use super::{Outline, form};
use crate::chat::Chat;
use crate::diagnostic::Report;
use crate::source::Span;
use crate::task::{DecisionWords, GroupSolve, Task};

/// Who gives the tasks in larger groups.
const MANAGER: &str = "TaskManager";

/// Reports mistakes in tasks that agents solve alone.
pub(super) fn check_alone(outline: &Outline<'_>, chat: &Chat, tasks: &[Task], report: &mut Report<'_>) {
    check_chat(chat, report);
    for task in tasks {
        check_task(outline, task, report);
        check_takes_part(outline, &task.who, chat, report);
        check_not_discussed(task, report);
    }
    check_all_have_tasks(chat, tasks.iter(), report);
}

/// Reports mistakes in a discussion of tasks.
pub(super) fn check_solve(outline: &Outline<'_>, chat: &Chat, solve: &GroupSolve, report: &mut Report<'_>) {
    check_chat(chat, report);
    for task in solve.tasks.iter().map(|task| &task.value).chain(&solve.before).chain(&solve.after) {
        check_task(outline, task, report);
    }
    for task in solve.before.iter().chain(&solve.after) {
        check_not_discussed(task, report);
    }
    check_all_have_tasks(chat, solve.tasks.iter().map(|task| &task.value), report);
    check_talk(outline, chat, solve, report);
}

/// Reports keys that a chat of tasks does not use.
fn check_chat(chat: &Chat, report: &mut Report<'_>) {
    let without = [
        ("opening", chat.opening.given(), "each agent receives its task by `prompt`"),
        ("introductions", chat.introductions.given(), "each agent receives its task by `prompt`"),
        ("late_joiners", chat.late_joiners.given(), "give everybody a task from the beginning"),
        ("loop_detection", chat.loop_detection.given(), "the talk ends by `end` and `max_iterations`"),
        ("max_turns", chat.max_turns.given(), "the talk ends by `end` and `max_iterations`"),
    ];
    for (key, at, why) in without {
        if let Some(at) = at {
            let message = format!("a chat of tasks has no `{key}`");
            report.error_with_hint(at, message, format!("leave it out: {why}"));
        }
    }
}

/// Where a switch is given, if it is on.
fn on(switch: &At<bool>) -> Option<&Span> {
    switch.given().filter(|_| **switch)
}

fn check_task(outline: &Outline<'_>, task: &Task, report: &mut Report<'_>) {
    if task.prompt.ok && !task.prompt.quotes_task() && task.prompt.fill("").trim().is_empty() {
        report.error(&task.prompt.span, "`prompt` is empty");
    }
    form::check_examples(&task.tools, report);
    let Some(owner) = outline.participant(&task.who).filter(|_| task.who.ok) else { return };
    let Some(why) = owner.why_not_plain() else { return };
    let of_models = [
        ("self_terminating", on(&task.self_terminating)),
        ("forget", on(&task.forget)),
        ("tools", task.tools.given()),
        ("output_schema", task.output_schema.as_ref().map(At::key)),
    ];
    for (key, at) in of_models {
        if let Some(at) = at {
            let message = format!("a task of `{}` has no `{key}`: {why}", task.who);
            let hint = "give the task to an agent that replies only by a model";
            report.error_with_hint(at, message, hint);
        }
    }
}

/// Reports completion settings of a task that is solved alone.
fn check_not_discussed(task: &Task, report: &mut Report<'_>) {
    let of_talks =
        [("self_terminating", &task.self_terminating), ("keeps_reflections", &task.keeps_reflections)];
    for (key, switch) in of_talks {
        if let Some(at) = on(switch) {
            let hint = "it applies only to tasks that are discussed";
            let message =
                format!("a task that is solved alone has no `{key}`: it is complete after one reply");
            report.error_with_hint(at, message, hint);
        }
    }
}

/// Reports participants without a task.
fn check_all_have_tasks<'t>(chat: &Chat, tasks: impl Iterator<Item = &'t Task>, report: &mut Report<'_>) {
    let owners: BTreeSet<&At<Name>> = tasks.map(|task| &task.who).collect();
    for who in chat.everyone().filter(|who| who.ok && !owners.contains(who)) {
        let hint = "give it a task, or remove it from `participants`";
        report.error_with_hint(&who.span, format!("the participant `{who}` has no task"), hint);
    }
}

fn check_talk(outline: &Outline<'_>, chat: &Chat, solve: &GroupSolve, report: &mut Report<'_>) {
    let mut owners: BTreeMap<&str, &Span> = BTreeMap::new();
    for task in &solve.tasks {
        let who = &task.who;
        check_takes_part(outline, who, chat, report);
        if who.ok && owners.insert(who.as_str(), &who.span).is_some() {
            let hint = "put tasks that it solves alone in `before` or `after`";
            report.error_with_hint(&who.span, format!("`{who}` has a task already"), hint);
        }
        check_group_task(task, report);
    }
    if let [only] = solve.tasks.as_slice() {
        let hint = "for tasks that are solved alone use `pattern: {tasks: [...]}`";
        report.error_with_hint(&only.span, "a discussion needs at least two tasks", hint);
    }
    if let Some(at) = owners.get(MANAGER).filter(|_| solve.tasks.len() > 2) {
        let message = format!("no participant of a discussion with more than two can be called `{MANAGER}`");
        report.error_with_hint(at, message, "the author of the tasks has this name there");
    }
    check_shift(solve, report);
    check_end(solve, report);
    if let Some(words) = &solve.check.words {
        check_words(words, report);
    }
}

fn check_group_task(task: &Task, report: &mut Report<'_>) {
    if let Some(at) = on(&task.forget) {
        let hint = "`forget` is for tasks that are solved alone: those of `before` and `after`";
        report.error_with_hint(at, "a discussed task cannot be forgotten", hint);
    }
    if let Some(at) = on(&task.keeps_reflections).filter(|_| !*task.self_terminating) {
        let message = "this task has no reflections to keep";
        report.error_with_hint(at, message, "add `self_terminating: true`");
    }
}

fn check_shift(solve: &GroupSolve, report: &mut Report<'_>) {
    let reconcile = on(&solve.reconcile);
    if solve.tasks.len() > 2 {
        for (key, at) in [("shift", solve.shift.given()), ("reconcile", reconcile)] {
            if let Some(at) = at {
                let hint = "in a larger discussion every participant sees all messages: remove it";
                report.error_with_hint(at, format!("`{key}` is for a discussion of two"), hint);
            }
        }
    } else if let Some(at) = reconcile.filter(|_| solve.shift.says.is_none()) {
        let message = "both agents have the second agent's answer already, and the discussion begins with it";
        report.warning(at, message, "set another first message: `shift: {says: ...}`");
    }
}

/// Reports tasks that are asked for completion without effect on the end, and the reverse.
fn check_end(solve: &GroupSolve, report: &mut Report<'_>) {
    let asked = solve.tasks.iter().find_map(|task| on(&task.self_terminating));
    let by_limit = *solve.end == EndMode::MaxIterations;
    match (asked, solve.end.given()) {
        (Some(asked), _) if by_limit && solve.end.ok => {
            let hint = "set `end`, such as `end: first_completion`, or remove it";
            let message = "the discussion ends by `max_iterations` alone: no agent is asked whether its task is complete";
            report.warning(asked, message, hint);
        }
        (None, Some(_)) if !by_limit => {
            let hint = "give a task `self_terminating: true`, or end by `max_iterations`";
            let message = "the discussion ends when a task is complete, but no task has `self_terminating`";
            report.error_with_hint(&solve.end.span, message, hint);
        }
        _ => {}
    }
}

fn check_words(DecisionWords { open, complete }: &DecisionWords, report: &mut Report<'_>) {
    for word in [open, complete].into_iter().filter(|word| word.ok) {
        if !word.chars().all(char::is_alphanumeric) {
            let message = format!("`{word}` must be one word of letters");
            report.error_with_hint(&word.span, message, "replies are searched for this word, such as `yes`");
        }
    }
    if open.ok && complete.ok && open.to_lowercase() == complete.to_lowercase() {
        report.error(&complete.span, "both words are the same");
    }
}
