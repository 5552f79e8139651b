//! Which models speak for a team: its script, real ones, or a recording.

use std::path::Path;

use polylogue::{AnyModel, Error, Model as _, ModelError, ModelErrorKind, Price};
use polylogue_models::{Cassette, Env, Models, Recorder, Recording};
use polylogue_team::Team;

use crate::args;
use crate::trouble::Trouble;

/// Gives models by name.
pub(crate) struct Crew {
    source: Source,
    record: Option<Cassette>,
    prices: Vec<(String, Price)>,
    budget: bool,
}

enum Source {
    Script(AnyModel),
    Live(Models),
    Recording(Recording),
}

/// The name that stands for the team's script.
const SCRIPT: &str = "script";

impl Crew {
    /// Chooses as the command line wants; without a wish, real models when all that the team names can be reached, else
    /// its script.
    ///
    /// Changes `team` so that every agent has a model.
    pub(crate) fn choose(
        team: &mut Team,
        wish: &args::Models,
        stream: bool,
        budget: bool,
        resumed: bool,
    ) -> Result<Self, Trouble> {
        if let Some(model) = &wish.model {
            team.use_model(model);
        }
        let source = match (&wish.replay, wish.offline) {
            (Some(file), _) => replayed(team, file)?,
            (None, true) => scripted(team)?,
            (None, false) => live_or_scripted(team, wish.model.is_some(), stream)?,
        };
        // A run that goes on goes on being recorded in the same file.
        let record = wish
            .record
            .as_ref()
            .map(|file| if resumed { Cassette::append(file) } else { Cassette::create(file) });
        let record = record.transpose()?;
        let prices = team.prices.iter().map(|(name, price)| (name.clone(), Price::from(*price))).collect();
        Ok(Self { source, record, prices, budget })
    }

    /// Whether the team's script speaks.
    pub(crate) const fn is_scripted(&self) -> bool {
        matches!(self.source, Source::Script(_))
    }

    /// The model called `name`.
    pub(crate) fn model(&self, name: &str) -> Result<AnyModel, Error> {
        let model = match &self.source {
            Source::Script(script) => script.clone(),
            Source::Recording(recording) => AnyModel::new(recording.model(name)),
            Source::Live(models) => AnyModel::new(self.priced(models.model(name)?)?),
        };
        Ok(match &self.record {
            Some(cassette) => AnyModel::new(Recorder::new(model, cassette)),
            None => model,
        })
    }

    /// Under a budget, a model of unknown price is refused before it costs anything.
    fn priced(&self, model: polylogue_models::OpenAi) -> Result<polylogue_models::OpenAi, ModelError> {
        let own = self.prices.iter().find(|(name, _)| name == model.name()).map(|(_, price)| *price);
        let price = own.or_else(|| model.price());
        let model = model.with_price(price);
        if self.budget && model.price().is_none() {
            let error = ModelError::new(
                ModelErrorKind::Config,
                model.name(),
                "there is a budget, but its price is unknown",
            );
            return Err(error.hint(format!(
                "add `prices: {{\"{}\": {{input: ..., output: ...}}}}` to the team",
                model.name()
            )));
        }
        Ok(model)
    }
}

fn scripted(team: &mut Team) -> Result<Source, Trouble> {
    if team.script.is_empty() {
        return Err(no_model(team));
    }
    let script = team.script.clone().paced(team.script_pace.unwrap_or(0.0));
    let model = AnyModel::new(script.model(team.name.as_str()));
    team.use_model(SCRIPT);
    Ok(Source::Script(model))
}

fn replayed(team: &mut Team, file: &Path) -> Result<Source, Trouble> {
    let recording = Recording::open(file)?;
    let recorded: Vec<String> = recording.models().into_iter().map(str::to_owned).collect();
    if let [only] = recorded.as_slice() {
        // A run with `--model` has one model for all.
        team.use_model(only);
    }
    Ok(Source::Recording(recording))
}

fn live_or_scripted(team: &mut Team, named: bool, stream: bool) -> Result<Source, Trouble> {
    let env = Env::with_file(Path::new(".env"))?;
    let models = Models::new(env);
    let reachable = team.models().iter().try_for_each(|model| reachable(&models, model, stream));
    let unreachable = match (reachable, team.models().is_empty()) {
        (Ok(()), false) => return Ok(Source::Live(models)),
        (Ok(()), true) => None,
        (Err(error), _) => Some(error),
    };
    match unreachable {
        Some(error) if named || team.script.is_empty() => Err(error.into()),
        None if team.script.is_empty() => Err(no_model(team)),
        _ => scripted(team),
    }
}

/// Whether the model has a provider, and its provider what it needs.
fn reachable(models: &Models, name: &str, stream: bool) -> Result<(), ModelError> {
    let provider = name.split([':', '/']).next().unwrap_or_default();
    let mut config = models.config(provider)?;
    if config.needs_key && config.key.is_none() {
        let what = format!("there is no key for `{}`", config.provider);
        let error = ModelError::new(ModelErrorKind::Config, name, what);
        return Err(error.hint(format!(
            "set `{}`, in the environment or in `.env`",
            config.key_variables.join("` or `")
        )));
    }
    if !stream {
        config.stream = false;
        models.define(config)?;
    }
    models.model(name).map(drop)
}

fn no_model(team: &Team) -> Trouble {
    Trouble::usage(format!("`{}` names no model and has no script", team.name)).hint(MODEL_HINT)
}

/// How to use a real model.
pub(crate) const MODEL_HINT: &str = "`--model openai:gpt-4o-mini` with `OPENAI_API_KEY` set, or `--model ollama:llama3.2` with Ollama running";
