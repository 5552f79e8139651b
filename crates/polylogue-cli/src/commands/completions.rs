//! `polylogue completions`, `polylogue man` and `polylogue schema`: for shells, `man` and editors, from the definitions of arguments and keys.

use std::fs;
use std::io;
use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::write_data;
use crate::args::{self, Cli};
use crate::error::{CliError, Exit};

pub(crate) fn run(args: &args::new::Completions) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "polylogue", &mut script);
    print(&script)
}

pub(crate) fn man(args: &args::new::Man) -> Result<Exit, CliError> {
    let failed = |error: io::Error| CliError::failed(format!("the manual cannot be written: {error}"));
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    if let Some(folder) = &args.folder {
        fs::create_dir_all(folder).and_then(|()| write_pages(&program, folder)).map_err(failed)?;
        return Ok(Exit::Done);
    }
    print(&page(program).map_err(failed)?)
}

/// Writes the pages of `command` and of the commands within it.
fn write_pages(command: &Command, folder: &Path) -> io::Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        write_pages(inner, folder)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    fs::write(folder.join(format!("{name}.1")), page(command.clone())?)
}

/// The page of `command`, with the usage of its help as synopsis: all options would fill the screen.
fn page(mut command: Command) -> io::Result<Vec<u8>> {
    let usage = command.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
    let end = command.get_after_long_help().or_else(|| command.get_after_help()).map(ToString::to_string);
    let command = command.override_usage(usage).after_help(None::<&'static str>);
    let mut page = Vec::new();
    Man::new(command).source(concat!("polylogue ", env!("CARGO_PKG_VERSION"))).render(&mut page)?;
    sections(&end.unwrap_or_default()).to_writer(&mut page)?;
    Ok(page)
}

/// What a help ends with, as sections. Lines with an indent are rows of a table.
fn sections(help: &str) -> Roff {
    let mut roff = Roff::new();
    for paragraph in help.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        let (title, text) = match paragraph.split_once(":\n") {
            Some(("First steps", steps)) => ("EXAMPLES", steps),
            Some(("Exit codes", codes)) => ("EXIT STATUS", codes),
            _ if paragraph.starts_with("Exit codes") => ("EXIT STATUS", paragraph),
            _ => ("NOTES", paragraph),
        };
        roff.control("SH", [title]);
        for line in text.lines() {
            let is_row = line.starts_with(' ');
            roff.control(if is_row { "nf" } else { "br" }, []);
            roff.text([roman(line)]);
            if is_row {
                roff.control("fi", []);
            }
        }
    }
    roff
}

/// The JSON Schema of team files.
pub(crate) fn schema() -> Result<Exit, CliError> {
    let schema = serde_json::to_string_pretty(polylogue_team::schema())
        .map_err(|error| CliError::failed(format!("the schema cannot be written: {error}")))?;
    print(format!("{schema}\n").as_bytes())
}

fn print(text: &[u8]) -> Result<Exit, CliError> {
    write_data(&String::from_utf8_lossy(text))?;
    Ok(Exit::Done)
}
