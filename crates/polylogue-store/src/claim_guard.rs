//! Claims on their way to the caller.

use polylogue_core::Claim;

type Release = Box<dyn FnOnce(&Claim) + Send>;

/// A claim that is released if the caller does not receive it, because its future was dropped.
pub(crate) struct ClaimGuard {
    claim: Claim,
    release: Option<Release>,
}

impl ClaimGuard {
    pub(crate) fn new(claim: Claim, release: impl FnOnce(&Claim) + Send + 'static) -> Self {
        Self { claim, release: Some(Box::new(release)) }
    }

    /// The caller received it.
    pub(crate) fn accept(mut self) -> Claim {
        self.release = None;
        self.claim.clone()
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release(&self.claim);
        }
    }
}
