//! `polylogue check`: whether team files are right, and what they ask for.

mod graph;
mod keys;
mod no_model;
mod sarif;

use std::path::Path;

use polylogue_models::Env;
use polylogue_runtime::{ModelOptions, RequestedPermission, RunOptions, check_models, permission_text};
use polylogue_team::{Diagnostic, Diagnostics, Grant, Loaded, Overrides, TeamBound, Usage};
use serde_json::{Map, Value, json};

use self::keys::MissingKey;
use self::no_model::WithoutModel;
use super::{PIPED, piped_team, price, write, write_rows};
use crate::error::{CliError, Exit};
use crate::screen::Sanitized;
use crate::stderr::{print_error, print_warnings};
use crate::user_config::{SettingValue, default_model};
use crate::{args, trust::trust_file::TrustFile, user_prices};
use crate::{place, trust};

/// Checks every file, whatever is wrong with those before. Nothing is sent, started or read but the files.
pub(crate) fn run(cli: &args::Cli, args: &args::Check) -> Result<Exit, CliError> {
    let vars = args.vars.iter().cloned().collect();
    let outside_files = args.permits.trust || args.permits.grants.contains(&Grant::OutsideFiles);
    let default = default_model(cli, &args::Models::default())?;
    let default_model = default.as_ref().map(|given| given.value.clone());
    let overrides = Overrides { vars, outside_files, default_model, ..Overrides::default() };
    if let Some(format) = args.graph {
        return graph::run(args, format, |file| read(file, &overrides));
    }
    let env = trust::of_folder(&place::or_none(&cli.named_store()))?;
    let mut exit = Exit::Done;
    let mut findings: Vec<Diagnostic> = Vec::new();
    for file in &args.teams {
        let read = match read(file, &overrides)? {
            Ok(loaded) => with_models(args, &env, loaded)?,
            Err(found) => Err(found),
        };
        let (found, is_right) = match &read {
            Ok(loaded) => (&loaded.warnings, true),
            Err(diagnostics) => (diagnostics, false),
        };
        if !is_right || args.strict && found.iter().next().is_some() {
            exit = Exit::Usage;
        }
        if args.sarif {
            findings.extend(found.iter().cloned());
            continue;
        }
        match read {
            Ok(loaded) => {
                let wants = PermissionSummary::of(args, &env, file, &loaded)?;
                let price = args.price.then(|| price::of(&loaded.team, args.model.as_deref())).transpose()?;
                if args.json {
                    line(&of_right(file, &loaded, (&wants, price.as_ref())))?;
                } else {
                    print_summary(file, &loaded, &wants, default.as_ref())?;
                    price.map_or(Ok(()), |price| price::print(&price))?;
                }
            }
            Err(found) if args.json => {
                line(&json!({"file": file.display().to_string(), "ok": false, "problems": found}))?;
            }
            Err(found) => print_error(&found.to_string().trim_end()),
        }
    }
    if args.sarif {
        line(&sarif::document(&findings))?;
    }
    Ok(exit)
}

/// Reads a team file. `-` is standard input, which can name files below the current folder.
fn read(file: &Path, overrides: &Overrides) -> Result<Result<Loaded, Diagnostics>, CliError> {
    if file.as_os_str() != "-" {
        return Ok(trust::read(file, overrides));
    }
    Ok(polylogue_team::parse_at(&piped_team("checked")?, PIPED, &[], overrides))
}

/// The team, if its models are known, read what they receive, and have a price under a limit on money. No model is asked.
fn with_models(
    args: &args::Check,
    env: &Env,
    loaded: Loaded,
) -> Result<Result<Loaded, Diagnostics>, CliError> {
    let access = trust::known(env.clone(), &args.permits, &loaded.digest)?;
    let (model, prices) = (args.model.clone(), user_prices::read()?);
    let models = ModelOptions { model, prices, ..ModelOptions::default() };
    Ok(check_models(loaded, &access, &RunOptions { models, ..RunOptions::default() }))
}

/// What a team asks for.
struct PermissionSummary {
    all: Vec<RequestedPermission>,
    /// Whether all of it is allowed that the team needs to run.
    is_trusted: bool,
    /// Whether nothing of it is allowed, and the team runs without it.
    is_left_out: bool,
    /// The memory that it uses: whether others have written there, its store knows.
    memory: Vec<String>,
    missing_keys: Vec<MissingKey>,
    without_model: Vec<WithoutModel>,
}

