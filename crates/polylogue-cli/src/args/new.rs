//! The arguments of the commands that write files to begin with.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct New {
    /// Name of the template, or `demo:NAME` for a built-in demo; `--list` lists them. Default: `two-agents`
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
#[command(after_help = COMPLETIONS)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Where shells look for completions.
const COMPLETIONS: &str = "Where to put them, so that new shells have them:
  bash        polylogue completions bash > ~/.local/share/bash-completion/completions/polylogue
  zsh         polylogue completions zsh > FOLDER/_polylogue, with a FOLDER of $fpath
  fish        polylogue completions fish > ~/.config/fish/completions/polylogue.fish
  elvish      polylogue completions elvish >> ~/.config/elvish/rc.elv
  powershell  polylogue completions powershell >> $PROFILE";

#[derive(Debug, Args)]
#[command(
    after_help = "`polylogue man ~/.local/share/man/man1` installs the pages for `man polylogue` and `man polylogue-run`."
)]
pub(crate) struct Man {
    /// Write a page for each command to this folder, instead of printing the page of the program
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}
