//! Retries with exponential backoff.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::rate_headers::duration;

/// The retries of a failed call: how often, and how long.
///
/// Waits grow exponentially and are random from zero to their bound ("full jitter"), so that agents that failed
/// together do not retry together. A provider's `Retry-After` is honored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retries {
    /// The maximum number of attempts, the first one included. 1 means no retries; 0 counts as 1.
    pub attempts: u32,
    /// How long after the first attempt a retry may begin.
    pub within: Duration,
    /// The bound of the first wait; it doubles with every attempt.
    pub first_wait: Duration,
    /// The longest wait. If a provider asks for a longer one, there is no retry.
    pub max_wait: Duration,
    /// The random seed; `None` uses the clock.
    pub seed: Option<u64>,
}

impl Default for Retries {
    /// 5 attempts within 5 minutes, waits of up to 0.5, 1, 2 and 4 seconds, or up to 60 if the provider asks for it.
    fn default() -> Self {
        Self {
            attempts: 5,
            within: Duration::from_secs(300),
            first_wait: Duration::from_millis(500),
            max_wait: Duration::from_secs(60),
            seed: None,
        }
    }
}

impl Retries {
    /// Retries nothing.
    pub fn none() -> Self {
        Self { attempts: 1, ..Self::default() }
    }

    /// Returns the same with waits of up to `longest`, and at least the time for as many of them as there are attempts.
    ///
    /// ```
    /// use std::time::Duration;
    /// use polylogue_models::Retries;
    /// let patient = Retries::default().waiting(Duration::from_secs(600));
    /// assert_eq!(patient.within, Duration::from_secs(5 * 600));
    /// ```
    #[must_use]
    pub fn waiting(self, longest: Duration) -> Self {
        let within = self.within.max(longest.saturating_mul(self.attempts));
        Self { max_wait: longest, within, ..self }
    }
}

/// Whether a retry may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryAdvice {
    No,
    /// Not soon with this key: its account has no credit left.
    Spent,
    /// Not with this key: the provider refuses it.
    KeyRefused,
    /// At once, with another key or credentials. Does not count as an attempt.
    Now,
    /// At once, with another key, while this one is at its rate limit. Counts as an attempt, so that keys that fail in turn come to an end.
    OtherKey,
    /// Yes, after the wait that the provider asks for, if it does.
    Yes(Option<Duration>),
}

/// Random numbers for waits, shared by all calls of an endpoint. SplitMix64 (Steele, Lea, Flood 2014) over a counter,
/// which needs no lock.
#[derive(Debug)]
pub(crate) struct Jitter(AtomicU64);

impl Jitter {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    pub(crate) fn new(seed: Option<u64>) -> Self {
        let clock = || {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            since.as_secs() ^ u64::from(since.subsec_nanos()).rotate_left(32)
        };
        Self(AtomicU64::new(seed.unwrap_or_else(clock)))
    }

    /// A random duration from zero to `bound`.
    fn up_to(&self, bound: Duration) -> Duration {
        let mut z = self.0.fetch_add(Self::STEP, Ordering::Relaxed).wrapping_add(Self::STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let fraction = f64::from(u32::try_from(z >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX);
        bound.mul_f64(fraction)
    }
}

/// The attempts of one call.
#[derive(Debug)]
pub(crate) struct Attempts<'a> {
    policy: &'a Retries,
    jitter: &'a Jitter,
    begun: Instant,
    made: u32,
}

/// Why a call is not retried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RetryStop {
    /// The maximum number of attempts is reached.
    Attempts(u32),
    /// The time for retries is over.
    Time(Duration),
    /// The provider asks for a longer wait than is allowed.
    Wait { asked: Duration, allowed: Duration },
}

impl<'a> Attempts<'a> {
    pub(crate) fn begin(policy: &'a Retries, jitter: &'a Jitter) -> Self {
        Self { policy, jitter, begun: Instant::now(), made: 1 }
    }

    /// How many retries have begun, and the maximum.
    pub(crate) const fn retries(&self) -> (u32, u32) {
        (self.made - 1, self.policy.attempts.saturating_sub(1))
    }

    /// The wait before the next attempt, if there is one. `asked` is what the provider asks for. No wait, or a date in the past, is not
    /// waited for: attempts all at once would burden a provider that is busy.
    pub(crate) fn next(&mut self, asked: Option<Duration>) -> Result<Duration, RetryStop> {
        let Retries { attempts, first_wait, max_wait, .. } = *self.policy;
        if self.made >= attempts {
            return Err(RetryStop::Attempts(self.made));
        }
        let doubled = first_wait.saturating_mul(2_u32.saturating_pow(self.made - 1));
        let wait = match asked.filter(|asked| !asked.is_zero()) {
            Some(asked) if asked > max_wait => return Err(RetryStop::Wait { asked, allowed: max_wait }),
            // Adds a little, so that agents with the same wait do not retry together.
            Some(asked) => asked.saturating_add(self.jitter.up_to(first_wait.min(asked))),
            None => self.jitter.up_to(doubled.min(max_wait)),
        };
        self.begin_after(wait)
    }

    /// No wait before the next attempt, if there is one.
    pub(crate) fn at_once(&mut self) -> Result<Duration, RetryStop> {
        match self.made >= self.policy.attempts {
            true => Err(RetryStop::Attempts(self.made)),
            false => self.begin_after(Duration::ZERO),
        }
    }

