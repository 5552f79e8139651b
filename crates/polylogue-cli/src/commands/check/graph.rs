//! `polylogue check --graph`: a team as a picture.

use std::fs;
use std::path::Path;

use polylogue_team::{Diagnostics, Loaded};

use crate::args::{self, GraphFormat};
use crate::commands::write_data;
use crate::error::{CliError, Exit};
use crate::stderr::{print_error, print_warnings};

/// Draws the team whose file `read` reads, if it has no error.
pub(super) fn run(
    args: &args::Check,
    format: GraphFormat,
    read: impl Fn(&Path) -> Result<Result<Loaded, Diagnostics>, CliError>,
) -> Result<Exit, CliError> {
    let [file] = args.teams.as_slice() else {
        return Err(several(args));
    };
    let loaded = match read(file)? {
        Ok(loaded) => loaded,
        Err(found) => {
            print_error(&found.to_string().trim_end());
            return Ok(Exit::Usage);
        }
    };
    let warnings = &loaded.warnings;
    print_warnings(warnings);
    let diagram = loaded.team.diagram();
    let text = match format {
        GraphFormat::Svg => diagram.to_svg(),
        GraphFormat::Mermaid => diagram.to_mermaid(),
        GraphFormat::Dot => diagram.to_dot(),
    };
    match &args.output {
        Some(path) => fs::write(path, text)
            .map_err(|error| CliError::failed(format!("`{}` cannot be written: {error}", path.display())))?,
        None => write_data(&text)?,
    }
    let fails = args.strict && warnings.iter().next().is_some();
    Ok(if fails { Exit::Usage } else { Exit::Done })
}

/// The mistake of several files. The format after a blank is taken for one.
fn several(args: &args::Check) -> CliError {
    let formats = ["svg", "mermaid", "dot"];
    let format = args.teams.iter().filter_map(|team| team.to_str()).find(|team| formats.contains(team));
    CliError::usage("`--graph` draws one team").hint(match format {
        Some(format) => format!("write `--graph={format}`"),
        None => "name one team file".to_owned(),
    })
}
