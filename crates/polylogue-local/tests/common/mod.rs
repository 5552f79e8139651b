//! Tiny models, requests to them, and what streams.
#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod tiny;

use std::sync::{Arc, Mutex};

use polylogue_core::{
    AnyModel, DeltaRef, DeltaSink, EncodeCache, Entry, Model, ModelError, Name, Origin, Params, Path, Reply,
    Request, ToolSpec,
};
use polylogue_local::{LocalModel, LocalOptions};
use tempfile::TempDir;
use tiny::Tiny;

/// A folder with a tiny model, and the model.
pub(crate) fn model_with(tiny: &Tiny, options: LocalOptions) -> (TempDir, LocalModel) {
    let folder = tempfile::tempdir().unwrap();
    let path = tiny.write(folder.path(), "tiny.gguf");
    let model = LocalModel::open(path, options).unwrap();
    (folder, model)
}

pub(crate) fn model() -> (TempDir, LocalModel) {
    model_with(&Tiny::default(), LocalOptions::default())
}

/// A request with what most tests change.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) system: Option<String>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) params: Params,
}

impl Asked {
    pub(crate) fn new(text: &str) -> Self {
        let params = Params { seed: Some(1), max_tokens: Some(24), ..Params::default() };
        Self { system: None, entries: vec![Entry::user(text)], tools: Vec::new(), params }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Params)) -> Self {
        change(&mut self.params);
        self
    }

    /// Asks `model` as agents do.
    pub(crate) async fn ask(&self, model: &LocalModel) -> Result<Reply, ModelError> {
        self.stream(model, &mut ()).await
    }

    pub(crate) async fn stream(
        &self,
        model: &LocalModel,
        deltas: &mut dyn DeltaSink,
    ) -> Result<Reply, ModelError> {
        let (at, who, encoded) = (Path::root(), Name::new("A").unwrap(), EncodeCache::default());
        let request = Request {
            origin: Origin::new(&at, &who, 3),
            system: self.system.as_deref(),
            entries: &self.entries,
            tools: &self.tools,
            params: &self.params,
            encoded: &encoded,
            reserved: None,
        };
        Model::complete(&AnyModel::new(model.clone()), &request, deltas).await
    }
}

/// The streamed pieces, as text.
#[derive(Clone, Default)]
pub(crate) struct Pieces(pub(crate) Arc<Mutex<Vec<String>>>);

impl DeltaSink for Pieces {
    fn push(&mut self, delta: DeltaRef<'_>) {
        let piece = match delta {
            DeltaRef::Text(text) => text.to_owned(),
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(piece);
    }
}

impl Pieces {
    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().concat()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Runs `future` in this thread.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
