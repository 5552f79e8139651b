//! What models can do besides writing text: what is configured, what turned out, and what three questions find out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use polylogue_core::{Capabilities, Capability, Model as _, ModelError};
use polylogue_models::{
    Config, EndpointModel, Env, Finding, KnownModel, LearnedCapabilities, Models, Probed, Provider,
    model_names,
};
use polylogue_runtime::Access;
use polylogue_runtime::models::{LocalModelInfo, endpoint_allowed, local_model_info};
use polylogue_team::Team;

use crate::error::CliError;
use crate::stderr::print_note_wrapped;
use crate::trust::addresses;
use crate::{args, place};

const CAPABILITIES: [(Capability, &str); 3] =
    [(Capability::Tools, "tools"), (Capability::Schema, "schema"), (Capability::Json, "JSON mode")];

/// A section on what is known of models: those that are asked about, else all that were ever asked.
pub(super) async fn report(
    args: &args::Doctor,
    team: Option<&Team>,
    access: &Access,
) -> Result<String, CliError> {
    let known = place::of_capabilities().map(LearnedCapabilities::at);
    let given = args.model.iter().flat_map(|list| model_names(list));
    let mut names: Vec<String> = given.map(str::to_owned).collect();
    if names.is_empty() {
        names.extend(team.iter().flat_map(|team| team.models()).map(str::to_owned));
    }
    if args.probe && names.is_empty() {
        return Err(CliError::usage("there is no model to ask")
            .hint("name one with `--model ollama:llama3.2`, or a team file that names some"));
    }
    let kept = known.as_ref().map(|known| format!(" (cached in {})", known.place().display()));
    let mut text = format!("\ncapabilities of models{}\n", kept.unwrap_or_default());
    if names.is_empty() {
        text.push_str(&all(known.as_ref()));
        return Ok(text);
    }
    refuse_addresses(args, &access.env)?;
    let reach = Reachability::of(team, access, known.as_ref());
    for name in names {
        let _ = writeln!(text, "  {name}");
        if let Some(info) = local_model_info(team, &name, access) {
            text.push_str(&of_local(info));
            continue;
        }
        match reach.model(&name) {
            Err(error) => drop(writeln!(text, "    cannot be asked: {}", error.message)),
            Ok(model) => {
                if args.probe {
                    text.push_str(&probe(&model).await);
                }
                text.push_str(&of(&model));
            }
        }
    }
    Ok(text)
}

/// Models are not asked while addresses in `.env` are not trusted: the questions would go to other places than runs go to.
fn refuse_addresses(args: &args::Doctor, env: &Env) -> Result<(), CliError> {
    let names = addresses(env);
    if !args.probe || names.is_empty() {
        return Ok(());
    }
    let what = format!("`.env` gives addresses, which are not trusted: `{}`", names.join("`, `"));
    Err(CliError::usage(what).hint("if you trust them, add `--allow dotenv`; otherwise remove them"))
}

/// The models of the environment and of a team.
struct Reachability {
    models: Models,
    /// Why an endpoint of the team cannot be used, by its name.
    broken: BTreeMap<String, ModelError>,
}

impl Reachability {
    /// The models of the environment and of `team`, with what is known of them.
    fn of(team: Option<&Team>, access: &Access, known: Option<&LearnedCapabilities>) -> Self {
        let env = &access.env;
        let models = Models::new(env.clone());
        let define = |config: Config| models.define(Config { known: known.cloned(), ..config }).map(drop);
        for provider in Provider::all() {
            // One without an address is reported when it is asked for.
            let _ = provider.config(env).and_then(define);
        }
        let own = team.iter().flat_map(|team| team.all_endpoints().into_iter().map(|own| (*team, own)));
        let tried = own.map(|(team, (name, endpoint))| {
            let config = endpoint_allowed(team, name, access).and_then(|()| endpoint.config(name, env));
            (name, config.and_then(define))
        });
        let broken = tried.filter_map(|(name, tried)| Some((name.to_owned(), tried.err()?))).collect();
        Self { models, broken }
    }

