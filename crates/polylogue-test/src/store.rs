//! Conformance tests of every [`Store`](polylogue_core::Store).
//!
//! ```
//! # async fn example() {
//! # use polylogue_core::AnyStore;
//! # fn my_store_in(dir: &std::path::Path) -> AnyStore { unimplemented!("{dir:?}") }
//! # fn new_folder() -> std::path::PathBuf { "/tmp".into() }
//! // Every call makes a new, empty store.
//! polylogue_test::store::conforms(|| my_store_in(&new_folder())).await;
//! // Every call opens the same place, which is empty at first.
//! let folder = new_folder();
//! polylogue_test::store::survives(|| my_store_in(&folder)).await;
//! # }
//! ```

mod archive;
mod blobs;
mod claims;
mod crowd;
mod events;
mod inbox;
mod keys;
mod listing;
mod reopened;
pub(crate) mod support;

use polylogue_core::AnyStore;

use self::support::Report;

/// Checks that the stores created by `make` follow every rule of [`Store`](polylogue_core::Store). Each call must return a new, empty store.
///
/// Needs no runtime beyond what the store itself needs.
///
/// # Panics
/// When a rule is broken; the message lists all broken rules.
pub async fn conforms(make: impl Fn() -> AnyStore) {
    let mut report = Report::default();
    claims::check(&make, &mut report).await;
    events::check(&make, &mut report).await;
    inbox::check(&make, &mut report).await;
    keys::check(&make, &mut report).await;
    blobs::check(&make, &mut report).await;
    archive::check(&make, &mut report).await;
    listing::check(&make, &mut report).await;
    crowd::check(&make, &mut report).await;
    report.finish();
}

/// Checks that the content of a store survives the store itself. `open` opens the same place repeatedly; at
/// first it is empty.
///
/// Several stores are open in one process; data loss of a killed process is not checked.
///
/// # Panics
/// When a rule is broken; the message lists all broken rules.
pub async fn survives(open: impl Fn() -> AnyStore) {
    let mut report = Report::default();
    reopened::check(&open, &mut report).await;
    archive::check_reopened(&open, &mut report).await;
    keys::check_reopened(&open, &mut report).await;
    report.finish();
}
