//! Which models speak for a team: its script, real ones, or a recording.

mod embedding;
mod endpoints;
mod local;
mod options;
mod parameters;
mod unsupported_media;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use polylogue::tools::memory::Embed as _;
use polylogue_core::{
    AnyModel, Body, Error as RunError, Event, Media, Model as _, ModelError, ModelErrorKind, Params, Price,
};
use polylogue_models::{
    Cache, Cassette, Day, Embedder, EndpointModel, FailureClass, Fallback, FallbackReturn, Models, Prices,
    Recorder, Recording, Script, ScriptStep, model_names,
};
use polylogue_team::{Agent, Team};
use serde_json::{Map, Value};

pub(crate) use self::embedding::check_embedding;
use self::embedding::embedder;
use self::endpoints::EndpointResolver;
pub use self::endpoints::endpoint_allowed;
use self::local::LocalModels;
pub use self::local::{LocalModelInfo, LocalResources, count_local, local_model_info, local_resources};
pub(crate) use self::options::ModelChoice;
pub use self::options::ModelOptions;
pub use self::parameters::check_parameters;
use self::unsupported_media::find_unsupported;
pub(crate) use self::unsupported_media::unsupported_media;
pub use self::unsupported_media::{UnsupportedMedia, media_in_words};
use crate::address::{listens, shown};
use crate::{Error, Result};

/// The models of a team, by name.
pub(crate) struct TeamModels {
    source: ModelSource,
    record: Option<Cassette>,
    cache: Option<Cache>,
    /// The failures after which the next model of a list is asked.
    fallback: Vec<FailureClass>,
    fallback_return: FallbackReturn,
    /// What the team says that models cost, and their limits.
    own_prices: Prices,
    /// The day whose prices count.
    today: Day,
    /// The models for which that counts, even below the user's own or the list price.
    cheap: BTreeSet<String>,
    budget: bool,
    /// Whether a script speaks at its pace.
    paced: bool,
}

enum ModelSource {
    /// With the reason why no real model speaks, unless that was asked for.
    Script(AnyModel, Option<String>),
    Live(Models, LocalModels),
    Recording(Recording),
}

/// The name that stands for the team's script.
const SCRIPT: &str = "script";

impl TeamModels {
    /// Chooses as the options say; by default, real models when all that the team names can be reached, else
    /// its script.
    ///
    /// Changes `team` so that every agent has a model.
    pub(crate) async fn choose(team: &mut Team, choosing: &ModelChoice<'_>) -> Result<Self> {
        let options = choosing.options;
        if let Some(model) = &options.model {
            team.use_model(model);
        }
        let source = match (&options.replay, options.offline) {
            (Some(file), _) => replayed(team, file)?,
            // People among themselves, or agents that only run tools, need no model.
            (None, _) if team.answering_models().is_empty() => {
                let endpoints = EndpointResolver::of(team, choosing);
                ModelSource::Live(endpoints.models, endpoints.local)
            }
            (None, true) => scripted(team, choosing, None)?,
            (None, false) => live_or_scripted(team, choosing).await?,
        };
        // A resumed run is recorded in the same file.
        let record = options
            .record
            .as_ref()
            .map(|file| if choosing.resumed { Cassette::append(file) } else { Cassette::create(file) });
        let record = record.transpose()?;
        let (own_prices, today) = (team.own_prices(), Day::today());
        let cheap = choosing.access.lower_prices(team, &options.prices);
        let cache = match &source {
            ModelSource::Live(..) => options.cache.clone().or_else(|| team.cache_file()),
            ModelSource::Script(..) | ModelSource::Recording(_) => options.cache.clone(),
        };
        let cache = cache.map(Cache::open).transpose()?;
        let (fallback, fallback_return) = (team.fallback.to_vec(), *team.fallback_return);
        let (budget, paced) = (choosing.budget, options.paced);
        Ok(Self { source, record, cache, fallback, fallback_return, own_prices, today, cheap, budget, paced })
    }

    /// Keeps the replies of a cache for `tenant` alone: from the time of a reply, and from what it costs, another one would see what
    /// was asked before.
    pub(crate) fn of_tenant(self, tenant: Option<&str>) -> Self {
        let cache =
            self.cache.map(|cache| tenant.map_or_else(|| cache.clone(), |name| cache.namespace(name)));
        Self { cache, ..self }
    }

