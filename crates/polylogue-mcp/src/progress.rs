//! Progress notifications of servers.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use polylogue_core::text;
use rmcp::RoleClient;
use rmcp::model::{CancelledNotificationParam, ProgressNotificationParam, ProgressToken, RequestId};
use rmcp::service::{Peer, RequestHandle};
use tokio::sync::Notify;

/// Maximum length of a progress message.
const SAID_BYTES: usize = 500;

/// The progress of a call, as its server reports it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// The server.
    pub server: String,
    /// The tool's name at the server.
    pub tool: String,
    /// The progress so far, in the server's unit.
    pub done: f64,
    /// The total, if known.
    pub total: Option<f64>,
    /// The server's message.
    pub message: Option<String>,
}

/// One line, such as `files: search_files 3 of 10 (looking at /srv)`.
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.server, self.tool, self.done)?;
        self.total.map_or(Ok(()), |total| write!(f, " of {total}"))?;
        self.message.as_ref().map_or(Ok(()), |message| write!(f, " ({message})"))
    }
}

type ProgressFn = dyn Fn(&Progress) + Send + Sync;

/// Callback for progress messages.
#[derive(Clone)]
pub(crate) struct ProgressCallback(Option<Arc<ProgressFn>>);

impl ProgressCallback {
    pub(crate) const NONE: Self = Self(None);

    pub(crate) fn new(callback: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(callback)))
    }
}

/// The calls in flight of one connection.
pub(crate) struct ActiveCalls {
    server: String,
    callback: ProgressCallback,
    calls: Mutex<HashMap<ProgressToken, ActiveCall>>,
}

struct ActiveCall {
    tool: String,
    notify: Arc<Notify>,
}

impl ActiveCalls {
    pub(crate) fn new(server: &str, callback: ProgressCallback) -> Self {
        Self { server: server.to_owned(), callback, calls: Mutex::default() }
    }

    /// Handles a progress notification.
    pub(crate) fn report(&self, said: ProgressNotificationParam) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        // The call was cancelled.
        let Some(ActiveCall { tool, notify }) = calls.get(&said.progress_token) else { return };
        notify.notify_one();
        let ProgressCallback(Some(callback)) = &self.callback else { return };
        let message = said.message.map(|message| text::head(&message, SAID_BYTES).to_owned());
        let progress = Progress {
            server: self.server.clone(),
            tool: tool.clone(),
            done: said.progress,
            total: said.total,
            message,
        };
        drop(calls);
        callback(&progress);
    }

    /// Registers a sent call of `tool`; each progress notification is signaled by `notify`.
    pub(crate) fn follow<'a>(
        &'a self,
        handle: &RequestHandle<RoleClient>,
        tool: &str,
        notify: &Arc<Notify>,
    ) -> InFlight<'a> {
        let call = ActiveCall { tool: tool.to_owned(), notify: Arc::clone(notify) };
        let token = handle.progress_token.clone();
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(token.clone(), call);
        InFlight { active: self, token, id: handle.id.clone(), peer: handle.peer.clone(), is_answered: false }
    }
}

/// A call in flight. Dropping it before its response cancels it on the server.
pub(crate) struct InFlight<'a> {
    active: &'a ActiveCalls,
    token: ProgressToken,
    id: RequestId,
    peer: Peer<RoleClient>,
    pub(crate) is_answered: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.active.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if !self.is_answered {
            let why = "no caller waits for it any more".to_owned();
            let (peer, cancelled) =
                (self.peer.clone(), CancelledNotificationParam::new(Some(self.id.clone()), Some(why)));
            // A server that has ended needs no cancellation.
            runtime.spawn(async move { drop(peer.notify_cancelled(cancelled).await) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_reported_in_a_line() {
        let (server, tool) = ("files".to_owned(), "search".to_owned());
        let mut progress = Progress { server, tool, done: 3.0, total: None, message: None };
        assert_eq!(progress.to_string(), "files: search 3");
        (progress.total, progress.message) = (Some(10.0), Some("looking".into()));
        assert_eq!(progress.to_string(), "files: search 3 of 10 (looking)");
    }
}
