//! One chat while it is walked through: what its participants see, and what it took so far.

use std::collections::BTreeMap;

use polylogue::Name;

use super::amount::{Effect, NO_LIMIT, Sum};
use super::case::MESSAGE;

/// The turns of a chat that have messages; the others are silent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Messages {
    /// All of them.
    #[default]
    All,
    /// So many more, from now on: that is the most that later turns read.
    First(u128),
    /// The last one of each group of so many turns, and how many turns of the next group there were: no more turns can read the same number of messages.
    Every(u128, u128),
}

impl Messages {
    /// Whether the next turn has none.
    pub(super) const fn is_over(self) -> bool {
        match self {
            Self::All => false,
            Self::First(left) => left == 0,
            Self::Every(turns, before) => before + 1 < turns,
        }
    }
}

/// Bytes that are in histories without a model call.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Free {
    /// Of prompts and rules.
    pub(super) prompts: u128,
    /// Of turns, in all, and of the longest one.
    pub(super) turns: u128,
    pub(super) turn: u128,
}

impl Free {
    fn add_turn(&mut self, bytes: u128) {
        self.turns = self.turns.saturating_add(bytes);
        self.turn = self.turn.max(bytes);
    }

    fn max(self, other: Self) -> Self {
        let of = u128::max;
        Self {
            prompts: of(self.prompts, other.prompts),
            turns: of(self.turns, other.turns),
            turn: of(self.turn, other.turn),
        }
    }

    /// What is there after `cycles` more of what was added since `then`.
    pub(super) fn after(self, then: Self, cycles: u128) -> Self {
        let grown = |now: u128, then: u128| grown(now, then, cycles);
        Self {
            prompts: grown(self.prompts, then.prompts),
            turns: grown(self.turns, then.turns),
            turn: self.turn,
        }
    }
}

/// `now` after `cycles` more of what it grew since `then`.
pub(super) const fn grown(now: u128, then: u128, cycles: u128) -> u128 {
    now.saturating_add(now.saturating_sub(then).saturating_mul(cycles))
}

/// One chat while it is walked through.
///
/// It has all that its participants keep between their turns: what each alone sees (`own`), the conversations with the agents that they ask
/// in their turns (`calls`), and what chats among them said (`held`). A chat that runs again begins without it.
#[derive(Clone, Default)]
pub(super) struct Scene {
    pub(super) chat: String,
    /// Bytes of its task.
    pub(super) task: u128,
    pub(super) sum: Sum,
    /// Bytes of the messages that every participant sees.
    pub(super) shared: u128,
    /// Bytes of the earlier conversation with which it begins.
    earlier: u128,
    /// Bytes of what comes before the first turn, which no window cuts off.
    pinned: u128,
    /// How many messages there are at most that every participant sees; without a limit where that is not counted.
    posts: u128,
    /// Bytes that only one agent sees.
    pub(super) own: BTreeMap<String, u128>,
    /// Bytes of the longest entry of a view: a message with its author, or what one agent sees of a turn.
    pub(super) entry: u128,
    /// The conversations in which a participant asks an agent within its turns, by both: each call continues the one before.
    calls: BTreeMap<(Name, Name), Self>,
    /// Bytes of the last conversation of each participant that is a chat.
    held: BTreeMap<Name, u128>,
    /// Which turns have messages.
    pub(super) messages: Messages,
    /// Whether the turn that is computed has no message.
    pub(super) is_silent: bool,
    /// Bytes that were added without a model call: names, prompts, and what people and programs say.
    pub(super) free: Free,
    /// Bytes of the longest message, the task included, and of the longest one that is said.
    pub(super) longest: u128,
    pub(super) said: u128,
    /// Agents in whose turns it runs: these do not nest again.
    pub(super) owners: Vec<Name>,
    /// Participants whose turns are background tasks.
    pub(super) background: Vec<Name>,
}

impl Scene {
    pub(super) fn new(chat: &Name, task: u128, owners: &[Name]) -> Self {
        Self { longest: task, ..Self::empty(chat.to_string(), task, owners.to_vec()) }
    }

    fn empty(chat: String, task: u128, owners: Vec<Name>) -> Self {
        Self { chat, task, owners, ..Self::default() }
    }

    /// The conversation in which an agent is asked within a turn, before the first call: it has the task of this chat, and nothing else.
    pub(super) fn new_call(&self) -> Self {
        Self::empty(self.chat.clone(), self.task, self.owners.clone())
    }

    /// The conversation in which `who` asks `whom`, to be [put back](Self::put_call) with the call in it.
    pub(super) fn take_call(&mut self, who: &Name, whom: &Name) -> Self {
        let begun = self.calls.remove(&(who.clone(), whom.clone())).unwrap_or_else(|| self.new_call());
        Self { owners: self.owners.clone(), ..begun }
    }

    /// Keeps the conversation in which `who` asks `whom`.
    pub(super) fn put_call(&mut self, who: &Name, whom: &Name, call: Self) {
        self.calls.insert((who.clone(), whom.clone()), call);
    }

    /// Bytes of the last conversation of `who`, a chat that takes part.
    pub(super) fn held_by(&self, who: &Name) -> u128 {
        self.held.get(who).copied().unwrap_or_default()
    }

    /// Notes a conversation of `who` of so many bytes.
    pub(super) fn hold(&mut self, who: &Name, bytes: u128) {
        let held = self.held.entry(who.clone()).or_default();
        *held = (*held).max(bytes);
    }

