//! The command line of `polylogue dev`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::shared::{Allowed, address, count};
use crate::shipped::team_file;

#[derive(Debug, Args)]
#[command(
    after_help = "Starts the Postgres of the system's packages, workers and a server, with their usual output. Ctrl-C ends all of them. The line `store` \
    has the address for other commands, as `POLYLOGUE_STORE`; other users of this machine cannot connect."
)]
pub(crate) struct Dev {
    /// The team files that are served, or folders of them. Default: the built-in demo `writer-critic`
    #[arg(value_parser = team_file())]
    pub(crate) teams: Vec<PathBuf>,

    /// Run a cluster on a Postgres that is started for it: in this folder, which is kept, or in a temporary one, which is removed
    #[arg(long, required = true, value_name = "FOLDER", num_args = 0..=1, require_equals = true)]
    pub(crate) postgres: Option<Option<PathBuf>>,

    /// How many workers run conversations, up to 64
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = count::<u64>)]
    pub(crate) workers: u64,

    /// The address of the server and its page; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787", value_parser = address)]
    pub(crate) listen: SocketAddr,

    /// The model of every agent, such as `openai:gpt-4o-mini`
    #[arg(short, long, value_name = "PROVIDER:MODEL", conflicts_with = "offline")]
    pub(crate) model: Option<String>,

    /// Take the replies of models from the teams' scripts; no model is called
    #[arg(long)]
    pub(crate) offline: bool,

    #[command(flatten)]
    pub(crate) allowed: Allowed,
}
