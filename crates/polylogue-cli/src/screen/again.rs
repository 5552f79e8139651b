//! What need not be told, because the next event tells it.

use polylogue_core::{Body, Cue};

/// Whether `next` tells `text`, which was said in private before it: a summary that was asked for aside, an answer that
/// is then said, passes or leaves.
pub(crate) fn tells(next: &Body, text: &str) -> bool {
    match next {
        Body::Closed { summary, .. } => summary.trim() == text.trim(),
        Body::Said(message) => message.plain().trim() == text.trim(),
        Body::Passed { .. } => text.trim().is_empty(),
        Body::Left { .. } | Body::Stopped { .. } => true,
        // Whoever was asked aside whose turn it is: that follows.
        Body::Cued { cues } => cues.iter().any(is_chosen),
        _ => false,
    }
}

/// Whether somebody has a turn in the room after a choice.
fn is_chosen(cue: &Cue) -> bool {
    cue.choice.is_some() && !cue.to.is_aside()
}
