//! Views: what one agent's model receives of a chat. Derived from the log, never stored.

mod compaction;
mod digest;
mod entry;
mod options;
mod pending;
mod received;
mod reply;
mod size;
mod window;
mod words;

use std::collections::HashSet;
use std::sync::Arc;

pub use self::compaction::{Compactable, KeptSize};
pub(crate) use self::digest::{Chain, start};
pub use self::entry::{EncodeCache, Entry};
use self::pending::Pending;
use self::words::{calls_as_text, entry_as_text, into_spoken, is_write_again, spoken};
use crate::{
    Body, CallPurpose, Digest, Event, HistoryEntry, HistorySummary, InputTokens, JoinHistory, ModelReply,
    Name, Opening, Params, Part, Path, PrefixChange, PrefixChanges, ToolCall, ToolResult, ToolSpec,
    Transcript, TranscriptMessage, TurnRequest, Verbatim,
};

pub use self::words::{BEGIN, CONTINUE};
pub(crate) use self::words::{CONTINUE_CUT_OFF, write_again};

pub use self::options::{PromptRole, ShowNames, ViewOptions, Window};

/// The conversation as one agent's model receives it: its own messages are `assistant`, those of all others are
/// `user`.
///
/// A view is a fold over the events of the agent's chat, in order: entries are only ever appended, until the
/// [`Window`] is exceeded. It depends on nothing else, so that another process computes the same view.
#[derive(Debug)]
pub struct View {
    me: Name,
    options: ViewOptions,
    names: bool,
    entries: Vec<Entry>,
    /// The events that the entries are from, by `seq`; an entry that had to wait is from the event that it waited for.
    origins: Vec<u64>,
    /// The event that is added now.
    now: u64,
    /// The summary of earlier entries, which is the entry after the pinned ones.
    summary: Option<HistorySummary>,
    /// The tokens of the last request as reported, and how many entries it had.
    measured: Option<(u64, usize)>,
    /// How many of the first entries stay whatever the window is.
    pinned: usize,
    weight: usize,
    /// The most tokens of the entries.
    most_tokens: InputTokens,
    /// A reply that becomes an entry if the turn continues, and is replaced by the agent's message if it ends.
    pending: Pending,
    /// A truncated reply that is to be continued, and where the view is reset to when it is.
    partial: Option<(Mark, Vec<Part>)>,
    /// Where the view is reset to if the last reply, which filled the context window, is discarded.
    full: Option<Mark>,
    /// Calls without a result yet, with results that came early.
    awaited: Vec<(ToolCall, Option<ToolResult>)>,
    ids: HashSet<String>,
    /// Messages of others since the agent's own turn began: appended after the turn, so that the view does not depend
    /// on who was faster. While calls that others are asked to execute have no results, messages are appended after
    /// those.
    deferred: Vec<Vec<Part>>,
    in_turn: bool,
    /// Messages while the agent was not in the chat; `None` while it is.
    missed: Option<Vec<Vec<Part>>>,
    /// Where the view is reset to after the private turn.
    private_turn: Option<Mark>,
    /// Where its turn began, the prompt included.
    begun: Option<Mark>,
    /// What it will remember of its turn.
    memory: Option<Vec<HistoryEntry>>,
    chain: Chain,
    /// What kept the prompt cache from being read.
    prefixes: PrefixChanges,
    encoded: EncodeCache,
    /// How many events of the transcript were added.
    cursor: usize,
    /// Own events are added as they happen; those up to this `seq` are not added again.
    seen: Option<u64>,
}

/// A position to which a view can be reset.
#[derive(Debug, Clone, Copy)]
struct Mark {
    entries: usize,
    chain: Chain,
    weight: usize,
    most_tokens: InputTokens,
}

impl View {
    /// Creates the view of `me` of an empty chat.
    pub fn new(me: Name, options: ViewOptions) -> Self {
        Self {
            me,
            names: options.names == ShowNames::Always,
            options,
            entries: Vec::new(),
            origins: Vec::new(),
            now: 0,
            summary: None,
            measured: None,
            pinned: 0,
            weight: 0,
            most_tokens: InputTokens::default(),
            pending: Pending::default(),
            partial: None,
            full: None,
            awaited: Vec::new(),
            ids: HashSet::new(),
            deferred: Vec::new(),
            in_turn: false,
            missed: None,
            private_turn: None,
            begun: None,
            memory: None,
            chain: Chain::default(),
            prefixes: PrefixChanges::default(),
            encoded: EncodeCache::default(),
            cursor: 0,
            seen: None,
        }
    }

