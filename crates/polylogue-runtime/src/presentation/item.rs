//! The items that a conversation shows.

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{
    Audience, Body, ExecutedCall, Failure, Message, Name, Opening, Part, Path, PrefixChange, Question,
    Responder, StopReason, ToolCall, ToolResult, TurnRequest,
};

use super::said::SummarySource;

/// An item of a presentation: one thing that a conversation shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The chat in which it happened.
    pub chat: Path,
    /// The kind of item.
    pub kind: Kind,
}

/// The kind of an [`Item`].
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A chat opened. Its messages follow as items of their own.
    ChatOpened {
        /// The participants, task and introduction.
        opening: Opening,
        /// The task, unless a message shows it.
        task: Option<Arc<str>>,
    },
    /// A turn began, perhaps after a selection of its speaker.
    TurnStarted {
        /// Who has the turn, and why.
        request: TurnRequest,
        /// Whether the call that hands the turn over was shown.
        is_announced: bool,
    },
    /// A participant's turn ended. Follows what the turn ended with.
    TurnEnded {
        /// The participant whose turn it was.
        who: Name,
    },
    /// A model replied; the parts of the reply are items of their own.
    ModelReplied {
        /// The agent whose model it is.
        who: Name,
        /// Whether the reply is from a cache.
        cached: bool,
    },
    /// Another model replied than the one that was asked. Shown once until that changes.
    FellBack {
        /// The agent whose model it is.
        who: Name,
        /// The model that replied, as `provider:model`.
        model: Arc<str>,
        /// The model that was asked.
        asked: Arc<str>,
        /// What was wrong with the models before: their errors, or why they were not asked. `None` if nothing was, as where the provider
        /// chose another model.
        because: Option<Arc<str>>,
    },
    /// A provider's prompt cache was not read because of what a request begins with. Shown once for each cause and agent.
    PromptCacheMissed {
        /// The agent whose request it is.
        who: Name,
        /// What changed.
        change: PrefixChange,
    },
    /// The seals of a reply were too large to be kept. Shown only in whole.
    SealsDropped {
        /// The agent whose model it is.
        who: Name,
        /// The model, as `provider:model`.
        model: Arc<str>,
        /// Their size in bytes.
        bytes: u64,
    },
    /// A model wrote a tool call as text, which the user's own server did not read. Shown once for each model and agent.
    CallWritten {
        /// The agent whose model it is.
        who: Name,
        /// The model, as `provider:model`.
        model: Arc<str>,
        /// What to do about it.
        hint: String,
    },
    /// The reasoning of a model.
    Reasoning {
        /// The agent whose model it is.
        who: Name,
        /// The audience of the turn.
        to: Audience,
        /// The reasoning.
        text: Arc<str>,
    },
    /// A text next to tool calls, before the calls are made.
    Narration {
        /// The agent that makes the calls.
        who: Name,
        /// The audience of the turn.
        to: Audience,
        /// The text.
        text: String,
    },
    /// A reply that did not become a message.
    Draft {
        /// The agent whose reply it is.
        who: Name,
        /// The reply.
        text: String,
    },
    /// A prompt for one participant alone.
    Prompted {
        /// The participant that receives it.
        who: Name,
        /// The prompt.
        text: String,
    },
    /// A tool call began.
    ToolCalled {
        /// The agent that calls the tool.
        who: Name,
        /// The call.
        call: ToolCall,
        /// Whether it runs code that is part of a message.
        is_code: bool,
        /// Whether a message of another participant requested it.
        is_requested: bool,
    },
    /// A tool call finished.
    ToolReturned(ShownToolResult),
    /// A message.
    Message(ShownMessage),
    /// A private reply, such as a selection or a plan.
    PrivateReply {
        /// The agent that replied.
        who: Name,
        /// The reply; its JSON if it has no text.
        text: String,
    },
    /// A private decision about a task.
    Decision {
        /// The agent that decided.
        who: Name,
        /// The decision, in words.
        text: String,
    },
    /// A person is asked.
    InputRequired(Question),
    /// A person answered, perhaps nothing.
    InputProvided {
        /// The participant whose question it answers.
        to: Name,
        /// The answer.
        text: Arc<str>,
        /// Whether a message with the same text follows.
        is_repeated: bool,
        /// The person or program that answered.
        by: Responder,
    },
    /// A turn failed.
    Failed {
        /// The participant whose turn failed.
        who: Name,
        /// The error.
        error: Failure,
    },
    /// A participant joined, left, passed, or did something else without a message. The event says what.
    Notice(Body),
    /// A text that a participant remembers as its own in a turn.
    Remembered {
        /// The participant that remembers it.
        who: Name,
        /// The text.
        text: String,
    },
    /// A chat ended.
    ChatClosed {
        /// The stop reason.
        reason: StopReason,
        /// The result.
        summary: Arc<str>,
        /// The source of the summary.
        source: SummarySource,
    },
    /// A closed chat continues.
    Reopened,
    /// A tool call has no result yet.
    CallPending {
        /// The agent that called the tool.
        who: Name,
        /// The call.
        call: ToolCall,
    },
}

/// A finished tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownToolResult {
    /// The agent that called the tool.
    pub who: Name,
    /// The audience of the turn.
    pub to: Audience,
    /// The call.
    pub call: ToolCall,
    /// The result.
    pub result: ToolResult,
    /// The running time of the call.
    pub took: Duration,
    /// Where the result is shown.
    pub shown: ResultShown,
    /// Whether it ran code that is part of a message.
    pub is_code: bool,
    /// Whether a message of another participant requested it.
    pub is_requested: bool,
    /// Whether its arguments were shown in full with the question for approval.
    pub is_approved: bool,
    /// The note of a handoff, which is also posted as a message.
    pub note: Option<HandoffNote>,
    /// Whether a message of a chat within its turn shows the same text.
    pub repeats: bool,
}

/// The place where the result of a call is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultShown {
    /// With the call.
    Here,
    /// In the message that follows.
    InMessage,
    /// Here, after the call, because no message has it.
    Late,
}

/// The note of a handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffNote {
    /// The text.
    pub text: String,
    /// Whether it is one of the arguments of the call.
    pub in_arguments: bool,
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownMessage {
    /// The message.
    pub message: Message,
    /// The parts that were not shown before.
    pub parts: Vec<Part>,
    /// The parts that are the output of programs.
    pub output: Vec<Part>,
    /// The source of the message.
    pub source: Source,
    /// The id of the call whose result it is, if that call was shown: of a tool that ends the turn, or of a handoff with a note.
    pub result_of: Option<String>,
    /// The calls that its results answer.
    pub answered: Vec<ToolCall>,
    /// Whether a message of a chat within its turn, or of a chat around, shows the same text.
    pub repeats: bool,
}

impl ShownMessage {
    /// Returns whether a part of the message was shown before, such as results of calls.
    pub fn is_partly_shown(&self) -> bool {
        self.parts.len() < self.message.parts.len()
    }

    /// Returns whether all of it was shown before.
    pub fn is_shown(&self) -> bool {
        self.is_partly_shown() && self.parts.is_empty()
    }

    /// Returns the call that `result` is the result of.
    pub fn call_of(&self, result: &ExecutedCall) -> ToolCall {
        let call = self.answered.iter().find(|call| call.id == result.id).cloned();
        call.unwrap_or_else(|| ToolCall { id: result.id.clone(), tool: result.tool.clone(), args: ().into() })
    }
}

/// The source of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A chat opened with it.
    Opening,
    /// A closed chat continues with it.
    Reopening,
    /// A turn ended with it.
    Turn,
    /// The policy posted it, or it was sent from outside.
    Posted,
}
