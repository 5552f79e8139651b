//! One reply being written: a step at a time, so that several are computed in turns and each can be cancelled.

use llguidance::Matcher;
use polylogue_core::{Delta, FinishReason, Usage};
use tokio::sync::mpsc::UnboundedSender;

use crate::cache::Cache;
use crate::decoder::Decoder;
use crate::event::{Event, Failure};
use crate::grammar::Grammar;
use crate::reply_writer::{ReplyForm, ReplyWriter};
use crate::sampler::Sampler;

/// How many tokens of a prompt are computed in one step.
pub(crate) const CHUNK: usize = 64;

/// A request in the form that the worker needs.
pub(crate) struct Job {
    pub(crate) prompt: Vec<u32>,
    pub(crate) sampler: Sampler,
    pub(crate) max_tokens: usize,
    pub(crate) grammar: Option<Grammar>,
    pub(crate) form: ReplyForm,
    pub(crate) events: UnboundedSender<Event>,
}

/// A reply being written.
pub(crate) struct Sequence {
    cache: Cache,
    /// The tokens that are not computed yet.
    pending: Vec<u32>,
    sampler: Sampler,
    matcher: Option<Matcher>,
    writer: ReplyWriter<Box<dyn FnMut(Delta) + Send>>,
    events: UnboundedSender<Event>,
    max_tokens: usize,
    usage: Counted,
}

#[derive(Default)]
struct Counted {
    input: usize,
    cached: usize,
    output: usize,
}

/// The parts of a model that a step uses.
pub(crate) struct Engine<'a> {
    pub(crate) decoder: &'a Decoder,
    pub(crate) window: usize,
    /// The tokens that end a turn.
    pub(crate) ends: &'a [u32],
    /// The bytes of tokens in replies.
    pub(crate) spoken: &'a dyn Fn(u32) -> Vec<u8>,
    /// The number of tokens that can be chosen.
    pub(crate) tokens: usize,
}

impl Sequence {
    /// Begins the reply to `job`; the beginning of its prompt may be computed in `cache`.
    pub(crate) fn new(job: Job, matcher: Option<Matcher>, cache: Cache) -> Self {
        let Job { prompt, sampler, max_tokens, form, events, .. } = job;
        let pending = prompt.get(cache.len()..).unwrap_or_default().to_vec();
        let deltas = events.clone();
        // Whether anyone still listens is asked once a step.
        let sink = Box::new(move |delta| drop(deltas.send(Event::Delta(delta))));
        let usage = Counted { input: prompt.len(), cached: cache.len(), output: 0 };
        Self {
            cache,
            pending,
            sampler,
            matcher,
            writer: ReplyWriter::new(form, sink),
            events,
            max_tokens,
            usage,
        }
    }

    /// Whether the request was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.events.is_closed()
    }

    /// Computes a piece of the prompt, or one token. Returns why the reply ended, if it did.
    pub(crate) fn step(&mut self, engine: &Engine<'_>) -> Result<Option<FinishReason>, Failure> {
        if self.usage.output == self.max_tokens {
            return Ok(Some(FinishReason::Length));
        }
        let rest = self.pending.split_off(self.pending.len().min(CHUNK));
        let logits = engine.decoder.forward(&self.pending, &mut self.cache)?;
        self.pending = rest;
        if self.pending.is_empty() { self.next(engine, &logits) } else { Ok(None) }
    }

    /// Chooses the next token.
    fn next(&mut self, engine: &Engine<'_>, logits: &[f32]) -> Result<Option<FinishReason>, Failure> {
        let mask =
            self.matcher.as_mut().map(Matcher::compute_mask_or_eos).transpose().map_err(Failure::grammar)?;
        let is_allowed = |token: u32| mask.as_ref().is_none_or(|mask| mask.is_allowed(token));
        let known = logits.get(..engine.tokens.min(logits.len())).unwrap_or_default();
        let token = self.sampler.sample(known, is_allowed).ok_or_else(Failure::no_token)?;
        if engine.ends.contains(&token) {
            return Ok(Some(FinishReason::Stop));
        }
        self.usage.output += 1;
        let continues = self.writer.push(&(engine.spoken)(token));
        if let Some(matcher) = &mut self.matcher {
            matcher.consume_token(token).map_err(Failure::grammar)?;
        }
        self.pending.push(token);
        let is_over = !continues || self.matcher.as_ref().is_some_and(Matcher::is_stopped);
        Ok(match () {
            () if is_over => Some(FinishReason::Stop),
            () if self.usage.output == self.max_tokens => Some(FinishReason::Length),
            () if self.cache.len() == engine.window => Some(FinishReason::ContextFull),
            () => None,
        })
    }

    /// Sends the whole reply; returns what was computed, for later requests.
    pub(crate) fn finish(self, finish: FinishReason) -> Cache {
        let Counted { input, cached, output } = self.usage;
        let [input, cached, output] = [input, cached, output].map(|count| Some(count as u64));
        let reply = self.writer.finish(finish, Usage { input, cached, output, ..Usage::default() });
        // A caller that has gone needs no reply.
        drop(self.events.send(Event::End(Ok(reply))));
        self.cache
    }

    /// Ends a cancelled reply; returns what was computed.
    pub(crate) fn into_cache(self) -> Cache {
        self.cache
    }

    /// Sends why there is no reply.
    pub(crate) fn fail(self, failure: Failure) {
        drop(self.events.send(Event::End(Err(failure))));
    }
}
