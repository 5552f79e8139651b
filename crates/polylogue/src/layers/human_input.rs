//! Human input: a person who can reply instead of an agent.
//!
//! [`HumanInput`] is the first layer of a [`Stack`](crate::layers::reply::Stack): it asks the person when its mode says so, and
//! passes on to the next layers when the answer is empty. It also ends the chat when the limit on automatic replies is
//! reached, or when a message meets the termination condition.
//!
//! | mode | asked | empty answer | limit on automatic replies |
//! |---|---|---|---|
//! | [`always`](HumanInput::always) | in every turn | automatic reply; after a terminating message, ends the chat | no effect |
//! | [`terminate`](HumanInput::terminate) | after a terminating message, and at the limit | ends the chat; at the limit, automatic reply | asks |
//! | [`never`](HumanInput::never) | never | | ends the chat |
//!
//! `exit`, in any case and with surrounding spaces, always ends the chat; any other text is the reply, and resets the
//! count of automatic replies. The run never blocks: it ends with [`Status::Waiting`](polylogue_core::Status) and
//! continues once the answer is in the log.
//!
//! In an empty chat the person is asked for the first message, except in the mode `never`.
//!
//! # A person who is asked at termination
//! ```
//! # fn example(model: polylogue_core::AnyModel) -> polylogue_core::Result<()> {
//! use polylogue::layers::human_input::HumanInput;
//! use polylogue::layers::reply::Stack;
//! use polylogue::stop::says;
//! use polylogue::{Assistant, Chat, round_robin};
//!
//! let chat = Chat::builder("pair")
//!     .participant(Assistant::new("Coder", model.clone())?.system("Say DONE when you are."))
//!     .participant(
//!         Stack::new("Boss")?
//!             .then(HumanInput::terminate().terminate_on(says("DONE")).max_auto_replies(5))
//!             .then(Assistant::new("Boss", model)?.system("You review the code.")),
//!     )
//!     .policy(round_robin())
//!     .build()?;
//! # Ok(())
//! # }
//! ```

mod clear;
mod count;
mod words;

use std::sync::Arc;

use crate::stop::LibraryStopReason;
use polylogue_core::{
    Act, ExecutedCall, MessageSource, Name, Part, Result, StopReason, ToolCall, ToolResult,
    TranscriptMessage, Turn,
};

use self::words::InputReason;
use crate::layers::executor::pending_for;
use crate::layers::reply::ReplyLayer;
use crate::stop::{Says, says};

/// Human input: the layer `human_input`. See the [module](self).
#[derive(Clone, derive_more::Debug)]
#[must_use]
pub struct HumanInput {
    mode: Mode,
    limit: u64,
    #[debug(skip)]
    ends: Arc<TerminationFn>,
    clears: bool,
}

/// The stop reason of a terminating message.
type TerminationFn = dyn Fn(&TranscriptMessage) -> Option<StopReason> + Send + Sync;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Always,
    Terminate,
    Never,
}

/// The result of an interrupted call.
const INTERRUPTED: &str = "USER INTERRUPTED";

/// The answer so far.
enum Answer {
    Nothing,
    Exit,
    Text(Arc<str>),
}

impl HumanInput {
    /// Default limit on automatic replies in a row.
    pub const DEFAULT_MAX_AUTO_REPLIES: u64 = 100;

    /// Asks the person in every turn.
    pub fn always() -> Self {
        Self::new(Mode::Always)
    }

    /// Asks the person at termination, and at the limit on automatic replies.
    pub fn terminate() -> Self {
        Self::new(Mode::Terminate)
    }

    /// Never asks: the chat ends at the limit on automatic replies, and after a terminating message.
    pub fn never() -> Self {
        Self::new(Mode::Never)
    }

    fn new(mode: Mode) -> Self {
        let human_input = Self {
            mode,
            limit: Self::DEFAULT_MAX_AUTO_REPLIES,
            ends: Arc::new(|_: &TranscriptMessage| None),
            clears: false,
        };
        human_input.terminate_on(says("TERMINATE").whole())
    }

