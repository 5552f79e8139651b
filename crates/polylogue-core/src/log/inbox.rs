//! The inbox of a conversation: instructions from outside of its run.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, oneshot};

use super::clock::Timestamp;
use crate::{LimitOverrides, Message, Name};

/// An instruction to a conversation from outside: by a user, another process, or the program that runs it.
///
/// Each is exactly one event once it is carried out. It can be given [to a log that is open](crate::LogHandle::instruct), or
/// [posted](crate::Store::post) to the store, whichever process runs the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Instruction {
    /// Says a message in the outermost chat: [`Body::Sent`](crate::Body::Sent), or
    /// [`Body::Reopened`](crate::Body::Reopened) if the conversation is closed. Agents see it from their next turn on.
    Send(Message),
    /// Answers an open question: [`Body::InputProvided`](crate::Body::InputProvided).
    Answer {
        /// The `seq` of the event that asks.
        question: u64,
        /// The answer.
        text: Arc<str>,
        /// The name of the person, if known.
        by: Option<Arc<str>>,
    },
    /// Chooses the next speaker of the outermost chat: [`Body::NextSpeaker`](crate::Body::NextSpeaker).
    NextSpeaker {
        /// The participant.
        who: Name,
    },
    /// Allows this much more than was used so far, of the limits of the run and of those at which the outermost chat
    /// [ends by itself](crate::ChatLimits): [`Body::LimitsChanged`](crate::Body::LimitsChanged).
    RaiseLimits {
        /// Turns, calls, tokens, money or time.
        more: LimitOverrides,
        /// The name of the person, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Arc<str>>,
    },
    /// Allows one agent this much more than it has used so far, of the [limits of its own](crate::Log::agent_limits):
    /// [`Body::OwnLimitsRaised`](crate::Body::OwnLimitsRaised). The limits of the run and of chats stay as they are.
    RaiseAgentLimits {
        /// The agent.
        who: Name,
        /// Calls, tokens, money or time.
        more: LimitOverrides,
        /// The name of the person, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Arc<str>>,
    },
    /// Allows one open chat this much more than it has used so far, of the [limits of its own](crate::ChatBuilder::limits):
    /// [`Body::OwnLimitsRaised`](crate::Body::OwnLimitsRaised). All other limits stay as they are.
    RaiseChatLimits {
        /// The name of the chat, or its path if several of this name are open.
        chat: Arc<str>,
        /// Calls, tokens, money or time.
        more: LimitOverrides,
        /// The name of the person, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Arc<str>>,
    },
    /// Gives the conversation a title of its own: [`Body::TitleChanged`](crate::Body::TitleChanged).
    ChangeTitle {
        /// The title. Line ends become spaces, and what is longer than [`TITLE_CHARS`](Self::TITLE_CHARS) is cut. Empty: none.
        title: Arc<str>,
    },
    /// Notes that a client disconnected before the end of a response: [`Body::ClientDisconnected`](crate::Body::ClientDisconnected).
    ClientDisconnected {
        /// The text that it was sent until then.
        received: Arc<str>,
    },
    /// Lets open turns end and begins no other until [`Resume`](Self::Resume): [`Body::Paused`](crate::Body::Paused).
    Pause,
    /// Continues a paused conversation: [`Body::Resumed`](crate::Body::Resumed).
    Resume,
    /// Ends the run; running it again continues it: [`Body::Cancelled`](crate::Body::Cancelled).
    Cancel {
        /// Aborts model and tool calls in flight, instead of letting open turns end.
        now: bool,
    },
}

/// An [`Instruction`] in the store, until the process that runs the conversation takes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InboxMessage {
    /// Identifies the message: a second one with the same key is not posted.
    pub key: Arc<str>,
    /// Identifies the request that posted it. Another request with the same key finds by this that the key was used for something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Arc<str>>,
    /// The time at which it was posted.
    #[serde(rename = "posted_ms")]
    pub posted: Timestamp,
    /// The instruction.
    pub instruction: Instruction,
}

/// When an instruction can be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timing {
    /// At any time: no turn depends on it.
    Now,
    /// Between two steps of the outermost chat.
    BetweenSteps,
    /// When the run waits or has ended. An answer also while the turn or call that waits for it is one of several, of which another one is in
    /// progress, while background tasks work next to the turn, and while one waits for it.
    AtRest,
}

