//! Turns of a step, and calls of agents, that are made at the same time: one that waits for a person continues with the answer while others
//! are in progress.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use tokio::sync::watch;

use crate::{Event, Log, OpenQuestion, Result};

/// How many of them are in progress: neither over, nor waiting for a person. Nothing for a single one, as nearly all are: no other one is
/// in progress when it waits.
pub(super) struct InProgress(Option<watch::Sender<usize>>);

impl InProgress {
    /// All of `count`.
    pub(super) fn new(count: usize) -> Self {
        Self((count > 1).then(|| watch::Sender::new(count)))
    }

    /// One is over.
    pub(super) fn ends_one(&self) {
        if let Some(count) = &self.0 {
            count.send_modify(|count| *count = count.saturating_sub(1));
        }
    }

    /// One waits for an answer to the questions `asked`, which is logged. Returns its events: it is in progress again. `None` if no other one is
    /// any more: the answer is for the next run.
    pub(super) async fn answered(
        &self,
        log: &Log,
        asked: &[OpenQuestion],
    ) -> Result<Option<Vec<Arc<Event>>>> {
        let Some(count) = &self.0 else { return Ok(None) };
        self.ends_one();
        let mut in_progress = count.subscribe();
        let rests = pin!(async {
            // The sender lives as long as `self`.
            let _ = in_progress.wait_for(|count| *count == 0).await;
        });
        let answer = match select(rests, pin!(log.answer_to(asked))).await {
            Either::Left(_) => return Ok(None),
            Either::Right((answer, _)) => answer,
        };
        // Before it is written: meanwhile the others may end.
        count.send_modify(|count| *count += 1);
        log.provide(answer).await.map(Some)
    }
}
