//! How many conversations run at the same time. Further ones wait in a queue, and past its end they are refused.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::ServerLimits;
use crate::problem::Problem;
use crate::spending::Payer;

/// When a refused client should try again.
const LATER: Duration = Duration::from_secs(2);

/// The places of conversations that run.
pub(crate) struct Slots {
    all: Arc<Semaphore>,
    queue: Arc<Semaphore>,
    of_tokens: Mutex<HashMap<String, Arc<Semaphore>>>,
    per_token: usize,
    most_queued: usize,
}

/// The right of one conversation to run, now or once others have ended, and who pays for that.
pub(crate) struct Slot {
    pub(crate) payer: Payer,
    /// Its place in the queue until it runs; none if it can wait without one.
    pub(crate) queued: Option<OwnedSemaphorePermit>,
    pub(crate) running: Running,
}

impl Slot {
    /// Whether it may run now.
    pub(crate) const fn is_taken(&self) -> bool {
        self.running.taken.is_some()
    }
}

/// The right of one conversation to run, taken or left for a while. Dropping it lets the next one run.
pub(crate) struct Running {
    /// Of its token.
    own: Arc<Semaphore>,
    /// Of all tokens.
    all: Arc<Semaphore>,
    taken: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl Running {
    /// Takes the right if no one else has to end before.
    fn take_now(&mut self) -> bool {
        let own = Arc::clone(&self.own).try_acquire_owned().ok();
        self.taken = own.zip(Arc::clone(&self.all).try_acquire_owned().ok());
        self.taken.is_some()
    }

    /// Takes it, now or once others have ended or left it.
    pub(crate) async fn take(&mut self) {
        if self.taken.is_some() {
            return;
        }
        let own = Arc::clone(&self.own).acquire_owned().await.ok();
        // No one closes them.
        self.taken = own.zip(Arc::clone(&self.all).acquire_owned().await.ok());
    }

    /// Lets the next one run, until it is [taken](Self::take) again.
    pub(crate) fn leave(&mut self) {
        self.taken = None;
    }
}

impl Slots {
    pub(crate) fn new(limits: &ServerLimits) -> Self {
        Self {
            all: Arc::new(Semaphore::new(limits.running)),
            queue: Arc::new(Semaphore::new(limits.queued)),
            of_tokens: Mutex::default(),
            per_token: limits.running_per_token,
            most_queued: limits.queued,
        }
    }

    /// A place for a conversation that is about to run.
    ///
    /// # Errors
    /// When as many wait as can wait.
    pub(crate) fn place(&self, token: &str, payer: Payer) -> Result<Slot, Problem> {
        let mut running = self.untaken(token);
        if running.take_now() {
            return Ok(Slot { payer, queued: None, running });
        }
        let queued = Arc::clone(&self.queue).try_acquire_owned().map_err(|_| {
            Problem::too_many("too many conversations run and wait already")
                .hint("try again when some of them have ended")
                .retry_after(LATER)
        })?;
        Ok(Slot { payer, queued: Some(queued), running })
    }

    /// A slot for a conversation that was promised to run: it waits for a place, however many others do.
    pub(crate) fn wait(&self, token: &str, payer: Payer) -> Slot {
        Slot { payer, queued: None, running: self.untaken(token) }
    }

    fn untaken(&self, token: &str) -> Running {
        Running { own: self.of_token(token), all: Arc::clone(&self.all), taken: None }
    }

    /// How many of the conversations that clients began wait.
    pub(crate) fn queued(&self) -> usize {
        self.most_queued.saturating_sub(self.queue.available_permits())
    }

    fn of_token(&self, token: &str) -> Arc<Semaphore> {
        let mut of_tokens = self.of_tokens.lock().unwrap_or_else(PoisonError::into_inner);
        // Those of which nothing runs or waits.
        of_tokens.retain(|_, own| Arc::strong_count(own) > 1 || own.available_permits() < self.per_token);
        let own = of_tokens.entry(token.to_owned());
        Arc::clone(own.or_insert_with(|| Arc::new(Semaphore::new(self.per_token))))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn slots() -> Slots {
        Slots::new(&ServerLimits { running: 3, running_per_token: 2, queued: 1, ..ServerLimits::default() })
    }

    /// Once it may run.
    async fn running(Slot { queued, mut running, .. }: Slot) -> Running {
        running.take().await;
        drop(queued);
        running
    }

    #[tokio::test]
    async fn s37_one_more_waits_and_the_next_is_refused() {
        let slots = slots();
        let (first, second) =
            (slots.place("a", Payer::default()).unwrap(), slots.place("a", Payer::default()).unwrap());
        let mut third = Box::pin(running(slots.place("a", Payer::default()).unwrap()));
        assert!(third.as_mut().now_or_never().is_none(), "it waits");
        assert!(slots.place("a", Payer::default()).is_err(), "the queue is full");
        let other = slots.place("b", Payer::default()).unwrap();
        assert!(other.running.taken.is_some(), "another token has places of its own");
        drop(first);
        assert!(third.await.taken.is_some());
        drop((second, other));
        assert!(slots.place("a", Payer::default()).unwrap().running.taken.is_some());
    }

    #[tokio::test]
    async fn what_was_promised_waits_without_a_place_in_the_queue() {
        let slots = slots();
        let open = [slots.place("a", Payer::default()).unwrap(), slots.place("a", Payer::default()).unwrap()];
        let mut waiting: Vec<_> =
            (0..5).map(|_| Box::pin(running(slots.wait("a", Payer::default())))).collect();
        assert!(waiting.iter_mut().all(|one| one.as_mut().now_or_never().is_none()));
        assert!(slots.place("a", Payer::default()).is_ok(), "the queue is free");
        drop(open);
        assert!(waiting.remove(0).await.taken.is_some());
    }

    #[tokio::test]
    async fn what_is_left_for_a_while_is_taken_again_when_others_have_ended() {
        let slots = slots();
        let mut paused = running(slots.place("a", Payer::default()).unwrap()).await;
        let second = slots.place("a", Payer::default()).unwrap();
        paused.leave();
        let third = slots.place("a", Payer::default()).unwrap();
        assert!(third.running.taken.is_some());
        assert!(paused.take().now_or_never().is_none(), "two of the token run");
        assert!(slots.place("b", Payer::default()).is_ok(), "those that wait take no place of others");
        drop(third);
        paused.take().await;
        assert!(slots.place("a", Payer::default()).unwrap().queued.is_some());
        drop(second);
    }
}
