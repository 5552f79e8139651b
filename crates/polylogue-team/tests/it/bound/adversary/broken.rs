//! Attempts that break, before a reply or without one.

use polylogue_core::{
    Capabilities, DeltaSink, FailedAttempt, Model, ModelError, ModelErrorKind, Money, Params, Reply, Request,
    Usage,
};

use super::Switched;

/// The attempts of an endpoint that break before the last one.
pub(in super::super) const FAILS: u64 = 4;

/// Breaks `count` attempts of `request`, each of which counts as much as it may.
pub(super) async fn fail(request: &Request<'_>, count: u64) -> Result<(), ModelError> {
    for _ in 0..count {
        let Some(reserved) = request.reserved else { break };
        reserved.fail(FailedAttempt::Broken);
        if !reserved.again().await {
            return Err(broken());
        }
    }
    Ok(())
}

fn broken() -> ModelError {
    ModelError::new(ModelErrorKind::Connection, "adversary:broken", "it broke")
}

/// A model that never replies, next to one that does.
pub(in super::super) struct Broken(pub(in super::super) Switched);

impl Model for Broken {
    fn name(&self) -> &str {
        "adversary:broken"
    }

    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        fail(request, FAILS).await?;
        Err(broken())
    }

    fn cost(&self, usage: &Usage) -> Option<Money> {
        self.0.cost(usage)
    }

    fn max_output(&self, params: &Params) -> Option<u64> {
        self.0.max_output(params)
    }

    fn context_window(&self) -> Option<u64> {
        self.0.context_window()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }
}
