//! `polylogue schema`: the JSON Schema of team files.

use super::write_data;
use crate::error::{CliError, Exit};

pub(crate) fn run() -> Result<Exit, CliError> {
    let schema = serde_json::to_string_pretty(polylogue_team::schema())
        .map_err(|error| CliError::failed(format!("the schema cannot be written: {error}")))?;
    write_data(&format!("{schema}\n"))?;
    Ok(Exit::Done)
}
