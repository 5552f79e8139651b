//! Upper bounds on the usage of a model call.

use serde::{Deserialize, Serialize};

use crate::Money;

/// The upper bound of a model call: the most tokens and money that it can use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bound {
    /// Input and output tokens; `None` if the length of the reply has no known limit.
    pub tokens: Option<u64>,
    /// Input tokens at most.
    pub input: u64,
    /// Money; `None` if the length of the reply has no known limit, or the model no known price.
    pub cost: Option<Money>,
    /// Money for the input alone; `None` if the model has no known price.
    pub least_cost: Option<Money>,
}

/// The upper bound of the input tokens of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputTokens {
    /// All tokens but those of pages.
    pub all: u64,
    /// The part of these that is sound, which can have another price.
    pub audio: u64,
    /// Pages of documents. How many tokens a page has depends on the model: [`Model::page_tokens`](crate::Model::page_tokens).
    pub pages: u64,
}

impl From<u64> for InputTokens {
    fn from(all: u64) -> Self {
        Self { all, ..Self::default() }
    }
}

impl InputTokens {
    /// Returns the sum of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            all: self.all.saturating_add(other.all),
            audio: self.audio.saturating_add(other.audio),
            pages: self.pages.saturating_add(other.pages),
        }
    }

    /// Returns the number of tokens, with `page_tokens` for each page.
    ///
    /// ```
    /// use polylogue_core::InputTokens;
    /// let tokens = InputTokens { all: 100, pages: 3, ..InputTokens::default() };
    /// assert_eq!(tokens.with_pages(5_000), 15_100);
    /// ```
    pub const fn with_pages(self, page_tokens: u64) -> u64 {
        self.all.saturating_add(self.pages.saturating_mul(page_tokens))
    }
}

impl Bound {
    /// The most tokens of a picture or sound: a large picture is about 48,000 for the models with the highest
    /// counts.
    pub const MEDIA_TOKENS: u64 = 50_000;

    /// The most tokens of the text of a page of a document, where it is not known: read from a scan by the provider, for instance.
    /// Providers publish 1,500 to 3,000, depending on how dense it is.
    pub const PAGE_TEXT_TOKENS: u64 = 3_000;

    /// The most tokens of a page of a document: its text, and a picture of it. Models whose providers publish less have
    /// [fewer](crate::Model::page_tokens).
    pub const PAGE_TOKENS: u64 = Self::PAGE_TEXT_TOKENS + Self::MEDIA_TOKENS;

    /// The pages of a document whose pages cannot be counted: the most that any provider is known to accept.
    pub const MAX_PAGES: u64 = 1_000;

    /// The tokens that a message adds to its text: its role, its name, and separators.
    pub const MESSAGE_TOKENS: u64 = 32;

    /// That of a reply that is stored: nothing.
    pub(crate) const STORED: Self = {
        let nothing = Some(Money { picodollars: 0 });
        Self { tokens: Some(0), input: 0, cost: nothing, least_cost: nothing }
    };

    /// That of a call of which nothing is known.
    pub(crate) const UNKNOWN: Self =
        Self { tokens: None, input: 0, cost: None, least_cost: Some(Money { picodollars: 0 }) };

    /// Returns the bound of both calls together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let sum = |one: Option<Money>, other: Option<Money>| Some(one? + other?);
        Self {
            tokens: self.tokens.zip(other.tokens).map(|(one, other)| one.saturating_add(other)),
            input: self.input.saturating_add(other.input),
            cost: sum(self.cost, other.cost),
            least_cost: sum(self.least_cost, other.least_cost),
        }
    }

    /// Tokens that are used in any case.
    pub(crate) fn least_tokens(&self) -> u64 {
        self.tokens.unwrap_or(self.input)
    }

    /// Money that is spent in any case.
    pub(crate) fn least(&self) -> Money {
        self.cost.or(self.least_cost).unwrap_or_default()
    }
}
