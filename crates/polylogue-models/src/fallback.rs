//! Fallback: models that are asked in order, when those before them fail.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use polylogue_core::text::enumerated;
use polylogue_core::{
    AnsweredBy, AnyModel, Bound, Capabilities, Capability, DeltaRef, DeltaSink, FailedAttempt, FinishReason,
    Limits, Model, ModelError, ModelErrorKind, Money, Params, Reply, Request, Reservation, Usage,
};

use crate::failure::cause;
use crate::unsupported::asked_for;

/// Models that are asked in order: the next one after a failure of the one before.
///
/// The next model is asked after failures of these [classes](FailureClass), once the model's own retries are used up.
/// What streamed of a failed reply is [discarded](DeltaRef::Restart): replies of two models are never joined. Models
/// that are known to lack what a request needs are skipped, and those whose endpoint fails or is at its rate limit, if
/// another one is left. The log says which model replied, and the cost is at its
/// price; under a budget, a call is reserved at the price of the most expensive one.
///
/// A turn that calls tools stays with the model that replied, so that models do not alternate within it; the next turn
/// begins with the first model again, unless [`returns`](Self::returns) says something else.
///
/// ```
/// use polylogue_models::{Env, FailureClass, Fallback, Models};
/// let models = Models::new(Env::process());
/// let model = Fallback::new([
///     models.model("anthropic:claude-sonnet-4-5")?.into(),
///     models.model("openai:gpt-4o")?.into(),
/// ]);
/// let model = model.on([FailureClass::Overload, FailureClass::TooLong]);
/// # let _ = model;
/// # Ok::<(), polylogue_core::ModelError>(())
/// ```
#[derive(Clone)]
pub struct Fallback {
    models: Arc<[AnyModel]>,
    on: Arc<[FailureClass]>,
    returns: FallbackReturn,
}

/// A class of failures after which another model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// A rate limit, or an account without credit, whatever status the provider has for that.
    Rate,
    /// The provider is overloaded: status 503 or 529.
    Overload,
    /// An error of the provider: another status from 500 on, 409, 424, or a reply that cannot be parsed.
    Server,
    /// A timeout of the endpoint, or one of the provider: status 408 or 504.
    Timeout,
    /// The provider cannot be reached, or the connection broke.
    Connection,
    /// The conversation is longer than the model's context window, or a reply was cut off because it filled the window. A model
    /// whose window is known to be no larger is skipped.
    TooLong,
    /// The provider filtered the request or the reply, or the model refused to reply.
    Refusal,
}

impl FailureClass {
    /// The default classes: all but [`Refusal`](Self::Refusal).
    pub const DEFAULT: [Self; 6] =
        [Self::Rate, Self::Overload, Self::Server, Self::Timeout, Self::Connection, Self::TooLong];

    /// The class of `error`; `None` for errors of the caller, which another model would only hide.
    pub(crate) fn of(error: &ModelError) -> Option<Self> {
        Some(match (error.kind, error.status) {
            (ModelErrorKind::Connection, _) => Self::Connection,
            (ModelErrorKind::Timeout, _) => Self::Timeout,
            (ModelErrorKind::InvalidReply, _) => Self::Server,
            (ModelErrorKind::TooLong { .. }, _) => Self::TooLong,
            (ModelErrorKind::ContentFiltered, _) => Self::Refusal,
            (ModelErrorKind::QuotaExceeded | ModelErrorKind::Postponed, _) => Self::Rate,
            (ModelErrorKind::Unavailable, Some(402 | 429)) => Self::Rate,
            (ModelErrorKind::Unavailable, Some(503 | 529)) => Self::Overload,
            (ModelErrorKind::Unavailable, Some(408 | 504)) => Self::Timeout,
            (ModelErrorKind::Unavailable, _) => Self::Server,
            _ => return None,
        })
    }
}

/// The turn from which on the first model is asked again after another one replied. To go back costs what the other model has
/// in its prompt cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FallbackReturn {
    /// In the next turn of the agent.
    #[default]
    Turn,
    /// Never in this conversation, unless the other model fails.
    Never,
    /// In the first turn that begins this long after the first reply of another model.
    After(Duration),
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.models.iter().map(Model::name)).finish()
    }
}

