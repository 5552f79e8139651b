//! A model of a GGUF file, as a [`Model`].

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use polylogue_core::{
    Capabilities, DeltaSink, Model, ModelError, ModelErrorKind, Money, Params, Reply, Request, ToolChoice,
    Usage,
};
use tokio::sync::mpsc;

use crate::call_format::CallFormat;
use crate::error::LoadError;
use crate::event::{Event, Failure};
use crate::gguf::GgufFile;
use crate::grammar::Grammar;
use crate::hyperparameters::Hyperparameters;
use crate::machine::Machine;
use crate::memory::Memory;
use crate::messages::{TEMPLATE_FIELD, prompt};
use crate::options::LocalOptions;
use crate::reply_writer::ReplyForm;
use crate::sampler::Sampler;
use crate::sequence::{CHUNK, Job};
use crate::shared::{Key, OpenModels, Shared};
use crate::template::Template;
use crate::tokenizer::Tokenizer;
use crate::weights;
use crate::worker::Worker;

/// A model of a GGUF file, computed in this process.
///
/// Opening reads and checks the header of the file; the weights are loaded with the first request, by the thread that
/// then owns the model. Cloning shares the model. It is unloaded with its last clone.
#[derive(Clone)]
pub struct LocalModel {
    name: Arc<str>,
    shared: Arc<Shared>,
}

impl LocalModel {
    /// Opens the GGUF file at `path`. Its name is `local:` and the path.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, needs something that is not supported, or needs more memory than it
    /// may use.
    pub fn open(path: impl AsRef<Path>, options: LocalOptions) -> Result<Self, LoadError> {
        let path = path.as_ref();
        // The reader of metadata is not ours.
        std::panic::catch_unwind(|| Self::of_file(GgufFile::open(path)?, &options)).unwrap_or_else(|_| {
            Err(LoadError::Broken { path: path.to_owned(), reason: "its header cannot be read".into() })
        })
    }

