//! The result of a group solve.

use polylogue_core::{Body, Chooser, Name, StopReason, Transcript};

use crate::termination::verdict::Verdict;

/// The result of a group solve, read from the log at any time, even in the middle of the talk.
///
/// ```
/// # use polylogue::tasks::GroupSolveResult;
/// # use polylogue::Log;
/// # async fn example(log: &Log) -> polylogue::Result<()> {
/// let solved = GroupSolveResult::from_transcript(&log.transcript().await?);
/// for done in &solved.complete {
///     println!("{} was done in iteration {}", done.who, done.iteration);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupSolveResult {
    /// The completed tasks, in the order of completion.
    pub complete: Vec<Completion>,
    /// The number of iterations that started, without the answers to the tasks.
    pub iterations: u64,
    /// Why the chat stopped, if it did.
    pub reason: Option<StopReason>,
    /// The verdicts on whether a task is complete, in order.
    pub checks: Vec<Checked>,
}

/// A completed task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The agent.
    pub who: Name,
    /// The iteration, from 1; 0 for the answers to the tasks.
    pub iteration: u64,
}

/// A check whether a task is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The agent.
    pub who: Name,
    /// The iteration of the turn before, from 1; 0 for the answers to the tasks.
    pub iteration: u64,
    /// The answer of the agent.
    pub verdict: Verdict,
}

impl GroupSolveResult {
    /// Returns the result so far; since the chat was last opened, if it was reopened.
    pub fn from_transcript(chat: &Transcript) -> Self {
        let mut solved = Self::default();
        let (mut spoken, mut iteration_of) = (0_u64, 0);
        for event in chat.events() {
            match &event.body {
                Body::Reopened { message: Some(_), .. } => {
                    solved = Self::default();
                    (spoken, iteration_of) = (0, 0);
                }
                Body::TurnStarted { turns: requests } => {
                    let order = requests.iter().filter_map(|request| request.choice.as_ref());
                    if let Some(choice) = order.into_iter().find(|choice| choice.by == Chooser::Order) {
                        spoken += 1;
                        iteration_of = iteration(spoken, choice.of.len() as u64);
                    }
                }
                Body::Message(message) => {
                    let verdict = Verdict::of(message);
                    solved.checks.extend(verdict.map(|verdict| Checked {
                        who: message.from.clone(),
                        iteration: iteration_of,
                        verdict,
                    }));
                }
                _ => {}
            }
        }
        let complete = solved.checks.iter().filter(|check| check.verdict.complete);
        solved.complete =
            complete.map(|check| Completion { who: check.who.clone(), iteration: check.iteration }).collect();
        solved.iterations = iteration_of;
        solved.reason = chat.closed().map(|(reason, _)| reason.clone());
        solved
    }

    /// Returns whether the task of `who` is complete.
    pub fn is_complete(&self, who: &Name) -> bool {
        self.complete.iter().any(|done| done.who == *who)
    }
}

/// The iteration of the nth turn in a group of this size: larger groups count the answers to the tasks, too.
const fn iteration(nth: u64, size: u64) -> u64 {
    let rounds = nth.div_ceil(if size == 0 { 1 } else { size });
    if size > 2 { rounds.saturating_sub(1) } else { rounds }
}
