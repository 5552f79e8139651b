//! Which workers can continue a conversation that is handed over.

use polylogue_core::{Features, LogId, Queue as _};
use polylogue_runtime::Runtime;

use crate::error::CliError;
use crate::place::PlaceOption;

/// Whether a worker that was seen lately can run a conversation.
pub(super) enum Takers {
    /// One offers what it needs.
    Some,
    /// None offers these words together.
    Lacking(Features),
    /// No worker runs.
    None,
}

impl Takers {
    /// Who can run the conversation `id`; none where the store is no queue.
    pub(super) async fn of(runtime: &Runtime, id: &LogId) -> Result<Self, CliError> {
        let Some(queue) = runtime.store().queue() else { return Ok(Self::None) };
        let (overview, needs) = (queue.overview(0).await?, queue.needs(id).await?);
        Ok(match overview.missing_of(&needs) {
            _ if overview.workers.is_empty() => Self::None,
            Some(missing) => Self::Lacking(missing),
            None => Self::Some,
        })
    }

    /// What happens next to a conversation that was handed over, as the beginning of a sentence.
    pub(super) fn in_words(&self, place: &PlaceOption) -> String {
        match self {
            Self::Some => "a worker takes it".into(),
            Self::Lacking(missing) => {
                format!("it waits for a worker that offers {missing}, and none does now")
            }
            Self::None => {
                let worker = place.at_store().command("worker");
                format!("it waits for a worker, and none runs now: start one with `{worker}`")
            }
        }
    }
}
