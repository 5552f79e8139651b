//! The command `config`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(
    after_help = "The first of these that has a setting is used: the option of a command, the team file, the environment variable, the \
                  configuration file. That file is `~/.config/polylogue/config.yaml`, or below `XDG_CONFIG_HOME`, unless `--config` names another. \
                  API keys are never in it: they are read from the environment or from `.env`."
)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List all settings with their values and sources; the default command
    List(List),
    /// Print the value of a setting; exit code 1 if it has none
    Get(Named),
    /// Change a setting in the configuration file
    Set(Set),
    /// Remove a setting from the configuration file
    Unset(Named),
    /// Print the path of the configuration file
    Path,
}

#[derive(Debug, Default, Args)]
pub(crate) struct List {
    /// Print one line of JSON for each setting
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The setting, such as `model`
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// The setting, such as `model`
    pub(crate) name: String,

    /// Its value, such as `openai:gpt-4o-mini`
    pub(crate) value: String,
}