    /// Whether the team's script speaks.
    pub(crate) const fn is_scripted(&self) -> bool {
        matches!(self.source, ModelSource::Script(..))
    }

    /// Whether models of providers speak, or those in the process.
    pub(crate) const fn are_live(&self) -> bool {
        matches!(self.source, ModelSource::Live(..))
    }

    /// Why the team's script speaks, unless that was asked for.
    pub(crate) fn why_scripted(&self) -> Option<&str> {
        match &self.source {
            ModelSource::Script(_, why) => why.as_deref(),
            _ => None,
        }
    }

    /// Takes note of the forms of requests that models refused, as the log of a conversation tells that is resumed.
    pub(crate) fn learn(&self, events: &[Arc<Event>]) {
        let ModelSource::Live(models, _) = &self.source else { return };
        for event in events {
            if let Body::CapabilityMissing { model, capability, why, .. } = &event.body
                && capability.is_of_form()
            {
                // One that is no longer known is not asked either.
                let _ = models.learn(model, *capability, why);
            }
        }
    }

    /// The models of `team` that have a price but no known limit on the length of their replies: under a budget their calls are
    /// made one after the other, because nothing says what one takes at most.
    pub(crate) fn unbounded(&self, team: &Team) -> Vec<String> {
        let ModelSource::Live(models, _) = &self.source else { return Vec::new() };
        if team.agents.iter().filter_map(Agent::model).all(|keys| keys.parameters.max_tokens.is_some()) {
            return Vec::new();
        }
        let is_unbounded = |name: &&str| {
            let Ok(model) = self.of_endpoint(models, name) else { return false };
            let is_paid = model.price().is_some_and(|price| price != Price::FREE);
            is_paid && model.max_output(&Params::default()).is_none()
        };
        team.models().into_iter().filter(is_unbounded).map(str::to_owned).collect()
    }

    /// The models in this process, and what they take of this machine.
    pub(crate) fn local_models(&self) -> Vec<(String, LocalModelInfo)> {
        match &self.source {
            ModelSource::Live(_, local) => local.infos(),
            ModelSource::Script(..) | ModelSource::Recording(_) => Vec::new(),
        }
    }

    /// The model called `name`, to make vectors of texts; none where no real model speaks.
    pub(crate) fn embedder(&self, name: &str) -> Result<Option<Embedder>, ModelError> {
        match &self.source {
            ModelSource::Live(models, _) => {
                let model = embedder(models, name)?;
                // Otherwise facts would be found by their words, and only the results of searches would say why.
                if let Some(error) = model.missing_key() {
                    return Err(error);
                }
                let price = self.price(model.name(), model.price())?;
                Ok(Some(model.with_price(price)))
            }
            ModelSource::Script(..) | ModelSource::Recording(_) => Ok(None),
        }
    }

    /// The script of another team that is the same but for its task and the values of its variables, if a script
    /// speaks.
    ///
    /// Changes `team` so that every agent has a model.
    pub(crate) fn cast(&self, team: &mut Team) -> Option<AnyModel> {
        match &self.source {
            ModelSource::Script(..) => Some(speak_by(&script_of(team, self.paced), team)),
            ModelSource::Recording(recording) => {
                use_recorded(team, recording);
                None
            }
            ModelSource::Live(..) => None,
        }
    }

    /// What the models of `team` cost, as far as that is known, by their names.
    pub(crate) fn prices_of(&self, team: &Team) -> BTreeMap<String, Price> {
        let ModelSource::Live(models, local) = &self.source else { return BTreeMap::new() };
        let price = |name: &str| {
            let model = models.model(name).ok().filter(|_| local.get(name).is_none())?;
            let price = self.price(model.name(), model.price()).ok()??;
            Some((model.name().to_owned(), price))
        };
        team.models().into_iter().filter_map(price).collect()
    }

    /// Refuses models of `team` whose price is unknown, if there is a budget.
    pub(crate) fn check_prices(&self, team: &Team) -> Result<()> {
        if self.budget { self.require_prices(team) } else { Ok(()) }
    }

