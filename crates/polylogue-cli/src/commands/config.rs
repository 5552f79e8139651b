//! `polylogue config`: the user's settings.

use serde_json::json;

use super::{write, write_rows, write_value};
use crate::args;
use crate::args::config::{Command, List};
use crate::error::{CliError, Exit};
use crate::place::shell_word;
use crate::screen::Sanitized;
use crate::stderr::print_note;
use crate::user_config::{Setting, SettingValue, UserConfig, path, value};

pub(crate) fn run(cli: &args::Cli, args: &args::config::Config) -> Result<Exit, CliError> {
    let file = cli.config();
    match &args.command {
        None => list(cli, &List::default()),
        Some(Command::List(args)) => list(cli, args),
        Some(Command::Get(args)) => match value(file, Setting::find(&args.name)?)? {
            Some(given) => {
                write_value(&given.value)?;
                Ok(Exit::Done)
            }
            None => {
                print_note(&format!("`{}` is not set", args.name));
                Ok(Exit::Failed)
            }
        },
        Some(Command::Set(args)) => {
            let setting = Setting::find(&args.name)?;
            let path = UserConfig::set(file, setting, &args.value)?;
            print_note(&format!("`{}` is `{}`, in {}", args.name, args.value, shell_word(&path)));
            warn_of_variable(cli, setting)
        }
        Some(Command::Unset(args)) => {
            let setting = Setting::find(&args.name)?;
            match UserConfig::unset(file, setting)? {
                Some(path) => print_note(&format!("`{}` is removed from {}", args.name, shell_word(&path))),
                None => print_note(&format!("`{}` is not set in {}", args.name, shell_word(&path(file)?))),
            }
            warn_of_variable(cli, setting)
        }
        Some(Command::Path) => {
            write_value(&path(file)?.display().to_string())?;
            Ok(Exit::Done)
        }
    }
}

/// Says that an environment variable overrides what was changed.
fn warn_of_variable(cli: &args::Cli, setting: Setting) -> Result<Exit, CliError> {
    let variable = setting.variable();
    if std::env::var_os(&variable).is_some_and(|value| !value.is_empty())
        && let Some(SettingValue { value, .. }) = value(cli.config(), setting)?
    {
        print_note(&format!("warning: the environment variable `{variable}` overrides it with `{value}`"));
    }
    Ok(Exit::Done)
}

fn list(cli: &args::Cli, args: &List) -> Result<Exit, CliError> {
    for setting in Setting::all() {
        let given = value(cli.config(), setting)?;
        if args.json {
            let line = json!({
                "name": setting.name(),
                "value": given.as_ref().map(|given| &given.value),
                "from": given.as_ref().map(|given| given.origin.to_string()),
                "variable": setting.variable(),
                "about": setting.about(),
            });
            let line = Sanitized::json(&line)
                .map_err(|error| CliError::failed(format!("the output cannot be written: {error}")))?;
            write(&line)?;
            continue;
        }
        let shown = match &given {
            Some(SettingValue { value, origin }) => format!("{value}  (from {origin})"),
            None => format!("not set  (`{}`, or `polylogue config set`)", setting.variable()),
        };
        let text = format!("{}: {shown}\n  {}\n", setting.name(), setting.about());
        write_rows(&Sanitized::plain(&text), false)?;
    }
    Ok(Exit::Done)
}
