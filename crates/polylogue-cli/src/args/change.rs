//! The command `fork`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// The conversation: its id, the beginning of its id, or `last`
    pub(crate) id: String,

    /// Copy only the events before this one; `show --json` prints their numbers. Default: all
    #[arg(long, value_name = "EVENT")]
    pub(crate) at: Option<u64>,

    /// With `--at`: replace the text of that message, answer or task. Without: send this message to the fork. `@FILE` reads it from a file, `-` from standard input
    #[arg(long, value_name = "TEXT")]
    pub(crate) say: Option<String>,
}