    /// Opens the GGUF file at `path` like [`open`](Self::open), unless the process has the same file open with the same options: then
    /// both share the model, with its weights and its caches, as clones do.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_shared(path: impl AsRef<Path>, options: LocalOptions) -> Result<Self, LoadError> {
        let path = path.as_ref();
        let Some(key) = Key::of(path, &options) else { return Self::open(path, options) };
        let mut models = OpenModels::lock();
        if let Some(shared) = models.get(&key) {
            return Ok(Self::of_shared(path, shared));
        }
        let model = Self::open(path, options)?;
        models.insert(key, &model.shared);
        Ok(model)
    }

    fn of_file(file: GgufFile, options: &LocalOptions) -> Result<Self, LoadError> {
        let path = file.path().to_owned();
        let at = |defect: crate::error::Defect| defect.at(&path);
        let sizes = Hyperparameters::of(&file).map_err(at)?;
        let weights = weights::check(&file, &sizes).map_err(at)?;
        let tokenizer = Arc::new(Tokenizer::of(&file, sizes.vocabulary).map_err(at)?);
        let template = Template::of(&file, &tokenizer).map_err(at)?;
        let wanted = options.window.unwrap_or(LocalOptions::WINDOW).max(1);
        let window = sizes.trained_window.min(usize::try_from(wanted).unwrap_or(usize::MAX));
        let limit = options.memory.or(Machine::now().available).unwrap_or(u64::MAX);
        let memory = Memory::new(&sizes, weights, window, CHUNK, (options.sequences, limit));
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        if memory.least() > limit {
            return Err(LoadError::Memory { path, needed: mib(memory.least()), limit: limit >> 20 });
        }
        tracing::info!(
            file = %path.display(), weights_mib = mib(memory.weights), conversation_mib = mib(memory.cache),
            conversations = memory.caches, window,
            "a model in this process: memory in MiB, and the context window in tokens"
        );
        let sequences = usize::try_from(memory.caches).unwrap_or(1);
        let format = CallFormat::of(template.source());
        let has_failed = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            file,
            sizes,
            tokenizer: Arc::clone(&tokenizer),
            window,
            sequences,
            has_failed: Arc::clone(&has_failed),
        };
        let unreadable =
            |error: std::io::Error| LoadError::Unreadable { path: path.clone(), reason: error.to_string() };
        let jobs = worker.start().map_err(unreadable)?;
        let shared = Shared { memory, window, tokenizer, template, format, jobs, has_failed };
        Ok(Self::of_shared(&path, Arc::new(shared)))
    }

    fn of_shared(path: &Path, shared: Arc<Shared>) -> Self {
        Self { name: format!("local:{}", path.display()).into(), shared }
    }

    /// Returns the same model with another name, such as one relative to a team file.
    #[must_use]
    pub fn named(self, name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Returns the memory that it needs.
    pub fn memory(&self) -> Memory {
        self.shared.memory
    }

    /// Returns the context window, in tokens.
    pub fn window(&self) -> usize {
        self.shared.window
    }

    /// Counts the tokens of `text` in a message. What the chat template writes around messages is not counted.
    pub fn count(&self, text: &str) -> usize {
        self.shared.tokenizer.count(text)
    }

    /// Counts the tokens of `text`, as [`count`](Self::count), for the model in the file at `path`, whatever memory the model
    /// would need.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or needs something that is not supported.
    pub fn count_with(path: impl AsRef<Path>, text: &str) -> Result<usize, LoadError> {
        let options = LocalOptions { memory: Some(u64::MAX), ..LocalOptions::default() };
        Ok(Self::open(path, options)?.count(text))
    }

    fn error(&self, kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
        ModelError::new(kind, &*self.name, message)
    }

    /// `request` for the worker, and where its events arrive.
    fn job(&self, request: &Request<'_>) -> Result<(Job, mpsc::UnboundedReceiver<Event>), ModelError> {
        self.check(request)?;
        let params = request.params;
        let calls = self
            .shared
            .format
            .filter(|_| !request.tools.is_empty() && params.tool_choice != Some(ToolChoice::None));
        let text =
            prompt(request, &self.shared.template, &self.shared.tokenizer, calls.is_some(), &self.name)?;
        let prompt = self.shared.tokenizer.encode(&text);
        self.check_length(prompt.len())?;
        let is_thinking = text.trim_end().ends_with("<think>");
        let grammar = Grammar::of(params, request.tools, calls, is_thinking);
        let form = ReplyForm {
            format: calls,
            stops: params.stop.iter().cloned().chain(self.shared.template.stop.map(str::to_owned)).collect(),
            call_ids: format!("call_{}_", request.origin.nth),
            skips_space: self.shared.tokenizer.vocabulary.adds_space,
            is_thinking,
        };
        let max_tokens =
            params.max_tokens.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
        let (events, received) = mpsc::unbounded_channel();
        Ok((Job { prompt, sampler: Sampler::new(params), max_tokens, grammar, form, events }, received))
    }

    /// Refuses what it does not know instead of ignoring it.
    fn check(&self, request: &Request<'_>) -> Result<(), ModelError> {
        self.check_params(request.params)?;
        if !request.tools.is_empty() && self.shared.format.is_none() {
            let what = "its chat template does not say how to call tools";
            return Err(self.error(ModelErrorKind::Unsupported(polylogue_core::Capability::Tools), what));
        }
        Ok(())
    }

    /// Refuses a prompt that leaves no room for a reply, and one without a token.
    fn check_length(&self, tokens: usize) -> Result<(), ModelError> {
        if tokens == 0 {
            let what = "its chat template makes an empty prompt of the conversation";
            return Err(self.error(ModelErrorKind::Config, what).hint("use another edition of the model"));
        }
        if tokens < self.shared.window {
            return Ok(());
        }
        let [length, limit] = [tokens, self.shared.window].map(|count| u32::try_from(count).ok());
        let kind = ModelErrorKind::TooLong { tokens: length, limit };
        let what = format!("the request has {tokens} tokens, and the context window {}", self.shared.window);
        Err(self
            .error(kind, what)
            .hint("shorten the conversation with `view: {window: ...}`, or set `POLYLOGUE_LOCAL_WINDOW`"))
    }

    /// Logs how fast a reply was computed that was asked for at `start` and had its `first` piece then: the tokens of a second
    /// after that, as the time before is that of the queue and of the prompt.
    fn log_speed(&self, usage: &Usage, start: Instant, first: Option<Instant>) {
        let first = first.unwrap_or_else(Instant::now);
        let per_second = usage
            .output
            .map(|tokens| f64::from(u32::try_from(tokens).unwrap_or(u32::MAX)))
            .map(|tokens| tokens / first.elapsed().as_secs_f64().max(1e-6));
        tracing::info!(
            model = &*self.name,
            input = usage.input,
            cached = usage.cached,
            output = usage.output,
            first_token_ms = (first - start).as_millis(),
            tokens_per_second = per_second.map(f64::round),
            "a reply of a model in this process"
        );
    }

    fn failed(&self, failure: Failure) -> ModelError {
        match failure {
            Failure::Defect(defect) => {
                let own =
                    self.name.split_once(':').filter(|(prefix, _)| prefix.eq_ignore_ascii_case("local"));
                let path = own.map_or(&*self.name, |(_, path)| path);
                defect.at(Path::new(path)).of_model(&self.name)
            }
            Failure::Lacks(capability, why) => self
                .error(ModelErrorKind::Unsupported(capability), format!("no grammar for the reply: {why}")),
            Failure::Bug(what) => self.error(ModelErrorKind::Bug, what),
        }
    }
}