    fn model(&self, name: &str) -> Result<EndpointModel, ModelError> {
        let provider = name.split([':', '/']).next().unwrap_or_default().trim();
        self.broken.get(provider).map_or_else(|| self.models.model(name), |error| Err(error.clone()))
    }
}

/// Asks, and says what it took and what went wrong.
async fn probe(model: &EndpointModel) -> String {
    print_note_wrapped(&format!(
        "`{}` is asked three short questions, which cost a few hundred tokens.",
        model.name()
    ));
    match model.probe().await {
        Ok(probed) => {
            let tokens: Option<u64> = probed.iter().map(|probed| probed.usage.total()).sum();
            let tokens = tokens.map(|tokens| format!(", with {tokens} tokens")).unwrap_or_default();
            let unclear = probed.iter().filter(|probed| probed.has.is_none());
            let unclear: String = unclear.map(unclear_line).collect();
            format!("    asked now{tokens}\n{unclear}")
        }
        Err(error) => format!("    could not be asked now: {}\n", error.message),
    }
}

fn unclear_line(probed: &Probed) -> String {
    format!("    whether it is capable of {} did not turn out: {}\n", probed.capability, probed.why)
}

fn of(model: &EndpointModel) -> String {
    let (name, spec) = (model.name(), model.capabilities());
    let found = model.endpoint().findings(name.split_once(':').map_or(name, |(_, model)| model));
    let lines = CAPABILITIES
        .iter()
        .map(|(capability, word)| line(word, spec.has(*capability), found.get(capability)));
    // It is never found out.
    let known = name.split_once(':').and_then(|(provider, model)| KnownModel::find(provider, model));
    let of_table = known.and_then(|known| known.capabilities().vision);
    let vision = spec.vision.map(|has| match of_table == Some(has) {
        true => format!("    {:<10} {}, by the table of models\n", "vision", yes_or_no(has)),
        false => line("vision", Some(has), None),
    });
    lines.chain(vision).collect()
}

/// A model in the process, whose file says all of it.
fn of_local(info: Result<LocalModelInfo, ModelError>) -> String {
    let info = match info {
        Ok(info) => info,
        Err(error) => return format!("    cannot be used: {}\n", error.message),
    };
    let tools = if info.tools { "yes" } else { "no: its chat template does not say how to call tools" };
    let lines = [("tools", tools), ("schema", "yes"), ("JSON mode", "yes")];
    let lines = lines.map(|(word, says)| format!("    {word:<10} {says}\n"));
    format!("    in the process: {info}\n{}", lines.concat())
}

fn all(known: Option<&LearnedCapabilities>) -> String {
    let mut text = String::new();
    for (base_url, model, findings) in known.map(LearnedCapabilities::all).unwrap_or_default() {
        let _ = writeln!(text, "  {model} at {base_url}");
        let unset = Capabilities::default();
        let lines = CAPABILITIES
            .iter()
            .map(|(capability, word)| line(word, unset.has(*capability), findings.get(capability)));
        text.extend(lines);
    }
    if text.is_empty() {
        text.push_str("  not probed yet: detected in use, or tested by `--probe`\n");
    }
    text
}

const fn yes_or_no(has: bool) -> &'static str {
    if has { "yes" } else { "no" }
}

/// What is known of one capability, and why.
fn line(word: &str, configured: Option<bool>, found: Option<&Finding>) -> String {
    let report = match (configured, found) {
        (Some(has), _) => format!("{}, as configured", yes_or_no(has)),
        (None, None) => "unknown".to_owned(),
        (None, Some(found)) if !found.is_fresh() => {
            format!("unknown; {} when it was last asked, over a day ago", yes_or_no(found.has))
        }
        (None, Some(found)) if found.has => "yes".to_owned(),
        (None, Some(found)) => format!("no: {}", found.why.trim_end_matches('.')),
    };
    format!("    {word:<10} {report}\n")
}
