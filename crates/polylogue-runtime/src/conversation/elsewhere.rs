//! What other processes send to an open conversation while it does not run.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use polylogue_core::{Body, Event};

use super::Conversation;
use crate::Result;
use crate::inbox::{deliver, fetch};

/// How often one that rests looks for what others have sent.
const REST: Duration = Duration::from_millis(100);

impl Conversation {
    /// Waits, while questions are open, until one of them is answered: by another process, or by default because its time is up.
    /// [`run`](Self::run) then continues. Also returns when the conversation is cancelled from outside, and at once when no question is open.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn answered_elsewhere(&self) -> Result<()> {
        let asked = self.questions().await;
        let answered = async {
            while !asked.is_empty() && self.questions().await == asked && !self.cancellation().is_requested()
            {
                tokio::time::sleep(REST).await;
                let mut log = self.0.log.lock().await;
                let log = log.as_mut().ok_or_else(|| self.gone())?;
                log.answer_expired().await?;
                log.post_inbox().await?;
            }
            Ok(())
        };
        self.delivered_until(answered).await
    }

    /// Waits, while nothing runs it, until another process pauses or cancels it. What others send is carried out meanwhile.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn halted_elsewhere(&self) -> Result<()> {
        let before = self.events().await.len();
        let halted = async {
            loop {
                if self.0.handle.has_unposted() {
                    self.post_inbox().await?;
                    let events = self.events().await;
                    if self.cancellation().is_requested() || is_paused(events.iter().skip(before)) {
                        return Ok(());
                    }
                }
                tokio::time::sleep(REST).await;
            }
        };
        self.delivered_until(halted).await
    }

    /// Waits until it is `over`. Meanwhile, its inbox receives what is posted in the store.
    async fn delivered_until(&self, over: impl Future<Output = Result<()>>) -> Result<()> {
        let inbox = pin!(deliver(self.0.store.clone(), self.0.handle.clone()));
        match select(pin!(over), inbox).await {
            Either::Left((result, _)) => result,
            Either::Right((unknown, _)) => Err(unknown.into()),
        }
    }

    pub(super) async fn post_inbox(&self) -> Result<bool> {
        let mut log = self.0.log.lock().await;
        Ok(log.as_mut().ok_or_else(|| self.gone())?.post_inbox().await?)
    }

    /// Takes in what is in its inbox. Returns whether all of it that can be carried out now was, because nothing runs it: then its next run
    /// begins as that says, such as with a pause.
    pub(crate) async fn take_in_inbox(&self) -> Result<bool> {
        fetch(&self.0.store, &self.0.handle).await.map_err(polylogue_core::Error::from)?;
        let Ok(mut log) = self.0.log.try_lock() else { return Ok(false) };
        let Some(log) = log.as_mut() else { return Ok(false) };
        log.post_inbox().await?;
        Ok(true)
    }

    /// Returns whether the conversation was paused from outside, and not resumed since.
    pub async fn is_paused(&self) -> bool {
        is_paused(self.events().await.iter())
    }
}

/// Whether the last of these events that pauses or resumes is a pause.
fn is_paused<'e>(events: impl DoubleEndedIterator<Item = &'e Arc<Event>>) -> bool {
    let mut events = events.rev().map(|event| &event.body);
    events.find(|body| matches!(body, Body::Paused | Body::Resumed)).is_some_and(|body| *body == Body::Paused)
}
