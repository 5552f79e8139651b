//! Termination conditions.

use polylogue::Result;
use polylogue::stop::{self as library, Stop as Library};
use polylogue_config::{At, Config, OneOrMany};
use polylogue_core::{ChatLimits, Money, Name};

use crate::condition::Condition;
use crate::duration::Time;
use crate::set::Set as _;
use crate::text::{ConditionText, RegexText, SpeakerRef};

/// Termination conditions. A chat ends when one of them is met.
#[derive(Debug, Clone, Default, PartialEq, Config)]
#[config(nonempty, alone = "max_turns", alone = "says")]
pub struct Stop {
    /// Text in a message that ends the chat: the text, or a mapping.
    #[key(none = "none")]
    pub says: Option<Says>,
    /// Regular expression that matches a terminating message: the expression, or a mapping.
    #[key(none = "none")]
    pub matches: Option<Matches>,
    /// Condition on the conversation, in CEL.
    #[key(as = Option<At<ConditionText>>, none = "none", nonempty)]
    pub when: Option<At<String>>,
    /// Number of turns after which the chat ends.
    #[key(none = "none", range = 1..)]
    pub max_turns: Option<u64>,
    /// Number of messages after which the chat ends.
    #[key(none = "none", range = 1..)]
    pub max_messages: Option<u64>,
    /// Number of input and output tokens together after which the chat ends.
    #[key(none = "none", range = 1..)]
    pub max_tokens: Option<u64>,
    /// Cost in US dollars at which the chat ends.
    #[key(none = "none", range = 0..=1_000_000)]
    pub max_cost: Option<f64>,
    /// Time after which the chat ends, such as `10 min`. Time spent waiting for people does not count.
    #[key(none = "none")]
    pub max_time: Option<Time>,
    /// Conditions that must all be met.
    #[key(nonempty)]
    pub all: Vec<Stop>,
    /// Conditions of which one must be met.
    #[key(nonempty)]
    pub any: Vec<Stop>,
}

/// A message that contains a text.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(shorthand = "text")]
pub struct Says {
    /// Text that the message contains.
    #[key(nonempty)]
    pub text: At<String>,
    /// Participants whose messages count.
    #[key(as = OneOrMany<SpeakerRef>, none = "all participants")]
    pub by: Vec<Name>,
    /// Requires the text to be the whole message, except for surrounding white space.
    #[key(default = false)]
    pub whole: bool,
}

/// A message that matches a regular expression.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(shorthand = "pattern")]
pub struct Matches {
    /// Regular expression in the syntax of Rust's `regex`. It can match anywhere in the message.
    #[key(as = At<RegexText>, nonempty)]
    pub pattern: At<String>,
    /// Participants whose messages count.
    #[key(as = OneOrMany<SpeakerRef>, none = "all participants")]
    pub by: Vec<Name>,
}

impl Stop {
    /// Any of the conditions that are given; `None` if there are none.
    pub(crate) fn build(&self) -> Result<Option<Library>> {
        let mut any: Vec<Library> = Vec::new();
        any.extend(self.says.as_ref().map(|says| says.build().into()));
        if let Some(Matches { pattern, by }) = &self.matches {
            let matches = library::matches(pattern, by.clone());
            any.push(matches.map_err(|error| crate::text::invalid_regex(&error))?);
        }
        if let Some(when) = &self.when {
            any.push(condition(when)?);
        }
        any.extend(self.max_turns.map(library::max_turns));
        any.extend(self.max_messages.map(library::max_messages));
        any.extend(self.max_tokens.map(library::max_tokens));
        any.extend(self.max_cost.map(|dollars| library::max_cost(Money::dollars(dollars))));
        any.extend(self.max_time.map(|time| library::max_time_ms(time.ms())));
        any.extend(joined(&self.all, |one, other| one & other)?);
        any.extend(joined(&self.any, |one, other| one | other)?);
        Ok(any.into_iter().reduce(|one, other| one | other))
    }

    /// The lowest limits among the conditions that a person can raise.
    pub(crate) fn limits(&self) -> ChatLimits {
        let own = ChatLimits {
            turns: self.max_turns,
            messages: self.max_messages,
            tokens: self.max_tokens,
            cost: self.max_cost.map(Money::dollars),
        };
        self.all.iter().chain(&self.any).map(Self::limits).fold(own, lower)
    }
}

/// The lower one of each limit.
fn lower(one: ChatLimits, other: ChatLimits) -> ChatLimits {
    ChatLimits {
        turns: one.turns.into_iter().chain(other.turns).min(),
        messages: one.messages.into_iter().chain(other.messages).min(),
        tokens: one.tokens.into_iter().chain(other.tokens).min(),
        cost: one.cost.into_iter().chain(other.cost).min(),
    }
}

impl Says {
    pub(crate) fn build(&self) -> library::Says {
        let says = library::says(self.text.as_str());
        let says = says.set_if(self.whole, library::Says::whole);
        self.by.iter().cloned().fold(says, library::Says::by)
    }
}

/// The condition `text`, in CEL.
pub(crate) fn condition(text: &str) -> Result<Library> {
    let condition = Condition::compile(text)?;
    Ok(library::when(text, move |chat| condition.holds_or_records_error(chat)))
}

fn joined(stops: &[Stop], join: impl Fn(Library, Library) -> Library) -> Result<Option<Library>> {
    let all: Vec<Option<Library>> = stops.iter().map(Stop::build).collect::<Result<_>>()?;
    Ok(all.into_iter().flatten().reduce(join))
}
