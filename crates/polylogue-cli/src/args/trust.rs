//! The command `trust`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Trust {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the team files that you trust, and the permissions of each
    List(List),
    /// Revoke trust: the next run asks again
    Forget(Forget),
    /// Check your rules for approvals, and show where they are
    Rules,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print one line of JSON for each
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Forget {
    /// Team files, or beginnings of digests as `list` shows them
    #[arg(required_unless_present = "all")]
    pub(crate) which: Vec<String>,

    /// Revoke all
    #[arg(long, conflicts_with = "which")]
    pub(crate) all: bool,
}
