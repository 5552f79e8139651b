//! A model that takes cents, and limits on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use polylogue::Limits;
use polylogue_core::{
    Bound, DeltaSink, FailedAttempt, Model, ModelError, ModelErrorKind, Money, Params, Reply, Request, Usage,
};

/// Takes a cent for each token it writes, ten of at most twenty, and says of its requests how they went.
#[derive(Clone, Default)]
pub(crate) struct Cents {
    pub(crate) calls: Arc<AtomicU64>,
    /// How many attempts fail before one is answered.
    pub(crate) fails: u64,
    /// Its provider pauses the reply once, so that it sends a second request.
    pub(crate) pauses: bool,
    /// Never answers.
    pub(crate) hangs: bool,
    /// Does not say what it took.
    pub(crate) silent: bool,
    /// The longest reply is not known.
    pub(crate) unbounded: bool,
}

impl Cents {
    /// The requests that it has received.
    pub(crate) fn made(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Model for Cents {
    fn name(&self) -> &str {
        "test:cents"
    }
    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        if self.pauses && request.reserved.unwrap().extend(Bound::of(self, request)).await {
            self.calls.fetch_add(1, Ordering::SeqCst);
        }
        for _ in 0..self.fails {
            let reserved = request.reserved.unwrap();
            reserved.fail(FailedAttempt::Broken);
            if !reserved.again().await {
                return Err(ModelError::new(ModelErrorKind::Connection, self.name(), "it broke"));
            }
            self.calls.fetch_add(1, Ordering::SeqCst);
        }
        if self.hangs {
            std::future::pending::<()>().await;
        }
        let usage = Usage { input: Some(5), output: Some(10), ..Usage::default() };
        let usage = if self.silent { Usage::default() } else { usage };
        Ok(Reply { usage, ..Reply::new(format!("words {call}")) })
    }
    fn cost(&self, usage: &Usage) -> Option<Money> {
        Some(cents(usage.output?))
    }
    fn max_output(&self, _: &Params) -> Option<u64> {
        (!self.unbounded).then_some(20)
    }
}

pub(crate) fn cents(amount: u64) -> Money {
    Money::dollars(amount as f64 / 100.0)
}

/// A limit on money.
pub(crate) fn dollars(amount: f64) -> Limits {
    Limits { cost: Some(Money::dollars(amount)), ..Limits::default() }
}
