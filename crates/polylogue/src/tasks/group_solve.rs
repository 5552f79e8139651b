//! Several agents solve their tasks by talking, until a limit or until they hold them to be complete.
//!
//! Each agent first answers its own [`Task`], alone. Then they talk: of two, one is told the other's answer, and from there
//! on each replies to the other. Agents that are trusted with it ([`Task::self_terminating`]) are asked after each of their
//! turns, in private, what is left to do and whether that is anything; by these answers, and in any case after
//! [`max_iterations`](GroupSolve::max_iterations), the chat ends. [`EndMode`] says how, and [`GroupSolveResult`] what came of it.
//!
//! Nobody reads a role that is not theirs, and nothing is stored twice: what each side knows is computed from one log.
//! [`History`] prints it.
//!
//! # A guess, until the number is found
//! ```
//! use polylogue::{AnyModel, Assistant, Chat, EndMode, Solve, Task};
//! # fn example(model: AnyModel) -> polylogue::Result<Chat> {
//! let keeper = Assistant::new("Keeper", model.clone())?;
//! let guesser = Assistant::new("Guesser", model)?;
//! let secret = Task::new(keeper.clone(), "Choose a secret number from 1 to 3. Say it once, now.");
//! let answer = Task::new(
//!     keeper,
//!     "You will receive guesses. Your objective is fulfilled when a guess is the secret number: then say `You won`.",
//! );
//! let guess = Task::new(guesser, "Find a secret number from 1 to 3. Propose one number.");
//! Solve::of([answer.stops_by_itself(), guess], EndMode::OneLastChat)
//!     .before(secret)
//!     .shift_content("What is your guess?")
//!     .chat("guess")
//! # }
//! ```
//!
//! # Three agents, and a last task for one of them
//! ```
//! use polylogue::{AnyModel, Assistant, Chat, EndMode, Solve, Task};
//! # fn example(model: AnyModel) -> polylogue::Result<Chat> {
//! let agent = |name: &str| Assistant::new(name, model.clone());
//! let read = Task::new(agent("Reader")?, "Read the invoice.");
//! let check = Task::new(agent("Clerk")?, "Check the sums.");
//! let lead = Task::new(agent("Lead")?, "Your objective is fulfilled when the sums are agreed on.").stops_by_itself();
//! Solve::of([read, check, lead], EndMode::FirstCompletion)
//!     .max_iterations(3)
//!     .after(Task::new(agent("Reader")?, "Write down the result."))
//!     .chat("invoice")
//! # }
//! ```

mod build;
mod check;
mod history;
mod member;
mod outcome;
mod run;
mod words;

use std::sync::Arc;

use polylogue_core::{Audience, Name, Policy, Step, Transcript};

pub use self::check::Check;
pub use self::history::History;
pub use self::outcome::{Checked, Completion, GroupSolveResult};
use crate::Task;
pub use crate::verdict::Verdict;

/// When a group that solves tasks stops. [`max_iterations`](GroupSolve::max_iterations) is a limit in every mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndMode {
    /// After the limit on iterations. Nobody is asked whether a task is complete.
    MaxIterations,
    /// At once, when the first task is complete.
    FirstCompletion,
    /// When the first task is complete and whoever comes next has spoken.
    OneLastChat,
    /// When the first task is complete and everybody has spoken once more.
    OneLastGroupChat,
    /// At once, when all tasks of agents that are asked are complete.
    AllComplete,
}

/// Agents that solve their tasks by talking, and solo tasks before and after.
#[derive(Debug, Clone)]
pub struct GroupSolve {
    before: Vec<Task>,
    group: Option<Group>,
    after: Vec<Task>,
}

/// Those who talk.
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
    /// How many iterations there are at most, unless it is told otherwise.
    pub const DEFAULT_MAX_ITERATIONS: u64 = 5;

    /// Two or more agents that talk about their tasks, in this order, and end as `mode` says.
    #[must_use]
    pub fn of(tasks: impl IntoIterator<Item = Task>, mode: EndMode) -> Self {
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

    /// Tasks that are solved alone, one after the other, and nobody talks; [`tasks`](crate::task::tasks) makes a chat of them
    /// at once.
    #[must_use]
    pub fn alone(tasks: impl IntoIterator<Item = Task>) -> Self {
        Self { before: tasks.into_iter().collect(), group: None, after: Vec::new() }
    }

    /// Adds a task that is solved alone before, such as one that makes up a secret. Its prompt and answer stand in the
    /// history of its agent, and nobody else reads them.
    #[must_use]
    pub fn before(mut self, task: Task) -> Self {
        self.before.push(task);
        self
    }

    /// Adds a task that is solved alone when the talk is over, such as one that asks for the result.
    #[must_use]
    pub fn after(mut self, task: Task) -> Self {
        self.after.push(task);
        self
    }

    /// Sets how many iterations there are at most, at least 1. In an iteration every agent speaks once; the answers to the
    /// tasks are not counted.
    #[must_use]
    pub fn max_iterations(self, limit: u64) -> Self {
        self.change(|group| Group { max_iterations: limit, ..group })
    }

    /// Sets who of two is told the first message of the talk, and so speaks first in every iteration; the second otherwise.
    #[must_use]
    pub fn shift_owner(self, who: impl Into<String>) -> Self {
        self.change(|group| Group { owner: Some(who.into()), ..group })
    }

    /// Sets what the owner of the first message is told. Otherwise it is the other's answer to its task; when the first
    /// messages are [reconciled](Self::reconcile), it is the second agent's answer, which both know by then: set it, so that
    /// nothing is said twice.
    #[must_use]
    pub fn shift_content(self, text: impl Into<Arc<str>>) -> Self {
        self.change(|group| Group { content: Some(text.into()), ..group })
    }

    /// Lets each of two know the other's task and answer, as if it had been its own.
    #[must_use]
    pub fn reconcile(self) -> Self {
        self.change(|group| Group { reconciles: true, ..group })
    }

    /// Sets how agents are asked whether their task is complete.
    #[must_use]
    pub fn check(self, check: Check) -> Self {
        self.change(|group| Group { check, ..group })
    }

    fn change(self, change: impl FnOnce(Group) -> Group) -> Self {
        Self { group: self.group.map(change), ..self }
    }
}

/// The policy of a chat in which tasks are solved, for [`until`](crate::until) and the like to wrap; made by
/// [`GroupSolve::begin`].
#[derive(Debug, Clone)]
pub struct Solving(Arc<Plan>);

/// All that is going to happen.
#[derive(Debug)]
struct Plan {
    before: Vec<Task>,
    group: Option<Talk>,
    after: Vec<Task>,
}

/// Those who talk, checked.
#[derive(Debug)]
struct Talk {
    tasks: Vec<Task>,
    names: Vec<Name>,
    /// Who hears what is said: the room, unless somebody is in it who is not one of them.
    to: Audience,
    mode: EndMode,
    max_iterations: u64,
    owner: usize,
    content: Option<Arc<str>>,
    reconciles: bool,
    check: Check,
}

impl Policy for Solving {
    fn next(&self, chat: &Transcript) -> Step {
        self.0.due(chat).step
    }
}
