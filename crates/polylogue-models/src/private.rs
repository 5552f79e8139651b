//! Files with what people and models say: only their owner can read them.

use std::fs::OpenOptions;

/// Makes new files readable by their owner only. Existing files keep their mode.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}
