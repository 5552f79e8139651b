//! The callers of one model with one key in this process, who draw their permissions together.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polylogue_core::{LearnedRate, LearnedRates, LimitScope, RateDemand, RateGrant, RateTimes, SharedLimits};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, warn};

/// For how long permissions are drawn at once.
const AHEAD: Duration = Duration::from_secs(2);

/// A call that begins looks again whether callers must wait, if the last look is older: all processes hear within twice this time.
const FRESH: Duration = Duration::from_millis(400);

/// A permission that is used later is void: calls that a stalled process has missed do not begin all at once.
const LATE: Duration = Duration::from_millis(250);

/// The most tokens that one call is settled at. A server that reports more is wrong, and would make all processes wait for long.
const MOST_USED: u64 = 10_000_000;

/// The time between two notes of the same rates: while little is left, and otherwise.
const NOTES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// The callers of one model with one key in this process.
pub(crate) struct SharedLimiter {
    scope: LimitScope,
    limits: Arc<dyn SharedLimits>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    is_drawing: bool,
    /// Nothing is drawn before this time, when the last of the permitted calls begins.
    rests_until: Option<Instant>,
    /// The time between two requests and between two tokens, as last drawn; zero without a known rate. `None` before the first draw.
    intervals: Option<(Duration, Duration)>,
    /// Tokens that were drawn and not used, or negative.
    unused: i64,
    /// When was heard how long callers must wait, and until when.
    heard: Option<(Instant, Instant)>,
    noted: Option<(LearnedRates, Instant)>,
}

impl State {
    /// How long nothing is drawn.
    fn rests_for(&self) -> Duration {
        self.rests_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// For how long so many requests with so many tokens last.
    fn ahead(&self, requests: u32, tokens: u64) -> Duration {
        let Some((request, token)) = self.intervals else { return AHEAD };
        let of = |interval| RateTimes { interval, ..RateTimes::default() };
        RateGrant { requests: of(request), tokens: of(token), ..RateGrant::default() }.wait(requests, tokens)
    }
}

struct Waiting {
    tokens: u64,
    patience: Option<Duration>,
    answer: oneshot::Sender<Answer>,
}

impl Waiting {
    fn is_patient(&self, wait: Duration) -> bool {
        self.patience.is_none_or(|patience| wait <= patience)
    }

