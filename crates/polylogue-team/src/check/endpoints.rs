//! Endpoints: their names, addresses and headers.

use std::collections::{BTreeMap, HashMap, HashSet};

use polylogue_config::At;
use polylogue_models::{Config, Endpoint, Provider, model_names};

use crate::codes;
use crate::diagnostic::Report;
use crate::endpoint::{self as team, Header, canonical};
use crate::secret;
use crate::suggest;
use crate::team::Team;
use crate::text::KEEP_SECRET;
use crate::vars;

/// Headers that the HTTP client sets.
const OF_THE_TRANSPORT: [&str; 8] = [
    "host", "connection", "content-length", "content-type", "transfer-encoding", "te", "upgrade",
    "accept-encoding",
];

/// The entries of a mapping in the order of the file.
fn in_order<T>(map: &BTreeMap<String, At<T>>) -> Vec<(&String, &At<T>)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(_, value)| value.key().start);
    entries
}

pub(super) fn check(team: &Team, report: &mut Report<'_>) {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (name, endpoint) in in_order(&team.endpoints) {
        if report.full() {
            return;
        }
        check_name(name, endpoint, report);
        let line = report.source.position(endpoint.key().start).line;
        if let Some(first) = seen.insert(canonical(name), line) {
            let message = format!("an endpoint `{}` is already defined in line {first}", canonical(name));
            report.error(endpoint.key(), message);
        }
        check_headers(&endpoint.headers, report);
    }
    check_models(team, report);
}

/// Warns of unknown providers that resemble a known one. More cannot be said: a file may be part of a team whose file
/// defines the endpoint, and programs have models of their own.
fn check_models(team: &Team, report: &mut Report<'_>) {
    let own: Vec<&str> = team.endpoints.keys().map(String::as_str).collect();
    let known = own.iter().copied().chain(Provider::all().iter().map(|provider| provider.name()));
    let lists = team.named_models();
    for (model, at) in lists.flat_map(|list| model_names(list).map(move |name| (name, &list.span))) {
        let Some((provider, id)) = model.split_once([':', '/']) else { continue };
        if own.contains(&provider) || Provider::find(provider).is_some() || report.full_of_warnings() {
            continue;
        }
        if let Some(meant) = suggest::closest(provider, known.clone()) {
            let hint = format!("did you mean `{meant}:{id}`?");
            report.warning(codes::UNKNOWN_MODEL, at, format!("there is no provider `{provider}`"), hint);
        }
    }
}

fn check_name(name: &str, endpoint: &At<team::Endpoint>, report: &mut Report<'_>) {
    // A value that is not a mapping is reported by the reader.
    let is_mapping = endpoint.ok || endpoint.value != team::Endpoint::default();
    if !vars::is_name(name) {
        report.error_with_hint(
            endpoint.key(),
            format!("no endpoint can be called `{name}`"),
            vars::NAME_HINT,
        );
    } else if Provider::find(name).is_none() && is_mapping && endpoint.base_url.is_none() {
        let providers = Provider::all().iter().map(Provider::name);
        let hint = match suggest::closest(name, providers) {
            Some(provider) => format!("did you mean `{provider}`? Further endpoints need an address"),
            None => "such as `base_url: http://127.0.0.1:8000/v1`".to_owned(),
        };
        let message = format!("the endpoint `{name}` needs the key `base_url`");
        report.error_with_hint(endpoint.key(), message, hint);
    }
}

fn check_headers(headers: &BTreeMap<String, At<Header>>, report: &mut Report<'_>) {
    let mut seen: HashSet<String> = HashSet::new();
    for (name, header) in in_order(headers) {
        if report.full() {
            return;
        }
        let lower = name.to_ascii_lowercase();
        if OF_THE_TRANSPORT.contains(&lower.as_str()) {
            let message = format!("the header `{name}` cannot be set: it says how a request is sent");
            report.error(header.key(), message);
        } else if !seen.insert(lower) {
            report.error(header.key(), format!("a header `{name}` already exists"));
        }
        let text = if let Header::Text(text) = &header.value { text.as_str() } else { "x" };
        if matches!(header.value, Header::Text(_)) && header.ok && secret::is_secret_header(name) {
            let message =
                format!("keys are not allowed in team files, and the value of `{name}` looks like one");
            report.error_with_hint(&header.span, message, format!("{KEEP_SECRET}: `{{env: NAME}}`"));
        }
        if let Err(error) = sendable(name, text) {
            report.error(header.key(), error);
        }
    }
}

/// Whether a header can be sent. The text itself is in no message.
fn sendable(name: &str, text: &str) -> Result<(), String> {
    let headers = vec![(name.to_owned(), text.to_owned())];
    let config = Config { headers, ..Config::new("http://127.0.0.1") };
    Endpoint::new(config).map(drop).map_err(|error| error.message)
}

/// Reports endpoints of the same name that teams of other files define differently, which only this file can decide.
pub(super) fn check_teams(team: &Team, teams: &[Option<Team>], report: &mut Report<'_>) {
    let own: Vec<&str> = team.endpoints.keys().map(|name| canonical(name)).collect();
    let mut seen: HashMap<&str, (&team::Endpoint, &str)> = HashMap::new();
    for (sub, team) in team.teams.iter().zip(teams) {
        let Some(team) = team else { continue };
        for (name, endpoint) in team.all_endpoints().into_iter().filter(|(name, _)| !own.contains(name)) {
            let (first, whose) = *seen.entry(name).or_insert((endpoint, team.name.as_str()));
            if first != endpoint {
                let message = format!("this team has another endpoint `{name}` than the team `{whose}`");
                let hint = format!("say in this file which it is: `endpoints: {{{name}: ...}}`");
                report.error_with_hint(&sub.file.span, message, hint);
            }
        }
    }
}
