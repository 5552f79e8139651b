//! Turns: what an agent can read and do when it acts.

mod act;
mod background;
mod background_tasks;
mod calls;
mod compaction;
mod continued;
mod journal;
mod left_out;
mod model;
mod repeats;
mod tools;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, LazyLock};

pub use self::act::{Act, InputRequest};
pub use self::background::{BackgroundStart, BackgroundTaskState};
pub(crate) use self::background_tasks::{BackgroundTasks, Begun, Rest};
use crate::log::{LastEvent, UncheckedTurn};
use crate::transcript::{OpenTurn, in_order};
use crate::{
    AnyModel, Body, Capability, Charge, Entry, Event, FinishReason, Log, Message, Name, Params, Part, Path,
    Reply, Result, ToolSpec, Transcript, TranscriptMessage, TurnRequest, View, ViewOptions,
};

/// One turn of one agent: what the agent can read and do when it [acts](crate::Agent::act).
///
/// Everything a turn does is an event. When a run is resumed in the middle of a turn, the same calls return the
/// logged results: a finished model call is never repeated.
///
/// | you want | call |
/// |---|---|
/// | the message to reply to | [`message`](Self::message) |
/// | the whole chat | [`transcript`](Self::transcript); as the agent's model receives it: [`view`](Self::view) |
/// | a reply of a model | [`ask_model`](Self::ask_model); the rest of a truncated one: [`continue_reply`](Self::continue_reply) |
/// | to prompt that model, such as with an error | [`prompt`](Self::prompt) |
/// | tool calls | [`call_tools`](Self::call_tools) |
/// | replies of other agents | [`ask`](Self::ask), in parallel [`ask_all`](Self::ask_all) |
/// | a chat within the turn | [`run`](Self::run), then [`say_result`](Self::say_result) |
/// | an answer of a person | return [`Act::Ask`]; when the turn continues, [`answer`](Self::answer) returns it |
/// | a task next to the conversation | [`start_background`](Self::start_background) |
///
/// # Example: a model is asked again until its reply is a number
/// ```
/// use polylogue_core::{Act, AnyModel, ModelCall, Result, Turn};
///
/// async fn forecast(model: &AnyModel, turn: &mut Turn<'_>) -> Result<Act> {
///     for _ in 0..5 {
///         let reply = turn.ask_model(ModelCall::of(model)).await?;
///         if reply.text().trim().parse::<f64>().is_ok() {
///             return Ok(Act::say(reply.text()));
///         }
///         turn.prompt("Answer with a number and nothing else.").await?;
///     }
///     Ok(Act::Pass)
/// }
/// ```
pub struct Turn<'a> {
    pub(crate) log: &'a Log,
    pub(crate) chat: &'a dyn ChatInfo,
    pub(crate) transcript: &'a Transcript,
    request: &'a TurnRequest,
    /// In a box, as turns are moved more often than their views are read.
    view: Option<Box<View>>,
    /// Events of this turn from before it was resumed that are not replayed yet.
    past: VecDeque<Arc<Event>>,
    /// The ends of its background tasks that came with the end of the chat, which was reopened.
    ends: &'a [Arc<Event>],
    /// Events of this turn so far: first the replayed ones, then the appended ones.
    journal: Vec<Arc<Event>>,
    returned: usize,
    /// Whether the turn may have begun in an earlier run.
    pub(crate) resumed: bool,
    /// Whether its next model call may have been in flight when that run ended: no new event since.
    pub(crate) in_doubt: bool,
    /// Blocks the model calls of other turns until that call is counted.
    pub(crate) doubt: Option<UncheckedTurn<'a>>,
    /// Its last event then.
    last: LastEvent,
    /// Requests besides its next model call that may have been in flight then, and are not charged yet.
    lost: Vec<Charge>,
    /// The lowered output limit of that call, if the replay ends with it.
    lost_limit: Option<u64>,
    /// Model calls and shared events of chats within this turn.
    pub(crate) within: Vec<Arc<Event>>,
    /// Those of them that were rolled back: what they used counts.
    undone: Vec<Arc<Event>>,
    /// Shared events of chats within this turn from before it was resumed.
    pub(crate) within_before: Vec<Arc<Event>>,
    pub(crate) failed_within: bool,
    /// The finish reason of the result of the last nested chat, if it was truncated.
    pub(crate) cut_within: Option<FinishReason>,
    /// The message that this result is from, if it is from one.
    pub(crate) result_within: Option<Message>,
    /// How many chats it ran.
    pub(crate) runs: u64,
    /// How often it called an agent at each path.
    pub(crate) asked: BTreeMap<Path, usize>,
    /// Failed calls: the paths, and the events with which they began.
    pub(crate) failed: Vec<(Path, u64)>,
    /// The background tasks of the chat.
    background: Arc<BackgroundTasks>,
}

