//! The pause of a conversation in this process: asked for from outside, in effect between two steps, and held by those who have to
//! make room before it ends.

use std::sync::Arc;

use tokio::sync::watch;

/// The pause of a conversation. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pause(Arc<watch::Sender<State>>);

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// Whether it was asked for.
    is_paused: bool,
    /// How many chats wait between two steps.
    resting: usize,
    /// How many keep it from continuing.
    holds: usize,
}

impl State {
    const fn is_in_effect(self) -> bool {
        self.is_paused || self.holds > 0
    }
}

impl Pause {
    fn state(&self) -> State {
        *self.0.borrow()
    }

    pub(super) fn set(&self, is_paused: bool) {
        self.0.send_modify(|state| state.is_paused = is_paused);
    }

    /// Whether it was asked for, and not ended since.
    pub(super) fn is_paused(&self) -> bool {
        self.state().is_paused
    }

    /// Whether something keeps it from ending.
    pub(super) fn is_held(&self) -> bool {
        self.state().holds > 0
    }

    /// Whether no step may begin.
    pub(super) fn is_in_effect(&self) -> bool {
        self.state().is_in_effect()
    }

    /// Waits until steps may begin. Until then a chat rests.
    pub(super) async fn ended(&self) {
        self.0.send_modify(|state| state.resting += 1);
        let _rests = Rests(self);
        self.wait(|state| !state.is_in_effect()).await;
    }

    /// Waits until no step may begin. Meanwhile nothing rests.
    pub(super) async fn in_effect(&self) {
        self.wait(|state| state.is_in_effect()).await;
    }

    /// Waits until steps may begin. Unlike in [`ended`](Self::ended), nothing rests meanwhile.
    pub(super) async fn out_of_effect(&self) {
        self.wait(|state| !state.is_in_effect()).await;
    }

    /// Waits until it was asked for and a chat rests.
    pub(super) async fn rests(&self) {
        self.wait(|state| state.is_paused && state.resting > 0).await;
    }

    /// Waits until it was not asked for, or was ended.
    pub(super) async fn resumed(&self) {
        self.wait(|state| !state.is_paused).await;
    }

    /// Keeps it from ending, if a chat rests.
    pub(super) fn hold(&self) -> Option<PauseHold> {
        let rests = self.0.send_if_modified(|state| {
            let rests = state.resting > 0;
            state.holds += usize::from(rests);
            rests
        });
        rests.then(|| PauseHold(self.clone()))
    }

    async fn wait(&self, until: impl FnMut(&State) -> bool) {
        // The sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(until).await;
    }
}

/// A chat that waits between two steps.
struct Rests<'p>(&'p Pause);

impl Drop for Rests<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| state.resting = state.resting.saturating_sub(1));
    }
}

/// Keeps a paused conversation from beginning a turn, also when it is resumed, until it is dropped: [`LogHandle::hold`](super::LogHandle::hold).
#[derive(Debug)]
pub struct PauseHold(Pause);

impl Drop for PauseHold {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| state.holds = state.holds.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use crate::Log;

    fn is_ready(future: impl Future<Output = ()>) -> bool {
        future.now_or_never().is_some()
    }

    #[test]
    fn a_pause_that_is_held_ends_with_its_last_hold() {
        let log = Log::in_memory();
        let (handle, pause) = (log.handle(), &log.pause);
        assert!(is_ready(pause.ended()), "nothing is paused");
        pause.set(true);
        assert!(handle.hold().is_none(), "a turn may be under way");
        assert!(!is_ready(handle.rests()));
        let mut ended = Box::pin(pause.ended());
        assert!(!is_ready(ended.as_mut()));
        assert!(is_ready(handle.rests()));
        let holds = [handle.hold().unwrap(), handle.hold().unwrap()];
        assert!(!is_ready(handle.resumed()));
        pause.set(false);
        assert!(is_ready(handle.resumed()));
        for hold in holds {
            assert!(pause.is_in_effect() && !is_ready(ended.as_mut()), "it is held");
            drop(hold);
        }
        assert!(is_ready(ended));
        assert!(handle.hold().is_none(), "it continues");
    }

    #[test]
    fn a_chat_that_is_cancelled_in_a_pause_rests_no_more() {
        let log = Log::in_memory();
        log.pause.set(true);
        assert!(!is_ready(log.pause.ended()));
        assert!(log.handle().hold().is_none() && !is_ready(log.handle().rests()));
    }
}
