//! The command line of `polylogue verify`.

use std::path::PathBuf;

use clap::Args;

use super::worker::OfTenant;

/// What is verified: exit code 0 when everything is intact, 1 when something is damaged or lost.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:
  0  everything is intact, or was repaired
  1  something is damaged or lost, or cannot be read
  2  the conversation does not exist")]
pub(crate) struct Verify {
    /// The conversation: its id, the beginning of its id, or `last`. Default: all, and the file that they share
    pub(crate) id: Option<String>,

    /// Print one line of JSON for each conversation
    #[arg(long)]
    pub(crate) json: bool,

    /// Verify a recording of model calls, which `--record` wrote, instead of conversations
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "repair"])]
    pub(crate) recording: Option<PathBuf>,

    /// Keep the intact beginning of a damaged conversation and set the rest aside, so that it can be resumed
    #[arg(long, requires = "id")]
    pub(crate) repair: bool,

    #[command(flatten)]
    pub(crate) of: OfTenant,
}