impl PermissionSummary {
    fn of(args: &args::Check, env: &Env, file: &Path, loaded: &Loaded) -> Result<Self, CliError> {
        let Loaded { team, digest, outside, .. } = loaded;
        let outside = outside.iter().map(|file| RequestedPermission::new(Grant::OutsideFiles, file.as_str()));
        let usage = Usage { prices: user_prices::read()?, ..Usage::default() };
        let all: Vec<RequestedPermission> =
            RequestedPermission::of_team(team, &usage).into_iter().chain(outside).collect();
        if args.permits.trust && !all.is_empty() {
            TrustFile::trust(trust::entry(digest, team.name.as_str(), &file.display().to_string(), &all))?;
        }
        let access = trust::known(env.clone(), &args.permits, digest)?;
        let memory = team.memory_scopes().into_iter().map(|scope| scope.as_str().to_owned()).collect();
        let is_trusted = access.covers(all.iter().filter(|want| !want.is_optional()));
        let is_left_out = all.iter().all(|want| want.is_optional() && !access.has(want));
        let missing_keys = MissingKey::of(team, &access);
        let without_model = WithoutModel::of(team, args.model.as_deref());
        Ok(Self { is_trusted, is_left_out, all, memory, missing_keys, without_model })
    }
}

fn print_summary(
    file: &Path,
    Loaded { team, warnings, .. }: &Loaded,
    wants: &PermissionSummary,
    default: Option<&SettingValue>,
) -> Result<(), CliError> {
    print_warnings(warnings);
    let row = |text: &str| write_rows(&Sanitized::row(text), false);
    let agents = count(team.agents.len(), "agent");
    let chats = count(team.chats.len() + 1, "chat");
    row(&format!("{}: `{}`, {agents}, {chats}", file.display(), team.name))?;
    for (chat, words) in team.chats_in_words() {
        row(&format!("  {chat}: {words}"))?;
    }
    if let Some((model, given)) = team.default_model().zip(default) {
        let what = format!("  agents without a model use `{model}`, your default ({})", given.origin);
        row(&what)?;
    }
    if let Some(words) = WithoutModel::row(&wants.without_model) {
        row(&words)?;
    }
    for (service, document) in team.incomplete_services() {
        if let Some(words) = document.left_out_in_words() {
            row(&format!("  the service `{service}` {words}"))?;
        }
    }
    for missing in &wants.missing_keys {
        row(&missing.row())?;
    }
    if !wants.all.is_empty() {
        let state = match wants.is_trusted {
            true if wants.is_left_out => "not needed for a run, but it asks to",
            true => "trusted, and asks to",
            false => "not trusted yet, and asks to",
        };
        let asks = indented(&permission_text::list(&wants.all));
        write_rows(&Sanitized::plain(&format!("  {state}\n{asks}\n")), false)?;
    }
    if !wants.memory.is_empty() {
        row(&format!("  remembers as `{}`", wants.memory.join("`, `")))?;
    }
    Ok(())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

fn of_right(
    file: &Path,
    Loaded { team, warnings, digest, .. }: &Loaded,
    (wants, price): (&PermissionSummary, Option<&TeamBound>),
) -> Value {
    let warnings: &Diagnostics = warnings;
    let mut right = json!({
        "file": file.display().to_string(),
        "ok": true,
        "problems": warnings,
        "name": team.name.as_str(),
        "agents": team.agents.len(),
        "chats": team.chats.len() + 1,
        "default_model": team.default_model(),
        "digest": digest,
        "trusted": wants.is_trusted,
        "wants": wants.all,
        "memory": wants.memory,
        "missing_keys": wants.missing_keys,
        "without_model": wants.without_model,
    });
    let services = team.incomplete_services().into_iter();
    let left_out: Map<String, Value> =
        services.map(|(service, document)| (service, json!(document.left_out))).collect();
    if let (false, Some(right)) = (left_out.is_empty(), right.as_object_mut()) {
        right.insert("left_out".into(), left_out.into());
    }
    if let (Some(price), Some(right)) = (price, right.as_object_mut()) {
        right.insert("price".into(), json!(price));
    }
    right
}

fn line(value: &Value) -> Result<(), CliError> {
    let text = Sanitized::json(value)
        .map_err(|error| CliError::failed(format!("the output cannot be written: {error}")))?;
    write(&text)
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
