//! Tasks that agents solve alone, one after the other.

use std::collections::BTreeSet;

use polylogue::Result;
use polylogue::tasks as library;
use polylogue_config::At;
use polylogue_core::Name;

use super::part::{Agents, Built, ChatFrame, Part};
use super::task::Task;
use crate::diagnostic::Report;
use crate::flow::ChatFlow;
use crate::outline::Outline;
use crate::set::Set as _;

impl Part for Vec<Task> {
    fn check(&self, chat: &ChatFrame<'_>, outline: &Outline<'_>, report: &mut Report<'_>) {
        check_chat(chat, report);
        for task in self {
            task.check(outline, report);
            chat.check_has(&task.who, outline, report);
            task.check_alone(report);
        }
        check_all_have_tasks(chat, self.iter(), report);
    }

    fn describe(&self, _: &ChatFrame<'_>) -> String {
        let count = self.len();
        format!("{count} {} alone, one after the other", if count == 1 { "task" } else { "tasks" })
    }

    fn has_own_limit(&self) -> bool {
        true
    }

    fn has_own_result(&self) -> bool {
        true
    }

    fn flow<'c>(&'c self, _: &ChatFrame<'c>, _: &Outline<'c>) -> ChatFlow<'c> {
        ChatFlow::once(self.iter().map(|task| &task.who)).ended_by("the last task")
    }

    fn tasks(&self) -> Vec<&Task> {
        self.iter().collect()
    }

    fn build(&self, chat: &ChatFrame<'_>, agents: &dyn Agents) -> Result<Built> {
        let tasks = self.iter().map(|task| self::task(task, agents)).collect::<Result<Vec<_>>>()?;
        built(library::GroupSolve::alone(tasks), chat)
    }
}

/// A chat of tasks. Its messages are not checked for loops: "higher" may be said repeatedly.
pub(super) fn built(solve: library::GroupSolve, chat: &ChatFrame<'_>) -> Result<Built> {
    let (builder, policy) = solve.into_parts(chat.name.as_str())?;
    Ok(Built::Chat(Box::new(builder), chat.ended(Box::new(policy), false)?))
}

/// Reports keys that a chat of tasks does not use.
pub(super) fn check_chat(chat: &ChatFrame<'_>, report: &mut Report<'_>) {
    let without = [
        ("opening", "each agent receives its task by `prompt`"),
        ("introductions", "each agent receives its task by `prompt`"),
        ("late_joiners", "give everyone a task from the beginning"),
        ("loop_detection", "the talk ends by `end` and `max_iterations`"),
        ("max_turns", "the talk ends by `end` and `max_iterations`"),
    ];
    chat.check_without("a chat of tasks", &without, report);
}

/// Reports participants without a task.
pub(super) fn check_all_have_tasks<'t>(
    chat: &ChatFrame<'_>,
    tasks: impl Iterator<Item = &'t Task>,
    report: &mut Report<'_>,
) {
    let owners: BTreeSet<&At<Name>> = tasks.map(|task| &task.who).collect();
    for who in chat.everyone().filter(|who| who.ok && !owners.contains(who)) {
        let hint = "give it a task, or remove it from `participants`";
        report.error_with_hint(&who.span, format!("the participant `{who}` has no task"), hint);
    }
}

/// The task `given` with its agent.
pub(super) fn task(given: &Task, agents: &dyn Agents) -> Result<library::Task> {
    let mut task = match agents.worker(given)? {
        Some(worker) => library::Task::new(worker, ""),
        None => library::Task::by(agents.participant(&given.who)?, ""),
    };
    for media in given.media.iter().filter_map(|media| media.part()) {
        task = task.media(media);
    }
    task = task.set_if(*given.self_terminating, library::Task::self_terminating);
    task = task.set_if(*given.keeps_reflections, library::Task::keeps_reflections);
    task = task.set_if(*given.forget, library::Task::forget);
    let prompt = given.prompt.value.clone();
    Ok(task.prompt_from(move |about| prompt.fill(about)))
}
