//! What need not be told, because the next event tells it.

use polylogue_core::{Body, Choice, Chooser};

/// Whether `next` tells `text`, which was said in private before it: a summary that was asked for aside, an answer that
/// is then said, passes or leaves.
pub(crate) fn tells(next: &Body, text: &str) -> bool {
    match next {
        Body::Closed { summary, .. } => summary.trim() == text.trim(),
        Body::Said(message) => message.plain().trim() == text.trim(),
        Body::Passed { .. } => text.trim().is_empty(),
        Body::Left { .. } | Body::Stopped { .. } => true,
        // Who was asked aside whose turn it is: the choice tells what was replied.
        Body::Cued { cues } => {
            cues.iter().any(|cue| cue.choice.as_ref().is_some_and(|choice| is_asked(choice)))
        }
        _ => false,
    }
}

/// Whether somebody was asked whose turn it is.
const fn is_asked(choice: &Choice) -> bool {
    matches!(choice.by, Chooser::Agent(_) | Chooser::Fallback { .. })
}
