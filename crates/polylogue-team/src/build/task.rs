//! Tasks, solved alone or by talking.

use polylogue::tasks::group_solve::{Check, Solving};
use polylogue::tasks::{GroupSolve, Task};
use polylogue::{Assistant, Name, Result};
use polylogue_core::{ChatBuilder, ViewOptions};

use super::AgentBuilder;
use super::room::Around;
use crate::chat::Chat;
use crate::pattern::Pattern;
use crate::task::{self, Completion, DecisionTemperature, DecisionWords, Shift};

impl<'a> AgentBuilder<'a> {
    /// A chat of tasks and its policy; nothing when the chat is another.
    pub(super) fn tasks(
        &self,
        name: &Name,
        chat: &'a Chat,
        around: &Around<'a>,
    ) -> Result<Option<(ChatBuilder, Solving)>> {
        let task = |task: &'a task::Task| self.task(task, around);
        let solve = match &chat.pattern {
            Pattern::Tasks(tasks) => GroupSolve::alone(tasks.iter().map(task).collect::<Result<Vec<_>>>()?),
            Pattern::GroupSolve(given) => {
                let tasks: Vec<Task> = given.tasks.iter().map(|given| task(given)).collect::<Result<_>>()?;
                let mut solve = talk(given, tasks);
                for before in &given.before {
                    solve = solve.before(task(before)?);
                }
                for after in &given.after {
                    solve = solve.after(task(after)?);
                }
                solve
            }
            _ => return Ok(None),
        };
        solve.begin(name.as_str()).map(Some)
    }

    fn task(&self, given: &'a task::Task, around: &Around<'a>) -> Result<Task> {
        let mut task = match self.worker(given, around)? {
            Some(worker) => Task::new(worker, ""),
            None => Task::by(self.participant(&given.who, around)?, ""),
        };
        for task::Media { kind, url } in &given.media {
            task = task.media(polylogue_core::Media { kind: kind.clone(), url: url.as_str().into() });
        }
        if *given.self_terminating {
            task = task.self_terminating();
        }
        if *given.keeps_reflections {
            task = task.keeps_reflections();
        }
        if *given.forget {
            task = task.forget();
        }
        let prompt = given.prompt.value.clone();
        Ok(task.prompt_from(move |about| prompt.fill(about)))
    }

    /// The agent of a task with what is for this task, if it speaks by a model and by nothing else.
    fn worker(&self, task: &task::Task, around: &Around<'a>) -> Result<Option<Assistant>> {
        let agent = self.team.agents.iter().find(|agent| agent.name == task.who);
        let Some((agent, keys)) = agent.and_then(|agent| Some((agent, agent.plain()?))) else {
            return Ok(None);
        };
        let mut assistant = self.assistant(agent, keys, around)?;
        for tool in task.tools.iter() {
            for tool in self.prompted(tool, *agent.tool_limits)? {
                assistant = assistant.prompted_tool(tool);
            }
        }
        if let Some(schema) = &task.output_schema {
            assistant = assistant.output_schema(schema.0.clone().into());
        }
        Ok(Some(assistant))
    }

    /// The agents of a chat's tasks as they are about these.
    pub(super) fn workers(&self, chat: &Chat) -> Result<Vec<Assistant>> {
        let tasks = chat.pattern.tasks();
        let workers = tasks
            .into_iter()
            .map(|task| self.worker(task, &Around::default()))
            .collect::<Result<Vec<_>>>()?;
        let sees = |worker: Assistant| {
            let view_options = ViewOptions { forget_private_turns: true, ..worker.view_options().clone() };
            worker.view(view_options)
        };
        Ok(workers.into_iter().flatten().map(sees).collect())
    }
}

/// Those who talk about `tasks`.
fn talk(given: &task::GroupSolve, tasks: Vec<Task>) -> GroupSolve {
    let mut solve =
        GroupSolve::of(tasks, *given.end).max_iterations(given.max_iterations).check(check(&given.check));
    let Shift { to, says } = &*given.shift;
    if let Some(owner) = to {
        solve = solve.shift_owner(owner.as_str());
    }
    if let Some(text) = says {
        solve = solve.shift_content(text.as_str());
    }
    if *given.reconcile { solve.reconcile() } else { solve }
}

fn check(given: &Completion) -> Check {
    let Completion { reflection, decision, again, words, temperature, structured } = given;
    let mut check = Check::default();
    if let Some(question) = reflection {
        check = check.reflection(question.as_str());
    }
    if let Some(question) = decision {
        check = check.decision(question.as_str());
    }
    if let Some(question) = again {
        check = check.again(question.as_str());
    }
    if let Some(DecisionWords { open, complete }) = words {
        check = check.words(open.as_str(), complete.as_str());
    }
    check = match temperature {
        None => check,
        Some(DecisionTemperature::Own(_)) => check.temperature(None),
        Some(DecisionTemperature::Of(temperature)) => check.temperature(Some(*temperature)),
    };
    match structured {
        None => check,
        Some(true) => check.structured(),
        Some(false) => check.in_a_word(),
    }
}
