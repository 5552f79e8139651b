//! What need not be told, because the next event tells it.

use polylogue_core::Body;

/// Whether `next` tells `text`, which was said in private before it: a summary that was asked for aside, an answer that
/// is then said, passes or leaves.
pub(crate) fn tells(next: &Body, text: &str) -> bool {
    match next {
        Body::Closed { summary, .. } => summary.trim() == text.trim(),
        Body::Said(message) => message.plain().trim() == text.trim(),
        Body::Passed { .. } => text.trim().is_empty(),
        Body::Left { .. } | Body::Stopped { .. } => true,
        _ => false,
    }
}