impl Instruction {
    /// Maximum length of a title in characters: lists show it in one line.
    pub const TITLE_CHARS: usize = 200;

    /// Returns whether the instruction continues a conversation that no process runs: workers must look at it. Of the others, a process that
    /// runs it is notified, and they change nothing about when workers look at it.
    pub const fn wakes(&self) -> bool {
        matches!(self, Self::Send(_) | Self::Answer { .. })
    }

    pub(crate) const fn timing(&self) -> Timing {
        match self {
            Self::Send(_) | Self::NextSpeaker { .. } => Timing::BetweenSteps,
            Self::Answer { .. } => Timing::AtRest,
            Self::RaiseLimits { .. }
            | Self::RaiseAgentLimits { .. }
            | Self::RaiseChatLimits { .. }
            | Self::ChangeTitle { .. }
            | Self::ClientDisconnected { .. }
            | Self::Pause
            | Self::Resume
            | Self::Cancel { .. } => Timing::Now,
        }
    }
}

/// The reason why an instruction was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstructionError {
    /// The conversation does not allow it. The log says so, too: [`Body::Refused`](crate::Body::Refused).
    #[error("{0}")]
    Refused(Arc<str>),
    /// The log could not be written, or was dropped.
    #[error("the log could not be written, or was closed")]
    Lost,
}

/// Confirms that an instruction was carried out.
#[derive(Debug)]
pub struct Confirmation(oneshot::Receiver<Result<(), InstructionError>>);

impl Confirmation {
    /// Waits until the event of the instruction is in the log.
    ///
    /// # Errors
    /// [`InstructionError`] when it is not carried out.
    pub async fn confirmed(self) -> Result<(), InstructionError> {
        self.0.await.unwrap_or(Err(InstructionError::Lost))
    }
}

/// An instruction that waits to be carried out, and who waits for that.
pub(crate) struct Pending {
    /// Its number in the inbox of the store, if it is from there.
    pub(crate) number: Option<u64>,
    pub(crate) instruction: Instruction,
    confirm: oneshot::Sender<Result<(), InstructionError>>,
}

impl Pending {
    /// Reports that it was carried out, or refused.
    pub(crate) fn confirm(self, result: Result<(), InstructionError>) {
        // Fails only if the sender does not wait.
        let _ = self.confirm.send(result);
    }
}

/// Instructions that the run carries out when it can.
#[derive(Clone, Default)]
pub(crate) struct Inbox(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Notify,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Pending>,
    /// Whether the log is gone: no run takes instructions any more.
    is_closed: bool,
}

impl Inbox {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an instruction of this process.
    pub(crate) fn push(&self, instruction: Instruction) -> Confirmation {
        self.add(self.queue(), None, instruction)
    }

    /// Adds the message `number` of the inbox of the store; `None` if it waits already.
    pub(crate) fn push_message(&self, number: u64, instruction: Instruction) -> Option<Confirmation> {
        let queue = self.queue();
        let waits = queue.waiting.iter().any(|pending| pending.number == Some(number));
        (!waits).then(|| self.add(queue, Some(number), instruction))
    }

    fn add(
        &self,
        mut queue: MutexGuard<'_, Queue>,
        number: Option<u64>,
        instruction: Instruction,
    ) -> Confirmation {
        let (confirm, confirmed) = oneshot::channel();
        if !queue.is_closed {
            queue.waiting.push_back(Pending { number, instruction, confirm });
        }
        drop(queue);
        self.0.changed.notify_waiters();
        Confirmation(confirmed)
    }

    /// Takes the first instruction that can be carried out at one of these times.
    pub(crate) fn take(&self, timings: &[Timing]) -> Option<Pending> {
        self.take_first(|instruction| timings.contains(&instruction.timing()))
    }

    /// Waits for an answer to one of the questions with these numbers, and takes it.
    pub(crate) async fn take_answer(&self, questions: &[u64]) -> Pending {
        loop {
            // Subscribed before the check, so that no change is missed.
            let changed = self.0.changed.notified();
            let answer = self.take_first(|instruction| {
                matches!(instruction, Instruction::Answer { question, .. } if questions.contains(question))
            });
            if let Some(answer) = answer {
                return answer;
            }
            changed.await;
        }
    }

