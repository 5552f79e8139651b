//! Who plays what, and what about.

/// What the rules of a role are made of. Nothing in it is looked into: braces in a task are braces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Casting<'a> {
    /// What the role is called that solves.
    pub assistant: &'a str,
    /// What the role is called that instructs.
    pub user: &'a str,
    /// The task: as it was specified, and with its plan.
    pub task: &'a str,
    /// What the user role writes when the task is done.
    pub done: &'a str,
}
