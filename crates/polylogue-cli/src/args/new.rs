//! The arguments of the commands that write files to begin with.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct New {
    /// Name of the template; `--list` lists them. Default: `two-agents`
    pub(crate) template: Option<String>,

    /// The team file to write; `-` prints it
    #[arg(default_value = "team.yaml")]
    pub(crate) file: PathBuf,

    /// List the templates and the built-in demos
    #[arg(short, long, conflicts_with_all = ["template", "force"])]
    pub(crate) list: bool,

    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write a page for each command to this folder, instead of printing the page of the program
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}
