//! `polylogue fmt`: one layout for team files, comments included.

use polylogue_team::FormattedFile;

use super::{PIPED, piped_team, write_data, write_value};
use crate::args;
use crate::error::{CliError, Exit};
use crate::stderr::print_error;
use crate::whole_file;

/// Formats every file, also if others cannot be.
pub(crate) fn run(args: &args::fmt::Fmt) -> Result<Exit, CliError> {
    let mut exit = Exit::Done;
    for file in &args.files {
        let is_piped = file.as_os_str() == "-";
        let formatted = if is_piped {
            let before = piped_team("formatted")?;
            polylogue_team::format(&before, PIPED).map(|after| FormattedFile { before, after })
        } else {
            polylogue_team::format_file(file)
        };
        let formatted = match formatted {
            Ok(formatted) => formatted,
            Err(found) => {
                print_error(&found.to_string().trim_end());
                exit = Exit::Usage;
                continue;
            }
        };
        if args.check && !formatted.is_formatted() {
            write_value(&file.display().to_string())?;
            exit = if exit == Exit::Done { Exit::Failed } else { exit };
        } else if !args.check && is_piped {
            write_data(&formatted.after)?;
        } else if !formatted.is_formatted() {
            whole_file::replace(file, &formatted.after).unwrap_or_else(|error| {
                print_error(&CliError::failed(format!("`{}` cannot be written: {error}", file.display())));
                exit = Exit::Failed;
            });
        }
    }
    Ok(exit)
}