    fn tell(self, answer: Answer) {
        // One who has given up loses the permission.
        let _ = self.answer.send(answer);
    }
}

/// When a call may begin.
#[derive(Debug, Clone, Copy)]
enum Answer {
    /// At this time, and no later than a little after it.
    At(Instant),
    /// At any time: no rate is known.
    Any,
    /// Not before this wait, which is too long.
    Later(Duration),
}

impl SharedLimiter {
    pub(super) fn new(scope: LimitScope, limits: Arc<dyn SharedLimits>) -> Self {
        Self { scope, limits, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a call of `tokens` tokens may begin.
    ///
    /// # Errors
    /// The wait, if it is longer than `patience`.
    pub(crate) async fn pass(
        self: &Arc<Self>,
        tokens: u64,
        patience: Option<Duration>,
    ) -> Result<(), Duration> {
        loop {
            match self.asked(tokens, patience).await {
                Answer::Later(wait) => return Err(wait),
                Answer::At(start) => {
                    sleep_until(start).await;
                    if start.elapsed() > LATE {
                        continue;
                    }
                }
                Answer::Any => {}
            }
            if self.blocked().await.is_zero() {
                return Ok(());
            }
        }
    }

    /// Waits in line for an answer.
    async fn asked(self: &Arc<Self>, tokens: u64, patience: Option<Duration>) -> Answer {
        let (answer, answered) = oneshot::channel();
        let begins = {
            let mut state = self.state();
            let (waiting, rest) = (Waiting { tokens, patience, answer }, state.rests_for());
            // The caller may have another key, which it tries at once.
            if !waiting.is_patient(rest) {
                return Answer::Later(rest);
            }
            state.waiting.push_back(waiting);
            !std::mem::replace(&mut state.is_drawing, true)
        };
        if begins {
            // On its own, because a caller that gives up must not stop the others.
            tokio::spawn(Arc::clone(self).draw());
        }
        // Not answered only when the program ends.
        answered.await.unwrap_or(Answer::Any)
    }

    /// Draws for those who wait, until none does.
    async fn draw(self: Arc<Self>) {
        while let Some((batch, demand)) = self.next_batch() {
            let before = Instant::now();
            let unused = tokens_of(&batch).saturating_sub(demand.tokens);
            match self.limits.draw(&self.scope, demand).await {
                Ok(grant) if grant.is_drawn => {
                    let last = self.grant(batch, &grant, before);
                    // The next ones are drawn when these have begun, so that other processes have their share.
                    self.rest(last);
                    sleep_until(last).await;
                }
                Ok(grant) => {
                    self.keep_unused(unused);
                    self.refuse(batch, &grant);
                }
                Err(error) => {
                    warn!(%error, model = %self.scope.model, "a rate limit cannot be shared: calls begin without it");
                    self.keep_unused(unused);
                    batch.into_iter().for_each(|one| one.tell(Answer::Any));
                }
            }
        }
    }

    /// The next callers whose permissions are drawn at once, and what they need.
    fn next_batch(&self) -> Option<(Vec<Waiting>, RateDemand)> {
        let mut state = self.state();
        state.waiting.retain(|one| !one.answer.is_closed());
        let (mut batch, mut tokens) = (Vec::new(), 0_u64);
        while let Some(next) = state.waiting.front() {
            let (requests, patience) = (u32::try_from(batch.len()).unwrap_or(u32::MAX), next.patience);
            let is_same = batch.last().is_none_or(|last: &Waiting| last.patience == patience);
            // A caller that does not wait for long is not sent into what was drawn ahead.
            let most = patience.map_or(AHEAD, |patience| patience.min(AHEAD));
            if !batch.is_empty() && (!is_same || state.ahead(requests, tokens) >= most) {
                break;
            }
            tokens = tokens.saturating_add(next.tokens);
            batch.extend(state.waiting.pop_front());
        }
        let Some(first) = batch.first() else {
            state.is_drawing = false;
            return None;
        };
        let unused = std::mem::take(&mut state.unused);
        let demand = RateDemand {
            requests: u32::try_from(batch.len()).unwrap_or(u32::MAX),
            tokens: tokens_of(&batch).saturating_sub(unused),
            patience: first.patience,
        };
        Some((batch, demand))
    }

    /// Tells each caller of a batch its time. Returns the last one.
    fn grant(&self, batch: Vec<Waiting>, grant: &RateGrant, before: Instant) -> Instant {
        let now = Instant::now();
        {
            let mut state = self.state();
            state.intervals = Some((grant.requests.interval, grant.tokens.interval));
            state.heard = Some((before, now + grant.blocked));
        }
        let is_limited = !grant.requests.interval.is_zero() || !grant.tokens.interval.is_zero();
        let (mut last, mut tokens) = (now, 0_u64);
        for (nth, one) in (0..).zip(batch) {
            let start = now + grant.wait(nth, tokens);
            tokens = tokens.saturating_add(one.tokens);
            let answer = if is_limited || start > now { Answer::At(start) } else { Answer::Any };
            one.tell(answer);
            last = start;
        }
        last
    }

    /// Tells those who have too little patience that nothing is drawn before `until`.
    fn rest(&self, until: Instant) {
        let mut state = self.state();
        state.rests_until = Some(until);
        let rest = state.rests_for();
        let all = std::mem::take(&mut state.waiting);
        let (patient, others): (VecDeque<Waiting>, VecDeque<Waiting>) =
            all.into_iter().partition(|one| one.is_patient(rest));
        state.waiting = patient;
        drop(state);
        others.into_iter().for_each(|one| one.tell(Answer::Later(rest)));
    }

    /// Returns tokens that were not drawn after all.
    fn keep_unused(&self, unused: i64) {
        let mut state = self.state();
        state.unused = state.unused.saturating_add(unused);
    }

    /// Tells those who wait that it takes too long, each a little longer than the one before.
    fn refuse(&self, batch: Vec<Waiting>, grant: &RateGrant) {
        let mut state = self.state();
        let all: Vec<Waiting> = batch.into_iter().chain(state.waiting.drain(..)).collect();
        drop(state);
        let mut tokens = 0_u64;
        for (nth, one) in (0..).zip(all) {
            let wait = grant.wait(nth, tokens);
            tokens = tokens.saturating_add(one.tokens);
            match one.is_patient(wait) {
                true => self.state().waiting.push_back(one),
                false => one.tell(Answer::Later(wait)),
            }
        }
    }

    /// How long callers must wait, as was heard lately.
    async fn blocked(&self) -> Duration {
        let now = Instant::now();
        if let Some((at, until)) = self.state().heard
            && now.duration_since(at) < FRESH
        {
            return until.saturating_duration_since(now);
        }
        match self.limits.blocked(&self.scope).await {
            Ok(wait) => {
                self.state().heard = Some((now, Instant::now() + wait));
                wait
            }
            Err(error) => {
                debug!(%error, "it is unknown whether callers must wait");
                Duration::ZERO
            }
        }
    }

    /// Lets no process begin a call for so long.
    pub(super) async fn block(&self, wait: Duration) {
        self.state().heard = Some((Instant::now(), Instant::now() + wait));
        if let Err(error) = self.limits.block(&self.scope, wait).await {
            warn!(%error, "other processes do not hear that a provider asks for a wait");
        }
    }

    /// Notes rates, if they are new or little is left, without waiting.
    pub(super) fn learn(self: &Arc<Self>, rates: LearnedRates) {
        if rates == LearnedRates::default() {
            return;
        }
        {
            let mut state = self.state();
            let pause = if is_scarce(rates) { NOTES.0 } else { NOTES.1 };
            let is_noted =
                state.noted.is_some_and(|(before, at)| at.elapsed() < pause && is_same(before, rates));
            if is_noted {
                return;
            }
            state.noted = Some((rates, Instant::now()));
        }
        let limiter = Arc::clone(self);
        tokio::spawn(async move { limiter.note(rates).await });
    }

    /// Notes rates. Returns whether they are stored.
    pub(super) async fn note(&self, rates: LearnedRates) -> bool {
        let stored = self.limits.learn(&self.scope, rates).await;
        if let Err(error) = &stored {
            warn!(%error, "a rate limit is not shared");
        }
        stored.is_ok()
    }

    /// Counts `used` tokens instead of `drawn`, with the next draw.
    pub(super) fn settle(&self, drawn: u64, used: u64) {
        let number = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        self.keep_unused(number(drawn).saturating_sub(number(used.min(MOST_USED))));
    }
}

fn tokens_of(batch: &[Waiting]) -> i64 {
    let tokens = batch.iter().fold(0_u64, |sum, one| sum.saturating_add(one.tokens));
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

fn is_same(one: LearnedRates, other: LearnedRates) -> bool {
    let rate = |learned: Option<LearnedRate>| learned.map(|learned| learned.rate);
    rate(one.requests) == rate(other.requests) && rate(one.tokens) == rate(other.tokens)
}

/// Whether less is left than may begin at once, so that the provider's count matters.
#[expect(clippy::cast_precision_loss, reason = "no limit needs 52 bits")]
fn is_scarce(rates: LearnedRates) -> bool {
    let is_scarce = |learned: LearnedRate| {
        learned.remaining.is_some_and(|remaining| (remaining as f64) < learned.rate.burst)
    };
    rates.requests.is_some_and(is_scarce) || rates.tokens.is_some_and(is_scarce)
}
