//! The caller: the client program and its user.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken, ProtocolVersion};
use rmcp::service::RequestContext;
use tokio::sync::oneshot;

use super::form::{FormAnswer, FormQuestion, Unfit, accepted, form};

/// How long to wait for the reason of a cancellation.
const REASON: Duration = Duration::from_millis(200);
/// How often a client is asked whose answers do not fit the form.
const TRIES: usize = 3;

/// The caller of a call in flight.
#[derive(Debug)]
pub struct Caller {
    context: RequestContext<RoleServer>,
    cancelled: Option<oneshot::Receiver<Option<String>>>,
    progress: Option<ProgressToken>,
    count: u32,
    state: Option<String>,
    answers: Vec<FormAnswer>,
}

/// The result of a question to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserAnswer {
    /// The user's answer.
    With(String),
    /// The user declined.
    Declined,
    /// The user's client cannot ask them.
    Unable,
    /// The user's client cancelled the call meanwhile.
    Cancelled,
}

impl Caller {
    pub(super) fn of(context: RequestContext<RoleServer>) -> Self {
        Self { context, cancelled: None, progress: None, count: 0, state: None, answers: Vec::new() }
    }

    pub(super) fn of_call(
        context: RequestContext<RoleServer>,
        cancelled: oneshot::Receiver<Option<String>>,
        state: Option<String>,
        answers: Vec<FormAnswer>,
    ) -> Self {
        let progress = context.meta.get_progress_token();
        Self { context, cancelled: Some(cancelled), progress, count: 0, state, answers }
    }

    /// Returns what the server has put into the extensions of the HTTP request; `None` over pipes.
    pub fn extension<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.context.extensions.get::<http::request::Parts>()?.extensions.get::<T>().cloned()
    }

    /// Returns whether the caller uses the protocol without sessions, of 2026-07-28 and later: the end of its connection
    /// cancels the call, and it takes questions as results.
    pub fn is_stateless(&self) -> bool {
        let version = self.context.protocol_version();
        version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
    }

    /// Returns whether the caller can show its user a form.
    pub fn can_ask(&self) -> bool {
        let elicitation = self.context.client_capabilities().and_then(|all| all.elicitation);
        // One that names neither form nor URL means forms.
        elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
    }

    /// Returns whether the caller takes questions to its user as the result of a call, and repeats the call with the answers.
    pub fn takes_questions(&self) -> bool {
        self.is_stateless() && self.can_ask()
    }

    /// Returns whether the caller takes a task as the result of a call.
    pub fn takes_tasks(&self) -> bool {
        self.is_stateless() && self.context.client_capabilities().is_some_and(|all| all.supports_tasks())
    }

    /// Returns the state of an earlier call that it repeats: from an untrusted party.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Returns the answers with which it repeats a call.
    pub fn answers(&self) -> &[FormAnswer] {
        &self.answers
    }

    /// Sends a progress notification, if the caller requested them.
    pub async fn report_progress(&mut self, text: impl Into<String>) {
        let Some(token) = &self.progress else { return };
        self.count += 1;
        let mut said = ProgressNotificationParam::new(token.clone(), self.count.into());
        said.message = Some(text.into());
        // A lost connection is noticed at the end of the call.
        let _ = self.context.peer.notify_progress(said).await;
    }

    /// Asks the user `question` during the call, if their client supports it.
    pub async fn ask(&self, question: &FormQuestion) -> UserAnswer {
        if self.is_stateless() || !self.can_ask() {
            return UserAnswer::Unable;
        }
        for _ in 0..TRIES {
            let Some(form) = form(question) else { return UserAnswer::Unable };
            let asked = tokio::select! {
                biased;
                () = self.context.ct.cancelled() => return UserAnswer::Cancelled,
                asked = self.context.peer.create_elicitation(form) => asked,
            };
            let Ok(given) = asked else { return UserAnswer::Unable };
            match accepted(&given) {
                Ok(Some(text)) => return UserAnswer::With(text),
                Ok(None) => return UserAnswer::Declined,
                Err(Unfit) => {}
            }
        }
        UserAnswer::Unable
    }

    /// Waits until the caller cancels the call, or is gone.
    pub async fn gone(&self) {
        self.context.ct.cancelled().await;
    }

    /// Waits until the caller cancels the call, and returns the reason, if it gave one.
    pub async fn cancelled(&mut self) -> Option<String> {
        self.context.ct.cancelled().await;
        self.reason().await.flatten()
    }

    /// Returns whether the caller has said that it cancels the call, rather than being gone; with its reason, if it gave one.
    pub async fn reason(&mut self) -> Option<Option<String>> {
        // It arrives apart from the cancellation; without one the caller is disconnected.
        let reason = tokio::time::timeout(REASON, self.cancelled.as_mut()?).await;
        self.cancelled = None;
        reason.ok()?.ok()
    }
}
