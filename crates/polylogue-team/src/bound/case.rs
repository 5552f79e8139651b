//! Assumptions of the bound: three cases, and sizes that no setting limits.

use polylogue_core::{Bound, RunBound};

use crate::agent::Agent;
use crate::reasoning::Example;
use crate::text::Template;

/// What is assumed of models, providers and people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Case {
    /// Every request fails until it is not retried any more, and every limit is reached.
    Worst,
    /// Every limit is reached, and no request fails.
    WithoutFailures,
    /// Replies of usual length, few rounds of tools, chats that end early.
    Typical,
}

/// The bytes of text that a token of a long reply can have on average: twice those of English prose. A bound rests on it.
pub(super) const BYTES_PER_TOKEN: u128 = RunBound::BYTES_PER_TOKEN as u128;

/// The bytes of sealed reasoning that later requests return of a reply: for each of its tokens, and besides.
pub(super) const SEAL_BYTES_PER_TOKEN: u128 = RunBound::SEAL_BYTES_PER_TOKEN as u128;
pub(super) const SEAL_BYTES: u128 = RunBound::SEAL_BYTES as u128;

/// The bytes of text that a token usually has.
const TYPICAL_BYTES_PER_TOKEN: u128 = 4;

/// The tokens that a message adds to its text, as calls are reserved.
pub(super) const MESSAGE: u128 = Bound::MESSAGE_TOKENS as u128;

/// The tokens that a provider adds to each request, to one with tools, and to one with an output schema, as calls are reserved.
pub(super) const REQUEST: u128 = Bound::REQUEST_TOKENS as u128;
pub(super) const TOOLS: u128 = Bound::TOOLS_TOKENS as u128;
pub(super) const SCHEMA: u128 = Bound::SCHEMA_TOKENS as u128;

/// Bytes of prompts and notes of the program in one step, such as the request for the rest of a reply.
pub(super) const PROMPT: u128 = 400;

/// Bytes that a tool call adds besides what the model writes: ids and field names, in the call and in the result.
pub(super) const CALL: u128 = 256;

/// The fewest tokens in which a model writes a tool call.
pub(super) const CALL_TOKENS: u128 = 8;

/// The most bytes that a person writes in one message.
pub(super) const PERSON: u128 = RunBound::MESSAGE_BYTES as u128;

/// The most bytes of an answer to a question of `agent`: of a person, or its default answer.
pub(super) fn answer(agent: &Agent) -> u128 {
    let default = agent.default_answer.as_ref().map_or(0, |default| default.text.len() as u128);
    PERSON.max(default)
}

/// Output tokens of a typical reply.
const TYPICAL_REPLY: u128 = 250;

/// Bytes of a typical result of a tool, and of a typical message of a person.
const TYPICAL_TEXT: u128 = 1_000;

/// How often each participant speaks in a typical chat that only a limit ends.
const TYPICAL_ROUNDS: u128 = 3;

impl Case {
    pub(super) fn is_typical(self) -> bool {
        self == Self::Typical
    }

    /// The tokens of `bytes` of a request: one for each byte; in a typical request, one for four.
    pub(super) const fn tokens(self, bytes: u128) -> u128 {
        match self {
            Self::Typical => bytes.div_ceil(TYPICAL_BYTES_PER_TOKEN),
            Self::Worst | Self::WithoutFailures => bytes,
        }
    }

    /// The bytes that a token of a reply has when it is read again.
    pub(super) const fn bytes_per_token(self) -> u128 {
        match self {
            Self::Typical => TYPICAL_BYTES_PER_TOKEN,
            Self::Worst | Self::WithoutFailures => BYTES_PER_TOKEN,
        }
    }

    /// The bytes of a reply of `tokens` when it is read again, by a model whose replies `can_seal`.
    pub(super) const fn read_again(self, tokens: u128, can_seal: bool) -> u128 {
        let said = tokens.saturating_mul(self.bytes_per_token());
        match self {
            Self::Worst | Self::WithoutFailures if can_seal => {
                let seals = tokens.saturating_mul(SEAL_BYTES_PER_TOKEN).saturating_add(SEAL_BYTES);
                said.saturating_add(seals)
            }
            _ => said,
        }
    }

    /// The tokens of a reply of at most `most`.
    pub(super) fn reply(self, most: u128) -> u128 {
        if self.is_typical() { most.min(TYPICAL_REPLY) } else { most }
    }

    /// The bytes of a text of at most `most`.
    pub(super) fn text(self, most: u128) -> u128 {
        if self.is_typical() { most.min(TYPICAL_TEXT) } else { most }
    }

    /// How often something is done that is done at most `most` times, and usually `usual` times.
    pub(super) fn times(self, most: u128, usual: u128) -> u128 {
        if self.is_typical() { most.min(usual) } else { most }
    }

    /// The turns of a chat of `participants` that only a limit of `most` turns ends.
    pub(super) fn turns(self, most: u128, participants: usize) -> u128 {
        self.times(most, TYPICAL_ROUNDS.saturating_mul(participants as u128))
    }
}

/// The bytes of a text that can quote a task: without it, and how often it does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quoting {
    plain: u128,
    quotes: u128,
}

impl Quoting {
    /// That of a text, which has so many `bytes` with a task.
    pub(super) fn of(bytes: impl Fn(&str) -> usize) -> Self {
        let [plain, quoting] = ["", "x"].map(|task| bytes(task) as u128);
        Self { plain, quotes: quoting.saturating_sub(plain) }
    }

    /// The bytes with a task of `task` bytes.
    pub(super) const fn with(self, task: u128) -> u128 {
        self.plain.saturating_add(self.quotes.saturating_mul(task))
    }
}

/// The most bytes of `template` with a task of `task` bytes.
pub(super) fn filled(template: &Template, task: u128) -> u128 {
    Quoting::of(|task| template.fill(task).len()).with(task)
}

/// The bytes of an example that an agent is given.
pub(super) fn example(example: &Example) -> u128 {
    (example.user.len() + example.assistant.len()) as u128 + 2 * MESSAGE
}
