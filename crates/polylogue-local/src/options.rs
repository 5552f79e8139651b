//! Settings of models.

/// Settings of a local model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LocalOptions {
    /// The context window in tokens. Default: that of the model, but at most 8192.
    pub window: Option<u32>,
    /// The maximum memory in bytes: weights and caches. Default: what the system reports as available, where it
    /// reports that.
    pub memory: Option<u64>,
    /// The maximum number of conversations whose computed tokens are kept, and that are computed in turns. Fewer if
    /// the memory is short. Default: 4.
    pub sequences: usize,
}

impl LocalOptions {
    /// The largest context window where none is set, in tokens.
    pub const WINDOW: u32 = 8192;
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self { window: None, memory: None, sequences: 4 }
    }
}
