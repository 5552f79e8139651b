//! The command `batch`.

use std::path::PathBuf;

use clap::Args;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::shared::{Budgets, TeamOptions, count, variable};
use crate::shipped::team_file;

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("rows").required(true))]
#[command(after_help = BATCH)]
pub(crate) struct Batch {
    /// The team file, or `demo:NAME` for a built-in demo
    #[arg(value_parser = team_file())]
    pub(crate) team: PathBuf,

    /// The rows: JSON Lines, each line an object with `task`, variables and an optional `id`; or a `.csv` or `.tsv` file with these as columns
    #[arg(long, value_name = "FILE", group = "rows")]
    pub(crate) over: Option<PathBuf>,

    /// The rows: every combination of the lists in a YAML file, which maps variables and `task` to lists of values
    #[arg(long, value_name = "FILE", group = "rows")]
    pub(crate) cross: Option<PathBuf>,

    /// The file of results: one line of JSON for each row; or a table of them, if it ends in `.csv` or `.tsv`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// How many conversations run at the same time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = count::<u16>)]
    pub(crate) at_once: u16,

    /// Keep results of another team, and of rows that have changed since; these rows are not run again
    #[arg(long)]
    pub(crate) keep: bool,

    /// Print the result as one line of JSON, instead of the table
    #[arg(long)]
    pub(crate) json: bool,

    /// Set a variable of the team file, for all rows
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) vars: Vec<(String, String)>,

    #[command(flatten)]
    pub(crate) options: TeamOptions,

    #[command(flatten)]
    pub(crate) budgets: Budgets,
}

/// `error`, with the option that takes rows, if a file of rows follows the team without one.
pub(crate) fn explained(mut error: clap::Error) -> clap::Error {
    let is_rows = |text: &str| [".csv", ".tsv", ".jsonl"].iter().any(|ending| text.ends_with(ending));
    let given = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(given)) if error.kind() == ErrorKind::UnknownArgument => given.clone(),
        _ => return error,
    };
    if is_rows(&given) && std::env::args().nth(1).is_some_and(|command| command == "batch") {
        let tip = format!("the rows of a batch follow `--over`: `--over {given}`");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

const BATCH: &str =
    "Each row is a separate conversation, and the `--max-` limits apply to each. The `--budget` limits are for all rows of all runs of this \
     command together. Conversations are stored next to the output, in FILE.db, unless `--store` names another store. Run the command \
     again to continue: finished rows are skipped, others continue where they stopped, and no finished model call is made again.

Exit codes, the first that applies:
  1     rows failed
  4, 3  rows are left: the budget is used up, of tokens and money (4), or of calls and time (3)
  6     rows are left: the batch was stopped
  5     rows wait for people
  4, 3  rows reached their own limit, on tokens and money (4), or on turns, calls and time, or by a loop (3)
  6     rows were stopped
  7     rows have no output
  0     every row is done";
