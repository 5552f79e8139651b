//! Policies: they select the next speaker and end the chat.

use std::sync::Arc;

use crate::{AnyAgent, JoinHistory, Message, Name, StopReason, Transcript, TurnRequest};

/// Selects the next step of a chat.
///
/// A policy is a pure function of the transcript: it never waits, and keeps no state. If it needs more - the choice
/// of a model, a random number - it requests a private turn of an agent and reads the reply from the transcript.
/// Closures are policies.
///
/// It is called after every step, when no turn is open.
///
/// # Example: every participant speaks once, in order
/// ```
/// use polylogue_core::{Policy, Step, StopReason, Transcript, TurnRequest};
///
/// fn once_each(chat: &Transcript) -> Step {
///     let next = chat.participants().iter().find(|who| chat.turns_of(who) == 0);
///     match next {
///         Some(next) => Step::Turn(TurnRequest::to_all(next.clone())),
///         None => Step::close(StopReason::Finished, chat),
///     }
/// }
///
/// // A chat without participants ends at once.
/// let empty = Transcript::default();
/// assert_eq!(Policy::next(&once_each, &empty), Step::close(StopReason::Finished, &empty));
/// ```
pub trait Policy: Send + Sync + 'static {
    /// Returns the next step after `transcript`.
    fn next(&self, transcript: &Transcript) -> Step;

    /// Returns whether `who`, a participant who is present, can have the next turn instead of the one that [`next`](Self::next)
    /// selects, because a [person chose so](crate::Instruction::NextSpeaker). The policy then continues after that turn. Must
    /// be a pure function, like `next`. Default: no, because a policy that follows a plan loses its position.
    ///
    /// # Errors
    /// Why not, as a sentence for the person who chose.
    fn takes_next_speaker(&self, transcript: &Transcript, who: &Name) -> Result<(), Arc<str>> {
        let _ = (transcript, who);
        Err("the pattern of this chat decides itself who speaks next".into())
    }

    /// Returns whether `who` can have one more turn when [`next`](Self::next) would close the chat, because the result of a
    /// background task was posted for it. The policy is then asked again. Must be a pure function, like `next`. Default: as for
    /// a [next speaker](Self::takes_next_speaker).
    fn takes_follow_up(&self, transcript: &Transcript, who: &Name) -> bool {
        self.takes_next_speaker(transcript, who).is_ok()
    }

    /// Returns the step instead of the one that [`next`](Self::next) selects when the chat ends for `reason`: at its
    /// [maximum of turns](crate::ChatBuilder::max_turns), or by a condition [around](with_termination) the policy. It is the end, or a private
    /// turn before it, such as one that asks for a summary; after that, the policy is asked again. Must be a pure function, like
    /// `next`. Default: the end, with the last message as the result.
    fn at_end(&self, transcript: &Transcript, reason: StopReason) -> Step {
        Step::close(reason, transcript)
    }

    /// Returns the agents that it gives private turns and that come with it, such as the selector of a group. The chat adds
    /// them to its [private agents](crate::ChatBuilder::private_agent). Default: none.
    fn private_agents(&self) -> Vec<AnyAgent> {
        Vec::new()
    }
}

impl<F: Fn(&Transcript) -> Step + Send + Sync + 'static> Policy for F {
    fn next(&self, transcript: &Transcript) -> Step {
        self(transcript)
    }
}

impl Policy for Box<dyn Policy> {
    fn next(&self, transcript: &Transcript) -> Step {
        (**self).next(transcript)
    }

    fn takes_next_speaker(&self, transcript: &Transcript, who: &Name) -> Result<(), Arc<str>> {
        (**self).takes_next_speaker(transcript, who)
    }

    fn takes_follow_up(&self, transcript: &Transcript, who: &Name) -> bool {
        (**self).takes_follow_up(transcript, who)
    }

    fn at_end(&self, transcript: &Transcript, reason: StopReason) -> Step {
        (**self).at_end(transcript, reason)
    }

    fn private_agents(&self) -> Vec<AnyAgent> {
        (**self).private_agents()
    }
}

impl Condition for Box<dyn Condition> {
    fn now(&self, transcript: &Transcript) -> Option<StopReason> {
        (**self).now(transcript)
    }

    fn ever(&self, transcript: &Transcript) -> Option<StopReason> {
        (**self).ever(transcript)
    }
}

/// Wraps `policy`, so that a person can choose the [next speaker](Policy::takes_next_speaker), unless `refused` returns why not.
/// For policies that select by the last speaker, and do not follow a plan.
pub fn steerable(
    policy: impl Policy,
    refused: impl Fn(&Transcript, &Name) -> Option<Arc<str>> + Send + Sync + 'static,
) -> impl Policy {
    SteerablePolicy { policy, refused }
}

/// Wraps `policy`, so that an agent can have [one more turn](Policy::takes_follow_up) for the results of its background tasks
/// before the chat closes. For policies that close the chat in the same way after such a turn.
pub fn with_follow_ups<P: Policy>(policy: P) -> impl Policy {
    MappedPolicy { policy, next: P::next, has_follow_ups: true }
}

struct SteerablePolicy<P, F> {
    policy: P,
    refused: F,
}

