//! What one agent's model receives of a chat: derived from the log, never stored.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Chain;
use crate::{
    Body, Call, Digest, Entry, Event, Line, Message, Name, Outcome, Params, Part, ToolSpec, Transcript, Wire,
};

/// How an agent sees the room. Configuration of the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lens {
    /// Whether others' names are written before their words.
    pub names: ShowNames,
    /// How much is kept.
    pub window: Window,
    /// What is written, with a blank line after it, before the words of the named speakers in place of their name.
    pub prefix: BTreeMap<Name, String>,
}

/// Whether others' names are written before their words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShowNames {
    /// When it would not be clear who speaks: more than two are in the room, or the reader is none of them.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How much of a conversation a view keeps. What was said before the first turn is always kept, and a call is never
/// parted from its result.
///
/// When there is more, the oldest is dropped until three quarters of the limit are left: so the view stays
/// append-only most of the time, and prompt caches keep hitting. What the agent is at work on is kept, however many tools
/// it calls meanwhile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// Everything.
    #[default]
    All,
    /// At most so many entries.
    Messages(usize),
    /// At most so many tokens, estimated at four ASCII characters or one other character each.
    Tokens(usize),
}

/// The conversation as one agent's model receives it: its own words are `assistant`, everybody else's are `user`.
///
/// A view is a fold over the events of the agent's chat, in their order: entries are only ever appended, until the
/// [`Window`] is exceeded. It depends on nothing else, so that a fresh process computes the same view.
#[derive(Debug)]
pub struct View {
    me: Name,
    lens: Lens,
    names: bool,
    entries: Vec<Entry>,
    /// So many first entries are kept whatever the window says.
    pinned: usize,
    weight: usize,
    /// A reply that becomes an entry if the turn goes on, and is replaced by what is said if it does not.
    pending: Vec<Part>,
    /// Calls that are not answered yet, with the answers that came early.
    awaited: Vec<(Call, Option<Outcome>)>,
    ids: HashSet<String>,
    /// What others said since the agent's own turn began: it is heard after the turn, so that the view does not
    /// depend on who was faster.
    held: Option<Vec<Vec<Part>>>,
    chain: Chain,
    wire: Wire,
    /// How many events of the transcript were taken in.
    cursor: usize,
    /// Own events are taken in as they happen; those up to here are not taken in again.
    seen: Option<u64>,
}

/// Opens a conversation that would otherwise begin with the agent's own words.
const BEGIN: &str = "Begin.";
/// Stands for the silence of the others when an agent has its turn right after its own words.
const GO_ON: &str = "Go on.";
/// Stands between the results of tools and what somebody else says: one large provider refuses a user's word right after
/// them.
const NOTED: &str = "Noted.";
/// Stands for what the window left out, where no opening does.
const LEFT_OUT: &str = "(What was said before is left out.)";

impl View {
    /// The view of `me` before anything happened.
    #[must_use]
    pub fn new(me: Name, lens: Lens) -> Self {
        Self {
            me,
            names: lens.names == ShowNames::Always,
            lens,
            entries: Vec::new(),
            pinned: 0,
            weight: 0,
            pending: Vec::new(),
            awaited: Vec::new(),
            ids: HashSet::new(),
            held: None,
            chain: Chain::default(),
            wire: Wire::default(),
            cursor: 0,
            seen: None,
        }
    }

    /// The view of `me` at the end of `transcript`, in the middle of a turn too.
    #[must_use]
    pub fn of(transcript: &Transcript, me: &Name, lens: Lens) -> Self {
        let mut view = Self::new(me.clone(), lens);
        view.catch_up(transcript);
        let open = transcript.open_turns().iter().find(|turn| turn.cue.who == *me);
        open.into_iter().flat_map(|turn| &turn.events).for_each(|event| view.see_own(event));
        view
    }

    /// Whose view it is.
    #[must_use]
    pub const fn me(&self) -> &Name {
        &self.me
    }

    /// The entries, as a request has them.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Room for the provider.
    #[must_use]
    pub const fn wire(&self) -> &Wire {
        &self.wire
    }

    /// How the agent sees the room.
    #[must_use]
    pub const fn lens(&self) -> &Lens {
        &self.lens
    }