impl From<Fallback> for AnyModel {
    fn from(model: Fallback) -> Self {
        Self::new(model)
    }
}

impl Fallback {
    /// Creates a model that asks these models in order, after failures of the [default classes](FailureClass::DEFAULT).
    pub fn new(models: impl IntoIterator<Item = AnyModel>) -> Self {
        let (models, on) = (models.into_iter().collect(), FailureClass::DEFAULT.into());
        Self { models, on, returns: FallbackReturn::default() }
    }

    /// Asks the next model after failures of these classes only.
    #[must_use]
    pub fn on(self, classes: impl IntoIterator<Item = FailureClass>) -> Self {
        Self { on: classes.into_iter().collect(), ..self }
    }

    /// Sets when the first model is asked again after another one replied.
    #[must_use]
    pub fn returns(self, returns: FallbackReturn) -> Self {
        Self { returns, ..self }
    }

    /// The model that replied in earlier turns, if it is still to be asked first. The log says which one that was, so that a resumed run
    /// asks the same.
    fn kept<'a>(&self, request: &Request<'a>) -> Option<&'a str> {
        let longest = match self.returns {
            FallbackReturn::Turn => return None,
            FallbackReturn::Never => Duration::MAX,
            FallbackReturn::After(time) => time,
        };
        let (model, since) = request.origin.earlier.fallback(request.origin.who, self.name())?;
        (since < longest).then_some(model)
    }

    /// The models that can reply to `request`, in the order in which they are asked: the one that replied last in the
    /// turn first, or in earlier ones if it is [kept](Self::kept). With what keeps those before the first of the list that can from
    /// replying.
    fn candidates(&self, request: &Request<'_>) -> (Vec<&AnyModel>, Vec<String>) {
        let needs = asked_for(request);
        let (mut models, mut before) = (Vec::new(), Vec::new());
        for model in &*self.models {
            match unable(model, &needs, request.params) {
                None => models.push(model),
                Some(why) if models.is_empty() => before.push(format!("{}: {why}", model.name())),
                Some(_) => {}
            }
        }
        if models.is_empty() {
            // The first one says what it lacks.
            models.extend(self.models.first());
            before.clear();
        }
        let last = request.origin.last_model.or_else(|| self.kept(request));
        let last = last.and_then(|last| models.iter().position(|model| model.name() == last));
        models.rotate_left(last.unwrap_or(0));
        (models, before)
    }

    /// Why the next model is asked, if the result is a failure of one of the classes.
    fn failure(
        &self,
        model: &AnyModel,
        result: &Result<Reply, ModelError>,
    ) -> Option<(FailureClass, ModelError)> {
        let of_reply = |class, kind, finish: &FinishReason| {
            (class, ModelError::new(kind, model.name(), format!("the reply is {finish}")))
        };
        let (class, error) = match result {
            Ok(Reply { finish: finish @ (FinishReason::Filter | FinishReason::Refused { .. }), .. }) => {
                of_reply(FailureClass::Refusal, ModelErrorKind::ContentFiltered, finish)
            }
            // It is cut off where a larger window has room, as if the request had been too long. Without one, it is better than none.
            Ok(Reply { finish: finish @ FinishReason::ContextFull, .. }) => {
                let is_larger = |other: &AnyModel| other.context_window() > model.context_window();
                if model.context_window().is_none() || !self.models.iter().any(is_larger) {
                    return None;
                }
                of_reply(FailureClass::TooLong, ModelErrorKind::TooLong { tokens: None, limit: None }, finish)
            }
            Ok(_) => return None,
            Err(error) => (FailureClass::of(error)?, error.clone()),
        };
        self.on.contains(&class).then_some((class, error))
    }
}

/// Whether `other` can be asked after `failed` failed with an error of `class`.
fn helps(other: &AnyModel, failed: &AnyModel, class: FailureClass) -> bool {
    let windows = || other.context_window().zip(failed.context_window());
    class != FailureClass::TooLong || windows().is_none_or(|(other, failed)| other > failed)
}

