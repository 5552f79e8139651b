//! `polylogue doctor`: what the program finds on this machine.

mod abilities;
mod code;

use std::env;
use std::fmt::Write as _;
use std::path::Path;

use polylogue_core::text::enumerated;
use polylogue_core::{ModelError, Store as _};
use polylogue_models::{Auth, Config, Env, Provider};
use polylogue_runtime::Access;
use polylogue_runtime::address::{is_local, listens, shown};
use polylogue_runtime::memory::memory_of_others;
use polylogue_runtime::models::{LocalResources, endpoint_allowed, local_resources};
use polylogue_team::{Endpoint, Grant, Loaded, Overrides, Team, Usage};

use super::write_rows;
use crate::error::{CliError, Exit};
use crate::limit::counted;
use crate::probe::ollama;
use crate::screen::Sanitized;
use crate::stderr::print_warnings;
use crate::trust::{self, PermissionRequest};
use crate::user_config::{SettingValue, default_model};
use crate::{args, place, user_prices};

/// Says what is there; values of keys are never shown. Fails when the store cannot be used.
pub(crate) async fn run(cli: &args::Cli, args: &args::Doctor) -> Result<Exit, CliError> {
    let default = default_model(cli, &args::Models::default())?;
    let loaded = args.team.as_deref().map(|file| team(file, args, default.as_ref())).transpose()?;
    let access = access(cli, args, loaded.as_ref()).await?;
    let (team, env) = (loaded.map(|loaded| loaded.team), &access.env);
    let (version, os, arch) = (env!("CARGO_PKG_VERSION"), env::consts::OS, env::consts::ARCH);
    let mut text = format!("polylogue {version}, {os} {arch}\n\n");
    text.push_str("models\n");
    for provider in Provider::all().iter().filter(|provider| has_own_key(provider)) {
        rows(&mut text, provider.name(), finding(provider, env).await);
    }
    rows(&mut text, "local", vec![local(env)]);
    if let Some(SettingValue { value, origin }) = &default {
        rows(&mut text, "default", vec![format!("{value}, from {origin}")]);
    }
    rows(&mut text, "prices", user_prices::findings()?);
    if let Some(team) = &team {
        let _ = write!(text, "\nendpoints of {}\n{}", team.name, endpoints(team, &access).await);
    }
    text.push_str(&abilities::report(args, team.as_ref(), &access).await?);
    text.push_str(&addresses(env));
    text.push_str("\nsandbox\n");
    code::findings().into_iter().for_each(|(name, found)| rows(&mut text, name, vec![found]));
    let store = self::store(cli).await;
    let _ = write!(text, "\nconversations\n  {}\n", store.as_ref().unwrap_or_else(|(what, _)| what));
    write_rows(&Sanitized::plain(&text), false)?;
    store.map(|_| Exit::Done).map_err(|(_, error)| error)
}

fn team(file: &Path, args: &args::Doctor, default: Option<&SettingValue>) -> Result<Loaded, CliError> {
    let (vars, default_model) =
        (args.vars.iter().cloned().collect(), default.map(|given| given.value.clone()));
    let overrides = Overrides { vars, default_model, ..Overrides::default() };
    let loaded = trust::load(file, &overrides, &args.permits)?;
    print_warnings(&loaded.warnings);
    Ok(loaded)
}

