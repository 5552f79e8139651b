//! Claims on their way to whoever asked for them.

use polylogue_core::Claim;

type GiveBack = Box<dyn FnOnce(&Claim) + Send>;

/// A claim that is given back if nobody receives it, because the future that asked for it was dropped.
pub(crate) struct ClaimGuard {
    claim: Claim,
    give_back: Option<GiveBack>,
}

impl ClaimGuard {
    pub(crate) fn new(claim: Claim, give_back: impl FnOnce(&Claim) + Send + 'static) -> Self {
        Self { claim, give_back: Some(Box::new(give_back)) }
    }

    /// It was received.
    pub(crate) fn accept(mut self) -> Claim {
        self.give_back = None;
        self.claim.clone()
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        if let Some(give_back) = self.give_back.take() {
            give_back(&self.claim);
        }
    }
}