/// Why `model` is not asked for a reply that `needs` these capabilities, by what is known of it.
fn unable(model: &AnyModel, needs: &[Capability], params: &Params) -> Option<String> {
    let capabilities = model.capabilities();
    if let Some(lack) = needs.iter().find(|need| capabilities.has(**need) == Some(false)) {
        return Some(format!("it is known not to support {lack}"));
    }
    let refused = if params.strict { model.ignored(params) } else { Vec::new() };
    let names: Vec<String> = refused.iter().map(|name| format!("`{name}`")).collect();
    (!names.is_empty()).then(|| format!("it does not accept {}, and `strict` is set", enumerated(&names)))
}

/// Takes the next model to be asked: the first that is available, or else the first. Adds to `before` why those before it are not asked.
fn take_next<'a>(models: &mut Vec<&'a AnyModel>, before: &mut Vec<String>) -> Option<&'a AnyModel> {
    let ready = models.iter().position(|model| model.unavailable_for().is_none()).unwrap_or(0);
    for passed in models.iter().take(ready) {
        let why = format!("{}: {UNAVAILABLE}", passed.name());
        if !before.contains(&why) {
            before.push(why);
        }
    }
    (!models.is_empty()).then(|| models.remove(ready))
}

/// Why a model is passed over. For how long it is would differ each time.
const UNAVAILABLE: &str =
    "it is not asked for a while, because its endpoint failed repeatedly, or its keys are at a limit";

/// The last error, with what was wrong with the models `before`.
fn with_earlier(error: ModelError, before: &[String]) -> ModelError {
    if before.is_empty() {
        return error;
    }
    let message = format!("{} (before: {})", error.message, before.join("; "));
    ModelError { message, ..error }
}

