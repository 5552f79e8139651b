//! `polylogue completions`, `polylogue man` and `polylogue schema`: for shells, `man` and editors, from the definitions of arguments and keys.

use clap::CommandFactory as _;

use super::write_data;
use crate::args::{self, Cli};
use crate::error::{CliError, Exit};

pub(crate) fn run(args: &args::new::Completions) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "polylogue", &mut script);
    print(&script)
}

pub(crate) fn man(args: &args::new::Man) -> Result<Exit, CliError> {
    let failed = |error: std::io::Error| CliError::failed(format!("the manual cannot be written: {error}"));
    if let Some(folder) = &args.folder {
        std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
            .map_err(failed)?;
        return Ok(Exit::Done);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(failed)?;
    print(&page)
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
