//! A person who may step in where an agent would reply by itself.
//!
//! [`HumanInput`] is a layer of a [`Stack`](crate::reply::Stack): it comes first, asks the person when its mode says so, and
//! leaves the reply to the layers after it when the person has nothing to say. It also ends the chat when the agent has
//! replied by itself too often, or when a message says that the conversation is over.
//!
//! | mode | asked | Enter | limit on automatic replies |
//! |---|---|---|---|
//! | [`always`](HumanInput::always) | on every turn | replies by itself; ends the chat after a message that ends it | does not matter |
//! | [`terminate`](HumanInput::terminate) | after a message that ends the chat, and at the limit | ends the chat; at the limit, replies by itself | asks |
//! | [`never`](HumanInput::never) | never | | ends the chat |
//!
//! `exit`, in any case and with spaces around it, always ends the chat; any other text is the reply, and the automatic
//! replies are counted anew. The run never waits: it ends with [`Status::Waiting`](polylogue_core::Status) and goes on
//! when the answer is in the log.
//!
//! When nobody has said anything yet, the person is asked for the first message, except in the mode `never`.
//!
//! # A person who is asked at the end
//! ```
//! # fn example(model: polylogue_core::AnyModel) -> polylogue_core::Result<()> {
//! use polylogue::oversight::Oversight;
//! use polylogue::reply::Stack;
//! use polylogue::stop::says;
//! use polylogue::{Assistant, Chat, in_turn};
//!
//! let chat = Chat::named("pair")
//!     .with(Assistant::new("Coder", model.clone())?.system("Say DONE when you are."))
//!     .with(
//!         Stack::new("Boss")?
//!             .then(Oversight::terminate().ends_on(says("DONE")).max_auto_replies(5))
//!             .then(Assistant::new("Boss", model)?.system("You review the code.")),
//!     )
//!     .policy(in_turn())
//!     .build()?;
//! # Ok(())
//! # }
//! ```

mod clear;
mod count;
mod words;

use std::fmt;
use std::sync::Arc;

use polylogue_core::{Act, Call, CallOutcome, Line, Name, Outcome, Part, Result, Source, StopReason, Turn};

use self::words::Occasion;
use crate::executor::pending_for;
use crate::reply::Reply;
use crate::stop::{Says, says};

/// A person who may step in: the layer `oversight`. See the [module](self).
#[derive(Clone)]
pub struct HumanInput {
    mode: Mode,
    limit: u64,
    ends: Arc<Ends>,
    clears: bool,
}

/// Why a message ends the chat, if it does.
type Ends = dyn Fn(&Line) -> Option<StopReason> + Send + Sync;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Always,
    Terminate,
    Never,
}

/// What an interrupted call comes to.
const INTERRUPTED: &str = "USER INTERRUPTED";

/// Asked, and answered so far.
enum Answer {
    Nothing,
    Exit,
    Text(Arc<str>),
}

impl HumanInput {
    /// How many replies in a row an agent gives by itself, unless it is told otherwise.
    pub const DEFAULT_MAX_AUTO_REPLIES: u64 = 100;

    /// The person is asked on every turn.
    #[must_use]
    pub fn always() -> Self {
        Self::new(Mode::Always)
    }

    /// The person is asked when the conversation would end, and when the limit on automatic replies is met.
    #[must_use]
    pub fn terminate() -> Self {
        Self::new(Mode::Terminate)
    }

    /// Nobody is asked: the chat ends at the limit on automatic replies, and after a message that ends it.
    #[must_use]
    pub fn never() -> Self {
        Self::new(Mode::Never)
    }

    fn new(mode: Mode) -> Self {
        let oversight = Self {
            mode,
            limit: Self::DEFAULT_MAX_AUTO_REPLIES,
            ends: Arc::new(|_: &Line| None),
            clears: false,
        };
        oversight.terminate_on(says("TERMINATE").whole())
    }