/// What may be used. To ask models, all that the team asks for has to be allowed; else nothing that is not allowed is reached.
async fn access(cli: &args::Cli, args: &args::Doctor, loaded: Option<&Loaded>) -> Result<Access, CliError> {
    let env = trust::of_folder(&place::or_none(&cli.named_store()))?;
    if let (Some(Loaded { team, digest, outside, .. }), true) = (loaded, args.probe || args.permits.trust) {
        let place = place::of(&cli.named_store())?;
        let of_others = memory_of_others(team, &place, digest).await?;
        let scopes = team.memory_scopes().into_iter().map(|scope| scope.as_str().to_owned());
        let request = PermissionRequest {
            team,
            digest,
            file: &args.team.as_deref().unwrap_or(Path::new("")).display().to_string(),
            outside,
            usage: Usage { prices: user_prices::read()?, ..Usage::default() },
            permits: &args.permits,
            before: Vec::new(),
            memory: scopes.filter(|scope| of_others.contains(scope)).collect(),
            asks: true,
            shows_permissions: true,
        };
        return request.resolve(env).await;
    }
    let digest = loaded.map(|loaded| loaded.digest.as_str()).unwrap_or_default();
    let trusts = args.permits.trust || args.permits.grants.contains(&Grant::Dotenv);
    trust::known(if trusts { env.trusting() } else { env }, &args.permits, digest)
}

/// What is said of addresses in `.env` that are not used.
fn addresses(env: &Env) -> String {
    let names = trust::addresses(env);
    if names.is_empty() {
        return String::new();
    }
    let names = names.join("`, `");
    format!(
        "\naddresses in .env\n  not used: `{names}`; a run asks before it uses them, or takes `--allow dotenv`\n"
    )
}

/// The endpoints that a team speaks of, a few lines each.
async fn endpoints(team: &Team, access: &Access) -> String {
    let mut text = String::new();
    for (name, endpoint) in team.all_endpoints() {
        let lines = match endpoint_allowed(team, name, access) {
            Ok(()) => of_endpoint(name, endpoint, &access.env).await,
            Err(_) => untrusted(endpoint),
        };
        rows(&mut text, name, lines);
    }
    if text.is_empty() { "  no key of its own\n".to_owned() } else { text }
}

/// A name, and lines next to it, with at least two blanks between: they are columns, which a terminal does not break between words. The
/// lines of all rows are below each other, unless a name is longer than those of all providers.
fn rows(text: &mut String, name: &str, lines: Vec<String>) {
    let widest = Provider::all().iter().map(|provider| provider.name().len()).max().unwrap_or_default();
    let width = name.chars().count().max(widest);
    for (index, line) in lines.into_iter().enumerate() {
        let _ = writeln!(text, "  {:<width$}  {line}", if index == 0 { name } else { "" });
    }
}

/// An endpoint that is not reached, and no key looked up for it.
fn untrusted(endpoint: &Endpoint) -> Vec<String> {
    let at = endpoint.base_url.as_deref().map(|url| format!(" at {}", shown(url))).unwrap_or_default();
    let variables: Vec<String> = endpoint.variables().map(|name| format!("`{name}`")).collect();
    let sent =
        (!variables.is_empty()).then(|| format!("it would be sent what is in {}", enumerated(&variables)));
    let first =
        format!("not reached{at}: the team file is not trusted (`--allow endpoints,env`, or `--trust`)");
    [first].into_iter().chain(sent).collect()
}

async fn of_endpoint(name: &str, endpoint: &Endpoint, env: &Env) -> Vec<String> {
    let config = match endpoint.config(name, env) {
        Ok(config) => config,
        Err(error) => return vec![error.message],
    };
    let address = shown(&config.base_url);
    let (at, ollama) = match is_local(&config) {
        true if listens(&config.base_url).await => (format!("answers at {address}"), ollama(&config).await),
        true => (format!("nothing answers at {address}"), Vec::new()),
        false => (format!("at {address}"), Vec::new()),
    };
    let key = match (&config.key, config.key_variables.join("` or `")) {
        (Some(_), variables) => Some(format!("key found in `{variables}`")),
        (None, variables) if config.needs_key => Some(format!("no key: set `{variables}`")),
        (None, _) => None,
    };
    let headers = endpoint.headers.keys().map(|header| format!("`{header}`")).collect::<Vec<_>>().join(", ");
    let headers = (!headers.is_empty()).then(|| format!("headers {headers}"));
    [at].into_iter().chain(ollama).chain(key).chain(headers).chain([bounds(&config)]).collect()
}

