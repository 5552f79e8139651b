//! The commands that change which events or which team a conversation has: `fork` and `move`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{Allowed, Models, TeamOptions};
use super::worker::OfTenant;
use crate::shipped::team_file;

#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// The conversation: its id, the beginning of its id, or `last`
    pub(crate) id: String,

    /// Copy only the events before this one; `show --json` prints their numbers. Default: all
    #[arg(long, value_name = "EVENT", value_parser = event)]
    pub(crate) at: Option<u64>,

    /// With `--at`: replace the text of that message, answer or task. Without: send this message to the fork. `@FILE` reads it from a file, `-` from standard input
    #[arg(long, value_name = "TEXT")]
    pub(crate) say: Option<String>,

    #[command(flatten)]
    pub(crate) of: OfTenant,
}

/// Reads the number of an event. The first one is 0.
fn event(given: &str) -> Result<u64, String> {
    given.parse().map_err(|_| {
        "it is not the number of an event, which `polylogue show ID --json` prints as `seq`".to_owned()
    })
}

#[derive(Debug, Args)]
#[command(
    after_help = "The conversation keeps its log and its limits, and its agents continue with the other version of the team from here on. Nothing is run. A \
    team without its participants, or without an agent whose turn is open, is refused."
)]
pub(crate) struct Move {
    /// The conversation: its id, the beginning of its id, or `last`
    pub(crate) id: String,

    /// The team file with which it continues
    #[arg(long, value_name = "FILE", value_parser = team_file())]
    pub(crate) team: PathBuf,

    #[command(flatten)]
    models: Models,

    #[command(flatten)]
    allowed: Allowed,

    #[command(flatten)]
    pub(crate) of: OfTenant,
}

impl Move {
    /// The models and permissions of the other version.
    pub(crate) fn options(&self) -> TeamOptions {
        TeamOptions::without_limits(&self.models, &self.allowed)
    }
}
