//! The command `trust`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Trust {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the team files that you trust, and what each is allowed
    List(List),
    /// Trust them no longer: the next run asks again
    Forget(Forget),
    /// Check your rules for approvals, and say where they are
    Rules,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Write one line of JSON for each
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Forget {
    /// Team files, or beginnings of digests as `list` shows them
    #[arg(required_unless_present = "all")]
    pub(crate) which: Vec<String>,

    /// Forget all
    #[arg(long, conflicts_with = "which")]
    pub(crate) all: bool,
}
