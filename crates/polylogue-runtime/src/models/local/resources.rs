//! What models in the process can use, and what one takes of it.

use std::fmt;

use polylogue_core::AnyModel;

/// The resources that models in the process can use on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalResources {
    /// The threads that compute.
    pub threads: usize,
    /// The maximum memory in MiB: the value of `POLYLOGUE_LOCAL_MEMORY`, or what is available now. `None`: no limit is known.
    pub memory: Option<u64>,
    /// The largest context window, in tokens.
    pub window: u32,
}

/// The resources that a model in the process takes, and what it can do: known before its weights are loaded.
///
/// ```
/// use polylogue_runtime::models::LocalModelInfo;
/// let info = LocalModelInfo { window: 8192, weights: 4700, conversation: 1200, conversations: 4, tools: true };
/// assert_eq!(info.memory(), 9500);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalModelInfo {
    /// The context window, in tokens.
    pub window: usize,
    /// The memory of its weights and of intermediate results, in MiB.
    pub weights: u64,
    /// The memory of a conversation that fills the window, in MiB.
    pub conversation: u64,
    /// The number of conversations that keep their memory at the same time.
    pub conversations: u64,
    /// Whether its chat template describes tools.
    pub tools: bool,
}

/// A model, and what it takes of this machine.
pub(super) type Opened = (AnyModel, LocalModelInfo);

impl LocalModelInfo {
    /// Returns the most memory that it takes, in MiB.
    pub const fn memory(&self) -> u64 {
        self.weights.saturating_add(self.conversation.saturating_mul(self.conversations))
    }
}

/// The memory and the window, in words.
impl fmt::Display for LocalModelInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { window, weights, conversation, conversations, .. } = self;
        let memory = self.memory();
        write!(f, "at most {memory} MiB of memory ({weights} for its weights, {conversation} for ")?;
        match conversations {
            1 => f.write_str("one conversation at a time")?,
            several => write!(f, "each of {several} conversations at a time")?,
        }
        write!(f, "), context window of {window} tokens")
    }
}
