//! The options of `archive` and `rm`: which conversations.

use std::time::Duration;

use clap::Args;

use super::runs::duration;
use super::worker::OfTenant;

/// Conversations by their ids, or by their age.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Which {
    /// The conversations: ids, beginnings of ids, or `last`
    pub(crate) ids: Vec<String>,

    /// All conversations without an event for this time, such as `12h` or `30d`, that neither run nor wait: those that have ended or failed, or were cancelled or interrupted
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) older_than: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "An archived conversation is shown, verified, exported and forked as before; a message or `resume` unpacks it. One that a process \
    runs, or that waits for a worker, is refused, and left out by `--older-than`."
)]
pub(crate) struct Archive {
    #[command(flatten)]
    pub(crate) which: Which,

    /// With `--older-than`: also those that wait for a person or are paused
    #[arg(long, requires = "older_than", conflicts_with = "ids")]
    pub(crate) all: bool,

    /// Unpack them instead, as a message or `resume` does
    #[arg(long, conflicts_with = "older_than")]
    pub(crate) unpack: bool,

    #[command(flatten)]
    pub(crate) of: OfTenant,
}
