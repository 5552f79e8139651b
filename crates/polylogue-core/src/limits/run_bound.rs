//! The bound of a whole run, computed before it begins.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Limits;
use crate::{Capabilities, Capability, Money};

/// The bound of a whole run: the most that it takes, as computed before its first call. No call is sent that could exceed it:
/// the run then ends with [`StopReason::Bound`](crate::StopReason::Bound). Default: nothing is bounded.
///
/// It counts the model calls of agents, not what tools spend, and not the attempts that a server refused before it did
/// anything. It is computed under assumptions, such as on the length of a person's message; when one of them fails
/// ([`BoundException`]), the bound no longer applies. [`Limits`] and [`Budget`](crate::Budget)s apply in any case.
///
/// ```
/// # use polylogue_core::{Log, RunBound};
/// let log = Log::in_memory().bound(RunBound { calls: Some(12), ..RunBound::default() });
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunBound {
    /// Model calls, with those that are repeated because of failures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Input and output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// The bytes of the task and the messages with which the outermost chat begins, and the tokens of pictures, sounds and documents in
    /// these, but for pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<u64>,
    /// The pages of documents in these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening_pages: Option<u64>,
    /// The capabilities that its models are expected to have. If one of them lacks one, its agent continues in another way, which takes
    /// more calls.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub expects: Capabilities,
    /// Whether it counts no [seals](crate::Seals), because its models are expected to return none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expects_no_seals: bool,
    /// Whether models have other prices now than those with which it was computed: then its money does not apply, and the rest does.
    #[serde(skip)]
    pub is_repriced: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_nothing(expects: &Capabilities) -> bool {
    *expects == Capabilities::default()
}

impl RunBound {
    /// The bytes of text that a token of a reply has at most on average, on which a bound rests: about twice those of
    /// English prose.
    pub const BYTES_PER_TOKEN: u64 = 8;

    /// The bytes of [seals](crate::Seals) that a reply has at most for each of its tokens, besides
    /// [`SEAL_BYTES`](Self::SEAL_BYTES), on which a bound rests. Encrypted reasoning has about 6 in recorded replies.
    pub const SEAL_BYTES_PER_TOKEN: u64 = 8;

    /// The bytes of [seals](crate::Seals) that a reply has at most however short it is, on which a bound rests. At most
    /// 1,340 in recorded replies.
    pub const SEAL_BYTES: u64 = 2_048;

    /// The bytes of a message of a person, on which a bound rests.
    pub const MESSAGE_BYTES: u64 = 4_000;

    /// Whether there is a quantity that it bounds.
    pub(crate) const fn bounds_anything(&self) -> bool {
        self.calls.is_some() || self.needs_bounds()
    }

    /// As limits of a run.
    pub(crate) fn limits(self) -> Limits {
        let Self { calls, tokens, cost, .. } = self;
        Limits { calls, tokens, cost, ..Limits::none() }
    }

    /// Whether upper bounds of calls must be known.
    pub(crate) const fn needs_bounds(&self) -> bool {
        self.tokens.is_some() || self.cost.is_some()
    }
}

/// The most that a run was computed to take before its first call, as people and programs see it.
///
/// ```
/// # use polylogue_core::BoundSummary;
/// let bound = BoundSummary {
///     text: "at most $4.10 in 142 model calls; usually about $0.0017".to_owned(),
///     price_date: "2026-11-22".to_owned(),
///     team_digest: "3fa8c1d2e0b4a7f6".to_owned(),
///     ..BoundSummary::default()
/// };
/// let said = "at most $4.10 in 142 model calls; usually about $0.0017 (prices of 2026-11-22, team 3fa8c1d2e0b4)";
/// assert_eq!(bound.to_string(), said);
/// let demo = BoundSummary { team_digest: "demo:writer-critic".to_owned(), ..bound };
/// assert!(demo.to_string().ends_with(", team demo:writer-critic)"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoundSummary {
    /// In words that begin with `at most`.
    pub text: String,
    /// Model calls, with those that are repeated because of failures; omitted without a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Input and output tokens of these; omitted without a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money for these; omitted without a bound, if a price is unknown, and if the models cost nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// The date of the table of prices, as `YYYY-MM-DD`.
    pub price_date: String,
    /// Identifies the content of the team file and of what it includes.
    pub team_digest: String,
}

impl BoundSummary {
    /// How many characters of the digest are shown.
    const DIGITS: usize = 12;

    /// What is shown of the digest: its beginning. A name that stands for content that never changes is shown whole.
    fn shown_digest(&self) -> &str {
        let is_digest = self.team_digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let beginning = self.team_digest.get(..Self::DIGITS).filter(|_| is_digest);
        beginning.unwrap_or(&self.team_digest)
    }
}

/// With the date of the prices, and the beginning of the digest.
impl fmt::Display for BoundSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, price_date, .. } = self;
        write!(f, "{text} (prices of {price_date}, team {})", self.shown_digest())
    }
}

/// The reason why the [bound](RunBound) of a run no longer applies: something happened that its computation did not include.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundException {
    /// The conversation began with longer messages, or with other pictures or documents.
    Opening,
    /// A model reads a sound, which can have another price than text.
    Sound,
    /// A tool returned a picture or a document, of which models read more than of a text.
    Media,
    /// A person wrote more than [`RunBound::MESSAGE_BYTES`].
    LongAnswer,
    /// A reply had more than [`RunBound::BYTES_PER_TOKEN`] for each of its tokens.
    LongReply,
    /// A reply had larger [seals](crate::Seals) than [`RunBound::SEAL_BYTES_PER_TOKEN`] and [`RunBound::SEAL_BYTES`]
    /// allow, or some where [none](RunBound::expects_no_seals) are expected.
    Seals,
    /// A message was sent into the conversation, or it continues after its end.
    Continued,
    /// Its limits or its next speaker were changed from outside.
    Steered,
    /// It continues with another version of its team, whose changes are not [harmless](crate::TeamChanged::harmless).
    TeamChanged,
    /// A provider refused a request as too long, which is compacted and sent again.
    TooLong,
    /// A provider paused a reply, whose rest is another request.
    Paused,
    /// A provider could not parse two replies of an agent in a row, so that the model is prompted once more.
    Unparsed,
    /// A server replied with more tokens than the request allowed.
    Overlong,
    /// A model lacks a capability that it was [expected](RunBound::expects) to have.
    CapabilityMissing(Capability),
    /// Prices have changed since the bound was computed. Only its money does not apply any more.
    Prices,
}

impl fmt::Display for BoundException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CapabilityMissing(capability) => {
                return write!(f, "a model does not support {capability}, which was expected of it");
            }
            Self::Opening => "the first message is longer than the task of the team file",
            Self::Sound => "there is a sound, which can have another price than text",
            Self::Media => "a tool returned a picture or a document",
            Self::LongAnswer => "a person wrote more than 4,000 bytes",
            Self::LongReply => "a reply has more than 8 bytes for each token",
            Self::Seals => "a reply has more sealed reasoning than was expected",
            Self::Continued => "the conversation continued with a message",
            Self::Steered => "limits or the next speaker were changed",
            Self::TeamChanged => "the team has changed",
            Self::TooLong => "a provider refused a request as too long",
            Self::Paused => "a provider paused a reply",
            Self::Unparsed => "a provider could not parse two replies in a row",
            Self::Overlong => "a server replied with more tokens than it was asked for",
            Self::Prices => "prices have changed",
        })
    }
}
