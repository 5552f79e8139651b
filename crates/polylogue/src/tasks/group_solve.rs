//! Group solve: agents solve their tasks by talking, until a limit or until they judge them complete.
//!
//! First each agent answers its own [`Task`] alone. Then they talk: one of two agents gets the other's answer, and from
//! there they reply to each other. Agents that can complete their task ([`Task::self_terminating`]) are asked after
//! each of their turns, in private, what is left to do; these answers end the chat, and in any case
//! [`max_iterations`](GroupSolve::max_iterations) does. [`EndMode`] says how, and [`GroupSolveResult`] is the result.
//!
//! Every agent sees only its own role, and nothing is stored twice: what each side knows is computed from one log.
//! [`History`] prints it.
//!
//! # Guessing a number
//! ```
//! use polylogue::tasks::{EndMode, GroupSolve, Task};
//! use polylogue::{AnyModel, Assistant, Chat};
//! # fn example(model: AnyModel) -> polylogue::Result<Chat> {
//! let keeper = Assistant::new("Keeper", model.clone())?;
//! let guesser = Assistant::new("Guesser", model)?;
//! let secret = Task::new(keeper.clone(), "Choose a secret number from 1 to 3. Say it once, now.");
//! let answer = Task::new(
//!     keeper,
//!     "You will receive guesses. Your objective is fulfilled when a guess is the secret number: then say `You won`.",
//! );
//! let guess = Task::new(guesser, "Find a secret number from 1 to 3. Propose one number.");
//! GroupSolve::new([answer.self_terminating(), guess], EndMode::OneLastChat)
//!     .before(secret)
//!     .shift_content("What is your guess?")
//!     .build("guess")
//! # }
//! ```
//!
//! # Three agents, and a final task for one of them
//! ```
//! use polylogue::tasks::{EndMode, GroupSolve, Task};
//! use polylogue::{AnyModel, Assistant, Chat};
//! # fn example(model: AnyModel) -> polylogue::Result<Chat> {
//! let agent = |name: &str| Assistant::new(name, model.clone());
//! let read = Task::new(agent("Reader")?, "Read the invoice.");
//! let check = Task::new(agent("Clerk")?, "Check the sums.");
//! let lead = Task::new(agent("Lead")?, "Your objective is fulfilled when the sums are agreed on.").self_terminating();
//! GroupSolve::new([read, check, lead], EndMode::FirstCompletion)
//!     .max_iterations(3)
//!     .after(Task::new(agent("Reader")?, "Write down the result."))
//!     .build("invoice")
//! # }
//! ```

mod build;
mod check;
mod history;
mod outcome;
mod participant;
mod plan;
mod run;
mod words;

use std::sync::Arc;

pub use self::check::Check;
pub use self::history::History;
pub use self::outcome::{Checked, Completion, GroupSolveResult};
pub use self::plan::{EndMode, GroupSolvePolicy};
use crate::tasks::task::Task;
pub use crate::termination::verdict::Verdict;

/// Agents that solve their tasks by talking, with solo tasks before and after.
#[derive(Debug, Clone)]
#[must_use]
pub struct GroupSolve {
    before: Vec<Task>,
    group: Option<Group>,
    after: Vec<Task>,
}

/// The talking agents.
#[derive(Debug, Clone)]
struct Group {
    tasks: Vec<Task>,
    mode: EndMode,
    max_iterations: u64,
    owner: Option<String>,
    content: Option<Arc<str>>,
    reconciles: bool,
    check: Check,
}

impl GroupSolve {
    /// Default limit on iterations.
    pub const DEFAULT_MAX_ITERATIONS: u64 = 5;

    /// Creates a group of two or more agents that talk about their tasks, in this order, and stop as `mode` says.
    pub fn new(tasks: impl IntoIterator<Item = Task>, mode: EndMode) -> Self {
        let group = Group {
            tasks: tasks.into_iter().collect(),
            mode,
            max_iterations: Self::DEFAULT_MAX_ITERATIONS,
            owner: None,
            content: None,
            reconciles: false,
            check: Check::default(),
        };
        Self { before: Vec::new(), group: Some(group), after: Vec::new() }
    }

    /// Creates a group solve of tasks that agents solve alone, one after the other, without talking;
    /// [`tasks`](crate::tasks::tasks) makes a chat of them directly.
    pub fn alone(tasks: impl IntoIterator<Item = Task>) -> Self {
        Self { before: tasks.into_iter().collect(), group: None, after: Vec::new() }
    }

    /// Adds a solo task before the talk, such as one that makes up a secret. Its prompt and answer are in the history
    /// of its agent only.
    pub fn before(mut self, task: Task) -> Self {
        self.before.push(task);
        self
    }

    /// Adds a solo task after the talk, such as one that asks for the result.
    pub fn after(mut self, task: Task) -> Self {
        self.after.push(task);
        self
    }

    /// Sets the limit on iterations, at least 1. In an iteration every agent speaks once; the answers to the tasks are
    /// not counted.
    pub fn max_iterations(self, limit: u64) -> Self {
        self.change(|group| Group { max_iterations: limit, ..group })
    }

    /// Sets which of two agents gets the first message of the talk, and so speaks first in every iteration. Default:
    /// the second.
    pub fn shift_owner(self, who: impl Into<String>) -> Self {
        self.change(|group| Group { owner: Some(who.into()), ..group })
    }

    /// Sets the first message of the talk. Default: the other agent's answer to its task; with
    /// [reconciled](Self::reconcile) first messages the second agent's answer, which both know by then: set the message
    /// to avoid the repetition.
    pub fn shift_content(self, text: impl Into<Arc<str>>) -> Self {
        self.change(|group| Group { content: Some(text.into()), ..group })
    }

    /// Lets each of two agents know the other's task and answer, as if they were its own.
    pub fn reconcile(self) -> Self {
        self.change(|group| Group { reconciles: true, ..group })
    }

    /// Sets how agents are asked whether their task is complete.
    pub fn check(self, check: Check) -> Self {
        self.change(|group| Group { check, ..group })
    }

    fn change(self, change: impl FnOnce(Group) -> Group) -> Self {
        Self { group: self.group.map(change), ..self }
    }
}
