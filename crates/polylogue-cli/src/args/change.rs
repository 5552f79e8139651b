//! The commands that change which events or which team a conversation has: `fork` and `move`.

use std::path::PathBuf;

use clap::Args;

use super::shared::TeamOptions;
use super::worker::OfTenant;
use crate::shipped::team_file;

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

    #[command(flatten)]
    pub(crate) of: OfTenant,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The conversation keeps its log, and its agents continue with the other version of the team from here on. Nothing is run. A team \
    without its participants, or without an agent whose turn is open, is refused."
)]
pub(crate) struct Move {
    /// The conversation: its id, the beginning of its id, or `last`
    pub(crate) id: String,

    /// The team file with which it continues
    #[arg(long, value_name = "FILE", value_parser = team_file())]
    pub(crate) team: PathBuf,

    #[command(flatten)]
    pub(crate) options: TeamOptions,

    #[command(flatten)]
    pub(crate) of: OfTenant,
}
