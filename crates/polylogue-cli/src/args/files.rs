//! The command line of `polylogue files`.

use std::path::PathBuf;

use clap::Args;

use super::worker::OfTenant;

#[derive(Debug, Args)]
#[command(
    after_help = "With Postgres, files are stored in the database after each call that may have changed them, so that every machine has them. With other stores, and \
    with `POLYLOGUE_FILES=local`, they are on the machine that ran the conversation."
)]
pub(crate) struct Files {
    /// The conversation: its id, the beginning of its id, or `last`
    pub(crate) id: String,

    /// Write the files into this folder, which must not exist. Default: they are listed
    #[arg(long, value_name = "FOLDER")]
    pub(crate) to: Option<PathBuf>,

    /// Print one line of JSON for each file
    #[arg(long, conflicts_with = "to")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) of: OfTenant,
}
