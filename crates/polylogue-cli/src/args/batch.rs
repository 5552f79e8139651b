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

    /// Rows: a JSON object a line, with a `task`, values of variables, and an optional `id`; or a table whose first line names them, in a file `.csv` or `.tsv`
    #[arg(long, value_name = "FILE", group = "rows")]
    pub(crate) over: Option<PathBuf>,

    /// Every combination: a YAML file of lists, of variables and of `task`
    #[arg(long, value_name = "FILE", group = "rows")]
    pub(crate) cross: Option<PathBuf>,

    /// Output file of the records: one JSON object per line for every row
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// How many conversations run at the same time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = count::<u16>)]
    pub(crate) at_once: u16,

    /// Dollars for all conversations together, those of earlier runs included; models whose price is unknown are refused
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(crate) budget: Option<f64>,

    /// Keep the records of another team or other rows that are in the output
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
    "The limits are those of each conversation. Conversations are stored next to the output, in FILE.db, unless
`--store` says otherwise. Run the command again to continue: finished rows are skipped, others continue where
they stopped, and no finished model call is made again.

The exit code is the worst of: 1 rows failed, 4 or 6 rows are left (no budget, stopped), 5 rows wait for people,
4 or 3 rows met their own limit, 6 rows were stopped, 7 rows have no output; 0 when every row is done.";