/// What a turn knows of its chat.
pub(crate) trait ChatInfo: Send + Sync {
    /// The description of `who`; empty if there is none, or no such participant.
    fn description_of(&self, who: &Name) -> &str;

    /// The maximum number of equal tool calls of an agent in a row in one turn; 0 means no limit.
    fn max_equal_calls(&self) -> usize;

    /// Whether an agent is called in it, instead of taking part in a conversation.
    fn is_for_calls(&self) -> bool;

    /// Whether `who` can start a background task of `target`.
    fn has_background(&self, who: &Name, target: &str) -> bool;

    /// The maximum number of open background tasks.
    fn max_background(&self) -> usize;
}

/// The result of a turn, besides its act.
pub(crate) struct Trace {
    pub(crate) view: Option<Box<View>>,
    /// The appended events.
    pub(crate) appended: Vec<Arc<Event>>,
    /// Model calls of chats within it.
    pub(crate) within: Vec<Arc<Event>>,
    /// Whether its error is from a chat within it, where it is logged.
    pub(crate) failed_within: bool,
}

/// The parameters of a model call, besides the conversation itself.
#[derive(Clone, Copy)]
pub struct ModelCall<'a> {
    /// The model.
    pub model: &'a AnyModel,
    /// The system message.
    pub system: Option<&'a str>,
    /// The tools that it can call.
    pub tools: &'a [ToolSpec],
    /// Temperature and other parameters.
    pub params: &'a Params,
    /// How the agent sees the chat.
    pub view: &'a ViewOptions,
    /// What is sent instead of the view, in a call that summarizes the agent's history. Its reply is logged with
    /// [`CallPurpose::Compaction`](crate::CallPurpose::Compaction), and is in no view.
    pub compaction: Option<&'a [Entry]>,
}

/// The result of a model call that needs a capability.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelAttempt {
    /// The model replied.
    Reply(Reply),
    /// The model lacks the capability.
    Unsupported(Capability),
}

static PARAMS: LazyLock<Params> = LazyLock::new(Params::default);
static VIEW_OPTIONS: LazyLock<ViewOptions> = LazyLock::new(ViewOptions::default);

impl<'a> ModelCall<'a> {
    /// Creates a call of `model` without a system message or tools, with default parameters and view options. Set the fields to
    /// change them.
    pub fn of(model: &'a AnyModel) -> Self {
        Self { model, system: None, tools: &[], params: &PARAMS, view: &VIEW_OPTIONS, compaction: None }
    }
}

