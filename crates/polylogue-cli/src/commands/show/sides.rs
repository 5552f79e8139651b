//! `show --history` and `show --side-by-side`: what every agent was told and said.

use std::sync::Arc;

use polylogue::{Agent as _, Body, Event, History, Lens, Name, Path, Solved, Transcript};

use super::{nobody, silent};
use crate::args;
use crate::commands::Kept;
use crate::play::tell;
use crate::screen::sides::{Side, alone, below, beside};
use crate::screen::{Looks, Size};
use crate::trouble::Trouble;

/// The points of view of those who speak by models, or that of one of them.
pub(super) fn shown(
    kept: &Kept,
    events: &[Event],
    args: &args::Show,
    looks: Looks,
) -> Result<String, Trouble> {
    let sides = sides(kept, events)?;
    if sides.is_empty() {
        tell("No model was asked anything yet.");
    }
    if let Some(agent) = &args.agent {
        let of = |side: &&Side| side.who.as_str() == agent;
        let last = sides.iter().rfind(of).ok_or_else(|| nobody(kept, agent))?;
        return Ok(alone(last, looks.colour));
    }
    Ok(match args.side_by_side {
        true => beside(&sides, Size::of_terminal().columns.saturating_sub(1), looks.colour),
        false => below(&sides, looks.colour),
    })
}

/// Everybody whose model was asked as a member of a chat, in the order of the chats and of their members.
fn sides(kept: &Kept, events: &[Event]) -> Result<Vec<Side>, Trouble> {
    let assistants = kept.team.assistants(&|_| Ok(silent()))?;
    let lens = |who: &Name| {
        let agent = assistants.iter().find(|agent| agent.name() == who);
        agent.map_or_else(Lens::default, |agent| agent.sees().clone())
    };
    let events: Vec<Arc<Event>> = events.iter().cloned().map(Arc::new).collect();
    let mut sides = Vec::new();
    for at in chats(&events) {
        let chat = Transcript::of(&at, &events).map_err(Trouble::failed)?;
        let speaks = |who: &&Name| {
            events.iter().any(|event| {
                event.at == at && matches!(&event.body, Body::Sampled(sample) if sample.who == **who)
            })
        };
        // Agents that solve tasks forget that they were asked whether they are complete.
        let forgets = !Solved::of(&chat).checks.is_empty();
        for who in chat.members().iter().filter(speaks) {
            let lens = lens(who);
            let lens = Lens { forgets_asides: forgets || lens.forgets_asides, ..lens };
            let history = History::through(&chat, who, lens);
            sides.push(Side { at: at.clone(), who: who.clone(), history });
        }
    }
    Ok(sides)
}

/// The chats there were, in the order in which they began.
fn chats(events: &[Arc<Event>]) -> Vec<Path> {
    let opened = events.iter().filter(|event| matches!(event.body, Body::Opened(_)));
    opened.map(|event| event.at.clone()).collect()
}
