//! The command `fork`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// The conversation: its id, the beginning of its id, or `last`
    pub(crate) id: String,

    /// Copy only the events before this one; `show --json` numbers them. Default: all
    #[arg(long, value_name = "EVENT")]
    pub(crate) at: Option<u64>,

    /// With `--at`: replace the text of this message, answer or task. Else: send a message to the fork. `@FILE` reads it from a file, `-` from standard input
    #[arg(long, value_name = "TEXT")]
    pub(crate) say: Option<String>,
}
