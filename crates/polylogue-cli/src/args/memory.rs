//! `polylogue memory`: what agents remember.

use clap::{Args, Subcommand};
use polylogue::tools::memory::Scope;

use super::shared::count;

#[derive(Debug, Args)]
pub(crate) struct Memory {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List facts, the newest first
    List(List),
    /// Find facts by their text, the best match first
    Search(Search),
    /// Delete facts, by their numbers
    Forget(Forget),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) whose: ScopeArg,

    /// Maximum number
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = count::<u32>)]
    pub(crate) limit: u32,

    /// Print one line of JSON for each fact
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// The text to look for
    pub(crate) query: String,

    #[command(flatten)]
    pub(crate) whose: ScopeArg,

    /// Maximum number per scope
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(crate) limit: u32,

    /// Print one line of JSON for each fact
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Forget {
    /// The numbers of the facts, with or without `#`
    #[arg(required = true, value_name = "NUMBER", value_parser = number)]
    pub(crate) ids: Vec<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ScopeArg {
    /// The scope of the facts: a team's name, or `scope` of its file. Default: all
    #[arg(long, value_name = "SCOPE", value_parser = scope)]
    pub(crate) scope: Option<Scope>,
}

fn scope(text: &str) -> Result<Scope, String> {
    Scope::new(text).map_err(|error| error.to_string())
}

fn number(text: &str) -> Result<u64, String> {
    text.trim_start_matches('#').parse().map_err(|_| "expected the number of a fact, such as 12".to_owned())
}
