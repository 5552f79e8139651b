//! What participants do with a turn, or the room with a participant, in a few words.

use polylogue_core::{Body, JoinHistory, Name};

/// Who does what, if the event is a move of this kind.
pub(crate) fn told(body: &Body) -> Option<(&Name, String)> {
    Some(match body {
        Body::Passed { who } => (who, "passes".into()),
        Body::Left { who, why } => (who, format!("leaves: {why}")),
        // The reason is shown when the chat is closed.
        Body::Stopped { who, .. } => (who, "ends the chat".into()),
        Body::Joined { who, sees: JoinHistory::All } => (who, "joins, and sees what was said before".into()),
        Body::Joined { who, sees: JoinHistory::New } => {
            (who, "joins, and sees what is said from now on".into())
        }
        Body::Cleared { who, of, keep } => {
            let whose = of.as_ref().map_or("everybody".into(), ToString::to_string);
            let kept = if *keep == 0 { String::new() } else { format!(" but the last {keep} messages") };
            (who, format!("puts what was said out of sight of {whose}{kept}"))
        }
        Body::ContinuationFailed { who, why } => (who, format!("cannot continue its reply: {why}")),
        Body::CapabilityMissing { who, model, capability: lacks, why } => {
            let why = why.trim_end_matches('.');
            (who, format!("finds `{model}` incapable of {lacks}, and continues in another way: {why}"))
        }
        _ => return None,
    })
}
