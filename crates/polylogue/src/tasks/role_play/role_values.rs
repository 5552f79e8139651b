//! The input of the prompts.

/// The values for the rules of a role. They are inserted verbatim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoleValues<'a> {
    /// The name of the role that solves.
    pub assistant: &'a str,
    /// The name of the role that instructs.
    pub user: &'a str,
    /// The specified task, with its plan.
    pub task: &'a str,
    /// The marker of the user role for a finished task.
    pub done: &'a str,
}
