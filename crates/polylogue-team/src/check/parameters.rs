//! Parameters that the model of an agent does not take.

use std::collections::BTreeMap;
use std::path::Path;

use polylogue_core::text::enumerated;
use polylogue_core::{AnyModel, Model as _, ModelError, Name, Params, ToolChoice};
use polylogue_models::{EndpointModel, Env, KnownModel, Models, Provider, model_names};

use super::approval::Tools;
use super::models::{at_provider, known_model};
use super::secrets;
use crate::agent::Agent;
use crate::codes;
use crate::diagnostic::{Diagnostics, Report};
use crate::endpoint::Endpoint;
use crate::source::{Source, Span};
use crate::sources::Sources;
use crate::suggest;
use crate::team::Team;

impl Team {
    /// Returns what is found of the parameters of all that call a model, here and in the teams within this one, at their places: those
    /// that a model is known not to take, or takes with other values. `models` must be those that a run asks: what a model takes
    /// can depend on its address. `in_process` returns the model in the process of this name, if its file can be read: what that takes
    /// depends on the file. `given` is the model with which the caller replaces those of the files. Nothing is sent.
    ///
    /// ```
    /// use polylogue_models::{Env, Models};
    /// use polylogue_team::{Overrides, parse};
    /// let text = "
    /// name: t
    /// model: openai:gpt-5
    /// agents: [{name: Ann, parameters: {top_k: 5}}]
    /// chat: {participants: [Ann], stop: {max_turns: 1}}
    /// ";
    /// let team = parse(text, "t.yaml", &Overrides::default())?.team;
    /// let found = team.check_parameters(None, &Models::new(Env::default()), &|_| None);
    /// assert!(found.to_string().contains("does not take `top_k`"));
    /// let elsewhere = Env::of([("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")]);
    /// assert!(team.check_parameters(None, &Models::new(elsewhere), &|_| None).iter().next().is_none());
    /// # Ok::<(), polylogue_team::Diagnostics>(())
    /// ```
    pub fn check_parameters(
        &self,
        given: Option<&str>,
        models: &Models,
        in_process: &dyn Fn(&str) -> Option<AnyModel>,
    ) -> Diagnostics {
        let mut found = Diagnostics::default();
        let asked = Asked { given, models, in_process, has_script: !self.script.is_empty() };
        let here = Included { name: &self.name, file: Path::new(&self.sources.file), around: None };
        self.check_parameters_of(here, &self.sources, asked, &mut found);
        found
    }

    /// The same for the team, included in another one.
    fn check_parameters_of(
        &self,
        here: Included<'_>,
        sources: &Sources,
        asked: Asked<'_>,
        found: &mut Diagnostics,
    ) {
        let Included { name, file, around } = here;
        if let Some(text) = sources.files.get(file) {
            let shown = file.display().to_string();
            let source = Source::new(&shown, text);
            secrets::hide_in(&source);
            let mut report = Report::new(&source);
            check(self, (name, around), asked, &mut report);
            found.append(report.finish());
        }
        let folder = file.parent().unwrap_or(Path::new(""));
        for sub in &self.teams {
            let (file, around) = (folder.join(sub.file.as_str()), self.usual_model(around));
            let within = Included { name: &sub.name, file: &file, around };
            sub.team.check_parameters_of(within, sources, asked, found);
        }
    }
}

/// How a team is included: its name, its file, and the model of the team around it.
#[derive(Clone, Copy)]
struct Included<'i> {
    name: &'i Name,
    file: &'i Path,
    around: Option<&'i str>,
}

/// The models that a run asks.
#[derive(Clone, Copy)]
struct Asked<'a> {
    /// Those of the caller.
    given: Option<&'a str>,
    models: &'a Models,
    /// Those in the process, by name.
    in_process: &'a dyn Fn(&str) -> Option<AnyModel>,
    /// Whether a script can replace them.
    has_script: bool,
}

impl Asked<'_> {
    /// What the model called `name` takes of `params`, as far as that is known.
    fn taken(self, team: &Team, name: &str, params: &Params) -> Taken {
        if team.model_file(name).is_none() {
            return self.known(team, name).map_or(Taken::Unknown, |known| Taken::Known(Box::new(known)));
        }
        match (self.in_process)(name) {
            Some(model) => Taken::InProcess(model.ignored(params), model.check_params(params).err()),
            // No file makes a difference to this one.
            None => Taken::InProcess(params.thinking.map(|_| "thinking").into_iter().collect(), None),
        }
    }

    /// The model called `name`, if it is known what it takes: at least what its API has no field for.
    fn known(self, team: &Team, name: &str) -> Option<EndpointModel> {
        let asked = self.models.model(name).ok();
        match at_provider(team, name) {
            Some((provider, _)) => asked.or_else(|| known_model(provider, name)),
            // A known provider at another address would be found at its own one if the endpoint was not allowed.
            None if name.split([':', '/']).next().is_some_and(|at| Provider::find(at.trim()).is_some()) => {
                at_other_server(team, name)
            }
            None => asked,
        }
    }
}

