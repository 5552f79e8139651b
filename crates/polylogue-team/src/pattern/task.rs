//! Tasks of agents, solved alone or discussed.

use std::collections::BTreeSet;

use polylogue::Result;
use polylogue::tasks as library;
use polylogue_config::{At, Config};
use polylogue_core::Name;

use super::part::{Agents, Built, ChatFrame, Part};
use crate::diagnostic::Report;
use crate::outline::Outline;
use crate::source::Span;
use crate::text::{MediaText, ParticipantRef, Schema, Template};
use crate::tooling::{GivenTool, check_examples};

/// A task of an agent.
#[derive(Debug, Clone, PartialEq, Config)]
pub struct Task {
    /// Agent that solves the task.
    #[key(as = ParticipantRef)]
    pub who: At<Name>,
    /// Prompt of the task.
    pub prompt: At<Template>,
    /// Tools for this task, in addition to those of the agent.
    #[key(unique)]
    pub tools: At<Vec<At<GivenTool>>>,
    /// JSON Schema that the agent's replies to this task must satisfy.
    #[key(none = "none", nonempty)]
    pub output_schema: Option<At<Schema>>,
    /// Images, audio and documents that are attached to the prompt.
    pub media: Vec<Media>,
    /// Asks the agent after each of its turns whether its task is complete.
    #[key(default = false)]
    pub self_terminating: At<bool>,
    /// Keeps the agent's answers about what remains to be done in its history.
    #[key(default = false)]
    pub keeps_reflections: At<bool>,
    /// Removes the prompt and the answer of a task that is solved alone from the agent's history.
    #[key(default = false)]
    pub forget: At<bool>,
}

/// An image, audio or document.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct Media {
    /// Media type, such as `image/png`.
    #[key(name = "type", nonempty)]
    pub kind: String,
    /// Address, beginning with `https:` or `data:`.
    #[key(as = MediaText, nonempty)]
    pub url: String,
}

/// Tasks that agents solve alone.
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

    fn tasks(&self) -> Vec<&Task> {
        self.iter().collect()
    }

    fn build(&self, chat: &ChatFrame<'_>, agents: &dyn Agents) -> Result<Built> {
        let tasks = self.iter().map(|task| task.build(agents)).collect::<Result<Vec<_>>>()?;
        built(library::GroupSolve::alone(tasks), chat)
    }
}

/// A chat of tasks. Its messages are not checked for loops: "higher" may be said again and again.
pub(super) fn built(solve: library::GroupSolve, chat: &ChatFrame<'_>) -> Result<Built> {
    let (builder, policy) = solve.begin(chat.name.as_str())?;
    Ok(Built::Chat(Box::new(builder), chat.ended(Box::new(policy), false)?))
}

/// Reports keys that a chat of tasks does not use.
pub(super) fn check_chat(chat: &ChatFrame<'_>, report: &mut Report<'_>) {
    let without = [
        ("opening", "each agent receives its task by `prompt`"),
        ("introductions", "each agent receives its task by `prompt`"),
        ("late_joiners", "give everybody a task from the beginning"),
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

/// Where a switch is given, if it is on.
pub(super) fn on(switch: &At<bool>) -> Option<&Span> {
    switch.given().filter(|_| **switch)
}

impl Task {
    pub(super) fn check(&self, outline: &Outline<'_>, report: &mut Report<'_>) {
        if self.prompt.ok && !self.prompt.quotes_task() && self.prompt.fill("").trim().is_empty() {
            report.error(&self.prompt.span, "`prompt` is empty");
        }
        check_examples(&self.tools, report);
        let Some(owner) = outline.participant(&self.who).filter(|_| self.who.ok) else { return };
        let Some(why) = owner.why_not_plain() else { return };
        let of_models = [
            ("self_terminating", on(&self.self_terminating)),
            ("forget", on(&self.forget)),
            ("tools", self.tools.given()),
            ("output_schema", self.output_schema.as_ref().map(At::key)),
        ];
        for (key, at) in of_models {
            if let Some(at) = at {
                let message = format!("a task of `{}` has no `{key}`: {why}", self.who);
                let hint = "give the task to an agent that replies only by a model";
                report.error_with_hint(at, message, hint);
            }
        }
    }

    /// Reports completion settings of a task that is solved alone.
    pub(super) fn check_alone(&self, report: &mut Report<'_>) {
        let of_talks =
            [("self_terminating", &self.self_terminating), ("keeps_reflections", &self.keeps_reflections)];
        for (key, switch) in of_talks {
            if let Some(at) = on(switch) {
                let hint = "it applies only to tasks that are discussed";
                let message =
                    format!("a task that is solved alone has no `{key}`: it is complete after one reply");
                report.error_with_hint(at, message, hint);
            }
        }
    }

    pub(super) fn check_discussed(&self, report: &mut Report<'_>) {
        if let Some(at) = on(&self.forget) {
            let hint = "`forget` is for tasks that are solved alone: those of `before` and `after`";
            report.error_with_hint(at, "a discussed task cannot be forgotten", hint);
        }
        if let Some(at) = on(&self.keeps_reflections).filter(|_| !*self.self_terminating) {
            let message = "this task has no reflections to keep";
            report.error_with_hint(at, message, "add `self_terminating: true`");
        }
    }

    pub(super) fn build(&self, agents: &dyn Agents) -> Result<library::Task> {
        let mut task = match agents.worker(self)? {
            Some(worker) => library::Task::new(worker, ""),
            None => library::Task::by(agents.participant(&self.who)?, ""),
        };
        for Media { kind, url } in &self.media {
            task = task.media(polylogue_core::Media { kind: kind.clone(), url: url.as_str().into() });
        }
        if *self.self_terminating {
            task = task.self_terminating();
        }
        if *self.keeps_reflections {
            task = task.keeps_reflections();
        }
        if *self.forget {
            task = task.forget();
        }
        let prompt = self.prompt.value.clone();
        Ok(task.prompt_from(move |about| prompt.fill(about)))
    }
}
