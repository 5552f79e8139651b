//! Tasks: everybody who talks has one, and what is asked of it is something that its agent can do.

use std::collections::{BTreeMap, BTreeSet};

use super::chats::{check_takes_part, participants_of};
use super::{Kind, Outline, Participant, form, name};
use crate::diagnostic::Report;
use crate::source::Span;
use crate::yaml::{Data, Entry, Node};

/// What a chat of tasks does without, and why.
const WITHOUT: [(&str, &str); 5] = [
    ("opening", "each agent receives its task by `prompt`"),
    ("introductions", "each agent receives its task by `prompt`"),
    ("late_joiners", "give everybody a task from the beginning"),
    ("loop_detection", "the talk ends by `end` and `max_iterations`"),
    ("max_turns", "the talk ends by `end` and `max_iterations`"),
];
/// What only an agent with a model, and nothing else that replies for it, can be asked for.
const OF_MODELS: [&str; 4] = ["self_terminating", "forget", "tools", "output_schema"];
/// What only is something where others ask whether a task is complete.
const OF_TALKS: [&str; 2] = ["self_terminating", "keeps_reflections"];
/// Who gives the tasks in larger groups.
const MANAGER: &str = "TaskManager";

/// Reports what is wrong with the tasks of a chat in which `room` take part.
pub(super) fn check(
    outline: &Outline<'_>,
    chat: &Node,
    participants: &BTreeSet<&str>,
    report: &mut Report<'_>,
) {
    let pattern = chat.get("pattern");
    let (solve, alone) = (pattern.get("group_solve"), pattern.get("tasks"));
    if solve.is_null() && alone.is_null() {
        return;
    }
    for (key, why) in WITHOUT {
        if let Some(entry) = chat.entry(key) {
            let hint = format!("leave it out: {why}");
            report.error_with_hint(&entry.key_span, format!("a chat of tasks has no `{key}`"), hint);
        }
    }
    for task in tasks(pattern) {
        check_task(outline, task, report);
    }
    for task in alone.items() {
        check_known_takes_part(outline, task.get("who"), participants, report);
        check_alone(task, report);
    }
    for task in solve.get("before").items().iter().chain(solve.get("after").items()) {
        check_alone(task, report);
    }
    let talk = if solve.is_null() { alone.items() } else { solve.get("tasks").items() };
    check_all_have_tasks(chat, talk, report);
    if !solve.is_null() {
        check_talk(outline, solve, participants, report);
    }
}

/// All tasks that a pattern gives.
fn tasks(pattern: &Node) -> impl Iterator<Item = &Node> {
    let solve = pattern.get("group_solve");
    let of_talk = ["tasks", "before", "after"].into_iter().flat_map(|key| solve.get(key).items());
    of_talk.chain(pattern.get("tasks").items())
}

/// Owners of tasks that are solved alone before or after the discussion.
pub(super) fn beside(pattern: &Node) -> impl Iterator<Item = &str> {
    tasks(pattern).filter_map(|task| name(task.get("who")))
}

fn is_on(node: &Node, key: &str) -> bool {
    matches!(node.get(key).data, Data::Bool(true))
}

fn is_given(entry: &&Entry) -> bool {
    !matches!(&entry.value.data, Data::Bool(false) | Data::Null)
}

