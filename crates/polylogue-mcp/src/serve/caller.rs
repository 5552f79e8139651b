//! The caller: the client program and its user.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ElicitRequestParams, ElicitationAction, ElicitationSchema, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{ElicitationMode, RequestContext};
use serde_json::Value;
use tokio::sync::oneshot;

/// How long to wait for the reason of a cancellation.
const REASON: Duration = Duration::from_millis(200);

/// The name of the only field of the form.
const FIELD: &str = "answer";

/// The caller of a call in flight.
#[derive(Debug)]
pub struct Caller {
    context: RequestContext<RoleServer>,
    cancelled: Option<oneshot::Receiver<Option<String>>>,
    progress: Option<ProgressToken>,
    count: u32,
}

/// Result of a question to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserAnswer {
    /// Their answer.
    With(String),
    /// They declined.
    Declined,
    /// Their client cannot ask them.
    Unable,
    /// Their client cancelled the call meanwhile.
    Cancelled,
}

impl Caller {
    pub(super) fn new(
        context: RequestContext<RoleServer>,
        cancelled: oneshot::Receiver<Option<String>>,
    ) -> Self {
        let progress = context.meta.get_progress_token();
        Self { context, cancelled: Some(cancelled), progress, count: 0 }
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

    /// Asks the user `question`, if their client supports it.
    pub async fn ask(&self, question: &str) -> UserAnswer {
        let peer = &self.context.peer;
        if !peer.supported_elicitation_modes().contains(&ElicitationMode::Form) {
            return UserAnswer::Unable;
        }
        let schema = ElicitationSchema::builder().required_string(FIELD).build();
        let Ok(requested_schema) = schema else { return UserAnswer::Unable };
        let form = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: question.to_owned(),
            requested_schema,
        };
        let asked = tokio::select! {
            biased;
            () = self.context.ct.cancelled() => return UserAnswer::Cancelled,
            asked = peer.create_elicitation(form) => asked,
        };
        match asked {
            Ok(given) if given.action == ElicitationAction::Accept => {
                let text =
                    given.content.as_ref().and_then(|content| content.get(FIELD)).and_then(Value::as_str);
                UserAnswer::With(text.unwrap_or_default().to_owned())
            }
            Ok(_) => UserAnswer::Declined,
            Err(_) => UserAnswer::Unable,
        }
    }

    /// Waits until the caller cancels the call, and returns the reason, if it gave one.
    pub async fn cancelled(&mut self) -> Option<String> {
        self.context.ct.cancelled().await;
        // The reason arrives apart from the cancellation; without one the caller is disconnected.
        let reason = tokio::time::timeout(REASON, self.cancelled.as_mut()?).await;
        self.cancelled = None;
        reason.ok()?.ok()?
    }
}
