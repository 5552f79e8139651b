//! The plan: all steps of a group solve, checked.

use std::sync::Arc;

use polylogue_core::{Audience, Name};

use super::check::Check;
use crate::tasks::task::Task;

/// The rule for when a group stops. [`max_iterations`](super::GroupSolve::max_iterations) is a limit in every mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndMode {
    /// At the limit on iterations. Agents are not asked whether a task is complete.
    MaxIterations,
    /// At once, when the first task is complete.
    FirstCompletion,
    /// When the first task is complete and the next agent has spoken.
    OneLastChat,
    /// When the first task is complete and every agent has spoken once more.
    OneLastGroupChat,
    /// At once, when all tasks of self-terminating agents are complete.
    AllComplete,
}

/// The policy of a group solve, to be wrapped by [`with_termination`](crate::policies::with_termination) and the like; made by [`GroupSolve::into_parts`](super::GroupSolve::into_parts).
#[derive(Debug, Clone)]
pub struct GroupSolvePolicy(pub(super) Arc<Plan>);

/// All steps.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) before: Vec<Task>,
    pub(super) group: Option<Discussion>,
    pub(super) after: Vec<Task>,
}

/// The talk, checked.
#[derive(Debug)]
pub(super) struct Discussion {
    pub(super) tasks: Vec<Task>,
    pub(super) names: Vec<Name>,
    /// Who sees the messages: all participants, unless one of them only solves a task alone.
    pub(super) to: Audience,
    pub(super) mode: EndMode,
    pub(super) max_iterations: u64,
    pub(super) owner: usize,
    pub(super) content: Option<Arc<str>>,
    pub(super) reconciles: bool,
    pub(super) check: Check,
}