impl Model for Fallback {
    fn name(&self) -> &str {
        self.models.first().map_or("", |model| model.name())
    }

    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let (mut models, mut before) = self.candidates(request);
        let mut streamed = Streamed { deltas, any: false };
        let mut next = match models.first().is_some_and(|first| first.is_cached(request)) {
            // Whether its endpoint is available does not matter.
            true => Some(models.remove(0)),
            false => take_next(&mut models, &mut before),
        };
        if let Some((reserved, model)) = request.reserved.zip(next) {
            reserved.asks(model.name(), Bound::of(model, request));
        }
        while let Some(model) = next {
            let result = model.complete(request, &mut streamed).await;
            let failure = self.failure(model, &result);
            let earlier = before.clone();
            next = match &failure {
                Some((class, error)) => {
                    models.retain(|other| helps(other, model, *class));
                    before.push(error.to_string());
                    take_next(&mut models, &mut before)
                }
                None => None,
            };
            let (Some((_, error)), Some(next)) = (failure, next) else {
                return match result {
                    Ok(reply) => Ok(answered(model, reply, &earlier)),
                    Err(error) => Err(with_earlier(error, &earlier)),
                };
            };
            streamed.restart(&cause(&error, &error.model), next.name());
            if let Some(reserved) = request.reserved {
                give_up(reserved, model, &result);
                reserved.asks(next.name(), Bound::of(next, request));
                // Every attempt counts, and may not fit into a limit.
                if !reserved.again().await {
                    return Err(with_earlier(error, &earlier));
                }
            }
        }
        Err(ModelError::new(ModelErrorKind::Config, self.name(), "there is no model to ask"))
    }

    /// That of the most expensive model; unknown if it is unknown for any.
    fn cost(&self, usage: &Usage) -> Option<Money> {
        let costs = self.models.iter().map(|model| model.cost(usage));
        costs.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    fn has_price(&self, params: &Params) -> bool {
        self.models.iter().all(|model| model.has_price(params))
    }

    /// The longest of all models; unknown if it is unknown for any.
    fn max_output(&self, params: &Params) -> Option<u64> {
        let lengths = self.models.iter().map(|model| model.max_output(params));
        lengths.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// That of the model that needs the longest reply.
    fn min_useful_output(&self, params: &Params) -> u64 {
        let tokens = self.models.iter().map(|model| model.min_useful_output(params));
        tokens.max().unwrap_or(Limits::USEFUL_OUTPUT)
    }

    /// The smallest of all models; unknown if it is unknown for any.
    fn context_window(&self) -> Option<u64> {
        let windows = self.models.iter().map(Model::context_window);
        windows.collect::<Option<Vec<_>>>()?.into_iter().min()
    }

    /// That of the model that takes the longest requests; unknown if it is unknown for any.
    fn max_input(&self) -> Option<u64> {
        let most = self.models.iter().map(Model::max_input);
        most.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// That of the model with the most.
    fn page_tokens(&self) -> u64 {
        self.models.iter().map(Model::page_tokens).max().unwrap_or(Bound::PAGE_TOKENS)
    }

    /// The parameters that no model accepts. Each model leaves out those that it does not accept itself.
    fn ignored(&self, params: &Params) -> Vec<&'static str> {
        let mut models = self.models.iter().map(|model| model.ignored(params));
        let first = models.next().unwrap_or_default();
        models.fold(first, |mut all, own| {
            all.retain(|name| own.contains(name));
            all
        })
    }

    /// That of the model that needs most; none if one of them reasons with any limit.
    fn least_to_reason(&self, params: &Params) -> Option<u64> {
        let least = self.models.iter().map(|model| model.least_to_reason(params));
        least.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    fn alternatives(&self) -> &[AnyModel] {
        &self.models
    }

    /// Until one of the models is available.
    fn unavailable_for(&self) -> Option<Duration> {
        let waits: Option<Vec<Duration>> = self.models.iter().map(Model::unavailable_for).collect();
        waits?.into_iter().min()
    }

    fn is_cached(&self, request: &Request<'_>) -> bool {
        self.candidates(request).0.first().is_some_and(|first| first.is_cached(request))
    }

    /// Those of the first model.
    fn capabilities(&self) -> Capabilities {
        self.models.first().map(Model::capabilities).unwrap_or_default()
    }

    /// Besides those of the first model, what is expected of all: any of them can be asked.
    fn expected_capabilities(&self, params: &Params) -> Capabilities {
        let models: Vec<Capabilities> =
            self.models.iter().map(|model| model.expected_capabilities(params)).collect();
        let all_have = |capability: &Capability| models.iter().all(|of| of.has(*capability) == Some(true));
        let common = [Capability::Tools, Capability::Schema].into_iter().filter(all_have);
        common.fold(self.capabilities(), Capabilities::with)
    }

    fn returns_seals(&self, params: &Params) -> bool {
        self.models.iter().any(|model| model.returns_seals(params))
    }
}

/// The reply with the model that gave it, its cost, and what was wrong with those `before`.
fn answered(model: &AnyModel, mut reply: Reply, before: &[String]) -> Reply {
    let because = (!before.is_empty()).then(|| before.join("; ").into());
    let cost = model.reply_cost(&reply);
    let model = reply.answered_by.map_or_else(|| model.name().into(), |by| Arc::clone(&by.model));
    reply.answered_by = Some(Arc::new(AnsweredBy { model, cost, because }));
    reply
}

/// Counts the attempt at `model` that gives way to another one. A reply that was refused is billed, and a stored one costs nothing; what
/// errors cost is counted already.
fn give_up(reserved: &Reservation<'_>, model: &AnyModel, result: &Result<Reply, ModelError>) {
    match result {
        Ok(reply) if reply.cached => reserved.fail(FailedAttempt::Unsent),
        Ok(reply) => reserved.discard(&reply.usage, model.reply_cost(reply).map(|cost| cost.cost)),
        Err(_) => reserved.fail(FailedAttempt::Broken),
    }
}

/// Forwards deltas, and discards those of a failed reply.
struct Streamed<'a> {
    deltas: &'a mut dyn DeltaSink,
    any: bool,
}

impl Streamed<'_> {
    fn restart(&mut self, cause: &str, model: &str) {
        if std::mem::take(&mut self.any) {
            self.deltas.push(DeltaRef::Restart);
        }
        self.deltas.push(DeltaRef::Fallback { cause, model });
    }
}

impl DeltaSink for Streamed<'_> {
    fn push(&mut self, delta: DeltaRef<'_>) {
        match delta {
            DeltaRef::Restart => self.any = false,
            DeltaRef::Retry { .. } | DeltaRef::Fallback { .. } => {}
            _ => self.any = true,
        }
        self.deltas.push(delta);
    }
}
