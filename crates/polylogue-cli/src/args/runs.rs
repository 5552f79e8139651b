//! The command `runs`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use polylogue_core::Cursor;

use super::shared::count;
use super::worker::OfTenant;

#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// Print one line of JSON for each conversation
    #[arg(long)]
    pub(crate) json: bool,

    /// Maximum number of conversations, the newest first. Default: all
    #[arg(short = 'n', long, value_name = "N", value_parser = count::<u64>)]
    pub(crate) limit: Option<u64>,

    /// Show the page after this cursor, which a list with `--limit` ends with
    #[arg(long, value_name = "CURSOR", value_parser = cursor)]
    pub(crate) after: Option<Cursor>,

    /// Show only conversations in these states, a list with commas
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub(crate) state: Vec<StateFilter>,

    /// Show only conversations of this team
    #[arg(long, value_name = "NAME")]
    pub(crate) team: Option<String>,

    /// Show only conversations whose task contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) task: Option<String>,

    /// Show only conversations that began within this time, such as `90m`, `12h` or `7d`
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) since: Option<Duration>,

    /// Show only forks of this conversation
    #[arg(long, value_name = "ID")]
    pub(crate) parent: Option<String>,

    #[command(flatten)]
    pub(crate) of: OfTenant,
}

/// The state of a conversation, as filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateFilter {
    /// Running, waiting for a worker, cancelled, interrupted, or not begun
    Unfinished,
    /// Waiting for the answer of a person
    Waiting,
    /// Paused by a command
    Paused,
    /// Failed with an error; can be resumed
    Failed,
    /// Ended as intended
    Done,
    /// Ended otherwise: by a limit, by a cancellation, or without output
    Ended,
    /// Damaged, or written by another version
    Damaged,
}

fn cursor(text: &str) -> Result<Cursor, String> {
    Cursor::parse(text).ok_or_else(|| "expected the cursor at the end of a page".to_owned())
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => 0,
    };
    let number = number.parse::<u64>().ok().filter(|_| seconds > 0);
    let seconds = number.and_then(|number| number.checked_mul(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| "expected a time such as `90m`, `12h` or `7d`".to_owned())
}
