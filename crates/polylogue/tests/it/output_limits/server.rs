//! A model server that takes output limits.

use std::sync::{Arc, Mutex};

use polylogue::Name;
use polylogue_core::{
    DeltaSink, FinishReason, Model, ModelError, Money, Params, Path, Reply, Request, Usage,
};

use crate::common::{Random, received};
use crate::output_limits::cents;

/// The longest reply of the model, in tokens. A token of a reply costs a cent, and requests cost nothing.
pub(crate) const LONGEST: u64 = 4_000;

/// A server that takes output limits, and charges for every request that it receives.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) random: Random,
    /// The tokens of each request: its chat, its agent, its output limit, the tokens of the reply.
    pub(crate) sent: Arc<Mutex<Vec<Sent>>>,
    /// The tokens that its replies would have; `None`: any number.
    pub(crate) wants: Option<u64>,
    /// Breaks some replies, and says nothing of the usage of others.
    pub(crate) is_broken: bool,
    /// Whether the longest reply is known.
    pub(crate) is_known: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Sent {
    at: Path,
    who: Name,
    most: Option<u32>,
    tokens: u64,
}

impl Server {
    pub(crate) fn wanting(tokens: u64) -> Self {
        let (random, sent) = (Random::default(), Arc::default());
        Self { random, sent, wants: Some(tokens), is_broken: false, is_known: true }
    }

    pub(crate) fn seeded(seed: u64) -> Self {
        let random = Random::seeded(seed);
        let wants = [None, Some(LONGEST), Some(400)][(seed % 3) as usize];
        Self { random, wants, is_broken: seed.is_multiple_of(2), ..Self::wanting(0) }
    }

    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    /// The output limits of all requests.
    pub(crate) fn limits(&self) -> Vec<Option<u32>> {
        self.sent().iter().map(|sent| sent.most).collect()
    }

    /// The tokens of all replies for which `is` holds: as many cents.
    pub(crate) fn cents(&self, is: impl Fn(&Path, &Name) -> bool) -> u64 {
        self.sent().iter().filter(|sent| is(&sent.at, &sent.who)).map(|sent| sent.tokens).sum()
    }

    /// Charges a request. Returns the tokens of the reply, and whether it is whole.
    fn charge(&self, request: &Request<'_>) -> (u64, bool) {
        let wanted = self.wants.unwrap_or_else(|| 1 + self.random.roll(LONGEST));
        let most = request.params.max_tokens;
        let tokens = wanted.min(most.map_or(LONGEST, u64::from));
        let (at, who) = (request.origin.chat.clone(), request.origin.who.clone());
        self.sent.lock().unwrap().push(Sent { at, who, most, tokens });
        (tokens, tokens == wanted)
    }
}

impl Model for Server {
    fn name(&self) -> &str {
        "test:server"
    }
    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let charged = received(request, (&self.random, self.is_broken), || self.charge(request)).await?;
        let is_silent = self.is_broken && self.random.roll(6) == 0;
        let usage = Usage { input: Some(5), output: Some(charged.0), ..Usage::default() };
        let usage = if is_silent { Usage::default() } else { usage };
        let finish = if charged.1 { FinishReason::Stop } else { FinishReason::Length };
        Ok(Reply { usage, finish, ..Reply::new("word") })
    }
    fn cost(&self, usage: &Usage) -> Option<Money> {
        Some(cents(usage.output?))
    }
    fn max_output(&self, params: &Params) -> Option<u64> {
        let own = params.max_tokens.map(u64::from);
        if self.is_known { Some(own.map_or(LONGEST, |own| own.min(LONGEST))) } else { own }
    }
}
