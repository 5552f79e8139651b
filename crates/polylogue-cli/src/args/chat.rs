//! The command `chat`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{RunOptions, variable};
use crate::attachments::Attach;
use crate::shipped::team_file;

#[derive(Debug, Args)]
#[command(
    after_help = "Enter sends a line; Alt+Enter begins a new one. Ctrl-C stops a reply, Ctrl-D leaves. `/help` lists the commands.
With a pipe as input, each line is a message, and each reply is printed alone: `echo Hello | polylogue chat`."
)]
pub(crate) struct Chat {
    /// The team file, or `demo:NAME` for a built-in demo. Default: a chat with one model
    #[arg(value_parser = team_file())]
    pub(crate) team: Option<PathBuf>,

    /// The system message of the model; `@FILE` reads it from a file
    #[arg(short, long, value_name = "TEXT", conflicts_with = "team")]
    pub(crate) system: Option<String>,

    #[command(flatten)]
    pub(crate) attach: Attach,

    /// Continue a conversation: its id, the beginning of its id, or `last`
    #[arg(short, long, value_name = "ID", conflicts_with_all = ["team", "system", "vars"])]
    pub(crate) resume: Option<String>,

    /// Set a variable of the team file
    #[arg(long = "var", value_name = "NAME=VALUE", requires = "team", value_parser = variable)]
    pub(crate) vars: Vec<(String, String)>,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}
