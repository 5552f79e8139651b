//! The upper bound of a model call, computed from its request.

use super::{Model, Request};
use crate::data::written;
use crate::{Bound, CacheLifetime, Entry, InputTokens, Money, Params, Usage};

impl Bound {
    /// The tokens that a provider adds to each request: the begin of a conversation, the date, the effort. At most 80
    /// in recorded replies.
    pub const REQUEST_TOKENS: u64 = 128;

    /// The tokens that a provider adds to a request with tools, to tell its model how to call them. At most 655 in recorded
    /// replies.
    pub const TOOLS_TOKENS: u64 = 1_000;

    /// The tokens that a provider adds to a request with an output schema. At most 373 in recorded replies.
    pub const SCHEMA_TOKENS: u64 = 500;

    /// Returns the upper bound of `request` to `model`: a token has at least one byte, and the reply at most
    /// [`Model::max_output`] tokens.
    pub fn of(model: &impl Model, request: &Request<'_>) -> Self {
        Self::of_input(model, request.params, InputTokens::of(request))
    }

    /// Returns the upper bound of a call of `model` with `params` and a request of at most `input` tokens.
    ///
    /// The only place that says what a call takes at most: for its reservation, and for the bound of a team. A page of a document has
    /// [`Model::page_tokens`]. A model is billed for no more input than [`Model::max_input`]. A reply has at most [`Model::max_output`] tokens, or else no more than [`Model::max_input`]. Money is the highest price: a provider may write all of the request to its
    /// cache, which can cost more than to read it, or read all of it from there, where the user's price says that this costs more.
    pub fn of_input(model: &impl Model, params: &Params, input: impl Into<InputTokens>) -> Self {
        let tokens: InputTokens = input.into();
        let all = if tokens.pages > 0 { tokens.with_pages(model.page_tokens()) } else { tokens.all };
        let input = model.max_input().map_or(all, |most| most.min(all));
        let audio = (tokens.audio > 0).then(|| tokens.audio.min(input));
        let output = model.max_output(params).or_else(|| model.max_input());
        let cost = |output| {
            if !model.has_price(params) {
                return None;
            }
            let fresh = Usage { input: Some(input), audio, output, ..Usage::default() };
            let is_long = params.prompt_cache.is_some_and(CacheLifetime::is_long);
            let written = input - audio.unwrap_or(0);
            let written = Usage { written: Some(written), written_long: is_long.then_some(written), ..fresh };
            let read = Usage { cached: Some(input), ..fresh };
            [&fresh, &written, &read].into_iter().map(|usage| model.cost(usage)).max().flatten()
        };
        Self {
            tokens: output.map(|output| input.saturating_add(output)),
            input,
            cost: cost(output),
            least_cost: cost(Some(0)),
        }
    }

    /// Returns the upper bound of embedding `texts` with a model whose price is `cost`.
    pub fn of_texts(texts: &[String], cost: impl Fn(&Usage) -> Option<Money>) -> Self {
        let input =
            texts.iter().map(|text| Self::MESSAGE_TOKENS + text.len() as u64).fold(0, u64::saturating_add);
        let cost = cost(&Usage { input: Some(input), output: Some(0), ..Usage::default() });
        Self { tokens: Some(input), input, cost, least_cost: cost }
    }
}

impl InputTokens {
    /// Those of `request`.
    pub(crate) fn of(request: &Request<'_>) -> Self {
        let entries = request.entries.iter().map(Entry::most_tokens).fold(Self::default(), Self::and);
        Self::of_entries(request, entries)
    }

    /// Those of `request`, whose entries have at most so many.
    pub(crate) fn of_entries(request: &Request<'_>, entries: Self) -> Self {
        entries.and(besides_entries(request).into())
    }
}

/// The most input tokens of `request` without its entries.
fn besides_entries(request: &Request<'_>) -> u64 {
    let system = request.system.map_or(0, |text| text.len() as u64);
    let tools = if request.tools.is_empty() { 0 } else { Bound::TOOLS_TOKENS + written(&request.tools) };
    let form = request.params.schema.as_ref().map_or(0, |schema| Bound::SCHEMA_TOKENS + written(schema));
    [system, tools, form, Bound::REQUEST_TOKENS].into_iter().fold(0, u64::saturating_add)
}
