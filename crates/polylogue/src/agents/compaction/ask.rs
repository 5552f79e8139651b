//! Calls a model, after a compaction where one is due.

use polylogue_core::{
    Error, Interrupt, Model as _, ModelAttempt, ModelCall, ModelError, ModelErrorKind, Result, StopReason,
    Turn,
};

use super::Compaction;
use crate::stop::Reason;

/// How a model is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A missing capability is an error.
    Plain,
    /// A missing capability is logged, and the caller continues in another way.
    Try,
}

/// Calls a model. The history is compacted before, if it is due, and once more if the provider refuses the request as too
/// long.
pub(crate) async fn ask(
    compaction: Option<&Compaction>,
    turn: &mut Turn<'_>,
    call: ModelCall<'_>,
    how: Ask,
) -> Result<ModelAttempt> {
    let Some(compaction) = compaction else { return send(turn, call, how).await };
    compaction.compact_if_due(turn, call).await?;
    let limit = match turn.replay_too_long() {
        Some(limit) => limit,
        None => match send(turn, call, how).await {
            Err(Error::Model(error)) if is_too_long(&error) && compaction.can_compact(turn, call) => {
                turn.record_too_long(error).await?
            }
            done => return done,
        },
    };
    compaction.compact_now(turn, call, limit).await?;
    match send(turn, call, how).await {
        Err(Error::Model(error)) if is_too_long(&error) => Err(full(turn, call)),
        done => done,
    }
}

async fn send(turn: &mut Turn<'_>, call: ModelCall<'_>, how: Ask) -> Result<ModelAttempt> {
    match how {
        Ask::Plain => turn.ask_model(call).await.map(ModelAttempt::Reply),
        Ask::Try => turn.try_model(call).await,
    }
}

pub(super) const fn is_too_long(error: &ModelError) -> bool {
    matches!(error.kind, ModelErrorKind::TooLong { .. })
}

/// Ends the chat, because compaction did not help.
pub(super) fn full(turn: &Turn<'_>, call: ModelCall<'_>) -> Error {
    let who = turn.me().clone();
    let reason = StopReason::from(Reason::ContextFull { who: who.clone(), model: call.model.name().into() });
    Interrupt::Ended { who, reason }.into()
}
