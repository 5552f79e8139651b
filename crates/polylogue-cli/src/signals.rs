//! The orders to stop that come from outside.

use polylogue_core::Cancellation;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::CliError;

/// What is said when the first order has been given.
pub(crate) const FINISHING: &str = "finishing this step; Ctrl-C again stops now";

/// Hears the orders to stop that come from outside.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    orders: u32,
    /// Whether the first order stops at once.
    at_once: bool,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, CliError> {
        let listen = |kind| {
            signal(kind).map_err(|error| CliError::failed(format!("signals cannot be received: {error}")))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            orders: 0,
            at_once: false,
        })
    }

    /// The same, where Ctrl-C stops a reply at once, and nothing else.
    pub(crate) fn at_once() -> Result<Self, CliError> {
        Ok(Self { at_once: true, ..Self::new()? })
    }

    /// Whether more was ordered than to stop a reply.
    pub(crate) const fn has_left(&self) -> bool {
        self.orders > 1
    }

    /// Waits for an order.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => self.orders += 1,
            _ = self.terminate.recv() => self.orders += 2,
        }
    }

    /// Passes the order on: the first Ctrl-C lets the step finish, the second stops at once. Says whether it lets finish.
    pub(crate) fn pass_on(&self, cancellation: &Cancellation) -> bool {
        let lets_finish = self.orders <= 1 && !self.at_once;
        if lets_finish {
            cancellation.after_step()
        } else {
            cancellation.now()
        }
        lets_finish
    }

    pub(crate) const fn stopped(&self) -> bool {
        self.orders > 0
    }
}