    /// Creates the view of `me` at the end of `transcript`, also in the middle of a turn.
    pub fn of(transcript: &Transcript, me: &Name, options: ViewOptions) -> Self {
        let mut view = Self::new(me.clone(), options);
        view.catch_up(transcript);
        let open = transcript.open_turns().iter().find(|turn| turn.request.who == *me);
        open.into_iter().flat_map(|turn| &turn.events).for_each(|event| view.see_own(event));
        view
    }

    /// Returns the agent that has this view.
    pub const fn me(&self) -> &Name {
        &self.me
    }

    /// Returns the entries of a request.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The most tokens that the entries add to a request: adding an entry costs its own length.
    pub(crate) const fn most_tokens(&self) -> InputTokens {
        self.most_tokens
    }

    /// Returns the cache for the provider.
    pub const fn encoded(&self) -> &EncodeCache {
        &self.encoded
    }

    /// Returns the view options.
    pub const fn options(&self) -> &ViewOptions {
        &self.options
    }

    /// Returns whether a call has this id.
    pub fn has_id(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Identifies a request for this view.
    pub fn digest(&self, model: &str, system: Option<&str>, tools: &[ToolSpec], params: &Params) -> Digest {
        self.chain.digest(model, system, tools, params)
    }

    /// Why the prompt cache was not read for `reply`, the next one at `at`.
    pub(crate) fn prefix_change(&self, at: &Path, reply: &ModelReply) -> Option<PrefixChange> {
        self.prefixes.cause(at, reply)
    }

    /// Adds the new events of `transcript`.
    pub fn catch_up(&mut self, transcript: &Transcript) {
        for event in transcript.events().get(self.cursor..).unwrap_or_default() {
            self.see(event);
        }
        self.cursor = transcript.events().len();
    }

    /// Adds one event. An own event that was added before is skipped.
    pub fn see(&mut self, event: &Event) {
        let of_turn = |who: &Name| *who == self.me && self.seen.is_none_or(|seen| event.seq > seen);
        self.now = event.seq;
        match &event.body {
            Body::Opened(opening) => self.open(opening),
            Body::TurnStarted { turns: requests } => {
                if let Some(request) = requests.iter().find(|request| request.who == self.me) {
                    self.turn_started(request);
                }
            }
            Body::Message(message) | Body::Posted(message) | Body::Sent(message) => {
                self.add_message(message);
            }
            Body::ModelReplied(reply) if reply.purpose == CallPurpose::Turn && of_turn(&reply.who) => {
                self.prefixes.read(&event.chat, reply);
                self.model_replied(reply);
            }
            Body::SealsRefused { who, .. } if of_turn(who) => self.unseal(),
            Body::TooLong { who, .. } if of_turn(who) => self.discard_reply(),
            Body::Compacted(compacted) if of_turn(&compacted.who) => self.compact(compacted),
            Body::Prompted { who, text } if of_turn(who) => self.prompted(text),
            Body::ToolReturned { who, id, result: outcome } if of_turn(who) => self.returned(id, outcome),
            Body::Passed { who } | Body::Stopped { who, .. } if *who == self.me => self.end_turn(&[]),
            Body::Left { who, .. } if *who == self.me => {
                self.end_turn(&[]);
                self.missed = Some(Vec::new());
            }
            // The result of a turn is what the agent says next.
            Body::BackgroundEnded(result) if result.who == self.me && !result.awaited && !result.turn => {
                self.receive(result.for_model());
            }
            Body::Joined { who, sees } if *who == self.me => self.joined(*sees),
            Body::Remembered { who, entries: words } if of_turn(who) => self.memory = Some(words.clone()),
            Body::Cleared { who, of, keep }
                if (*who != self.me || of_turn(who)) && of.as_ref().is_none_or(|of| *of == self.me) =>
            {
                self.clear(*keep);
            }
            // One that was sent before is seen where it was sent.
            Body::Reopened { message: Some(message), sent: false, .. } => self.add_message(message),
            _ => {}
        }
    }

    /// Adds an event of the agent's own turn before the turn is part of the transcript.
    pub(crate) fn see_own(&mut self, event: &Event) {
        self.see(event);
        self.seen = Some(event.seq);
    }

    fn open(&mut self, opening: &Opening) {
        let Opening { participants: with, late_joiners: later, introduction, messages, .. } = opening;
        let is_participant = with.contains(&self.me) || later.contains(&self.me);
        if self.options.names == ShowNames::Auto {
            self.names = with.len() + later.len() > 2 || !is_participant;
        }
        if let Some(introduction) = introduction.as_ref().filter(|_| is_participant) {
            self.push_text(introduction);
        }
        if later.contains(&self.me) {
            self.missed = Some(Vec::new());
        }
        messages.iter().for_each(|message| self.add_message(message));
        self.pinned = self.entries.len();
    }

    fn joined(&mut self, sees: JoinHistory) {
        let missed = self.missed.take().unwrap_or_default();
        if sees == JoinHistory::All {
            missed.into_iter().for_each(|parts| self.receive(parts));
        }
    }

    fn turn_started(&mut self, request: &TurnRequest) {
        self.settle();
        self.release();
        self.in_turn = true;
        if self.options.forget_private_turns && request.to.is_private() {
            self.private_turn = Some(self.mark());
        }
        match (&request.prompt, self.entries.last()) {
            (Some(prompt), _) => self.push_prompt(prompt),
            (None, None) => self.push_text(BEGIN),
            // The results of its calls are what it continues from.
            (None, Some(Entry::User { .. } | Entry::System { .. } | Entry::Tool { .. })) => {}
            (None, Some(Entry::Assistant { .. })) => self.push_text(CONTINUE),
        }
        self.begun = Some(self.mark());
    }

    const fn mark(&self) -> Mark {
        let Self { chain, weight, most_tokens, .. } = *self;
        Mark { entries: self.entries.len(), chain, weight, most_tokens }
    }

    fn prompted(&mut self, text: &Arc<str>) {
        let is_partial = **text == *CONTINUE_CUT_OFF && !self.pending.parts.is_empty();
        // What is to be written again can be the rest of a truncated reply.
        if !is_write_again(text) {
            self.partial = is_partial.then(|| (self.mark(), self.pending.parts.clone()));
        }
        self.settle();
        self.push_prompt(text);
    }

    fn returned(&mut self, id: &str, outcome: &ToolResult) {
        self.full = None;
        if let Some((_, answer)) =
            self.awaited.iter_mut().find(|(call, answer)| call.id == id && answer.is_none())
        {
            *answer = Some(outcome.clone());
        }
        if self.awaited.iter().all(|(_, answer)| answer.is_some()) {
            self.answer_calls();
        }
    }

    /// The agent's message replaces its last reply. Calls that it asks others to execute stay open.
    fn end_turn(&mut self, parts: &[Part]) {
        let mut said = spoken(parts);
        let first_call = said.iter().position(|part| matches!(part, Part::ToolCall(_)));
        let calls = said.split_off(first_call.unwrap_or(said.len()));
        self.in_turn = false;
        if let Some((mark, _)) = self.partial.take() {
            self.go_back(mark);
        }
        if let Some((memory, mark)) = self.memory.take().zip(self.begun) {
            self.recall(memory, mark);
            return self.receive_deferred();
        }
        let known = |part: &Part| matches!(part, Part::ToolCall(call) if self.awaits(&call.id));
        if calls.is_empty() && self.pending.is_sealed_as(&said) {
            self.settle();
        } else if calls.is_empty() {
            self.pending = Pending::default();
            self.settle();
            self.push_own(calls_as_text(said, |answer| answer.to == self.me));
        } else if !calls.iter().all(known) {
            self.pending = Pending::default();
            self.settle();
            self.push_calls(calls_as_text(said, |answer| answer.to == self.me), &calls);
        }
        if let Some(mark) = self.private_turn.take() {
            self.go_back(mark);
        }
        self.receive_deferred();
    }

    /// Replaces the agent's turn by what it remembers of it.
    fn recall(&mut self, memory: Vec<HistoryEntry>, begun: Mark) {
        self.pending = Pending::default();
        if let Some(mark) = self.private_turn.take() {
            return self.go_back(mark);
        }
        self.go_back(begun);
        for words in memory {
            match words {
                HistoryEntry::Received(text) => self.push_text(&text),
                HistoryEntry::Sent(text) => self.push_own(vec![Part::Text(text)]),
            }
        }
    }

    fn awaits(&self, id: &str) -> bool {
        self.awaited.iter().any(|(call, answer)| call.id == id && answer.is_none())
    }

    /// Own calls that are not from a model reply: those of an opening, or of an agent that is not a model.
    fn push_calls(&mut self, said: Vec<Part>, calls: &[Part]) {
        let mut taken = HashSet::new();
        let fresh = |part: &Part| match part {
            Part::ToolCall(call) if !self.has_id(&call.id) && taken.insert(call.id.clone()) => {
                Some(call.clone())
            }
            _ => None,
        };
        let calls: Vec<ToolCall> = calls.iter().filter_map(fresh).collect();
        self.push_own(said.into_iter().chain(calls.iter().cloned().map(Part::ToolCall)).collect());
        self.awaited.extend(calls.into_iter().map(|call| (call, None)));
    }

    /// Appends what is still pending of the agent's own last reply, before something else follows.
    fn settle(&mut self) {
        self.full = None;
        self.settle_pending();
        self.answer_calls();
    }

    /// Answers calls that never got a result: providers reject a history without it.
    fn answer_calls(&mut self) {
        for (call, outcome) in std::mem::take(&mut self.awaited) {
            let outcome =
                outcome.map(|outcome| ToolResult::new(outcome.status, spoken(&outcome.for_model())));
            let outcome = match outcome {
                Some(outcome) if !outcome.parts.is_empty() => outcome,
                Some(empty) => ToolResult { parts: vec![Part::text("(nothing)")], ..empty },
                None => ToolResult::failed("This call was not made."),
            };
            self.push(Entry::Tool { id: call.id, tool: call.tool, result: outcome });
        }
    }

    fn push_own(&mut self, parts: Vec<Part>) {
        self.push_assistant(into_spoken(parts), None);
    }

    fn push_assistant(&mut self, parts: Vec<Part>, verbatim: Option<Arc<Verbatim>>) {
        if parts.is_empty() {
            return;
        }
        self.ids.extend(parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call.id.clone()),
            _ => None,
        }));
        self.push(Entry::Assistant { parts, verbatim });
    }

    fn push_text(&mut self, text: &(impl AsRef<str> + ?Sized)) {
        let text = if text.as_ref().trim().is_empty() { CONTINUE } else { text.as_ref() };
        self.push_others(vec![Part::text(text)]);
    }

    /// Appends a prompt that is for the agent alone.
    fn push_prompt(&mut self, text: &Arc<str>) {
        if self.options.prompt_role == PromptRole::User || text.trim().is_empty() {
            return self.push_text(text);
        }
        if self.entries.is_empty() {
            self.push_text(BEGIN);
        }
        self.push(Entry::System { parts: vec![Part::Text(Arc::clone(text))] });
    }

    fn push_others(&mut self, parts: Vec<Part>) {
        self.push(Entry::User { parts });
    }

    fn push(&mut self, entry: Entry) {
        let entry = if self.options.calls_as_text { entry_as_text(entry) } else { entry };
        self.chain = self.chain.link(&entry);
        self.weight += self.options.window.weigh(&entry);
        self.most_tokens = self.most_tokens.and(entry.most_tokens());
        // The result of a call in the opening stays as the call does, however late it comes.
        if self.pinned == self.entries.len() && matches!(entry, Entry::Tool { .. }) {
            self.pinned += 1;
        }
        self.origins.push(self.now.max(self.origins.last().copied().unwrap_or(0)));
        self.entries.push(entry);
        if self.weight > self.limit() {
            self.drop_oldest();
        }
    }
}

impl TranscriptMessage {
    /// Returns whether `who` sees it.
    pub fn is_seen_by(&self, who: &Name) -> bool {
        self.message.from == *who || self.message.to.includes(who)
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
