//! How long each step of a call may take.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// The timeouts of the steps of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// The time until there is a connection, encryption included.
    pub connect: Duration,
    /// The time from the request to the first piece of a streamed reply. Replies that are not streamed have no pieces, so for
    /// them only `total` counts.
    pub first_token: Duration,
    /// The time between two reads of a streamed reply, once it has begun.
    pub idle: Duration,
    /// The time for one attempt as a whole.
    pub total: Duration,
}

impl Default for Timeouts {
    /// 10 s to connect, 3 min to the first piece (large models on small machines read long prompts slowly), 1 min
    /// between pieces, 10 min in total.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connect: seconds(10), first_token: seconds(180), idle: seconds(60), total: seconds(600) }
    }
}

/// Which limit of time was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    FirstToken,
    Idle,
    Total,
}

/// The time one attempt has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    begun: Instant,
    limits: Timeouts,
}

impl Clock {
    pub(crate) fn start(limits: Timeouts) -> Self {
        Self { begun: Instant::now(), limits }
    }

    pub(crate) const fn timeouts(&self) -> Timeouts {
        self.limits
    }

    /// Waits for `future` no longer than `limit` and the total allow. Pinned by the caller: a function that pins what it receives has
    /// space for it twice.
    pub(crate) async fn wait<T>(
        &self,
        limit: Limit,
        mut future: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, Limit> {
        // What is there already needs no timer: in a fast stream that is most of it.
        if let Poll::Ready(done) = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
            return Ok(done);
        }
        let total = after(self.begun, self.limits.total);
        let deadline = match limit {
            Limit::FirstToken => after(self.begun, self.limits.first_token),
            Limit::Idle => after(Instant::now(), self.limits.idle),
            Limit::Total => total,
        };
        let met = if total <= deadline { Limit::Total } else { limit };
        timeout_at(deadline.min(total), future).await.map_err(|_| met)
    }
}

fn after(begun: Instant, time: Duration) -> Instant {
    // A limit beyond what the clock can tell is none: a year will do.
    begun.checked_add(time).unwrap_or_else(|| begun + Duration::from_secs(365 * 86_400))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    /// P44.
    #[tokio::test(start_paused = true)]
    async fn the_limit_between_pieces_begins_again_with_each_read() {
        let seconds = Duration::from_secs;
        let clock = Clock::start(Timeouts { idle: seconds(60), total: seconds(600), ..Timeouts::default() });
        for _ in 0..5 {
            let ping = pin!(tokio::time::sleep(seconds(40)));
            assert_eq!(clock.wait(Limit::Idle, ping).await, Ok(()));
        }
        assert_eq!(clock.begun.elapsed(), seconds(200));
        assert_eq!(clock.wait(Limit::Idle, pin!(tokio::time::sleep(seconds(61)))).await, Err(Limit::Idle));
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_that_was_met_is_named() {
        let seconds = Duration::from_secs;
        let limits =
            Timeouts { connect: seconds(1), first_token: seconds(5), idle: seconds(2), total: seconds(8) };
        let clock = Clock::start(limits);
        let never = std::future::pending::<()>;
        assert_eq!(clock.wait(Limit::FirstToken, pin!(never())).await, Err(Limit::FirstToken));
        assert_eq!(clock.begun.elapsed(), seconds(5));
        assert_eq!(clock.wait(Limit::Idle, pin!(never())).await, Err(Limit::Idle));
        assert_eq!(clock.wait(Limit::Idle, pin!(never())).await, Err(Limit::Total));
        assert_eq!(clock.begun.elapsed(), seconds(8));
        let endless = Clock::start(Timeouts { total: Duration::MAX, idle: Duration::MAX, ..limits });
        assert_eq!(endless.wait(Limit::Idle, pin!(async { 1 })).await, Ok(1));
    }
}