    /// Refuses models of `team` whose price is unknown. Models in this process, scripts and recordings cost nothing.
    pub(crate) fn require_prices(&self, team: &Team) -> Result<()> {
        let ModelSource::Live(models, local) = &self.source else { return Ok(()) };
        let names = team.models().into_iter().filter(|name| local.get(name).is_none());
        for model in names.filter_map(|name| models.model(name).ok()) {
            if self.price(model.name(), model.price())?.is_none() {
                return Err(unknown_price(model.name()).into());
            }
        }
        if let Some(model) = team.embedding_model().and_then(|name| embedder(models, name).ok())
            && self.price(model.name(), model.price())?.is_none()
        {
            return Err(unknown_price(model.name()).into());
        }
        let first = surcharged(team, models).into_iter().next();
        first.map_or(Ok(()), |name| Err(unknown_surcharge(name).into()))
    }

    /// Refuses media of `team` that an agent receives whose model is known not to read it.
    pub(crate) fn check_media(&self, team: &Team) -> Result<()> {
        let found = find_unsupported(team, |name, media| self.unsupported_by(name, media));
        if found.errors() == 0 { Ok(()) } else { Err(Error::Team(found)) }
    }

    /// The model called `name`, if it is known not to read `media`.
    pub(crate) fn unsupported_by(&self, name: &str, media: &Media) -> Option<UnsupportedMedia> {
        let ModelSource::Live(models, local) = &self.source else { return None };
        match local.get(name) {
            Some(_) => Some(UnsupportedMedia::any(name)),
            None => unsupported_media::unsupported_by(models, name, media),
        }
    }

    /// The model called `names`, or several with commas between them, each for the failure of the one before; `script`
    /// where one speaks.
    pub(crate) fn model_or(&self, script: Option<&AnyModel>, names: &str) -> Result<AnyModel, RunError> {
        let first = model_names(names).next().unwrap_or(names);
        let model = match &self.source {
            ModelSource::Script(own, _) => script.unwrap_or(own).clone(),
            ModelSource::Recording(recording) => AnyModel::new(recording.model(first)),
            ModelSource::Live(models, local) if first == names => self.live(models, local, names)?,
            ModelSource::Live(models, local) => {
                let all: Result<Vec<_>, _> =
                    model_names(names).map(|name| self.live(models, local, name)).collect();
                Fallback::new(all?).on(self.fallback.iter().copied()).returns(self.fallback_return).into()
            }
        };
        Ok(match &self.record {
            Some(cassette) => AnyModel::new(Recorder::new(model, cassette)),
            None => model,
        })
    }

    /// The model called `name`, with its price and the limits that the team says.
    fn of_endpoint(&self, models: &Models, name: &str) -> Result<EndpointModel, ModelError> {
        let model = models.model(name)?;
        let price = self.price(model.name(), model.price())?;
        let own = self.own_prices.named(model.name(), self.today);
        let limits = own.map(|own| own.limits).unwrap_or_default();
        Ok(model.with_limits(limits).with_price(price))
    }

    /// The model called `name`, with its price and the cache of replies.
    fn live(&self, models: &Models, local: &LocalModels, name: &str) -> Result<AnyModel, ModelError> {
        let model = match local.get(name) {
            Some(model) => model?,
            None => AnyModel::new(self.of_endpoint(models, name)?),
        };
        Ok(match &self.cache {
            Some(cache) => AnyModel::new(cache.around(model)),
            None => model,
        })
    }

    /// What the model called `name` costs: as the team says, but no less than by its `list` price unless the user allows that. Under a budget, a model of unknown price is
    /// refused before it costs anything.
    fn price(&self, name: &str, list: Option<Price>) -> Result<Option<Price>, ModelError> {
        let own = self.own_prices.named(name, self.today).map(|own| own.price.clone());
        let price = price_of(own, list, self.cheap.contains(name));
        if self.budget && price.is_none() {
            return Err(unknown_price(name));
        }
        Ok(price)
    }
}

/// Why the model called `name` cannot be called under a budget.
pub(crate) fn unknown_price(name: &str) -> ModelError {
    let what = "there is a limit on cost, but its price is unknown";
    ModelError::new(ModelErrorKind::Config, name, what).hint(format!(
        "add `prices: {{\"{name}\": {{input: ..., output: ...}}}}` to the team, or count its calls as free: `--allow unknown-price`"
    ))
}