/// The model called `name` at the server that the team has for its provider, whether that was allowed or not: at least what its API has no
/// field for is left out there, too.
fn at_other_server(team: &Team, name: &str) -> Option<EndpointModel> {
    let (provider, endpoint) = team.endpoint_of(name)?;
    // The variables of its headers need not be set to know what is left out.
    let endpoint = Endpoint { headers: BTreeMap::new(), ..endpoint.clone() };
    let models = Models::new(Env::default());
    models.define(endpoint.config(provider, &Env::default()).ok()?).ok()?;
    models.model(name).ok()
}

/// Whether the table has the model called `name`, so that its limits are known.
fn is_listed(team: &Team, name: &str) -> bool {
    at_provider(team, name).is_some_and(|(at, model)| KnownModel::find(at.name(), model).is_some())
}

fn check(team: &Team, (name, around): (&Name, Option<&str>), asked: Asked<'_>, report: &mut Report<'_>) {
    let outline = team.outline();
    for agent in outline.agents() {
        warn_of_unknown_tool(team, agent, report);
    }
    for user in team.own_model_users(name, around) {
        let params = Params::from(user.parameters.value.clone());
        if params.max_tokens.is_none() && params.names().is_empty() && params.extra.is_empty() {
            continue;
        }
        let models = asked.given.or(user.models).into_iter().flat_map(model_names);
        let models: Vec<_> = models.map(|model| (model, asked.taken(team, model, &params))).collect();
        let is_refused =
            params.strict && !asked.has_script && models.iter().all(|(_, taken)| taken.refuses(&params));
        for (model, taken) in &models {
            if report.full() {
                return;
            }
            let (who, model, dropped) = (user.name.as_str(), *model, dropped(team, model));
            let (params, place) = (&params, user.parameters.key());
            let checked = Checked { who, place, model, params, dropped, is_refused };
            match taken {
                Taken::Known(known) => checked.check(known, is_listed(team, model), asked.has_script, report),
                Taken::InProcess(own, wrong) => {
                    checked.warn_of_left_out(own, "", "choose another model", report);
                    checked.refuse(wrong.as_ref(), asked.has_script, report);
                }
                Taken::Unknown => {}
            }
        }
    }
}

/// What a model takes of parameters.
enum Taken {
    Known(Box<EndpointModel>),
    /// What a model in the process leaves out, and why each call fails.
    InProcess(Vec<&'static str>, Option<ModelError>),
    Unknown,
}

impl Taken {
    /// Whether the model does not take all of them.
    fn refuses(&self, params: &Params) -> bool {
        match self {
            Self::Known(known) => !known.ignored(params).is_empty(),
            Self::InProcess(own, _) => !own.is_empty(),
            Self::Unknown => false,
        }
    }
}

/// The parameters that requests to `model` leave out because the team says so.
fn dropped(team: &Team, model: &str) -> Vec<&'static str> {
    let endpoint = team.endpoint_of(model).map(|(_, endpoint)| endpoint);
    endpoint.into_iter().flat_map(|endpoint| &endpoint.drop_parameters).map(|one| one.name()).collect()
}

/// Warns of a call that is required of a tool which is probably another one of the agent.
fn warn_of_unknown_tool(team: &Team, agent: &Agent, report: &mut Report<'_>) {
    let Some(keys) = agent.model() else { return };
    let Some(ToolChoice::Tool(name)) = Params::from(keys.parameters.value.clone()).tool_choice else {
        return;
    };
    let own = Tools::of(team, agent).names.into_iter();
    let own: Vec<String> = own.chain(keys.suggests_tools.iter().map(|own| own.value.clone())).collect();
    let meant = suggest::closest(&name, own.iter().map(String::as_str)).filter(|meant| *meant != name);
    if let Some(meant) = meant {
        let message = format!("`{}` has no tool `{name}`", agent.name);
        let hint = format!("did you mean `{meant}`?");
        report.warning(codes::UNKNOWN_TOOL, keys.parameters.key(), message, hint);
    }
}

/// The parameters of an agent with one of its models.
struct Checked<'c> {
    who: &'c str,
    /// Where they are in the file.
    place: &'c Span,
    model: &'c str,
    params: &'c Params,
    /// Those that the team itself leaves out.
    dropped: Vec<&'static str>,
    /// Whether `strict` is set, and no model of the agent takes all of them: each call of the agent fails.
    is_refused: bool,
}

