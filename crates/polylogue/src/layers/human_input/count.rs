//! Counts automatic replies.

use polylogue_core::{Body, Event, Name, Transcript};

/// Whether `me` has replied `limit` times in a row without input of a person.
///
/// Looks back only to the last text of the person, to the last reopening, or over as many turns as the limit.
pub(super) fn is_over(chat: &Transcript, me: &Name, limit: u64) -> bool {
    let mut turns = chat.recent_turns().filter(|turn| turn.who == *me).map(|turn| turn.seq).peekable();
    let mut replies = 0_u64;
    let mut in_chat = false;
    for event in chat.events().iter().rev() {
        match &event.body {
            _ if ends_turn_of(event, me) => {
                in_chat = turns.next_if_eq(&event.seq).is_some();
                replies += u64::from(in_chat);
            }
            // This turn was counted at its end, and was the person's.
            Body::InputProvided { to, text, .. } if in_chat && to == me && !text.trim().is_empty() => {
                return replies.saturating_sub(1) >= limit;
            }
            Body::Reopened { message: Some(_), .. } => return replies >= limit,
            _ => {}
        }
        // One more than the limit, for the one that may be the person's.
        if replies > limit {
            return true;
        }
    }
    replies >= limit
}

fn ends_turn_of(event: &Event, me: &Name) -> bool {
    match &event.body {
        Body::Message(message) => message.from == *me,
        Body::Passed { who } | Body::Left { who, .. } | Body::Stopped { who, .. } => who == me,
        _ => false,
    }
}
