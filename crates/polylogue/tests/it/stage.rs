//! What the tests stand on.

use std::sync::{Arc, Mutex};

use polylogue::{AnyModel, Chat, Name, Status};
use polylogue_core::{
    Capabilities, DeltaSink, Entry, Event, Model, ModelError, Params, Reply, Request, ToolSpec,
};
use polylogue_models::Script;
use polylogue_test::print::transcript;

pub(crate) use crate::common::{log, log_of, name};

/// A model that speaks by a script, in JSON: `[{"Ann": "Hi"}, {"Bob": {"say": "Ho"}}]`.
pub(crate) fn script(json: &str) -> AnyModel {
    let script: Script = serde_json::from_str(json).unwrap();
    AnyModel::new(script.model("test"))
}

/// Runs `chat` to its end, or to the first question.
pub(crate) async fn run(chat: &Chat, task: &str) -> (Status, Vec<Arc<Event>>) {
    let mut log = log().await;
    let status = chat.run_in(&mut log, task).await.unwrap().status;
    (status, log.events().await)
}

/// Why and with what summary it ended.
pub(crate) fn closed(status: &Status) -> (String, String) {
    match status {
        Status::Closed { reason, summary } => (reason.to_string(), summary.to_string()),
        other => panic!("it is not over: {other:?}"),
    }
}

/// The log as text.
pub(crate) fn printed(events: &[Arc<Event>]) -> String {
    transcript(events)
}

/// What a model was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) who: Name,
    pub(crate) system: Option<String>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) params: Params,
}

/// A model that notes what it is asked.
#[derive(Clone)]
pub(crate) struct Spy {
    model: AnyModel,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Spy {
    pub(crate) fn on(model: AnyModel) -> Self {
        Self { model, asked: Arc::default() }
    }

    pub(crate) fn model(&self) -> AnyModel {
        AnyModel::new(self.clone())
    }

    /// All requests so far, in order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Model for Spy {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        self.asked.lock().unwrap().push(Asked {
            who: request.origin.who.clone(),
            system: request.system.map(str::to_owned),
            entries: request.entries.to_vec(),
            tools: request.tools.to_vec(),
            params: request.params.clone(),
        });
        self.model.complete(request, deltas).await
    }

    fn capabilities(&self) -> Capabilities {
        self.model.capabilities()
    }
}
