//! The commands of clusters: `worker`, `cluster`, and how conversations are handed over.

use clap::Args;
use polylogue_core::Features;

use super::shared::{Budgets, TeamOptions, count};

#[derive(Debug, Args)]
#[command(
    after_help = "A worker runs conversations that `run --detach` and `resume --detach` hand over, and those that get an answer or a \
    message. `SIGTERM` and Ctrl-C let steps end, for at most 25 seconds; other workers continue what is released. With `--only`, exit codes are \
    those of `run`."
)]
pub(crate) struct Worker {
    /// How many conversations it runs at the same time
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = count::<u64>)]
    pub(crate) at_once: u64,

    /// What this machine has that conversations may need, such as `gpu`. Default: nothing
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    pub(crate) offers: Vec<String>,

    /// Run only this conversation, until it ends or waits: its id, the beginning of its id, or `last`
    #[arg(long, value_name = "ID", conflicts_with_all = ["at_once", "offers"])]
    pub(crate) only: Option<String>,

    #[command(flatten)]
    pub(crate) budgets: Budgets,

    #[command(flatten)]
    pub(crate) options: TeamOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Cluster {
    /// Print one line of JSON for each worker, each shared budget and each conversation
    #[arg(long)]
    pub(crate) json: bool,

    /// Set what was used of this shared budget to what the logs of its conversations say
    #[arg(long, value_name = "BUDGET")]
    pub(crate) recount: Option<String>,
}

/// The options of commands that can hand a conversation over to workers.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Detach {
    /// Hand the conversation over to the workers of the store, and print its id, instead of running it
    #[arg(short, long, conflicts_with_all = ["attach", "given"])]
    pub(crate) detach: bool,

    /// With `--detach`: what a worker must offer, such as `gpu`. Default: nothing
    #[arg(long, value_name = "WORDS", value_delimiter = ',', requires = "detach")]
    pub(crate) needs: Vec<String>,
}

/// Words on a command line.
///
/// # Errors
/// Why one of them is none.
pub(crate) fn features(words: &[String]) -> Result<Features, crate::error::CliError> {
    Features::new(words).map_err(|error| {
        let text = error.to_string();
        let (what, hint) = text.split_once("; hint: ").unwrap_or((&text, "separate words by commas"));
        crate::error::CliError::usage(what).hint(hint)
    })
}
