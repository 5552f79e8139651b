//! What models in the process can use.

/// What models in the process can use on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalResources {
    /// The threads that compute.
    pub threads: usize,
    /// The maximum memory in MiB: what `POLYLOGUE_LOCAL_MEMORY` says, or what is available now. `None`: no limit is known.
    pub memory: Option<u64>,
    /// The largest context window, in tokens.
    pub window: u32,
}
