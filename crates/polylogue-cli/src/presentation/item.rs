//! The items that a conversation shows.

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{
    Audience, Body, Call, CallOutcome, Failure, Message, Name, Opening, Outcome, Part, Path, Question,
    StopReason, TurnRequest,
};

/// One thing that a conversation shows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    /// The chat in which it happened.
    pub(crate) at: Path,
    pub(crate) kind: Kind,
}

/// What an item is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// A chat opened. Its messages follow as items of their own.
    ChatOpened {
        opening: Opening,
        /// The task, unless a message shows it.
        task: Option<Arc<str>>,
    },
    /// A turn began, perhaps after a selection of its speaker.
    TurnStarted(TurnRequest),
    /// A participant has no turn any more. Follows what its turn ended with.
    TurnEnded { who: Name },
    /// A model replied.
    Replied { who: Name, cached: bool },
    /// The reasoning of a model.
    Thought { who: Name, to: Audience, text: Arc<str> },
    /// A text with tool calls, before they are made.
    Narration { who: Name, to: Audience, text: String },
    /// A reply that did not become a message.
    Draft { who: Name, text: String },
    /// A prompt for one participant alone.
    Prompted { who: Name, text: String },
    /// A tool call began.
    CallStarted {
        who: Name,
        call: Call,
        /// Whether it runs code that stands in a message.
        is_code: bool,
        /// Whether a message of another participant requested it.
        is_requested: bool,
    },
    /// A tool call finished.
    CallReturned(Returned),
    /// A message.
    Said(Said),
    /// A private reply.
    Aside { who: Name, text: String },
    /// A private decision about a task.
    Decision { who: Name, text: String },
    /// A person is asked.
    Question(Question),
    /// A person answered, perhaps nothing.
    Answered {
        to: Name,
        text: Arc<str>,
        /// Whether a message with the same text follows.
        is_repeated: bool,
    },
    /// A turn failed.
    Failed { who: Name, error: Failure },
    /// A participant joined, left, passed, or did something else without a message.
    Moved(Body),
    /// What a participant remembers of its turn.
    Remembered { who: Name, text: String },
    /// A chat ended.
    ChatClosed {
        reason: StopReason,
        summary: Arc<str>,
        /// Whether the last message has the same text.
        is_shown: bool,
    },
    /// A closed chat continues.
    Reopened,
    /// A tool call has no result yet.
    Unfinished { who: Name, call: Call },
}

/// A finished tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Returned {
    pub(crate) who: Name,
    /// The audience of the turn.
    pub(crate) to: Audience,
    pub(crate) call: Call,
    pub(crate) outcome: Outcome,
    pub(crate) took: Duration,
    pub(crate) shown: ResultShown,
    pub(crate) is_code: bool,
    pub(crate) is_requested: bool,
    /// Whether its arguments were shown in full: with the question for approval.
    pub(crate) is_approved: bool,
    /// The note of a handoff, which is also posted as a message.
    pub(crate) note: Option<HandoffNote>,
}

/// Where the result of a call is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultShown {
    /// With the call.
    Here,
    /// In the message that follows.
    InMessage,
    /// Here, after the call was shown: no message has it.
    Late,
}

/// The note of a handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HandoffNote {
    pub(crate) text: String,
    /// Whether it stands among the arguments of the call.
    pub(crate) in_arguments: bool,
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Said {
    pub(crate) message: Message,
    /// The content that was not shown before.
    pub(crate) parts: Vec<Part>,
    /// The parts that are the output of programs.
    pub(crate) output: Vec<Part>,
    pub(crate) source: Source,
    /// Whether it is the note of a handoff whose call was shown.
    pub(crate) is_note: bool,
    /// The calls that its outcomes answer.
    pub(crate) answered: Vec<Call>,
}

impl Said {
    /// Whether some of the message was shown before, such as results of calls.
    pub(crate) fn is_shown(&self) -> bool {
        self.parts.len() < self.message.parts.len()
    }

    /// Whether nothing of it is left to show.
    pub(crate) fn is_known(&self) -> bool {
        self.is_shown() && self.parts.is_empty()
    }

    /// The call that `came` is the result of.
    pub(crate) fn call_of(&self, came: &CallOutcome) -> Call {
        let call = self.answered.iter().find(|call| call.id == came.id).cloned();
        call.unwrap_or_else(|| Call { id: came.id.clone(), tool: came.tool.clone(), args: ().into() })
    }
}

/// How a message came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A chat opened with it.
    Opening,
    /// A closed chat continues with it.
    Reopening,
    /// A turn ended with it.
    Turn,
    /// The policy posted it, or it was sent from outside.
    Posted,
}
