//! Limits on concurrent requests and requests per minute of an endpoint.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use polylogue_core::SharedLimits;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The limits of an endpoint, shared by all its models. First come, first served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests in flight; `None` means no limit, 0 counts as 1.
    pub in_flight: Option<usize>,
    /// Requests begun within any 60 seconds, retries included; `None` means no limit, 0 counts as 1.
    pub per_minute: Option<u32>,
}

impl Default for Limits {
    /// 256 in flight, within the usual 1,024 open files of a process; no limit per minute.
    fn default() -> Self {
        Self { in_flight: Some(256), per_minute: None }
    }
}

/// Limits that all processes with the same store share: rates of requests and tokens by provider, key and model, which are
/// learned from the headers of responses; waits that a provider asks for; [`Config::slots`](crate::Config::slots) and
/// [`Limits::per_minute`].
#[derive(Clone, derive_more::Debug)]
#[debug("ClusterLimits {{ patience: {patience:?}, .. }}")]
pub struct ClusterLimits {
    /// The store of the limits.
    pub limits: Arc<dyn SharedLimits>,
    /// A call that would have to wait longer fails at once, with [`wait`](polylogue_core::ModelError::wait). `None`: calls wait.
    pub patience: Option<Duration>,
}

/// Equal if they are kept in the same store.
impl PartialEq for ClusterLimits {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.limits, &other.limits) && self.patience == other.patience
    }
}

impl Eq for ClusterLimits {}

impl ClusterLimits {
    /// Creates shared limits that are kept in `limits`; calls wait for them.
    pub fn new(limits: Arc<dyn SharedLimits>) -> Self {
        Self { limits, patience: None }
    }
}

const WINDOW: Duration = Duration::from_secs(60);

/// The rate limiter of an endpoint.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    in_flight: Option<Arc<Semaphore>>,
    /// When the last requests began, oldest first, as many as are allowed within the window.
    begun: Option<(usize, Mutex<VecDeque<Instant>>)>,
}

/// A permit for a request in flight, released when dropped.
#[derive(Debug)]
pub(crate) struct Pass {
    _permit: Option<OwnedSemaphorePermit>,
}

impl RateLimiter {
    pub(crate) fn new(limits: Limits) -> Self {
        let slots = |count: usize| Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS)));
        let allowed = |count: u32| usize::try_from(count.max(1)).unwrap_or(usize::MAX);
        Self {
            in_flight: limits.in_flight.map(slots),
            begun: limits.per_minute.map(|count| (allowed(count), Mutex::new(VecDeque::new()))),
        }
    }

    /// Waits until a request may begin. Dropping the future leaves the queue without side effects.
    pub(crate) async fn pass(&self) -> Pass {
        let pass = self.place().await;
        self.begin().await;
        pass
    }

    /// Waits for a place among the requests in flight.
    pub(crate) async fn place(&self) -> Pass {
        let permit = match &self.in_flight {
            // Fails only when the semaphore is closed, which it never is.
            Some(slots) => Arc::clone(slots).acquire_owned().await.ok(),
            None => None,
        };
        Pass { _permit: permit }
    }

    /// A place among the requests in flight, if one is free and no request waits for it.
    pub(crate) fn free_place(&self) -> Option<Pass> {
        let permit = match &self.in_flight {
            Some(slots) => Some(Arc::clone(slots).try_acquire_owned().ok()?),
            None => None,
        };
        Some(Pass { _permit: permit })
    }

    /// Waits until a request that has a place may begin. All requests of the endpoint wait here, so that none could use the place.
    pub(crate) async fn begin(&self) {
        if let Some((allowed, begun)) = &self.begun {
            // The lock is held while waiting and is passed on in order: that is the queue.
            let mut begun = begun.lock().await;
            if begun.len() >= *allowed {
                if let Some(oldest) = begun.front() {
                    tokio::time::sleep_until(*oldest + WINDOW).await;
                }
                begun.pop_front();
            }
            begun.push_back(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_window_of_a_minute_has_more_requests_than_allowed_and_none_waits_longer_than_needed() {
        let limiter = RateLimiter::new(Limits { in_flight: None, per_minute: Some(3) });
        let start = Instant::now();
        let mut times = Vec::new();
        for _ in 0..7 {
            limiter.pass().await;
            times.push(start.elapsed().as_secs());
            tokio::time::advance(Duration::from_secs(10)).await;
        }
        assert_eq!(times, [0, 10, 20, 60, 70, 80, 120]);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_in_flight_are_bounded_and_served_in_order() {
        let limiter = Arc::new(RateLimiter::new(Limits { in_flight: Some(2), per_minute: Some(1000) }));
        let served = Arc::new(Mutex::new((0_usize, 0_usize, Vec::new())));
        let tasks: Vec<_> = (0..20)
            .map(|id| {
                let (limiter, served) = (Arc::clone(&limiter), Arc::clone(&served));
                tokio::spawn(async move {
                    let pass = limiter.pass().await;
                    {
                        let mut served = served.lock().await;
                        served.0 += 1;
                        served.1 = served.1.max(served.0);
                        served.2.push(id);
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    served.lock().await.0 -= 1;
                    drop(pass);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let served = served.lock().await;
        assert_eq!((served.0, served.1), (0, 2));
        assert_eq!(served.2, (0..20).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_wait_takes_no_place_in_the_limiter() {
        let limiter = RateLimiter::new(Limits { in_flight: Some(1), per_minute: Some(1) });
        drop(limiter.pass().await);
        let gave_up = tokio::time::timeout(Duration::from_secs(5), limiter.pass()).await;
        assert!(gave_up.is_err());
        let start = Instant::now();
        let waited = tokio::time::timeout(Duration::from_secs(100), limiter.pass()).await;
        assert!(waited.is_ok());
        assert_eq!(start.elapsed().as_secs(), 55);
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_of_zero_lets_one_call_through() {
        let limiter = RateLimiter::new(Limits { in_flight: Some(0), per_minute: Some(0) });
        assert!(tokio::time::timeout(Duration::from_secs(1), limiter.pass()).await.is_ok());
    }
}