impl<P: Policy, F: Fn(&Transcript, &Name) -> Option<Arc<str>> + Send + Sync + 'static> Policy
    for SteerablePolicy<P, F>
{
    fn next(&self, transcript: &Transcript) -> Step {
        self.policy.next(transcript)
    }

    fn takes_next_speaker(&self, transcript: &Transcript, who: &Name) -> Result<(), Arc<str>> {
        (self.refused)(transcript, who).map_or(Ok(()), Err)
    }

    fn takes_follow_up(&self, transcript: &Transcript, who: &Name) -> bool {
        self.policy.takes_follow_up(transcript, who) || self.takes_next_speaker(transcript, who).is_ok()
    }

    fn at_end(&self, transcript: &Transcript, reason: StopReason) -> Step {
        self.policy.at_end(transcript, reason)
    }

    fn private_agents(&self) -> Vec<AnyAgent> {
        self.policy.private_agents()
    }
}

/// Wraps `policy`: `next` returns the step, from the policy and the transcript. The private agents are those
/// of `policy`, and so is the step [at an end](Policy::at_end) that `policy` does not select.
pub fn wrap_policy<P: Policy>(
    policy: P,
    next: impl Fn(&P, &Transcript) -> Step + Send + Sync + 'static,
) -> impl Policy {
    MappedPolicy { policy, next, has_follow_ups: false }
}

struct MappedPolicy<P, F> {
    policy: P,
    next: F,
    has_follow_ups: bool,
}

impl<P: Policy, F: Fn(&P, &Transcript) -> Step + Send + Sync + 'static> Policy for MappedPolicy<P, F> {
    fn next(&self, transcript: &Transcript) -> Step {
        (self.next)(&self.policy, transcript)
    }

    fn takes_next_speaker(&self, transcript: &Transcript, who: &Name) -> Result<(), Arc<str>> {
        self.policy.takes_next_speaker(transcript, who)
    }

    fn takes_follow_up(&self, transcript: &Transcript, who: &Name) -> bool {
        self.has_follow_ups || self.policy.takes_follow_up(transcript, who)
    }

    fn at_end(&self, transcript: &Transcript, reason: StopReason) -> Step {
        self.policy.at_end(transcript, reason)
    }

    fn private_agents(&self) -> Vec<AnyAgent> {
        self.policy.private_agents()
    }
}

/// A condition on a chat: a pure function of the transcript that says whether the chat should end, and why.
pub trait Condition: Send + Sync + 'static {
    /// Returns the stop reason, if the chat should end now. Reads the messages of [`Transcript::latest`], so that the cost is
    /// that of the last step.
    fn now(&self, transcript: &Transcript) -> Option<StopReason>;

    /// Returns the stop reason, if the chat should have ended now or at any step before. Reads the whole transcript.
    fn ever(&self, transcript: &Transcript) -> Option<StopReason> {
        self.now(transcript)
    }
}

/// Wraps `policy`, and ends the chat when `stop` holds, [as `policy` ends it](Policy::at_end). When a participant ends the chat, its
/// reason has priority over `stop`.
///
/// ```
/// use polylogue_core::{Condition, Policy, Step, StopReason, Transcript, with_termination};
///
/// struct Stopped;
///
/// impl Condition for Stopped {
///     fn now(&self, _: &Transcript) -> Option<StopReason> {
///         Some(StopReason::Finished)
///     }
/// }
///
/// let policy = with_termination(|_: &Transcript| Step::Parallel(Vec::new()), Stopped);
/// let empty = Transcript::default();
/// assert_eq!(policy.next(&empty), Step::close(StopReason::Finished, &empty));
/// ```
pub fn with_termination(policy: impl Policy, stop: impl Condition) -> impl Policy {
    wrap_policy(policy, move |policy, chat| match (chat.ended_by(), stop.now(chat)) {
        (Some((_, reason)), _) => policy.at_end(chat, reason.clone()),
        (None, Some(reason)) => policy.at_end(chat, reason),
        (None, None) => policy.next(chat),
    })
}

/// A step of a chat.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A participant has a turn.
    Turn(TurnRequest),
    /// Several participants have turns in parallel. They do not see each other's messages, which are logged in the
    /// order of the requests, not of completion.
    Parallel(Vec<TurnRequest>),
    /// A message is posted without a turn.
    Post(Message),
    /// A late joiner, or a participant that has left, joins.
    Admit {
        /// The participant.
        who: Name,
        /// The earlier messages that it sees.
        sees: JoinHistory,
    },
    /// The chat ends.
    Close {
        /// The stop reason.
        reason: StopReason,
        /// The result.
        summary: Arc<str>,
    },
    /// A configuration error: the run ends with [`ConfigError::Policy`](crate::ConfigError::Policy), the log unchanged. The text
    /// continues a sentence about the policy, as in "gives a turn to `Zoe`, who is not a participant".
    Fail(Arc<str>),
}

impl Step {
    /// Creates the step of these turns, in parallel if there are several; `None` without any.
    pub fn turns(mut turns: Vec<TurnRequest>) -> Option<Self> {
        let last = turns.pop()?;
        if turns.is_empty() {
            return Some(Self::Turn(last));
        }
        turns.push(last);
        Some(Self::Parallel(turns))
    }

    /// Ends the chat with its last message as the result.
    pub fn close(reason: StopReason, transcript: &Transcript) -> Self {
        Self::Close { reason, summary: transcript.summary() }
    }
}
