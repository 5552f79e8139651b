//! `polylogue import`: a definition of AutoGen as a team file.

use std::path::Path;

use polylogue_import::{Imported, import};
use polylogue_team::Overrides;

use super::{write_data, write_file};
use crate::error::{CliError, Exit};
use crate::stderr::print_note;
use crate::text_arg::{read_file, utf8};
use crate::{args, place};

/// The largest definition that is read: as for team files.
const LARGEST: u64 = 4 << 20;

/// How a program becomes a definition.
const PYTHON: &str = "of AgentChat, import what `print(team.dump_component().model_dump_json())` prints; of AutoGen 0.2, write its agents and chats as JSON: see docs/from-autogen.md";

/// What can be imported.
const TAKES: &str = "it takes component JSON of AutoGen Studio or AgentChat, and agents and chats of AutoGen 0.2, which you write as JSON: see docs/from-autogen.md";

/// Writes the team file, and says what could not be converted and which keys are needed.
pub(crate) fn run(args: &args::Import) -> Result<Exit, CliError> {
    let shown = args.definition.display().to_string();
    if args.definition.extension().is_some_and(|ending| ending == "py") {
        return Err(CliError::usage(format!("`{shown}` is a Python program, and nothing in it is executed"))
            .hint(PYTHON));
    }
    let text = read(&args.definition)?;
    let name =
        args.definition.file_name().map_or_else(|| shown.clone(), |name| name.to_string_lossy().into());
    let imported = import(&text, &name).map_err(|error| {
        if polylogue_team::load(&args.definition, &Overrides::default()).is_ok() {
            let run = format!("`polylogue run {}` runs it", place::shell_word(&args.definition));
            return CliError::usage(format!("`{shown}` is a team file already")).hint(run);
        }
        CliError::usage(format!("`{shown}` cannot be imported: {error}")).hint(TAKES)
    })?;
    match &args.output {
        Some(path) => write_file(path, &imported.yaml, args.force)?,
        None => write_data(&imported.yaml)?,
    }
    Ok(report(&imported, args.output.as_deref()))
}

fn read(path: &Path) -> Result<String, CliError> {
    let text = read_file(path, LARGEST).and_then(utf8);
    text.map_err(|why| CliError::usage(format!("`{}` cannot be read: {why}", path.display())))
}

fn report(imported: &Imported, output: Option<&Path>) -> Exit {
    if !imported.notes.is_empty() {
        print_note("Not converted, or changed:");
        imported.notes.iter().for_each(|note| print_note(&format!("  {note}")));
    }
    for variable in &imported.variables {
        print_note(&format!(
            "Set `{variable}`, in the environment or in `.env`: keys are not allowed in team files."
        ));
    }
    let problems = imported.problems.to_string();
    if problems.is_empty() {
        if let Some(path) = output {
            let task = if imported.has_task { "" } else { " \"TASK\"" };
            print_note(&format!("`polylogue run {}{task}` runs it.", place::shell_word(path)));
        }
        return Exit::Done;
    }
    print_note("The team file cannot be used unchanged:\n");
    print_note(problems.trim_end());
    Exit::Usage
}
