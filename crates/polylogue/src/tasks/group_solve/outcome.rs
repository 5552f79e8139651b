//! What came of it.

use polylogue_core::{Body, Chooser, Name, StopReason, Transcript};

use super::Verdict;

/// What came of a group that solves tasks: read from the log at any time, in the middle of the talk too.
///
/// ```
/// # use polylogue::{Log, Solved};
/// # async fn example(log: &Log) -> polylogue::Result<()> {
/// let solved = Solved::of(&log.transcript().await?);
/// for done in &solved.complete {
///     println!("{} was done in iteration {}", done.who, done.iteration);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupSolveResult {
    /// Whose tasks are complete, in the order in which they were completed.
    pub complete: Vec<Completion>,
    /// How many iterations began. The answers to the tasks are none.
    pub iterations: u64,
    /// Why the chat stopped, if it did.
    pub reason: Option<StopReason>,
    /// Every answer to the question whether a task is complete, in order.
    pub checks: Vec<Checked>,
}

/// A task was completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Whose task.
    pub who: Name,
    /// In which iteration, from 1; 0 for the answers to the tasks.
    pub iteration: u64,
}

/// An agent was asked whether its task is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Who was asked.
    pub who: Name,
    /// After a turn in which iteration, from 1; 0 for the answers to the tasks.
    pub iteration: u64,
    /// What it said.
    pub verdict: Verdict,
}

impl GroupSolveResult {
    /// What came of the chat so far; since it was last opened, if it went on about something more.
    #[must_use]
    pub fn of(chat: &Transcript) -> Self {
        let mut solved = Self::default();
        let (mut spoken, mut iteration_of) = (0_u64, 0);
        for event in chat.events() {
            match &event.body {
                Body::Reopened { message: Some(_) } => {
                    solved = Self::default();
                    (spoken, iteration_of) = (0, 0);
                }
                Body::TurnStarted { turns: cues } => {
                    let order = cues.iter().filter_map(|cue| cue.choice.as_ref());
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

    /// Whether the task of `who` is complete.
    #[must_use]
    pub fn is_complete(&self, who: &Name) -> bool {
        self.complete.iter().any(|done| done.who == *who)
    }
}

/// Which iteration the nth turn of a group of so many is in: larger groups hear the answers to the tasks, too.
const fn iteration(nth: u64, everybody: u64) -> u64 {
    let rounds = nth.div_ceil(if everybody == 0 { 1 } else { everybody });
    if everybody > 2 { rounds.saturating_sub(1) } else { rounds }
}