    /// Adds a message that all see, after an introduction of so many bytes: the name of its author, or a prefix.
    pub(super) fn post(&mut self, introduction: usize, bytes: u128) {
        self.posts = self.posts.saturating_add(1);
        self.longest = self.longest.max(bytes);
        self.said = self.said.max(bytes);
        let whole = bytes.saturating_add(overhead(introduction));
        self.entry = self.entry.max(whole);
        self.shared = self.shared.saturating_add(whole);
    }

    /// Adds what a turn takes, with an introduction of so many bytes. A message has its author, whether it took a call or not.
    pub(super) fn take(&mut self, introduction: usize, mut effect: Effect) {
        if effect.sum.growth > 0 {
            effect.sum.growth = effect.sum.growth.saturating_add(overhead(introduction));
        }
        if effect.free > 0 {
            self.free.add_turn(effect.free.saturating_add(overhead(introduction)));
        }
        self.sum.add(effect.sum);
    }

    /// Adds the message of a turn, unless there can be no more of them.
    pub(super) fn post_of_turn(&mut self, introduction: usize, bytes: u128) {
        match &mut self.messages {
            Messages::First(0) => return,
            Messages::First(left) => *left -= 1,
            Messages::Every(turns, before) => {
                *before = (*before + 1) % (*turns).max(1);
                if *before > 0 {
                    return;
                }
            }
            Messages::All => {}
        }
        self.post(introduction, bytes);
    }

    /// After how many turns it is the same again.
    pub(super) const fn cycle(&self) -> u128 {
        match self.messages {
            Messages::Every(turns, _) => turns,
            Messages::All | Messages::First(_) => 1,
        }
    }

    /// The most of both: the same chat after other turns.
    pub(super) fn merge(&mut self, other: &Self) {
        self.sum = self.sum.max(other.sum);
        self.shared = self.shared.max(other.shared);
        self.posts = self.posts.max(other.posts);
        self.entry = self.entry.max(other.entry);
        for (who, bytes) in &other.own {
            let own = self.own.entry(who.clone()).or_default();
            *own = (*own).max(*bytes);
        }
        other.held.iter().for_each(|(who, bytes)| self.hold(who, *bytes));
        for (key, call) in &other.calls {
            self.calls.entry(key.clone()).and_modify(|own| own.merge(call)).or_insert_with(|| call.clone());
        }
        self.messages = match (self.messages, other.messages) {
            (Messages::First(one), Messages::First(other)) => Messages::First(one.max(other)),
            (messages, _) => messages,
        };
        self.free = self.free.max(other.free);
        self.longest = self.longest.max(other.longest);
        self.said = self.said.max(other.said);
    }

    /// What is there after `cycles` more of what was added since `then`.
    pub(super) fn grow(&mut self, then: &Self, cycles: u128) {
        let none = self.new_call();
        self.shared = grown(self.shared, then.shared, cycles);
        self.posts = grown(self.posts, then.posts, cycles);
        self.free = self.free.after(then.free, cycles);
        for (who, own) in &mut self.own {
            *own = grown(*own, then.own.get(who).copied().unwrap_or_default(), cycles);
        }
        for (who, held) in &mut self.held {
            *held = grown(*held, then.held_by(who), cycles);
        }
        for (key, call) in &mut self.calls {
            call.grow(then.calls.get(key).unwrap_or(&none), cycles);
        }
    }

    /// Adds `bytes` that only `who` sees.
    pub(super) fn keep(&mut self, who: &str, bytes: u128) {
        self.entry = self.entry.max(bytes);
        let own = self.own.entry(who.to_owned()).or_default();
        *own = own.saturating_add(bytes);
    }

    /// Begins with `bytes` of an earlier conversation that every participant sees.
    pub(super) fn begin_after(&mut self, bytes: u128) {
        (self.shared, self.earlier) = (bytes, bytes);
        if bytes > 0 {
            self.posts = NO_LIMIT;
        }
    }

    /// Whether it continues an earlier conversation.
    pub(super) const fn continues(&self) -> bool {
        self.earlier > 0
    }

    /// What was said in it, without the earlier conversation.
    pub(super) const fn said_again(&self) -> u128 {
        self.shared.saturating_sub(self.earlier)
    }

    /// Ends its opening: views keep what they have so far.
    pub(super) const fn pin(&mut self) {
        self.pinned = self.shared;
    }

    /// Bytes of its opening.
    pub(super) const fn pinned(&self) -> u128 {
        self.pinned
    }

    /// The most messages in the history of `who` that a compaction could replace; no limit if it has had a turn with tools or prompts.
    /// Introductions never are, and those of the opening only once an agent has hidden earlier ones.
    pub(super) fn messages_of(&self, who: &str) -> u128 {
        match self.own.get(who) {
            Some(bytes) if *bytes > 0 => NO_LIMIT,
            _ => self.posts,
        }
    }

    /// The bytes that `who` sees.
    pub(super) fn seen_by(&self, who: &str) -> u128 {
        self.shared.saturating_add(self.own.get(who).copied().unwrap_or_default())
    }
}

/// Bytes that a message has in views besides its text: its frame, and the name of its author or a prefix.
pub(super) const fn overhead(introduction: usize) -> u128 {
    MESSAGE + introduction as u128 + 48
}