/// Models of `team` that agents ask with extra fields for service at an unknown price.
pub(crate) fn surcharged<'t>(team: &'t Team, models: &Models) -> Vec<&'t str> {
    let is_surcharged = |(name, extra): &(&str, &Map<String, Value>)| {
        let params = Params { extra: (*extra).clone(), ..Params::default() };
        models.model(name).is_ok_and(|model| !model.has_price(&params))
    };
    let names: BTreeSet<&str> =
        team.extra_fields().into_iter().filter(is_surcharged).map(|(name, _)| name).collect();
    names.into_iter().collect()
}

/// Why the model called `name` cannot be asked under a budget with extra fields for service at another price.
pub(crate) fn unknown_surcharge(name: &str) -> ModelError {
    let what = "there is a limit on cost, but with the extra fields of an agent its price is unknown";
    ModelError::new(ModelErrorKind::Config, name, what).hint(format!(
        "remove the field, such as `service_tier`, or add what requests with it cost to your prices: `{name}: {{input: ..., output: ...}}`"
    ))
}

/// The price of a model: as the team says (`own`), but no less than the `list` price unless it may be lower.
pub(crate) fn price_of(own: Option<Price>, list: Option<Price>, may_be_lower: bool) -> Option<Price> {
    match (own, list) {
        (Some(own), Some(list)) if !may_be_lower => Some(own.at_least(list)),
        (own, list) => own.or(list),
    }
}

fn scripted(team: &mut Team, choosing: &ModelChoice<'_>, why: Option<String>) -> Result<ModelSource> {
    if team.script.is_empty() {
        return Err(match choosing.options.offline {
            true => Error::NoScript { team: team.name.clone() },
            false => Error::NoModel { team: team.name.clone(), who: team.answering_without_model() },
        });
    }
    Ok(ModelSource::Script(speak_by(&script_of(team, choosing.options.paced), team), why))
}

/// The script of a team: at its pace, or at once.
fn script_of(team: &Team, paced: bool) -> Script {
    match paced {
        true => team.script.clone().paced(team.script_pace.unwrap_or(0.0)),
        false => at_once(&team.script),
    }
}

fn speak_by(script: &Script, team: &mut Team) -> AnyModel {
    team.use_model(SCRIPT);
    AnyModel::new(script.model(team.name.as_str()))
}

/// The script without its pauses, which are for those who watch.
fn at_once(script: &Script) -> Script {
    let step = |step: &ScriptStep| ScriptStep { delay_ms: 0, pace: Some(0.0), ..step.clone() };
    script.steps().iter().map(step).collect()
}

fn replayed(team: &mut Team, file: &Path) -> Result<ModelSource> {
    let recording = Recording::open(file)?;
    use_recorded(team, &recording);
    Ok(ModelSource::Recording(recording))
}

fn use_recorded(team: &mut Team, recording: &Recording) {
    let recorded: Vec<&str> = recording.models().into_iter().collect();
    if let [only] = recorded.as_slice() {
        // A run with `--model` has one model for all.
        team.use_model(only);
    }
}

async fn live_or_scripted(team: &mut Team, choosing: &ModelChoice<'_>) -> Result<ModelSource> {
    let endpoints = EndpointResolver::of(team, choosing);
    // A script replaces models that the team names, not one that was requested.
    let may_play = choosing.options.model.is_none() && !team.script.is_empty();
    if !team.answering_without_model().is_empty() {
        return scripted(team, choosing, Some("no model is named".into()));
    }
    let mut why = None;
    for name in team.models() {
        match endpoints.check(name, choosing) {
            Err(error) if !may_play => return Err(error.into()),
            Err(error) => why = why.or(Some(error.message)),
            Ok(Some(server)) if may_play && !listens(&server).await => {
                why = why.or(Some(format!("nothing answers at {}", shown(&server))));
            }
            Ok(_) => {}
        }
    }
    match why {
        None => Ok(ModelSource::Live(endpoints.models, endpoints.local)),
        why => scripted(team, choosing, why),
    }
}