fn check_task(outline: &Outline<'_>, task: &Node, report: &mut Report<'_>) {
    if let Some(prompt) = task.entry("prompt").filter(|prompt| prompt.value.text().is_some_and(is_blank)) {
        report.error(&prompt.value.span, "`prompt` is empty");
    }
    form::check_schema(task.get("output_schema"), report);
    task.get("tools").items().iter().for_each(|tool| form::check_examples(tool, report));
    let Some(participant) = name(task.get("who")).and_then(|who| outline.participant(who)) else { return };
    let Some(why) = cannot(participant) else { return };
    for key in OF_MODELS {
        if let Some(entry) = task.entry(key).filter(is_given) {
            let message = format!("a task of `{}` has no `{key}`: {why}", participant.name);
            let hint = "give the task to an agent that replies only by a model";
            report.error_with_hint(&entry.key_span, message, hint);
        }
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Why an agent cannot do what needs a reply by a model alone.
pub(super) fn cannot(participant: &Participant<'_>) -> Option<String> {
    let layers = [
        "human_input",
        "max_auto_replies",
        "terminate_on",
        "executes_tools",
        "code_execution",
        "runs_output_blocks",
        "reasoning",
        "output_blocks",
        "nested_chats",
        "default_reply",
        "clear_command",
    ];
    match participant.kind {
        Kind::Agent => {
            let layer =
                layers.into_iter().find(|key| participant.node.entry(key).filter(is_given).is_some())?;
            Some(format!("its `{layer}` can also reply"))
        }
        Kind::Proxy => Some("it has no model".to_owned()),
        Kind::Person | Kind::Chat | Kind::Team => Some(format!("it is a {}", participant.kind)),
    }
}

/// Reports completion settings of a task that is solved alone.
fn check_alone(task: &Node, report: &mut Report<'_>) {
    for key in OF_TALKS {
        if let Some(entry) = task.entry(key).filter(is_given) {
            let hint = "it applies only to tasks that are discussed";
            let message =
                format!("a task that is solved alone has no `{key}`: it is complete after one reply");
            report.error_with_hint(&entry.key_span, message, hint);
        }
    }
}

/// Reports a participant of the team that is none of the chat. An unknown name is reported already.
fn check_known_takes_part(
    outline: &Outline<'_>,
    who: &Node,
    participants: &BTreeSet<&str>,
    report: &mut Report<'_>,
) {
    if name(who).is_some_and(|name| outline.participant(name).is_some()) {
        check_takes_part(who, participants, false, report);
    }
}

/// Reports participants without a task.
fn check_all_have_tasks(chat: &Node, tasks: &[Node], report: &mut Report<'_>) {
    let owners: BTreeSet<&str> = tasks.iter().filter_map(|task| name(task.get("who"))).collect();
    for (who, at) in participants_of(chat).filter(|(who, _)| !owners.contains(who)) {
        let hint = "give it a task, or remove it from `participants`";
        report.error_with_hint(&at.span, format!("the participant `{who}` has no task"), hint);
    }
}

fn check_talk(outline: &Outline<'_>, solve: &Node, participants: &BTreeSet<&str>, report: &mut Report<'_>) {
    let tasks = solve.get("tasks").items();
    let mut owners: BTreeMap<&str, &Span> = BTreeMap::new();
    for task in tasks {
        let who = task.get("who");
        check_known_takes_part(outline, who, participants, report);
        if let Some(twice) = name(who).filter(|name| owners.insert(name, &who.span).is_some()) {
            let hint = "put tasks that it solves alone in `before` or `after`";
            report.error_with_hint(&who.span, format!("`{twice}` has a task already"), hint);
        }
        check_group_task(task, report);
    }
    if let [only] = tasks {
        let hint = "for tasks that are solved alone use `pattern: {tasks: [...]}`";
        report.error_with_hint(&only.span, "a discussion needs at least two tasks", hint);
    }
    if let Some(at) = owners.get(MANAGER).filter(|_| tasks.len() > 2) {
        let message = format!("no participant of a discussion with more than two can be called `{MANAGER}`");
        report.error_with_hint(at, message, "the author of the tasks has this name there");
    }
    check_shift(solve, tasks.len(), report);
    check_end(solve, tasks, report);
    check_words(solve.get("check").get("words"), report);
}

fn check_group_task(task: &Node, report: &mut Report<'_>) {
    if let Some(entry) = task.entry("forget").filter(is_given) {
        let hint = "`forget` is for tasks that are solved alone: those of `before` and `after`";
        report.error_with_hint(&entry.key_span, "a discussed task cannot be forgotten", hint);
    }
    if let Some(entry) = task.entry("keeps_reflections").filter(is_given)
        && !is_on(task, "self_terminating")
    {
        let message = "this task has no reflections to keep";
        report.error_with_hint(&entry.key_span, message, "add `self_terminating: true`");
    }
}

fn check_shift(solve: &Node, count: usize, report: &mut Report<'_>) {
    let shift = solve.get("shift");
    let reconcile = solve.entry("reconcile").filter(is_given);
    if count > 2 {
        for entry in solve.entry("shift").into_iter().chain(reconcile) {
            let hint = "in a larger discussion every participant sees all messages: remove it";
            report.error_with_hint(
                &entry.key_span,
                format!("`{}` is for a discussion of two", entry.key),
                hint,
            );
        }
        return;
    }
    if let Some(reconcile) = reconcile.filter(|_| shift.get("says").is_null()) {
        let message = "both agents have the second agent's answer already, and the discussion begins with it";
        report.warning(&reconcile.key_span, message, "set another first message: `shift: {says: ...}`");
    }
}

/// Reports tasks that are asked for completion without effect on the end, and the reverse.
fn check_end(solve: &Node, tasks: &[Node], report: &mut Report<'_>) {
    let end = solve.entry("end");
    let mode = end.and_then(|entry| entry.value.text()).unwrap_or("max_iterations");
    let asked = tasks.iter().find_map(|task| task.entry("self_terminating").filter(is_given));
    match (asked, end) {
        (Some(asked), _) if mode == "max_iterations" => {
            let hint = "set `end`, such as `end: first_completion`, or remove it";
            let message = "the discussion ends by `max_iterations` alone: no agent is asked whether its task is complete";
            report.warning(&asked.key_span, message, hint);
        }
        (None, Some(end)) if COMPLETIONS.contains(&mode) => {
            let hint = "give a task `self_terminating: true`, or end by `max_iterations`";
            let message = "the discussion ends when a task is complete, but no task has `self_terminating`";
            report.error_with_hint(&end.value.span, message, hint);
        }
        _ => {}
    }
}

/// The values of `end` that need a task with `self_terminating`.
const COMPLETIONS: [&str; 4] = ["first_completion", "one_last_chat", "one_last_group_chat", "all_complete"];

fn check_words(words: &Node, report: &mut Report<'_>) {
    let [open, complete] = ["open", "complete"].map(|key| words.get(key));
    for word in [open, complete] {
        let is_word = |text: &str| text.chars().all(char::is_alphanumeric);
        if let Some(text) = word.text().filter(|text| !text.is_empty() && !is_word(text)) {
            let message = format!("`{text}` must be one word of letters");
            report.error_with_hint(&word.span, message, "replies are searched for this word, such as `yes`");
        }
    }
    let lower = |node: &Node| node.text().map(str::to_lowercase);
    if lower(open).is_some_and(|word| !word.is_empty() && lower(complete) == Some(word)) {
        report.error(&complete.span, "both words are the same");
    }
}
