//! How much memory a model needs, and how much there is.

use crate::cache::Cache;
use crate::hyperparameters::Hyperparameters;

/// The memory that a model needs, in bytes, known before it is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The weights, and the tables of positions.
    pub weights: u64,
    /// Intermediate results of one step.
    pub scratch: u64,
    /// The cache of one conversation, when its window is full.
    pub cache: u64,
    /// The number of caches.
    pub caches: u64,
}

impl Memory {
    /// Returns the bytes with all caches full.
    pub const fn total(&self) -> u64 {
        self.least().saturating_add(self.cache.saturating_mul(self.caches.saturating_sub(1)))
    }

    /// The bytes with one cache.
    pub(crate) const fn least(&self) -> u64 {
        self.weights.saturating_add(self.scratch).saturating_add(self.cache)
    }

    /// For `weights` bytes of tensors, with `chunk` tokens at a time and as many caches, up to `caches`, as fit into
    /// `limit`.
    pub(crate) fn new(
        sizes: &Hyperparameters,
        weights: u64,
        window: usize,
        chunk: usize,
        (caches, limit): (usize, u64),
    ) -> Self {
        let f32s = |count: usize| (count as u64).saturating_mul(size_of::<f32>() as u64);
        let positions = 4 * window * sizes.rotated / 2;
        let widest = sizes.width.max(2 * sizes.feed_forward).max(sizes.vocabulary);
        // Scores exist three times: with the mask, without, and normalized.
        let scratch = f32s(3 * sizes.heads * chunk * window).saturating_add(f32s(4 * chunk * widest));
        let cache = Cache::bytes(sizes, window);
        let one = Self { weights: weights.saturating_add(f32s(positions)), scratch, cache, caches: 1 };
        let more = limit.saturating_sub(one.least()).checked_div(cache).unwrap_or_default();
        Self { caches: more.saturating_add(1).min(caches.max(1) as u64), ..one }
    }
}