fn bounds(config: &Config) -> String {
    let limits = config.limits;
    let mut bounds: Vec<String> =
        limits.in_flight.map(|most| format!("{most} at once")).into_iter().collect();
    bounds.extend(limits.per_minute.map(|most| format!("{most} a minute")));
    let total = config.timeouts.total;
    let [first, total] = [config.timeouts.first_token.min(total), total].map(|time| time.as_secs_f64());
    format!("at most {}; {first} s to the first word, {total} s in all", bounds.join(", "))
}

/// What is known of a provider without asking it anything that costs.
async fn finding(provider: &Provider, env: &Env) -> Vec<String> {
    let config = match provider.config(env) {
        Ok(config) => config,
        Err(error) => return vec![lacking(provider, &error)],
    };
    let key = config.key_variables.iter().find(|name| env.get(name).is_some());
    let address = shown(&config.base_url);
    let found = match (key, !config.is_usable(), provider.is_local()) {
        (_, _, true) if listens(&config.base_url).await => {
            let answers = format!("answers at {address}");
            return [answers].into_iter().chain(ollama(&config).await).collect();
        }
        (_, _, true) => format!("nothing answers at {address}"),
        (Some(variable), _, _) => format!("key found in `{variable}`, at {address}"),
        (None, true, _) => match config.missing_credentials() {
            Some(ModelError { message, hint, .. }) => format!("{message}: {}", hint.unwrap_or_default()),
            None => format!("no key: set `{}`", config.key_variables.join("` or `")),
        },
        (None, false, _) if matches!(config.auth, Auth::Aws(_)) => {
            format!("no key: the credentials of the default profile are used, at {address}")
        }
        (None, false, _) => format!("no key needed, at {address}"),
    };
    vec![found]
}

/// Whether it is no other name of a provider, with the same key.
fn has_own_key(provider: &Provider) -> bool {
    let table = Provider::find(provider.table_name());
    provider.table_name() == provider.name()
        || table.is_none_or(|table| table.key_variables() != provider.key_variables())
}

/// What models in the process can use.
fn local(env: &Env) -> String {
    match local_resources(env) {
        Err(error) => error.message.to_string(),
        Ok(None) => "not built in: build the program with `--features local`".to_owned(),
        Ok(Some(LocalResources { threads, memory, window })) => {
            let threads = counted(threads as u64, "thread");
            let memory = memory.map(|mib| format!(", at most {mib} MiB of memory")).unwrap_or_default();
            format!("built in: {threads}{memory}, context windows of at most {window} tokens")
        }
    }
}

/// What a provider lacks, and which variable has it.
fn lacking(provider: &Provider, error: &ModelError) -> String {
    let lacks = error.message.split_once(" has ").map_or(&*error.message, |(_, lacks)| lacks);
    match &error.hint {
        Some(hint) if !lacks.starts_with("no address") => format!("{lacks}: {hint}"),
        _ => format!("not configured: set `{}`", provider.address_variables().join("` or `")),
    }
}

async fn store(cli: &args::Cli) -> Result<String, (String, CliError)> {
    let tried = async {
        let runtime = place::open(&cli.named_store())?;
        let (place, logs) = (runtime.place(), runtime.store().count().await?);
        let mut text = format!("{logs} in {} ({place})", place.shown());
        place.warnings().await?.iter().for_each(|warning| text.push_str(&format!("\n  warning: {warning}")));
        Ok((runtime, text))
    };
    let (runtime, text) = tried.await.map_err(|error: CliError| ("cannot be used".to_owned(), error))?;
    // Tables of a later version can be read, and so can a disk that is full.
    match runtime.store().check_writable().await {
        Ok(()) => Ok(text),
        Err(error) => Err((format!("{text}\n  cannot be written"), error.into())),
    }
}
