//! Discussions of tasks: agents discuss their tasks until a limit is reached or they judge them complete.

use std::collections::BTreeMap;

use polylogue::Result;
use polylogue::tasks::group_solve::Check;
use polylogue::tasks::{EndMode, GroupSolve as Library};
use polylogue_config::{As, At, Config};
use polylogue_core::Name;

use super::part::{Agents, Built, ChatFrame, Part};
use super::task::{Task, on};
use super::tasks::{self, task};
use crate::codes;
use crate::diagnostic::Report;
use crate::flow::ChatFlow;
use crate::outline::Outline;
use crate::set::Set as _;
use crate::source::Span;
use crate::text::MemberRef;

/// Who gives the tasks in larger groups.
const MANAGER: &str = "TaskManager";

/// Agents discuss their tasks until a limit is reached or they judge them complete.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(name = "GroupSolve")]
pub struct GroupSolve {
    /// Tasks of the participants, one each, in speaking order.
    #[key(required, nonempty)]
    pub tasks: Vec<At<Task>>,
    /// Tasks that agents solve alone before the discussion. They stay in the history of their agent; other agents do
    /// not see them.
    pub before: Vec<Task>,
    /// Tasks that agents solve alone after the discussion.
    pub after: Vec<Task>,
    /// Condition that ends the discussion.
    #[key(as = At<EndModeKey>, default = EndMode::MaxIterations)]
    pub end: At<EndMode>,
    /// Maximum number of iterations, in every mode. In an iteration each participant speaks once.
    #[key(default = Library::DEFAULT_MAX_ITERATIONS, range = 1..=100_000)]
    pub max_iterations: u64,
    /// First message of a discussion between two agents.
    pub shift: At<FirstMessage>,
    /// With two agents, adds the task and the answer of each to the history of the other, as if they were its own.
    #[key(default = false)]
    pub reconcile: At<bool>,
    /// Questions that ask agents whether their task is complete.
    pub check: Completion,
}

/// Condition that ends a discussion. The limit on iterations always applies.
#[derive(Config)]
#[config(name = "EndMode", for = EndMode)]
enum EndModeKey {
    /// At the limit on iterations. Agents are not asked whether their task is complete.
    MaxIterations,
    /// As soon as one task is complete.
    FirstCompletion,
    /// When one task is complete and the next speaker has spoken.
    OneLastChat,
    /// When one task is complete and every participant has spoken once more.
    OneLastGroupChat,
    /// As soon as the tasks of all agents that are asked are complete.
    AllComplete,
}

/// First message of a discussion between two agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
pub struct FirstMessage {
    /// Agent that receives the message and speaks first.
    #[key(as = Option<MemberRef>, none = "the second agent")]
    pub to: Option<Name>,
    /// Text of the message.
    #[key(none = "the other agent's answer to its task", nonempty)]
    pub says: Option<String>,
}

/// Questions that ask an agent whether its task is complete: what remains to be done, then a decision.
#[derive(Debug, Clone, PartialEq, Config)]
pub struct Completion {
    /// First question: what remains to be done. The agent answers freely.
    #[key(none = "a built-in text", nonempty)]
    pub reflection: Option<String>,
    /// Second question: whether anything remains to be done.
    #[key(none = "a built-in text", nonempty)]
    pub decision: Option<String>,
    /// Question for a retry after an answer that contains no decision.
    #[key(none = "a built-in text", nonempty)]
    pub again: Option<String>,
    /// Words of the decision.
    #[key(none = "`yes` and `no`")]
    pub words: Option<DecisionWords>,
    /// Temperature of the decision. `own` uses the agent's temperature.
    #[key(as = DecisionTemperature, default = Some(Check::TEMPERATURE), range = 0..=2)]
    pub temperature: Option<f64>,
    /// Requests the decision as JSON.
    #[key(none = "if the model is known to support a schema")]
    pub structured: Option<bool>,
}

/// Words of a decision, letters only.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct DecisionWords {
    /// Word for a task that is not complete.
    #[key(nonempty)]
    pub open: At<String>,
    /// Word for a complete task.
    #[key(nonempty)]
    pub complete: At<String>,
}

/// Temperature of a decision.
#[derive(Config)]
#[config(by_shape)]
enum DecisionTemperature {
    /// The agent's temperature, for models that accept no other.
    Own(Own),
    /// This temperature.
    Of(f64),
}

/// The word `own`.
#[derive(Config)]
#[config(name = "OwnTemperature")]
enum Own {
    /// The agent's temperature.
    Own,
}

impl As<Option<f64>> for DecisionTemperature {
    fn into_value(self) -> Option<f64> {
        if let Self::Of(temperature) = self { Some(temperature) } else { None }
    }

    fn from_value(temperature: &Option<f64>) -> Self {
        temperature.map_or(Self::Own(Own::Own), Self::Of)
    }
}

impl Default for Completion {
    fn default() -> Self {
        Self::absent()
    }
}

impl Part for GroupSolve {
    fn check(&self, chat: &ChatFrame<'_>, outline: &Outline<'_>, report: &mut Report<'_>) {
        tasks::check_chat(chat, report);
        self.tasks().into_iter().for_each(|task| task.check(outline, report));
        self.before.iter().chain(&self.after).for_each(|task| task.check_alone(report));
        tasks::check_all_have_tasks(chat, self.tasks.iter().map(|task| &task.value), report);
        self.check_owners(chat, outline, report);
        self.check_shift(report);
        self.check_end(report);
        if let Some(words) = &self.check.words {
            words.check(report);
        }
    }