impl<'a> Turn<'a> {
    pub(crate) fn new(
        log: &'a Log,
        chat: &'a dyn ChatInfo,
        transcript: &'a Transcript,
        open: &'a OpenTurn,
        view: Option<Box<View>>,
        resumed: bool,
        background: &Arc<BackgroundTasks>,
    ) -> Self {
        // A failure was logged when it happened; the turn is retried as if it had not failed.
        let past =
            open.events.iter().filter(|event| !matches!(event.body, Body::Failed { .. })).cloned().collect();
        let (journal, within, undone) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            log,
            chat,
            transcript,
            request: &open.request,
            view,
            past,
            ends: &open.ends,
            journal,
            returned: 0,
            resumed,
            in_doubt: resumed,
            doubt: if resumed { log.in_doubt(open.last) } else { None },
            last: open.last,
            lost: if resumed { log.lost(&open.reserved) } else { Vec::new() },
            lost_limit: None,
            within,
            undone,
            within_before: open.within.clone(),
            failed_within: false,
            cut_within: None,
            result_within: None,
            runs: 0,
            asked: BTreeMap::new(),
            failed: Vec::new(),
            background: Arc::clone(background),
        }
    }

    pub(crate) fn into_trace(mut self) -> Trace {
        // Nearly always nothing is replayed, and nothing is copied.
        self.journal.drain(..self.returned);
        let appended = self.journal;
        // Before the events that roll them back.
        let mut within = self.undone;
        within.append(&mut self.within);
        Trace { view: self.view, appended, within, failed_within: self.failed_within }
    }

    /// Returns the agent's own name.
    pub const fn me(&self) -> &'a Name {
        &self.request.who
    }

    /// Returns the turn request: its prompt, and the audience of its message.
    pub const fn request(&self) -> &'a TurnRequest {
        self.request
    }

    /// Returns the transcript when the turn began.
    pub const fn transcript(&self) -> &'a Transcript {
        self.transcript
    }

    /// Returns the description of `who`; empty if there is none, or no such participant.
    pub fn description_of(&self, who: &Name) -> &'a str {
        self.chat.description_of(who)
    }

    /// Sources of content from outside that this agent has read by now, here and in chats within its turns: those of
    /// tool results and of messages, at most 8. Empty if it has read none.
    pub async fn outside(&self) -> Vec<Arc<str>> {
        // When the turn is resumed, later events are in the log already.
        let next = self.past.front().map(|event| event.seq);
        self.log.read_by(self.transcript.at(), self.me(), next).await
    }

    /// Returns the message that this agent replies to: the one it was called with, or else the last message of another
    /// participant in its view; in a turn with a prompt, the prompt. Blank if there is none. [Prompts](Self::prompt) in this
    /// turn so far, such as a reminder, are appended.
    pub fn message(&self) -> Message {
        let mut message = match &self.request.prompt {
            Some(prompt) => Message::new(Name::user(), Arc::clone(prompt)),
            None => self.last_message().map_or_else(|| Message::from(""), |line| line.message.clone()),
        };
        let prompts = self.journal.iter().filter_map(|event| match &event.body {
            Body::Prompted { who, text } if who == self.me() => Some(Part::Text(Arc::clone(text))),
            _ => None,
        });
        message.parts.extend(prompts);
        message
    }

    /// Returns the act that says `summary`, the result of the last chat that this turn [ran](Self::run), with the pictures, sounds
    /// and documents of its message, and marked as truncated if it [is](Part::Cut). A blank result is a pass.
    pub fn say_result(&self, summary: Arc<str>) -> Act {
        let of = self.result_within.as_ref().filter(|message| *message.to_text() == *summary);
        let mut parts = match Act::say(summary) {
            Act::Say(parts) => parts,
            act => return act,
        };
        if let Some(message) = of {
            // Text that stands for a picture or a value is not said next to it.
            let is_text = !message.text().trim().is_empty();
            parts.retain(|_| is_text);
            parts.extend(
                message
                    .parts
                    .iter()
                    .filter(|part| match part {
                        Part::Media(_) => true,
                        Part::Data(_) => !is_text,
                        _ => false,
                    })
                    .cloned(),
            );
        }
        parts.extend(self.cut_within.clone().map(Part::Cut));
        Act::Say(parts)
    }

    /// The shared events known at this point of the turn, here, around and within, except those of agents called in
    /// parallel.
    pub(crate) fn shared(&self, but: &[Path]) -> Vec<Arc<Event>> {
        let is_known =
            |event: &&Arc<Event>| !but.iter().any(|at| event.chat == *at || event.chat.is_within(at));
        let turn = self.journal.iter().chain(&self.within_before).chain(&self.within).filter(is_known);
        self.transcript.shared().cloned().chain(in_order(turn)).collect()
    }

    /// Returns the last message of another participant in this agent's view: what it replies to.
    pub fn last_message(&self) -> Option<&'a TranscriptMessage> {
        let me = self.me();
        self.transcript.messages().rev().find(|line| line.message.from != *me && line.is_seen_by(me))
    }

    /// Returns the agent's view, up to here.
    pub fn view(&mut self, options: &ViewOptions) -> &View {
        let stale = self.view.as_ref().is_none_or(|view| view.options() != options);
        let mut view = match self.view.take() {
            Some(view) if !stale => view,
            _ => Box::new(View::new(self.request.who.clone(), options.clone())),
        };
        view.catch_up(self.transcript);
        if stale {
            self.journal.iter().for_each(|event| view.see_own(event));
        }
        self.view.insert(view)
    }

    /// Rolls back failed calls when the agent continues after them: then the failures are final, and a resumed turn
    /// receives the same ones. Calls that fail their turn are retried with it.
    pub(crate) async fn survive(&mut self) -> Result<()> {
        for (at, since) in std::mem::take(&mut self.failed) {
            self.log.roll_back(&at, since).await?;
            let is_there = |other: &Path| *other == at || other.is_within(&at);
            let stays = |event: &Arc<Event>| !is_there(&event.chat) || event.seq < since;
            self.within_before.retain(stays);
            self.undone.extend(self.within.extract_if(.., |event| !stays(event)));
            let is_undone = |event: &&Arc<Event>| {
                is_there(&event.chat)
                    && matches!(event.body, Body::RolledBack { since: from } if from >= since)
            };
            let buffer = self.log.buffer.lock().await;
            self.within.extend(buffer.since(since).iter().filter(is_undone).cloned());
        }
        Ok(())
    }
}