    /// Sets how many replies in a row the agent gives by itself; 0 is none at all: where the person is asked and answers
    /// nothing, nothing is said. A text of the person, and a chat that goes on about something more, count anew.
    #[must_use]
    pub fn max_auto_replies(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// Sets the text by which a message ends the conversation. The default: a message that is nothing but `TERMINATE`, white
    /// space aside. What was said before the first turn never ends it.
    #[must_use]
    pub fn terminate_on(self, says: Says) -> Self {
        Self { ends: Arc::new(move |line| says.of(line)), ..self }
    }

    /// Sets the condition under which a message ends the conversation: a pure function of it, and what it is called in
    /// [`StopReason::Condition`].
    #[must_use]
    pub fn terminate_when(self, name: &str, holds: impl Fn(&Line) -> bool + Send + Sync + 'static) -> Self {
        let name = name.to_owned();
        let ends = move |line: &Line| holds(line).then(|| StopReason::Condition { name: name.clone() });
        Self { ends: Arc::new(ends), ..self }
    }

    /// Lets the person say `clear history`, in any case, and after it the name of a member, a number, or both: what was
    /// said so far is then out of sight of everybody, or of that member, save so many of the last messages. The words of
    /// the command are not said; when nothing else is left to say, the person is asked again.
    #[must_use]
    pub fn clear_command(self) -> Self {
        Self { clears: true, ..self }
    }

    /// When there is something to ask: on what occasion, or else what the layer does.
    fn occasion(&self, turn: &Turn<'_>) -> Result<Occasion, Option<Act>> {
        let ended = news(turn).and_then(|line| (self.ends)(line));
        let over = || count::is_over(turn.transcript(), turn.me(), self.limit);
        let silence = turn.transcript().messages().next().is_none();
        match (self.mode, ended) {
            (Mode::Never, Some(reason)) => Err(Some(Act::Stop(reason))),
            (Mode::Never, None) if over() => {
                Err(Some(Act::Stop(StopReason::AutoReplies { who: turn.me().clone(), limit: self.limit })))
            }
            (Mode::Never, None) => Err(None),
            (_, Some(reason)) => Ok(Occasion::End(reason)),
            (_, None) if silence => Ok(Occasion::First),
            (Mode::Always, None) => Ok(Occasion::Turn),
            (Mode::Terminate, None) if over() => Ok(Occasion::Limit(self.limit)),
            (Mode::Terminate, None) => Err(None),
        }
    }

    /// What the person says, without commands, which are carried out.
    async fn carry_out(&self, turn: &mut Turn<'_>, text: Arc<str>) -> Result<Arc<str>> {
        let members = turn.transcript().participants();
        let Some(command) = Some(&text).filter(|_| self.clears).and_then(|text| clear::parse(text, members))
        else {
            return Ok(text);
        };
        turn.clear(command.of, command.keep).await?;
        Ok(command.rest.into())
    }

    /// What comes of an empty answer.
    fn skipped(&self, occasion: Occasion) -> Option<Act> {
        match occasion {
            Occasion::End(reason) => Some(Act::Stop(reason)),
            // Nothing is ever said automatically.
            _ if self.limit == 0 => Some(Act::Pass),
            _ => None,
        }
    }
}

impl Reply for HumanInput {
    fn label(&self) -> &'static str {
        "oversight"
    }

    fn may_be_silent(&self) -> bool {
        self.mode != Mode::Never
    }

    async fn reply(&self, turn: &mut Turn<'_>) -> Result<Option<Act>> {
        // What an agent is asked aside is no part of the conversation that the person watches over.
        if turn.request().to.is_private() {
            return Ok(None);
        }
        let occasion = match self.occasion(turn) {
            Ok(occasion) => occasion,
            Err(act) => return Ok(act),
        };
        let calls = pending_for(turn);
        loop {
            let Some(answer) = turn.answer() else {
                let question = words::question(turn, &occasion, &calls, self.limit == 0, self.clears);
                return Ok(Some(Act::Ask(question.into())));
            };
            match Answer::of(answer) {
                Answer::Nothing => return Ok(self.skipped(occasion)),
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

/// What the agent has to reply to: the last message of somebody else, if it came after the agent spoke last.
fn news<'a>(turn: &Turn<'a>) -> Option<&'a Line> {
    let chat = turn.transcript();
    let spoke = chat.recent_turns().find(|ended| ended.who == *turn.me()).map(|ended| ended.seq);
    let is_new = |line: &&Line| spoke.is_none_or(|seq| line.seq > seq);
    turn.last_message().filter(is_new).filter(|line| line.source != Source::Opening)
}

/// The person's words, which take the place of running the calls that wait.
fn said(text: Arc<str>, calls: Vec<(Name, Call)>) -> Act {
    let outcome = |(to, Call { id, tool, .. })| {
        Part::Outcome(CallOutcome { to, id, tool, outcome: Outcome::failed(INTERRUPTED) })
    };
    Act::Say(calls.into_iter().map(outcome).chain([Part::Text(text)]).collect())
}

impl fmt::Debug for HumanInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oversight")
            .field("mode", &self.mode)
            .field("limit", &self.limit)
            .field("clears", &self.clears)
            .finish_non_exhaustive()
    }
}
