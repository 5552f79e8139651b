//! `show --history` and `show --side-by-side`: what every agent received and said.

use serde_json::json;

use polylogue::Name;
use polylogue_runtime::AgentHistory;

use crate::args;
use crate::commands::unwritable;
use crate::error::CliError;
use crate::screen::side_by_side::{alone, below, columns};
use crate::screen::{OutputStyle, Sanitized, Size};
use crate::stderr::print_note;

/// The points of view of those who speak by models, or that of one of them; `missing` is the error when it has none.
pub(crate) fn shown(
    sides: &[AgentHistory],
    args: &args::Show,
    looks: OutputStyle,
    missing: impl Fn(&str) -> CliError,
) -> Result<Sanitized, CliError> {
    if sides.is_empty() {
        print_note("No model was asked anything yet.");
    }
    if args.json {
        let wanted = |side: &&AgentHistory| {
            args.agent.as_ref().is_none_or(|agent| side.who.as_str() == Name::composed(agent))
        };
        let wanted: Vec<&AgentHistory> = sides.iter().filter(wanted).collect();
        if let Some(agent) = args.agent.as_ref().filter(|_| wanted.is_empty()) {
            return Err(missing(agent));
        }
        return wanted.into_iter().map(as_json).collect::<Result<_, _>>().map_err(unwritable);
    }
    if let Some(agent) = &args.agent {
        let of = |side: &&AgentHistory| side.who.as_str() == Name::composed(agent);
        let last = sides.iter().rfind(of).ok_or_else(|| missing(agent))?;
        return Ok(alone(last, looks.color));
    }
    Ok(match args.side_by_side {
        true => columns(sides, Size::of_terminal().columns.saturating_sub(1), looks.color),
        false => below(sides, looks.color),
    })
}

/// A point of view as one line of JSON.
fn as_json(side: &AgentHistory) -> serde_json::Result<Sanitized> {
    let AgentHistory { chat, who, system, history } = side;
    Sanitized::json(&json!({"chat": chat, "agent": who, "system": system, "entries": history.entries}))
}