    /// Sets the limit on automatic replies in a row. With 0 there are none: after an empty answer the agent is silent.
    /// A text of the person, and reopening the chat, reset the count.
    pub fn max_auto_replies(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// Sets the text by which a message terminates the chat. Default: a message that is only `TERMINATE`, except for
    /// white space. Messages before the first turn never terminate it.
    pub fn terminate_on(self, says: Says) -> Self {
        Self { ends: Arc::new(move |line| says.of(line)), ..self }
    }

    /// Sets the condition by which a message terminates the chat: a pure function, and its name in
    /// [`LibraryStopReason::Condition`].
    pub fn terminate_when(
        self,
        name: &str,
        holds: impl Fn(&TranscriptMessage) -> bool + Send + Sync + 'static,
    ) -> Self {
        let name = name.to_owned();
        let ends = move |line: &TranscriptMessage| {
            holds(line).then(|| StopReason::from(LibraryStopReason::Condition { name: name.clone() }))
        };
        Self { ends: Arc::new(ends), ..self }
    }

    /// Enables the command `clear history`, in any case, optionally followed by the name of a participant, a number, or
    /// both: all messages but that many are then hidden from all participants, or from that one. The command is not
    /// part of the reply; when nothing else is left, the person is asked again.
    pub fn clear_command(self) -> Self {
        Self { clears: true, ..self }
    }

    /// Why the person is asked; otherwise what the layer does.
    fn input_reason(&self, turn: &Turn<'_>) -> Result<InputReason, Option<Act>> {
        let ended = news(turn).and_then(|line| (self.ends)(line));
        let over = || count::is_over(turn.transcript(), turn.me(), self.limit);
        let silence = turn.transcript().messages().next().is_none();
        match (self.mode, ended) {
            (Mode::Never, Some(reason)) => Err(Some(Act::Stop(reason))),
            (Mode::Never, None) if over() => {
                Err(Some(Act::Stop(StopReason::from(LibraryStopReason::AutoReplies {
                    who: turn.me().clone(),
                    limit: self.limit,
                }))))
            }
            (Mode::Never, None) => Err(None),
            (_, Some(reason)) => Ok(InputReason::End(reason)),
            (_, None) if silence => Ok(InputReason::First),
            (Mode::Always, None) => Ok(InputReason::Turn),
            (Mode::Terminate, None) if over() => Ok(InputReason::Limit(self.limit)),
            (Mode::Terminate, None) => Err(None),
        }
    }

    /// The text of the person, after commands are executed and removed.
    async fn carry_out(&self, turn: &mut Turn<'_>, text: Arc<str>) -> Result<Arc<str>> {
        let participants = turn.transcript().participants();
        let Some(command) =
            Some(&text).filter(|_| self.clears).and_then(|text| clear::parse(text, participants))
        else {
            return Ok(text);
        };
        turn.clear_history(command.of, command.keep).await?;
        Ok(command.rest.into())
    }

    /// The result of an empty answer.
    fn skipped(&self, input_reason: InputReason) -> Option<Act> {
        match input_reason {
            InputReason::End(reason) => Some(Act::Stop(reason)),
            // There are no automatic replies.
            _ if self.limit == 0 => Some(Act::Pass),
            _ => None,
        }
    }
}

impl ReplyLayer for HumanInput {
    fn label(&self) -> &'static str {
        "human_input"
    }

    fn may_be_silent(&self) -> bool {
        self.mode != Mode::Never
    }

    async fn reply(&self, turn: &mut Turn<'_>) -> Result<Option<Act>> {
        // Private turns are not part of the conversation that the person controls.
        if turn.request().to.is_private() {
            return Ok(None);
        }
        let input_reason = match self.input_reason(turn) {
            Ok(input_reason) => input_reason,
            Err(act) => return Ok(act),
        };
        let calls = pending_for(turn);
        loop {
            let Some(answer) = turn.answer() else {
                let question = words::question(turn, &input_reason, &calls, self.limit == 0, self.clears);
                return Ok(Some(Act::Ask(question)));
            };
            match Answer::of(answer) {
                Answer::Nothing => return Ok(self.skipped(input_reason)),
                Answer::Exit => {
                    let reason = StopReason::Left { who: turn.me().clone(), why: "said `exit`".into() };
                    return Ok(Some(Act::Stop(reason)));
                }
                Answer::Text(text) => {
                    let text = self.carry_out(turn, text).await?;
                    if !text.trim().is_empty() {
                        return Ok(Some(said(text, calls)));
                    }
                }
            }
        }
    }
}

impl Answer {
    fn of(answer: Arc<str>) -> Self {
        match answer.trim() {
            "" => Self::Nothing,
            word if word.eq_ignore_ascii_case("exit") => Self::Exit,
            _ => Self::Text(answer),
        }
    }
}

/// The message to reply to: the last one of another participant since the agent's last turn.
fn news<'a>(turn: &Turn<'a>) -> Option<&'a TranscriptMessage> {
    let chat = turn.transcript();
    let spoke = chat.recent_turns().find(|ended| ended.who == *turn.me()).map(|ended| ended.seq);
    let is_new = |line: &&TranscriptMessage| spoke.is_none_or(|seq| line.seq > seq);
    turn.last_message().filter(is_new).filter(|line| line.source != MessageSource::Opening)
}

/// The text of the person, which replaces the results of open calls.
fn said(text: Arc<str>, calls: Vec<(Name, ToolCall)>) -> Act {
    let outcome = |(to, ToolCall { id, tool, .. })| {
        Part::ToolResult(ExecutedCall { to, id, tool, result: ToolResult::failed(INTERRUPTED) })
    };
    Act::Say(calls.into_iter().map(outcome).chain([Part::Text(text)]).collect())
}
