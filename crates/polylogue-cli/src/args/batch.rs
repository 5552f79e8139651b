//! The command `batch`.

use std::path::PathBuf;

use clap::Args;

use super::shared::{TeamOptions, count, dollars, variable};
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

    /// The file of results: one line of JSON for each row
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// How many conversations run at the same time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = count::<u16>)]
    pub(crate) at_once: u16,

    /// Maximum cost of all conversations together in dollars, including those of earlier runs; models of unknown price are refused
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(crate) budget: Option<f64>,

    /// Keep results of another team, or of other rows, that the output file has
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
}

const BATCH: &str =
    "Each row is a conversation of its own, and the `--max-` limits apply to each. Conversations are stored next to the
output, in FILE.db. Default of `--store`: this file. Run the command again to continue: finished rows are skipped, others
continue where they stopped, and no finished model call is made again.

Exit codes, the first that applies:
  1     rows failed
  4, 6  rows are left: the budget is spent (4), or the batch was stopped (6)
  5     rows wait for people
  4, 3  rows reached their own limit, on tokens and money (4), or on turns and calls (3)
  6     rows were stopped
  7     rows have no output
  0     every row is done";