    fn take_first(&self, is_it: impl Fn(&Instruction) -> bool) -> Option<Pending> {
        let mut queue = self.queue();
        let at = queue.waiting.iter().position(|pending| is_it(&pending.instruction))?;
        queue.waiting.remove(at)
    }

    /// Puts an instruction back that cannot be carried out yet, before all others.
    pub(crate) fn put_back(&self, pending: Pending) {
        self.queue().waiting.push_front(pending);
    }

    /// Loses what waits and what comes: the log is gone.
    pub(crate) fn close(&self) {
        *self.queue() = Queue { waiting: VecDeque::new(), is_closed: true };
    }

    /// Whether instructions of these times wait.
    pub(crate) fn has(&self, timings: &[Timing]) -> bool {
        self.queue().waiting.iter().any(|pending| timings.contains(&pending.instruction.timing()))
    }

    /// Waits until instructions of these times wait.
    pub(crate) async fn changed(&self, timings: &[Timing]) {
        loop {
            // Subscribed before the check, so that no change is missed.
            let changed = self.0.changed.notified();
            if self.has(timings) {
                return;
            }
            changed.await;
        }
    }
}

/// The numbers of the inbox messages that are in the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TakenNumbers {
    /// All up to this one.
    until: u64,
    /// Those beyond it.
    beyond: BTreeSet<u64>,
}

impl TakenNumbers {
    pub(crate) fn add(&mut self, number: u64) {
        self.beyond.insert(number);
        while self.beyond.remove(&self.until.saturating_add(1)) {
            self.until += 1;
        }
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        number <= self.until || self.beyond.contains(&number)
    }

    /// The number up to which all were taken.
    pub(crate) const fn until(&self) -> u64 {
        self.until
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(message) => write!(f, "a message by {}", message.from),
            Self::Answer { question, .. } => write!(f, "the answer to question {question}"),
            Self::NextSpeaker { who } => write!(f, "{who} as the next speaker"),
            Self::RaiseLimits { .. } => f.write_str("a higher limit"),
            Self::RaiseAgentLimits { who, .. } => write!(f, "a higher limit of {who}"),
            Self::RaiseChatLimits { chat, .. } => write!(f, "a higher limit of {chat}"),
            Self::ChangeTitle { .. } => f.write_str("another title"),
            Self::ClientDisconnected { .. } => f.write_str("the end of a client's connection"),
            Self::Pause => f.write_str("the pause"),
            Self::Resume => f.write_str("the continuation"),
            Self::Cancel { .. } => f.write_str("the cancellation"),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn numbers_are_taken_in_any_order() {
        let mut taken = TakenNumbers::default();
        taken.add(3);
        assert!(taken.contains(3) && !taken.contains(1) && taken.until() == 0);
        taken.add(1);
        assert_eq!(taken.until(), 1);
        taken.add(2);
        assert_eq!(taken, TakenNumbers { until: 3, beyond: BTreeSet::new() });
    }

    #[test]
    fn what_waits_when_the_log_goes_is_lost() {
        let inbox = Inbox::default();
        let before = inbox.push(Instruction::Pause);
        inbox.close();
        let after = inbox.push(Instruction::Pause);
        for confirmation in [before, after] {
            assert_eq!(confirmation.confirmed().now_or_never(), Some(Err(InstructionError::Lost)));
        }
    }

    #[test]
    fn an_answer_is_taken_by_those_who_asked() {
        let inbox = Inbox::default();
        let answer = |question| Instruction::Answer { question, text: "yes".into(), by: None };
        drop(inbox.push(Instruction::Pause));
        drop(inbox.push(answer(7)));
        let taken = |questions: &[u64]| {
            inbox.take_answer(questions).now_or_never().map(|pending| pending.instruction)
        };
        assert_eq!(taken(&[]), None);
        assert_eq!(taken(&[3, 9]), None);
        assert_eq!(taken(&[3, 7]), Some(answer(7)));
        assert_eq!(taken(&[7]), None, "it was taken");
        assert!(inbox.has(&[Timing::Now]));
    }

    #[test]
    fn an_instruction_of_the_store_waits_once() {
        let inbox = Inbox::default();
        assert!(inbox.push_message(1, Instruction::Pause).is_some());
        assert!(inbox.push_message(1, Instruction::Pause).is_none(), "it is not lost, but waits already");
        assert!(inbox.take(&[Timing::Now]).is_some());
        assert!(inbox.take(&[Timing::Now]).is_none());
    }
}