    fn describe(&self, _: &ChatFrame<'_>) -> String {
        let until = match *self.end {
            EndMode::MaxIterations => "",
            EndMode::FirstCompletion => ", or until the first is complete",
            EndMode::OneLastChat => ", or until the first is complete and one more has spoken",
            EndMode::OneLastGroupChat => {
                ", or until the first is complete and every participant has spoken once more"
            }
            EndMode::AllComplete => ", or until all are complete",
        };
        let limit = self.max_iterations;
        let iterations = if limit == 1 { "iteration" } else { "iterations" };
        format!("each with a task, talking for {limit} {iterations}{until}")
    }

    fn has_own_limit(&self) -> bool {
        true
    }

    fn has_own_result(&self) -> bool {
        true
    }

    fn flow<'c>(&'c self, _: &ChatFrame<'c>, _: &Outline<'c>) -> ChatFlow<'c> {
        ChatFlow::repeated(self.tasks.iter().map(|task| &task.who)).ended_by("the limit on iterations")
    }

    fn tasks(&self) -> Vec<&Task> {
        self.tasks.iter().map(|task| &task.value).chain(&self.before).chain(&self.after).collect()
    }

    fn build(&self, chat: &ChatFrame<'_>, agents: &dyn Agents) -> Result<Built> {
        let tasks = self.tasks.iter().map(|given| task(given, agents)).collect::<Result<Vec<_>>>()?;
        let mut solve = Library::new(tasks, *self.end).max_iterations(self.max_iterations);
        solve = solve.check(self.check.build());
        let FirstMessage { to, says } = &*self.shift;
        solve = solve.set(to.as_ref().map(Name::as_str), Library::shift_owner);
        solve = solve.set(says.as_deref(), Library::shift_content);
        solve = solve.set_if(*self.reconcile, Library::reconcile);
        for given in &self.before {
            solve = solve.before(task(given, agents)?);
        }
        for given in &self.after {
            solve = solve.after(task(given, agents)?);
        }
        tasks::built(solve, chat)
    }
}

impl GroupSolve {
    fn check_owners(&self, chat: &ChatFrame<'_>, outline: &Outline<'_>, report: &mut Report<'_>) {
        let mut owners: BTreeMap<&str, &Span> = BTreeMap::new();
        for task in &self.tasks {
            let who = &task.who;
            chat.check_has(who, outline, report);
            if who.ok && owners.insert(who.as_str(), &who.span).is_some() {
                let hint = "put tasks that it solves alone in `before` or `after`";
                report.error_with_hint(&who.span, format!("`{who}` already has a task"), hint);
            }
            task.check_discussed(report);
        }
        if let [only] = self.tasks.as_slice() {
            let hint = "for tasks that are solved alone use `pattern: {tasks: [...]}`";
            report.error_with_hint(&only.span, "a discussion needs at least two tasks", hint);
        }
        if let Some(at) = owners.get(MANAGER).filter(|_| self.tasks.len() > 2) {
            let message =
                format!("no participant of a discussion with more than two can be called `{MANAGER}`");
            report.error_with_hint(at, message, "the author of the tasks has this name");
        }
    }

    fn check_shift(&self, report: &mut Report<'_>) {
        let reconcile = on(&self.reconcile);
        if self.tasks.len() > 2 {
            for (key, at) in [("shift", self.shift.given()), ("reconcile", reconcile)] {
                if let Some(at) = at {
                    let hint = "in a larger discussion every participant sees all messages: remove it";
                    report.error_with_hint(at, format!("`{key}` is for a discussion of two"), hint);
                }
            }
        } else if let Some(at) = reconcile.filter(|_| self.shift.says.is_none()) {
            let message =
                "both agents have the second agent's answer already, and the discussion begins with it";
            report.warning(codes::NO_EFFECT, at, message, "set another first message: `shift: {says: ...}`");
        }
    }

    /// Reports tasks that are asked for completion without effect on the end, and the reverse.
    fn check_end(&self, report: &mut Report<'_>) {
        let asked = self.tasks.iter().find_map(|task| on(&task.self_terminating));
        let by_limit = *self.end == EndMode::MaxIterations;
        match (asked, self.end.given()) {
            (Some(asked), _) if by_limit && self.end.ok => {
                let hint = "set `end`, such as `end: first_completion`, or remove it";
                let message = "the discussion ends by `max_iterations` alone: no agent is asked whether its task is complete";
                report.warning(codes::NO_EFFECT, asked, message, hint);
            }
            (None, Some(_)) if !by_limit => {
                let hint = "give a task `self_terminating: true`, or end by `max_iterations`";
                let message =
                    "the discussion ends when a task is complete, but no task has `self_terminating`";
                report.error_with_hint(&self.end.span, message, hint);
            }
            _ => {}
        }
    }
}

impl DecisionWords {
    fn check(&self, report: &mut Report<'_>) {
        let Self { open, complete } = self;
        for word in [open, complete].into_iter().filter(|word| word.ok) {
            if !word.chars().all(char::is_alphanumeric) {
                let message = format!("`{word}` must be one word of letters");
                report.error_with_hint(
                    &word.span,
                    message,
                    "replies are searched for this word, such as `yes`",
                );
            }
        }
        if open.ok && complete.ok && open.to_lowercase() == complete.to_lowercase() {
            report.error(&complete.span, "both words are the same");
        }
    }
}

impl Completion {
    /// Builds the library's type.
    pub fn build(&self) -> Check {
        let mut check = Check::default().temperature(self.temperature);
        check = check.set(self.reflection.as_deref(), Check::reflection);
        check = check.set(self.decision.as_deref(), Check::decision);
        check = check.set(self.again.as_deref(), Check::again);
        if let Some(DecisionWords { open, complete }) = &self.words {
            check = check.words(open.as_str(), complete.as_str());
        }
        match self.structured {
            None => check,
            Some(true) => check.structured(),
            Some(false) => check.in_a_word(),
        }
    }
}