    /// Whether the id of a call is taken.
    #[must_use]
    pub fn has_id(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Identifies a request for this view.
    #[must_use]
    pub fn digest(&self, model: &str, system: Option<&str>, tools: &[ToolSpec], params: &Params) -> Digest {
        self.chain.digest(model, system, tools, params)
    }

    /// Takes in what `transcript` has more than before.
    pub fn catch_up(&mut self, transcript: &Transcript) {
        for event in transcript.events().get(self.cursor..).unwrap_or_default() {
            self.see(event);
        }
        self.cursor = transcript.events().len();
    }

    /// Takes in one event. An own event that was taken in before is passed over.
    pub fn see(&mut self, event: &Event) {
        let of_turn = |who: &Name| *who == self.me && self.seen.is_none_or(|seen| event.seq > seen);
        match &event.body {
            Body::Opened(opening) => self.open(&opening.with, &opening.messages),
            Body::Cued { cues } => {
                if let Some(cue) = cues.iter().find(|cue| cue.who == self.me) {
                    self.cued(cue.prompt.as_ref());
                }
            }
            Body::Said(message) | Body::Posted(message) => self.said(message),
            Body::Sampled(sample) if of_turn(&sample.who) => self.sampled(&sample.parts),
            Body::Prompted { who, text } if of_turn(who) => self.prompted(text),
            Body::Returned { who, id, outcome } if of_turn(who) => self.returned(id, outcome),
            Body::Passed { who } | Body::Left { who, .. } if *who == self.me => self.end_turn(Vec::new()),
            _ => {}
        }
    }

    /// Takes in an event of the agent's own turn before the turn is part of the transcript.
    pub(crate) fn see_own(&mut self, event: &Event) {
        self.see(event);
        self.seen = Some(event.seq);
    }

    fn open(&mut self, with: &[Name], messages: &[Message]) {
        if self.lens.names == ShowNames::Auto {
            self.names = with.len() > 2 || !with.contains(&self.me);
        }
        messages.iter().for_each(|message| self.said(message));
        self.pinned = self.entries.len();
    }

    fn cued(&mut self, prompt: Option<&Arc<str>>) {
        self.settle();
        self.held = Some(Vec::new());
        if let Some(prompt) = prompt {
            return self.push_text(prompt);
        }
        match self.entries.last() {
            None => self.push_text(BEGIN),
            Some(Entry::User { .. }) => {}
            Some(Entry::Assistant { .. } | Entry::Tool { .. }) => self.push_text(GO_ON),
        }
    }

    fn prompted(&mut self, text: &Arc<str>) {
        self.settle();
        self.push_text(text);
    }

    fn sampled(&mut self, parts: &[Part]) {
        self.settle();
        let calls = parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some((call.clone(), None)),
            _ => None,
        });
        self.awaited.extend(calls);
        self.pending = parts.to_vec();
        if !self.awaited.is_empty() {
            self.settle_pending();
        }
    }

    fn returned(&mut self, id: &str, outcome: &Outcome) {
        if let Some((_, answer)) =
            self.awaited.iter_mut().find(|(call, answer)| call.id == id && answer.is_none())
        {
            *answer = Some(outcome.clone());
        }
        if self.awaited.iter().all(|(_, answer)| answer.is_some()) {
            self.answer_calls();
        }
    }

    fn said(&mut self, message: &Message) {
        if message.from == self.me {
            self.end_turn(
                message.parts.iter().filter(|part| !matches!(part, Part::Call(_))).cloned().collect(),
            );
        } else if message.to.includes(&self.me) {
            let parts = self.introduced(message);
            if !parts.is_empty() {
                self.hear(parts);
            }
        }
    }

    fn hear(&mut self, parts: Vec<Part>) {
        match &mut self.held {
            Some(held) => held.push(parts),
            None => self.push_others(parts),
        }
    }

    /// What the agent says takes the place of its last reply.
    fn end_turn(&mut self, said: Vec<Part>) {
        self.pending.clear();
        self.settle();
        self.push_own(said);
        for parts in self.held.take().unwrap_or_default() {
            self.push_others(parts);
        }
    }

    /// Others' words, with their name or the prefix that the lens has for them.
    fn introduced(&self, message: &Message) -> Vec<Part> {
        let mut parts = spoken(&message.parts);
        if parts.is_empty() {
            return parts;
        }
        let introduction = match self.lens.prefix.get(&message.from) {
            Some(prefix) => format!("{prefix}\n\n"),
            None if self.names => format!("{}: ", message.from),
            None => return parts,
        };
        if let Some(Part::Text(text)) = parts.first_mut() {
            *text = format!("{introduction}{text}").into();
        } else {
            parts.insert(0, Part::text(introduction.trim_end()));
        }
        parts
    }

    /// Writes down what is still open of the agent's own last reply, before something else follows.
    fn settle(&mut self) {
        self.settle_pending();
        self.answer_calls();
    }

    fn settle_pending(&mut self) {
        let parts = std::mem::take(&mut self.pending);
        self.push_own(parts);
    }

    /// A call that was never answered is answered here: providers reject a history without the answer.
    fn answer_calls(&mut self) {
        for (call, outcome) in std::mem::take(&mut self.awaited) {
            let outcome = outcome.map(|outcome| Outcome { parts: spoken(&outcome.parts), ..outcome });
            let outcome = match outcome {
                Some(outcome) if !outcome.parts.is_empty() => outcome,
                Some(empty) => Outcome { parts: vec![Part::text("(nothing)")], ..empty },
                None => Outcome::failed("This call was not made."),
            };
            self.push(Entry::Tool { id: call.id, tool: call.tool, outcome });
        }
    }

    fn push_own(&mut self, parts: Vec<Part>) {
        let parts = spoken(&parts);
        if parts.is_empty() {
            return;
        }
        match self.entries.last() {
            None => self.push_text(BEGIN),
            Some(Entry::Assistant { .. }) => self.push_text(GO_ON),
            Some(Entry::User { .. } | Entry::Tool { .. }) => {}
        }
        self.ids.extend(parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call.id.clone()),
            _ => None,
        }));
        self.push(Entry::Assistant { parts });
    }

    fn push_text(&mut self, text: &(impl AsRef<str> + ?Sized)) {
        let text = if text.as_ref().trim().is_empty() { GO_ON } else { text.as_ref() };
        self.push_others(vec![Part::text(text)]);
    }

    fn push_others(&mut self, parts: Vec<Part>) {
        if let Some(Entry::Tool { .. }) = self.entries.last() {
            self.push(Entry::assistant(NOTED));
        }
        self.push(Entry::User { parts });
    }

    fn push(&mut self, entry: Entry) {
        self.chain = self.chain.link(&entry);
        self.weight += self.weigh(&entry);
        self.entries.push(entry);
        if self.weight > self.limit() {
            self.drop_oldest();
        }
    }

    const fn limit(&self) -> usize {
        match self.lens.window {
            Window::All => usize::MAX,
            Window::Messages(limit) | Window::Tokens(limit) => limit,
        }
    }

    fn weigh(&self, entry: &Entry) -> usize {
        match self.lens.window {
            Window::All => 0,
            Window::Messages(_) => 1,
            Window::Tokens(_) => tokens(entry),
        }
    }

    /// Drops whole exchanges after the opening, oldest first; the last one always stays.
    fn drop_oldest(&mut self) {
        // With room for what stands in place of what is left out.
        let target = self.limit().saturating_sub((self.limit() / 4).max(1));
        let starts: Vec<usize> =
            (self.pinned..self.entries.len()).filter(|&at| self.begins_exchange(at)).collect();
        let mut cut = self.pinned;
        let mut weight = self.weight;
        for &start in starts.iter().skip(1) {
            if weight <= target {
                break;
            }
            weight -=
                self.entries.get(cut..start).unwrap_or_default().iter().map(|e| self.weigh(e)).sum::<usize>();
            cut = start;
        }
        if cut > self.pinned {
            self.cut(cut);
        }
    }

    fn begins_exchange(&self, at: usize) -> bool {
        !matches!(self.entries.get(at), Some(Entry::Tool { .. }))
    }

    fn cut(&mut self, cut: usize) {
        let head = self.head(cut);
        self.entries.splice(self.pinned..cut, head);
        self.weight = self.entries.iter().map(|entry| self.weigh(entry)).sum();
        self.chain = self.entries.iter().fold(Chain::default(), |chain, entry| chain.link(entry));
        self.wire = Wire::default();
    }

    /// What stands in place of what is left out: what the agent is at work on, if nothing of others comes after it; else a
    /// word of others, if its own words would stand after its own.
    fn head(&self, cut: usize) -> Option<Entry> {
        let (before, after) = self.entries.split_at_checked(cut)?;
        let is_others = |entry: &&Entry| matches!(entry, Entry::User { .. });
        let left_out = before.get(self.pinned..)?;
        if !after.iter().any(|entry| is_others(&entry))
            && let Some(last) = left_out.iter().rfind(is_others)
        {
            return Some(last.clone());
        }
        let pinned = before.get(..self.pinned)?;
        let heard = after.first().is_some_and(|entry| is_others(&entry))
            || pinned.last().is_some_and(|entry| is_others(&entry));
        (!heard).then(|| Entry::user(LEFT_OUT))
    }
}