impl Model for LocalModel {
    fn name(&self) -> &str {
        &self.name
    }

    /// Dropping the future stops the computation at the next token.
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let (job, mut events) = self.job(request)?;
        let gone = || self.error(ModelErrorKind::Bug, "the thread of the model has ended");
        let (start, mut first) = (Instant::now(), None);
        self.shared.jobs.send(job).await.map_err(|_| gone())?;
        loop {
            match events.recv().await.ok_or_else(gone)? {
                Event::Delta(delta) => {
                    first.get_or_insert_with(Instant::now);
                    deltas.push((&delta).into());
                }
                Event::End(result) => {
                    let reply = result.map_err(|failure| self.failed(failure))?;
                    self.log_speed(&reply.usage, start, first);
                    return Ok(reply);
                }
            }
        }
    }

    fn cost(&self, _: &Usage) -> Option<Money> {
        Some(Money::default())
    }

    fn max_output(&self, params: &Params) -> Option<u64> {
        let most = params.max_tokens.map_or(u64::MAX, u64::from);
        Some(most.min(self.shared.window as u64))
    }

    fn context_window(&self) -> Option<u64> {
        Some(self.shared.window as u64)
    }

    fn ignored(&self, params: &Params) -> Vec<&'static str> {
        let effort = params.effort.is_some() && !self.shared.template.source().contains("enable_thinking");
        let thinking = params.thinking.is_some().then_some("thinking");
        // What it has computed is kept in any case, as long as there is room.
        let prompt_cache = params.prompt_cache.is_some().then_some("prompt_cache");
        effort.then_some("effort").into_iter().chain(thinking).chain(prompt_cache).collect()
    }

    fn check_params(&self, params: &Params) -> Result<(), ModelError> {
        let Some(field) = params.extra.keys().find(|field| *field != TEMPLATE_FIELD) else { return Ok(()) };
        let what = format!("a model in the process does not know the parameter `{field}`");
        let hint = format!("remove it; the only further field is `{TEMPLATE_FIELD}`, for the chat template");
        Err(self.error(ModelErrorKind::Config, what).hint(hint))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            tools: Some(self.shared.format.is_some()),
            schema: Some(true),
            json: Some(true),
            vision: Some(false),
            ..Capabilities::default()
        }
    }
}

impl std::fmt::Debug for LocalModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalModel")
            .field("name", &self.name)
            .field("memory", &self.shared.memory)
            .finish_non_exhaustive()
    }
}
