//! The reference of commands, `docs/reference/cli.md`, from the definitions of the arguments; those of events and of the server.

mod events;
mod server;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use polylogue_core::text;

use crate::args::Cli;

const HEAD: &str = "# Commands\n\nEvery command of `polylogue` with its arguments and options, generated from the program: \
                    what `polylogue help` and `polylogue help COMMAND` print, on one page.\n";

#[test]
fn the_page_is_that_of_the_program() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let page = page();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&place, &page).unwrap();
    }
    let hint = "docs/reference/cli.md is out of date; regenerate it with `UPDATE=1 cargo test -p polylogue-cli reference`";
    assert_eq!(fs::read_to_string(&place).unwrap_or_default(), page, "{hint}");
}

fn page() -> String {
    let mut program = Cli::command();
    program.build();
    let mut page = HEAD.to_owned();
    if let Some(after) = program.get_after_help() {
        let _ = write!(page, "\n```text\n{}\n```\n", after.to_string().trim());
    }
    table(&mut page, "Options of every command", &|arg| arg.is_global_set(), &program);
    commands(&mut page, &program);
    page
}

fn commands(page: &mut String, above: &Command) {
    for command in above.get_subcommands().filter(|command| command.get_name() != "help") {
        let name = command.get_bin_name().unwrap_or_default();
        let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
        let usage = command.clone().render_usage().to_string();
        let _ = write!(page, "\n## `{name}`\n\n{}\n\n", about.unwrap_or_default());
        let _ = writeln!(page, "```text\n{}\n```", usage.trim_start_matches("Usage: "));
        table(page, "Arguments", &|arg| arg.is_positional(), command);
        table(page, "Options", &|arg| !arg.is_positional() && !arg.is_global_set(), command);
        commands(page, command);
    }
}

fn table(page: &mut String, title: &str, shows: &dyn Fn(&Arg) -> bool, command: &Command) {
    let is_shown = |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    let rows: Vec<String> =
        command.get_arguments().filter(is_shown).filter(|arg| shows(arg)).map(row).collect();
    if !rows.is_empty() {
        let _ = write!(page, "\n| {title} | meaning |\n|---|---|\n{}", rows.concat());
    }
}

fn row(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut meaning = text::one_line(&help);
    let values = arg.get_possible_values();
    let takes = arg.get_action().takes_values();
    if takes && !values.is_empty() && !arg.is_hide_possible_values_set() {
        let names: Vec<_> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
        let _ = write!(meaning, ". One of {}", names.join(", "));
    }
    if let [default, ..] = arg.get_default_values().iter().filter(|_| takes).collect::<Vec<_>>()[..] {
        let _ = write!(meaning, ". Default: `{}`", default.to_string_lossy());
    }
    if let Some(variable) = arg.get_env() {
        let _ = write!(meaning, ". Variable: `{}`", variable.to_string_lossy());
    }
    format!("| `{}` | {} |\n", arg.to_string().replace('|', "\\|"), meaning.replace('|', "\\|"))
}
