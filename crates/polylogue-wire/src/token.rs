//! Tokens.

use polylogue_core::Money;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Scope;

/// The budget of a token for a day, in UTC. Default: no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DailyBudget {
    /// Money. Models of unknown price are not called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// Tokens, of input and output. They are counted when replies arrive: those of calls in flight can pass the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

impl DailyBudget {
    /// Returns whether it bounds nothing.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether it allows no more than `other`.
    pub fn is_within(&self, other: &Self) -> bool {
        fn is_within<T: PartialOrd>(own: Option<T>, other: Option<T>) -> bool {
            other.is_none_or(|other| own.is_some_and(|own| own <= other))
        }
        is_within(self.cost, other.cost) && is_within(self.tokens, other.tokens)
    }
}

/// The request to create a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewToken {
    /// The name: what it is for.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The scopes: what it may do.
    #[schemars(length(min = 1))]
    pub scopes: Vec<Scope>,
    /// The teams that it may see and run. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub teams: Option<Vec<String>>,
    /// What its conversations may spend in a day: `cost` in picodollars. Default: as the token that makes it, of whose budget it is spent, too.
    #[serde(default, skip_serializing_if = "DailyBudget::is_unlimited")]
    pub per_day: DailyBudget,
    /// The time at which it expires, in milliseconds since 1970. Default: when the token ends that makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}

/// A token: neither its text nor its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    /// Identifies it.
    pub id: String,
    /// The name: what it is for.
    pub name: String,
    /// The way in which it is used: `key` in a header of requests, `session` in the cookie of a browser.
    pub kind: String,
    /// The tenant whose conversations it can see.
    pub tenant: String,
    /// The scopes: what it may do.
    pub scopes: Vec<Scope>,
    /// The teams that it may see and run; `None`: all.
    pub teams: Option<Vec<String>>,
    /// The budget of its conversations for a day.
    pub per_day: DailyBudget,
    /// The time at which it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// The time at which it expires, in milliseconds since 1970; `None`: never.
    pub expires_ms: Option<u64>,
    /// The beginning of the day in UTC on which it was used last, in milliseconds since 1970; `None`: never.
    pub last_used_ms: Option<u64>,
    /// The usage of its own budget today, in UTC; `None`: it has none.
    pub usage_today: Option<DailyUsage>,
}

/// The usage of a budget of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DailyUsage {
    /// The cost.
    pub cost: Money,
    /// The tokens, of input and output.
    pub tokens: u64,
}

/// The tokens of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// The tokens.
    pub tokens: Vec<Token>,
}

/// A link to the page, to be exchanged for its cookie.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, derive_more::Debug)]
#[debug("Login")]
pub struct Login {
    /// What follows `#login=` in a link to the page.
    pub code: String,
}

/// A token that was just made, with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MadeToken {
    /// The token.
    #[serde(flatten)]
    pub about: Token,
    /// The text, which is shown once.
    pub token: TokenText,
}

/// The text of a token. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, derive_more::Debug)]
#[debug("ply_…")]
#[serde(transparent)]
pub struct TokenText(String);

impl TokenText {
    /// Creates a token with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself, to be shown once or sent.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// The token was revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revoked {
    /// Always true.
    pub revoked: bool,
}