/// What may be sent of `parts`: no thoughts, nothing blank, calls last.
fn spoken(parts: &[Part]) -> Vec<Part> {
    let sent = |part: &&Part| !matches!(part, Part::Thought(_)) && !part.is_blank();
    let (calls, mut words): (Vec<Part>, Vec<Part>) =
        parts.iter().filter(sent).cloned().partition(|part| matches!(part, Part::Call(_)));
    words.extend(calls);
    words
}

fn tokens(entry: &Entry) -> usize {
    let of_text = |text: &str| {
        let ascii = text.bytes().filter(u8::is_ascii).count();
        let other = text.chars().filter(|c| !c.is_ascii()).count();
        ascii.div_ceil(4) + other
    };
    let of_json = |value: &Value| of_text(&value.to_string());
    let of_part = |part: &Part| match part {
        Part::Text(text) | Part::Thought(text) => of_text(text),
        Part::Data(value) => of_json(value),
        Part::Call(call) => of_text(&call.tool) + of_json(&call.args),
        // What the common providers count for a picture of medium size.
        Part::Media(_) => 1000,
    };
    // Four tokens frame a message in the common chat templates.
    4 + entry.parts().iter().map(of_part).sum::<usize>()
}

impl Line {
    /// Whether `who` sees it.
    #[must_use]
    pub fn is_seen_by(&self, who: &Name) -> bool {
        self.message.from == *who || self.message.to.includes(who)
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