    fn begin_after(&mut self, wait: Duration) -> Result<Duration, RetryStop> {
        let within = self.policy.within;
        if self.begun.elapsed().saturating_add(wait) > within {
            return Err(RetryStop::Time(within));
        }
        self.made += 1;
        Ok(wait)
    }
}

/// Words before the wait that an error asks for, in lower case: OpenAI's and Groq's, Azure's, Google's.
const WAIT: [&str; 3] = ["try again in ", "retry after ", "retry in "];

/// The wait that the message of an error asks for, such as `Please try again in 1.2s.`, or `Please retry after 26 seconds.`
pub(crate) fn wait_in_words(message: &str) -> Option<Duration> {
    let message = message.to_ascii_lowercase();
    let (_, rest) = WAIT.iter().find_map(|words| message.split_once(words))?;
    let mut words = rest.split_whitespace().map(|word| word.trim_end_matches(['.', ',', ';', ':', ')']));
    let time = words.next()?;
    let Ok(count) = time.parse::<f64>() else { return duration(time) };
    let unit = match words.next()? {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "second" | "seconds" => 1.0,
        "min" | "minute" | "minutes" => 60.0,
        "hour" | "hours" => 3_600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(count * unit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Retries {
        Retries { seed: Some(7), ..Retries::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_are_bounded_and_are_the_same_for_the_same_seed() {
        let waits = |seed| {
            let jitter = Jitter::new(Some(seed));
            let policy = Retries { attempts: 12, within: Duration::from_secs(3600), ..policy() };
            let mut attempts = Attempts::begin(&policy, &jitter);
            std::iter::from_fn(|| attempts.next(None).ok()).collect::<Vec<_>>()
        };
        let drawn = waits(7);
        assert_eq!(drawn.len(), 11);
        for (index, wait) in drawn.iter().enumerate() {
            let bound = Duration::from_millis(500 << index).min(Duration::from_secs(60));
            assert!(*wait <= bound, "{index}: {wait:?}");
        }
        assert_eq!(drawn, waits(7));
        assert_ne!(drawn, waits(8));
        let total: Duration = (0..200).flat_map(waits).filter(|wait| *wait > Duration::from_secs(30)).sum();
        assert!(total > Duration::from_secs(3600), "waits spread over their whole range");
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_are_bounded_in_count_and_in_time() {
        let (policy, jitter) = (policy(), Jitter::new(Some(1)));
        let mut attempts = Attempts::begin(&policy, &jitter);
        for _ in 1..5 {
            attempts.next(None).unwrap();
        }
        assert_eq!(attempts.next(None), Err(RetryStop::Attempts(5)));

        let mut attempts = Attempts::begin(&policy, &jitter);
        tokio::time::advance(Duration::from_secs(280)).await;
        assert_eq!(attempts.next(Some(Duration::from_secs(30))), Err(RetryStop::Time(policy.within)));
        assert!(attempts.next(Some(Duration::from_secs(10))).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_provider_asks_for_is_honored_or_refused() {
        let (policy, jitter) = (policy(), Jitter::new(Some(1)));
        let mut attempts = Attempts::begin(&policy, &jitter);
        let wait = attempts.next(Some(Duration::from_secs(20))).unwrap();
        assert!((20.0..=20.5).contains(&wait.as_secs_f64()), "{wait:?}");
        assert_eq!(attempts.at_once(), Ok(Duration::ZERO));
        let (asked, allowed) = (Duration::from_secs(61), Duration::from_secs(60));
        assert_eq!(attempts.next(Some(asked)), Err(RetryStop::Wait { asked, allowed }));
    }

    /// `Retry-After: 0`, or a date in the past.
    #[tokio::test(start_paused = true)]
    async fn attempts_without_a_wait_back_off() {
        let (policy, jitter) = (policy(), Jitter::new(Some(1)));
        let waits = |asked| {
            let mut attempts = Attempts::begin(&policy, &jitter);
            std::iter::from_fn(|| attempts.next(asked).ok()).collect::<Vec<_>>()
        };
        let none = waits(Some(Duration::ZERO));
        assert!(none.len() == 4 && none.iter().any(|wait| *wait > policy.first_wait), "{none:?}");
        let mut attempts = Attempts::begin(&policy, &jitter);
        for _ in 1..5 {
            assert_eq!(attempts.at_once(), Ok(Duration::ZERO));
        }
        assert_eq!(attempts.at_once(), Err(RetryStop::Attempts(5)));
    }

    #[test]
    fn a_wait_in_words_is_read_and_other_words_are_none() {
        for (message, milliseconds) in [
            ("Rate limit reached: Limit 3, Used 3. Please try again in 1.2s. Visit https://x/y", Some(1_200)),
            ("Limit 3 / min. Please try again in 20ms.", Some(20)),
            ("Please try again in 6m0s.", Some(360_000)),
            (
                "exceeded call rate limit of your tier. Please retry after 26 seconds. Go to https://x",
                Some(26_000),
            ),
            ("Please retry after 1 second.", Some(1_000)),
            ("You exceeded your quota.\nPlease retry in 34.4s.", Some(34_400)),
            ("Try again in 2 minutes", Some(120_000)),
            ("Please try again later", None),
            ("Please retry after a while", None),
            ("try again in 3 of 4 cases", None),
            ("try again in -1 seconds", None),
            ("try again in inf seconds", None),
            ("try again in ", None),
            ("", None),
        ] {
            let wait = wait_in_words(message).map(|wait| wait.as_millis());
            assert_eq!(wait, milliseconds, "{message}");
        }
    }
}
