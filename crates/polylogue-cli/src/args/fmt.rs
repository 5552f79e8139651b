//! The command line of `polylogue fmt`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

/// What is formatted.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:
  0  the files are formatted
  1  with `--check`: a file is not formatted
  2  a file is not YAML, or cannot be formatted")]
pub(crate) struct Fmt {
    /// The team files, which are rewritten; `-` reads standard input and writes standard output
    #[arg(required = true, value_name = "FILES", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) files: Vec<PathBuf>,

    /// Write nothing; print the files that are not formatted, and exit with code 1 if there are any
    #[arg(long)]
    pub(crate) check: bool,
}
