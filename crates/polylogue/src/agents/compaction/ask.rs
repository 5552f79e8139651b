//! Calls a model, after a compaction where one is due.

use polylogue_core::{
    Error, FinishReason, Interrupt, Model as _, ModelAttempt, ModelCall, ModelError, ModelErrorKind, Reply,
    Result, StopReason, Turn, ViewOptions,
};

use super::Compaction;
use crate::stop::LibraryStopReason;

/// How a model is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A missing capability is an error.
    Plain,
    /// A missing capability is logged, and the caller continues in another way.
    Try,
}

/// Calls a model. The history is compacted before, if it is due, and once more if the provider refuses the request as too
/// long, or if the window was full before the reply was complete. Where it cannot be compacted, a refusal ends the chat.
/// Compactions in the log are replayed, whatever the settings are now.
pub(crate) async fn ask(
    compaction: Option<&Compaction>,
    turn: &mut Turn<'_>,
    call: ModelCall<'_>,
    how: Ask,
) -> Result<ModelAttempt> {
    if !turn.replay_compaction()
        && let Some(compaction) = compaction
    {
        compaction.compact_if_due(turn, call).await?;
    }
    match first(compaction, turn, call, how).await? {
        Sent::Done(attempt) => Ok(attempt),
        // In a box, because it is seldom and large: a turn waits for replies with the space for what it may do.
        Sent::TooLong(limit) => Box::pin(again(compaction, turn, call, (how, limit))).await,
    }
}

/// Calls a model that has no history which could be compacted, with `view`. If the provider refuses the request as too long, `shorter` returns a view
/// for the most tokens that it may accept. This one replaces `view`, and the request is sent once more. Without one, or after another refusal, the
/// chat ends.
pub(crate) async fn ask_shorter(
    turn: &mut Turn<'_>,
    call: ModelCall<'_>,
    view: &mut ViewOptions,
    shorter: impl FnOnce(u64) -> Option<ViewOptions>,
) -> Result<Reply> {
    let limit = match turn.replay_too_long() {
        Some(limit) => limit,
        None => match turn.ask_model(ModelCall { view: &*view, ..call }).await {
            Err(Error::Model(error)) if is_too_long(&error) => turn.record_too_long(error).await?,
            done => return done,
        },
    };
    let tokens = turn.context_tokens(ModelCall { view: &*view, ..call });
    let Some(shorter) = shorter(limit.unwrap_or(tokens).min(tokens)) else { return Err(full(turn, call)) };
    *view = shorter;
    match turn.ask_model(ModelCall { view: &*view, ..call }).await {
        Err(Error::Model(error)) if is_too_long(&error) => Err(full(turn, call)),
        done => done,
    }
}

/// Compacts the history, to the `limit` that the provider named, if it named one, and sends the request once more. Ends the chat, if
/// nothing can be compacted.
async fn again(
    compaction: Option<&Compaction>,
    turn: &mut Turn<'_>,
    call: ModelCall<'_>,
    (how, limit): (Ask, Option<u64>),
) -> Result<ModelAttempt> {
    if !turn.replay_compaction() {
        let Some(compaction) = compaction else { return Err(full(turn, call)) };
        compaction.compact_now(turn, call, limit).await?;
    }
    match send(turn, call, how).await {
        Err(Error::Model(error)) if is_too_long(&error) => Err(full(turn, call)),
        done => done,
    }
}

/// The result of the first request.
enum Sent {
    /// The model replied, or lacks a capability.
    Done(ModelAttempt),
    /// The history must be compacted, to the limit that the provider named, if it named one.
    TooLong(Option<u64>),
}

async fn first(
    compaction: Option<&Compaction>,
    turn: &mut Turn<'_>,
    call: ModelCall<'_>,
    how: Ask,
) -> Result<Sent> {
    if let Some(limit) = turn.replay_too_long() {
        return Ok(Sent::TooLong(limit));
    }
    match send(turn, call, how).await {
        Err(Error::Model(error)) if is_too_long(&error) => {
            turn.record_too_long(error).await.map(Sent::TooLong)
        }
        Ok(ModelAttempt::Reply(reply)) if reply.finish == FinishReason::ContextFull => {
            if let Some(limit) = turn.replay_too_long() {
                return Ok(Sent::TooLong(limit));
            }
            if turn.next_logged().is_some() || !can_compact(compaction, turn, call) {
                return Ok(Sent::Done(ModelAttempt::Reply(reply)));
            }
            turn.discard_reply(call.model.name()).await?;
            Ok(Sent::TooLong(None))
        }
        done => done.map(Sent::Done),
    }
}

fn can_compact(compaction: Option<&Compaction>, turn: &mut Turn<'_>, call: ModelCall<'_>) -> bool {
    compaction.is_some() && Compaction::can_compact(turn, call)
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

/// Ends the chat, because compaction did not help or is not possible.
pub(super) fn full(turn: &Turn<'_>, call: ModelCall<'_>) -> Error {
    let who = turn.me().clone();
    let reason = StopReason::from(LibraryStopReason::ContextFull {
        who: who.clone(),
        model: call.model.name().into(),
    });
    Interrupt::Ended { who, reason }.into()
}
