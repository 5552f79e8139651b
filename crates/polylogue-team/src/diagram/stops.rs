//! What ends a chat, in a few words.

use super::text::shortened;
use crate::chat::Chat;
use crate::flow::{ChatFlow, Point};
use crate::stop::Stop;

/// What ends a chat: its pattern, its termination conditions, its limit. The default limit counts if nothing else ends it.
pub(super) fn of_chat(chat: &Chat, flow: &ChatFlow<'_>) -> Vec<String> {
    let mut ends: Vec<String> = flow.end.map(ToOwned::to_owned).into_iter().collect();
    ends.extend(chat.stop.iter().flat_map(of_stop));
    let limit = chat.max_turns.given().map(|_| turns(*chat.max_turns));
    let is_ended = !ends.is_empty() || flow.steps.iter().any(|step| step.to == Point::End);
    ends.extend(limit.or_else(|| (!is_ended).then(|| format!("{} by default", turns(*chat.max_turns)))));
    ends
}

fn turns(turns: u64) -> String {
    format!("{turns} turn{}", if turns == 1 { "" } else { "s" })
}

/// Each condition of which one ends the chat.
fn of_stop(stop: &Stop) -> Vec<String> {
    let by = |names: &[polylogue_core::Name]| match names {
        [] => String::new(),
        names => format!(" by {}", names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")),
    };
    let says = stop.says.as_ref().map(|says| format!("“{}”{}", shortened(&says.text, 40), by(&says.by)));
    let matches = stop.matches.as_ref().map(|of| format!("/{}/{}", shortened(&of.pattern, 40), by(&of.by)));
    let all = stop.all.iter().map(|part| of_stop(part).join(" or "));
    let all = all.filter(|part| !part.is_empty()).reduce(|one, other| format!("{one} and {other}"));
    says.into_iter()
        .chain(matches)
        .chain(stop.when.as_ref().map(|when| shortened(when, 60)))
        .chain(stop.max_turns.map(turns))
        .chain(stop.max_messages.map(|most| format!("{most} messages")))
        .chain(stop.max_tokens.map(|most| format!("{most} tokens")))
        .chain(stop.max_cost.map(|most| format!("${most}")))
        .chain(stop.max_time.map(|most| most.to_string()))
        .chain(all)
        .chain(stop.any.iter().flat_map(of_stop))
        .collect()
}
