//! `show --as`: the requests to an agent's model, made again from the log.

use polylogue_core::Event;
use polylogue_runtime::{RebuiltRequest, StoredTeam};

use crate::args;
use crate::commands::unwritable;
use crate::error::CliError;
use crate::screen::{OutputStyle, Sanitized, document};
use crate::stderr::print_note;

/// One request of the agent: what its view was when the model was asked.
pub(super) fn shown(
    stored: &StoredTeam,
    events: &[Event],
    agent: &str,
    args: &args::Show,
    looks: OutputStyle,
) -> Result<Sanitized, CliError> {
    let request = RebuiltRequest::of(stored, events, agent, args.call)?;
    if !request.is_exact {
        print_note(
            "The team was changed since: what was sent differed in the system text, tools or parameters.",
        );
    }
    match args.json {
        true => Sanitized::json(&request.to_json()).map_err(unwritable),
        false => Ok(document::received(request.system.as_deref(), &request.entries, looks.color)),
    }
}
