//! The thread that owns a model: it loads the weights with the first request, and computes replies in turns.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use candle_core::Device;
use llguidance::Matcher;
use tokio::sync::mpsc;

use crate::cache::Caches;
use crate::decoder::Decoder;
use crate::error::Defect;
use crate::event::{Event, Failure};
use crate::gguf::GgufFile;
use crate::grammar::{Grammar, Grammars};
use crate::hyperparameters::Hyperparameters;
use crate::sequence::{Engine, Job, Sequence};
use crate::tokenizer::Tokenizer;

/// How many requests wait; further ones wait for a place, in their order.
const QUEUE: usize = 64;

/// What the thread of a model needs.
pub(crate) struct Worker {
    pub(crate) file: GgufFile,
    pub(crate) sizes: Hyperparameters,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) window: usize,
    /// The maximum number of sequences in memory.
    pub(crate) sequences: usize,
    /// Whether the model cannot be loaded. Then no other conversation begins to use it.
    pub(crate) has_failed: Arc<AtomicBool>,
}

impl Worker {
    /// Starts the thread; it ends when the sender is dropped.
    pub(crate) fn start(self) -> std::io::Result<mpsc::Sender<Job>> {
        let (sender, jobs) = mpsc::channel(QUEUE);
        std::thread::Builder::new().name("local-model".into()).spawn(move || self.run(jobs))?;
        Ok(sender)
    }

    fn run(self, mut jobs: mpsc::Receiver<Job>) {
        while let Some(job) = jobs.blocking_recv() {
            match guarded(|| self.load()) {
                Ok(decoder) => return Scheduler::new(&self, decoder).serve(job, jobs),
                // It may be readable with the next request.
                Err(failure @ Failure::Defect(Defect::Unreadable(_))) => refuse(&failure, &job),
                Err(failure) => {
                    self.has_failed.store(true, Ordering::Relaxed);
                    return refuse_all(&failure, job, jobs);
                }
            }
        }
    }

    fn load(&self) -> Result<Decoder, Failure> {
        let device = device()?;
        Decoder::load(&self.file, &self.sizes, self.window, &device).map_err(Failure::Defect)
    }
}

/// The first accelerator that the crate is compiled for, or else the processor.
fn device() -> candle_core::Result<Device> {
    if cfg!(feature = "cuda") {
        Device::new_cuda(0)
    } else if cfg!(feature = "metal") {
        Device::new_metal(0)
    } else {
        Ok(Device::Cpu)
    }
}

/// Answers all requests to a model that cannot be loaded.
fn refuse_all(failure: &Failure, first: Job, mut jobs: mpsc::Receiver<Job>) {
    let mut next = Some(first);
    while let Some(job) = next {
        refuse(failure, &job);
        next = jobs.blocking_recv();
    }
}

fn refuse(failure: &Failure, job: &Job) {
    // A caller that has gone needs no error.
    drop(job.events.send(Event::End(Err(failure.clone()))));
}

/// Computes several replies in turns, a step of each at a time.
struct Scheduler<'a> {
    worker: &'a Worker,
    decoder: Decoder,
    /// Made with the first grammar, because a large vocabulary takes a while.
    grammars: Option<Grammars>,
    caches: Caches,
    active: VecDeque<Sequence>,
}

impl<'a> Scheduler<'a> {
    fn new(worker: &'a Worker, decoder: Decoder) -> Self {
        let (caches, active) = (Caches::default(), VecDeque::new());
        Self { worker, decoder, grammars: None, caches, active }
    }

    fn serve(mut self, first: Job, mut jobs: mpsc::Receiver<Job>) {
        let mut next = Some(first);
        loop {
            if let Some(job) = next.take() {
                self.begin(job);
            }
            while self.active.len() < self.worker.sequences
                && let Ok(job) = jobs.try_recv()
            {
                self.begin(job);
            }
            self.step();
            if self.active.is_empty() {
                let Some(job) = jobs.blocking_recv() else { return };
                next = Some(job);
            }
        }
    }

    fn begin(&mut self, job: Job) {
        if job.events.is_closed() {
            return;
        }
        let events = job.events.clone();
        match guarded(|| self.sequence(job)) {
            Ok(sequence) => self.active.push_back(sequence),
            Err(failure) => drop(events.send(Event::End(Err(failure)))),
        }
    }

    fn sequence(&mut self, job: Job) -> Result<Sequence, Failure> {
        let matcher = job.grammar.as_ref().map(|grammar| self.matcher(grammar)).transpose()?;
        let free = self.worker.sequences.saturating_sub(self.active.len() + 1);
        let cache = self.caches.acquire(&job.prompt, free, &self.worker.sizes, &self.decoder.device)?;
        Ok(Sequence::new(job, matcher, cache))
    }

    fn matcher(&mut self, grammar: &Grammar) -> Result<Matcher, Failure> {
        let grammars = match self.grammars.take() {
            Some(grammars) => grammars,
            None => Grammars::new(&self.worker.tokenizer.vocabulary).map_err(Failure::grammar)?,
        };
        let matcher = self.grammars.insert(grammars).matcher(grammar);
        matcher.map_err(|error| Failure::Lacks(grammar.capability(), error))
    }

    /// A step of the next reply in turn.
    fn step(&mut self) {
        let Some(mut sequence) = self.active.pop_front() else { return };
        if sequence.is_cancelled() {
            return self.caches.release(sequence.into_cache());
        }
        let vocabulary = &self.worker.tokenizer.vocabulary;
        let engine = Engine {
            decoder: &self.decoder,
            window: self.worker.window,
            ends: &vocabulary.ends,
            spoken: &|token| vocabulary.spoken(token).to_vec(),
            tokens: vocabulary.tokens.len(),
        };
        match guarded(|| sequence.step(&engine)) {
            Ok(None) => self.active.push_back(sequence),
            Ok(Some(finish)) => self.caches.release(sequence.finish(finish)),
            // What it computed may be half done.
            Err(failure) => sequence.fail(failure),
        }
    }
}

/// The result of `work`. A panic in it - files are from strangers, and the engine asserts much - is an error.
fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // What it may have left half done is dropped by the caller.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Failure::Bug(format!("the engine stopped: {}", text.lines().next().unwrap_or_default())))
    })
}
