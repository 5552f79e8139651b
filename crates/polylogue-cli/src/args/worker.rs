//! The commands of clusters: `worker`, `cluster`, and how conversations are handed over.

use std::net::SocketAddr;

use clap::Args;
use polylogue_core::Features;
use polylogue_runtime::worker::WorkerOptions;
use polylogue_server::Token;

use super::shared::{Allowed, Budgets, Models, TeamOptions, WORKERS, address, budget_name, count};

#[derive(Debug, Args)]
#[command(
    after_help = "A worker runs conversations that `run --detach` and `resume --detach` hand over, continues them when they get an answer or a \
    message, unless they are paused, and takes over those of workers that have died. Any number of workers can share a store. `SIGTERM`, `SIGHUP` and \
    Ctrl-C let running steps end, for at most 25 seconds; other workers continue the conversations. Limits such as `--max-cost` are those of each \
    conversation: `run --detach` and `resume --detach` set them. With `--only`, exit codes are those of `run`, except that a worker that was stopped by \
    a signal exits with 1: run again, it continues the conversation."
)]
pub(crate) struct Worker {
    #[command(flatten)]
    pub(crate) takes: Takes,

    /// Run only this conversation, until it ends or waits: its id, the beginning of its id, or `last`
    #[arg(long, value_name = "ID", conflicts_with = "at_once")]
    pub(crate) only: Option<String>,

    #[command(flatten)]
    pub(crate) of: OfTenant,

    /// Serve metrics for Prometheus at `/metrics` of this address, without a token. Default: none are served
    #[arg(long, value_name = "ADDRESS", conflicts_with = "only", value_parser = address)]
    pub(crate) metrics: Option<SocketAddr>,

    #[command(flatten)]
    pub(crate) internal: Internal,

    #[command(flatten)]
    pub(crate) budgets: Budgets,

    #[command(flatten)]
    models: Models,

    #[command(flatten)]
    allowed: Allowed,
}

impl Worker {
    /// The models and permissions of all its conversations.
    pub(crate) fn options(&self) -> TeamOptions {
        TeamOptions::without_limits(&self.models, &self.allowed)
    }
}

/// Whose conversations of a store a command is about.
#[derive(Debug, Clone, Args)]
pub(crate) struct OfTenant {
    /// Use the conversations of this tenant; `polylogue token new --tenant` makes tenants
    #[arg(long, value_name = "NAME", default_value = Token::LOCAL, value_parser = tenant)]
    pub(crate) tenant: String,
}

/// How many conversations a worker runs, what it has that they may need, and what it leaves behind.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Takes {
    /// Maximum number of handed-over conversations that run at the same time. Default: 200
    #[arg(long, value_name = "N", value_parser = count::<u64>)]
    at_once: Option<u64>,

    /// What this machine offers to handed-over conversations that need it (`run --needs`), such as `gpu`; a list with commas. Keys, MCP servers and the sandbox are detected
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    pub(crate) offers: Vec<String>,

    /// Keep the work directories of handed-over conversations that have ended, also if all files are stored in the database
    #[arg(long)]
    pub(crate) keep_files: bool,
}

impl Takes {
    /// How many conversations it runs at the same time.
    pub(crate) fn at_once(&self) -> usize {
        let default = WorkerOptions::default().at_once;
        self.at_once.map_or(default, |at_once| usize::try_from(at_once).unwrap_or(usize::MAX))
    }

    /// The first of its options that is given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let offers = (!self.offers.is_empty()).then_some("`--offers`");
        let keeps = self.keep_files.then_some("`--keep-files`");
        self.at_once.map(|_| "`--at-once`").or(offers).or(keeps)
    }
}

/// How other processes with the same store reach this one.
#[derive(Debug, Clone, Args)]
pub(crate) struct Internal {
    /// The address at which servers with the same store receive live text from this process; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", value_parser = address)]
    pub(crate) internal_listen: SocketAddr,

    /// The host and port by which those servers reach this process. Default: those of `--internal-listen`
    #[arg(long, value_name = "HOST:PORT", requires = "internal_listen")]
    pub(crate) advertise: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Cluster {
    /// Print one line of JSON for each worker, shared budget, limit of a model server, and conversation
    #[arg(long)]
    pub(crate) json: bool,

    /// Maximum number of conversations: lost ones first, then parked, ready, held and timed ones
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = count::<usize>, conflicts_with = "recount")]
    pub(crate) limit: usize,

    #[command(flatten)]
    pub(crate) of: OfTenant,

    /// Count what was used of this shared budget again, from the logs of its conversations
    #[arg(long, value_name = "BUDGET")]
    pub(crate) recount: Option<String>,

    /// Remove this shared budget, with its limits and what was used of it; conversations that it paid for continue without it
    #[arg(long, value_name = "BUDGET", conflicts_with_all = ["limit", "recount"], value_parser = budget_name)]
    pub(crate) remove_budget: Option<String>,
}

/// The options of commands that can hand a conversation over to workers.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Detach {
    /// Print the conversation's id and return; a worker (`polylogue worker`) with the same store runs the conversation
    #[arg(short, long, conflicts_with_all = ["attach", "given"], help_heading = WORKERS)]
    pub(crate) detach: bool,

    /// With `--detach`: what the worker must offer (`worker --offers`) besides what the team needs, such as `gpu`; a list with commas
    #[arg(long, value_name = "WORDS", value_delimiter = ',', requires = "detach", help_heading = WORKERS)]
    pub(crate) needs: Vec<String>,
}

/// Parses the name of a tenant.
pub(super) fn tenant(given: &str) -> Result<String, String> {
    match Token::is_tenant(given) {
        true => Ok(given.to_owned()),
        false => Err("a tenant has up to 64 letters, digits, `-` and `_`".into()),
    }
}

/// The features that an option names.
///
/// # Errors
/// Why one of its words is none, and how several are given.
pub(crate) fn features(option: &str, words: &[String]) -> Result<Features, crate::error::CliError> {
    Features::new(words).map_err(|error| {
        let legal = words.iter().flat_map(|words| words.split_whitespace());
        let legal: Vec<&str> = legal.filter(|word| Features::new([word]).is_ok()).collect();
        let several = if legal.len() > 1 { legal.join(",") } else { "gpu,browser".into() };
        let hint = error.hint().unwrap_or_default();
        crate::error::CliError::usage(error.to_string())
            .hint(format!("{hint}; several are separated by commas: `{option} {several}`"))
    })
}