impl Checked<'_> {
    /// Reports what `known`, which is in the table if it `is_listed`, does not take.
    fn check(&self, known: &EndpointModel, is_listed: bool, has_script: bool, report: &mut Report<'_>) {
        self.warn_of_refused(known, report);
        self.warn_of_stop(known, report);
        self.refuse(known.check_params(self.params).err().as_ref(), has_script, report);
        if is_listed {
            self.warn_of_range(known, report);
        }
    }

    /// Reports the `wrong` parameters with which each call fails; with a script a run can do without the model.
    fn refuse(&self, wrong: Option<&ModelError>, has_script: bool, report: &mut Report<'_>) {
        let Some(wrong) = wrong else { return };
        let message = format!("`{}`, the model of `{}`: {}", self.model, self.who, wrong.message);
        let hint = wrong.hint.as_deref().unwrap_or("choose another model");
        if has_script {
            return report.warning(codes::NO_EFFECT, self.place, message, hint);
        }
        report.error_with_hint(self.place, message, hint);
    }

    /// Warns of parameters that are left out of the requests, or changed.
    fn warn_of_refused(&self, known: &EndpointModel, report: &mut Report<'_>) {
        let Self { who, model, params, dropped, .. } = self;
        let short = known.least_to_reason(params).zip(params.max_tokens);
        let is_reasoning = |name: &&str| matches!(*name, "effort" | "thinking");
        let ignored = known.ignored(params).into_iter();
        let ignored = ignored.filter(|name| params.strict || !dropped.contains(name));
        let (reasoning, others): (Vec<&str>, Vec<&str>) =
            ignored.partition(|name| short.is_some() && is_reasoning(name));
        if let Some((least, given)) = short {
            let with = format!(" with `max_tokens: {given}`");
            let otherwise = format!("set `max_tokens: {least}` or more");
            self.warn_of_left_out(&reasoning, &with, &otherwise, report);
        }
        self.warn_of_left_out(&others, "", "choose another model", report);
        let sent = known.effort_sent(params).filter(|sent| Some(*sent) != params.effort);
        if let (Some((asked, sent)), true) =
            (params.effort.zip(sent), reasoning.is_empty() && others.is_empty())
        {
            let (asked, sent) = (asked.as_str(), sent.as_str());
            let message =
                format!("`{model}`, the model of `{who}`, has no effort `{asked}`: `{sent}` is sent");
            let hint = format!("set `effort: {sent}`, or choose another model");
            report.warning(codes::NO_EFFECT, self.place, message, hint);
        }
    }

    /// Warns that these parameters are left out of requests that have others `with` them; it is an error if each call fails because of them.
    /// `otherwise` says what to do instead of removing them.
    fn warn_of_left_out(&self, names: &[&str], with: &str, otherwise: &str, report: &mut Report<'_>) {
        let Self { who, model, is_refused, .. } = self;
        let end = match names {
            [] => return,
            [_] if self.params.strict => ", and `strict` refuses it",
            _ if self.params.strict => ", and `strict` refuses them",
            [_] => ": it is left out",
            _ => ": they are left out",
        };
        let names = enumerated(names.iter().map(|name| format!("`{name}`")));
        let message = format!("`{model}`, the model of `{who}`, does not take {names}{with}{end}");
        if *is_refused {
            let hint = format!("remove {names}, {otherwise}, or set `strict: false`");
            return report.error_with_hint(self.place, message, hint);
        }
        let hint = format!("remove {names}, or {otherwise}");
        report.warning(codes::NO_EFFECT, self.place, message, hint);
    }

    /// Warns of stop sequences that the model does not take: they have an effect, but not on the cost.
    fn warn_of_stop(&self, known: &EndpointModel, report: &mut Report<'_>) {
        let Self { who, model, params, dropped, .. } = self;
        if params.stop.is_empty() || known.takes_stop() || dropped.contains(&"stop") {
            return;
        }
        let message = format!(
            "`{model}`, the model of `{who}`, does not take `stop`: it is left out; replies are still cut there, but the rest of them is written and paid"
        );
        let hint = "ask for an end of the reply in the `system` message, or choose another model";
        report.warning(codes::NO_EFFECT, self.place, message, hint);
    }

    /// Warns of numbers that are too high for the model.
    fn warn_of_range(&self, known: &EndpointModel, report: &mut Report<'_>) {
        let Self { who, model, params, .. } = self;
        let is_sent = !known.ignored(params).contains(&"temperature");
        let hottest = known.max_temperature().map(f64::from).filter(|_| is_sent);
        if let Some((given, most)) = params.temperature.zip(hottest).filter(|(given, most)| given > most) {
            let message = format!(
                "`{model}`, the model of `{who}`, takes a temperature of at most {most}, not {given}"
            );
            let hint = format!("set `temperature: {most}` or less, or choose another model");
            report.warning(codes::OUT_OF_RANGE, self.place, message, hint);
        }
        let longest = known.max_output(&Params::default());
        let given = params.max_tokens.map(u64::from);
        if let Some((given, most)) = given.zip(longest).filter(|(given, most)| given > most) {
            let message = format!(
                "`{model}`, the model of `{who}`, writes at most {most} tokens, and `max_tokens` is {given}"
            );
            let hint = format!("set `max_tokens: {most}` or less, or choose another model");
            report.warning(codes::OUT_OF_RANGE, self.place, message, hint);
        }
    }
}
