//! `polylogue schema`: the JSON Schema of team files.

use super::write;
use crate::error::{CliError, Exit};
use crate::screen::Sanitized;

pub(crate) fn run() -> Result<Exit, CliError> {
    let schema = serde_json::to_string_pretty(polylogue_team::schema())
        .map_err(|error| CliError::failed(format!("the schema cannot be written: {error}")))?;
    write(&Sanitized::plain(&format!("{schema}\n")))?;
    Ok(Exit::Done)
}
