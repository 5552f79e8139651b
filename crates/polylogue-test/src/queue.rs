//! Conformance tests of every [`Queue`](polylogue_core::Queue): what each state of a log leads to, and nothing else.
//!
//! ```
//! # async fn example() {
//! # use polylogue_test::queue::Fixture;
//! # fn my_queue() -> Fixture { unimplemented!() }
//! // Every call makes a new, empty queue, and a way to let time pass.
//! polylogue_test::queue::conforms(my_queue).await;
//! # }
//! ```

mod arrows;
mod claims;
mod parked;
mod rivals;
mod support;
mod woken;

pub use self::support::Fixture;
use crate::store::support::Report;

/// Checks that the queues created by `make` follow every rule of [`Queue`](polylogue_core::Queue). Each call must return a new,
/// empty queue.
///
/// # Panics
/// When a rule is broken; the message lists all broken rules.
pub async fn conforms(make: impl Fn() -> Fixture) {
    let mut report = Report::default();
    arrows::check(&make, &mut report).await;
    claims::check(&make, &mut report).await;
    woken::check(&make, &mut report).await;
    parked::check(&make, &mut report).await;
    rivals::check(&make, &mut report).await;
    report.finish();
}
