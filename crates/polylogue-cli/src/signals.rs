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
    /// Where the end of the terminal is such an order.
    hangup: Option<Signal>,
    orders: u32,
    /// Whether the first order stops at once.
    at_once: bool,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, CliError> {
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: None,
            orders: 0,
            at_once: false,
        })
    }

    /// The same, where Ctrl-C stops a reply at once, and nothing else.
    pub(crate) fn at_once() -> Result<Self, CliError> {
        Ok(Self { at_once: true, ..Self::new()? })
    }

    /// The same, where `SIGHUP` is an order, too: for what drains without a person, and else would end at once with its terminal. `nohup` is
    /// respected: what ignores the signal continues to.
    pub(crate) fn with_hangup(self) -> Result<Self, CliError> {
        let hangup = if ignores_hangup() { None } else { Some(listen(SignalKind::hangup())?) };
        Ok(Self { hangup, ..self })
    }

    /// Whether more was ordered than to stop a reply.
    pub(crate) const fn has_left(&self) -> bool {
        self.orders > 1
    }

    /// Waits for an order.
    pub(crate) async fn next(&mut self) {
        let Self { interrupt, terminate, hangup, orders, .. } = self;
        let hung_up = async {
            match hangup {
                Some(hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => *orders += 1,
            _ = terminate.recv() => *orders += 2,
            () = hung_up => *orders += 2,
        }
    }

    /// Passes the order on: the first Ctrl-C lets the step finish, the second stops at once. Says whether it lets finish.
    pub(crate) fn pass_on(&self, cancellation: &Cancellation) -> bool {
        let lets_finish = self.orders <= 1 && !self.at_once;
        if lets_finish {
            cancellation.cancel_after_step()
        } else {
            cancellation.cancel_now()
        }
        lets_finish
    }

    pub(crate) const fn stopped(&self) -> bool {
        self.orders > 0
    }
}

fn listen(kind: SignalKind) -> Result<Signal, CliError> {
    signal(kind).map_err(|error| CliError::failed(format!("signals cannot be received: {error}")))
}

/// Whether this process was started to ignore `SIGHUP`, or this is not known: a handler would end what `nohup` protects.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // It is signal 1, the lowest bit.
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask & 1 == 1)
}
