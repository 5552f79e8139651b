//! Compaction: a long history is replaced by a summary before it exceeds the context window of the model.
//!
//! An [`Assistant`](crate::Assistant) whose model has a known context window compacts its history by itself: before a
//! request that would fill more than 80 % of the window, the older part of its view is replaced by a structured summary.
//! The opening of the chat and the latest messages stay as they are, calls stay with their results, and the summary
//! carries task, decisions, facts, done and open work, and files. A later compaction amends it: decisions and facts stay
//! word for word until the model marks them as outdated. Only the agent's own view changes; the log keeps everything.
//!
//! A provider that refuses a request as too long leads to one compaction and one retry, also if the context window of the
//! model is unknown. If that fails, too, or if nothing can be compacted, the chat ends with [`LibraryStopReason::ContextFull`](crate::stop::LibraryStopReason::ContextFull).
//!
//! # At half of the window, by a cheaper model, with pinned messages
//! ```
//! # fn example(model: polylogue::AnyModel, cheap: polylogue::AnyModel) -> polylogue::Result<()> {
//! use polylogue::Assistant;
//! use polylogue::agents::compaction::{Compaction, CompactionLimit};
//! let compaction = Compaction::at(CompactionLimit::Share(0.5)).by(cheap).pin("DECISION:");
//! let agent = Assistant::new("Engineer", model)?.compaction(compaction);
//! # Ok(())
//! # }
//! ```

mod ask;
mod merge;
mod run;
mod summarize;
mod words;

use std::sync::Arc;

use polylogue_core::{AnyModel, Model as _, ModelCall, Params};

pub(crate) use self::ask::{Ask, ask, ask_shorter};
use super::SystemFn;

/// When and how an agent replaces the older part of its history by a summary.
#[derive(Debug, Clone)]
#[must_use]
pub struct Compaction {
    limit: CompactionLimit,
    target: f64,
    keep_messages: usize,
    pins: Vec<Arc<str>>,
    by: Option<Author>,
    prompt: Option<Arc<str>>,
}

/// What summarizes instead of the agent's own model.
#[derive(Clone, derive_more::Debug)]
pub(super) struct Author {
    pub(super) model: AnyModel,
    pub(super) params: Params,
    #[debug(skip)]
    pub(super) system: Option<SystemFn>,
}

/// The size of a request from which on the history is compacted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CompactionLimit {
    /// A share of the model's context window, 0 to 1. Without a known window, the history is compacted only when the provider refuses a
    /// request as too long.
    Share(f64),
    /// Tokens: as reported for the last request, with an estimate of what followed it.
    Tokens(u64),
    /// Messages in the view, each call and each result counted as one.
    Messages(usize),
}

impl Default for Compaction {
    fn default() -> Self {
        Self::at(CompactionLimit::Share(Self::DEFAULT_SHARE))
    }
}

impl Compaction {
    /// Default share of the context window from which on the history is compacted.
    pub const DEFAULT_SHARE: f64 = 0.8;

    /// Default share of the limit that is left after a compaction.
    pub const DEFAULT_TARGET: f64 = 0.5;

    /// Default number of latest messages that always stay, a call and its results counted as one.
    pub const DEFAULT_KEEP_MESSAGES: usize = 4;

    /// The most calls of the summarizing model for one compaction: two for each piece of the history, of which there are at
    /// most eight.
    pub const MAX_CALLS: u64 = 16;

    /// The most compactions before one model call: one before it is sent, one after the provider refuses it as too long.
    pub const MAX_PER_CALL: u64 = 2;

    /// Returns the maximum number of calls of the summarizing model in a turn with this many model calls.
    pub const fn max_calls(model_calls: u64) -> u64 {
        model_calls.saturating_mul(Self::MAX_PER_CALL * Self::MAX_CALLS)
    }

    /// Compacts the history at `limit`.
    pub const fn at(limit: CompactionLimit) -> Self {
        let (target, keep_messages) = (Self::DEFAULT_TARGET, Self::DEFAULT_KEEP_MESSAGES);
        Self { limit, target, keep_messages, pins: Vec::new(), by: None, prompt: None }
    }

    /// Sets the share of the limit that is left after a compaction, of its tokens or messages, 0 to 1. A lower one makes compactions rarer, so that
    /// the provider's prompt cache is read more often.
    pub fn down_to(self, target: f64) -> Self {
        Self { target: target.clamp(0.0, 1.0), ..self }
    }

    /// Sets how many of the latest messages always stay, at least 1. A call and its results count as one.
    pub fn keep_messages(self, count: usize) -> Self {
        Self { keep_messages: count.max(1), ..self }
    }

    /// Keeps messages that contain `text` word for word, whatever their age. Calls and results of tools are not kept.
    pub fn pin(mut self, text: impl Into<Arc<str>>) -> Self {
        self.pins.push(text.into());
        self
    }

    /// Sets the model that summarizes. Default: the agent's own, with the agent's parameters.
    pub fn by(self, model: impl Into<AnyModel>) -> Self {
        self.by_author(Author { model: model.into(), params: Params::default(), system: None })
    }

    pub(super) fn by_author(self, author: Author) -> Self {
        Self { by: Some(author), ..self }
    }

    /// Adds instructions for the summary, such as what matters in this conversation.
    pub fn instructions(self, text: impl Into<Arc<str>>) -> Self {
        Self { prompt: Some(text.into()), ..self }
    }

    /// The tokens from which on a request of `call` is compacted; `None` if only the provider knows, or if messages count.
    fn threshold(&self, call: ModelCall<'_>) -> Option<u64> {
        match self.limit {
            CompactionLimit::Tokens(limit) => Some(limit),
            CompactionLimit::Messages(_) => None,
            CompactionLimit::Share(share) => {
                let window = call.model.context_window()?;
                // A reply has to fit, too, where the window counts both.
                let input = window.saturating_sub(call.model.max_output(call.params).unwrap_or(0));
                Some(part(window, share).min(input.max(window / 2)))
            }
        }
    }
}

/// A share of `whole`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a limit need not be exact"
)]
fn part(whole: u64, share: f64) -> u64 {
    (whole as f64 * share.clamp(0.0, 1.0)) as u64
}
