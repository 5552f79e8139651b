//! Endpoints: what they are called, where they are, and that no secret is shown or kept.

use std::collections::{HashMap, HashSet};

use polylogue_models::{Config, Endpoint, Provider};

use crate::diagnostic::Report;
use crate::endpoint::canonical;
use crate::secret;
use crate::suggest;
use crate::team::Team;
use crate::text::KEEP_SECRET;
use crate::vars;
use crate::yaml::{Data, Entry, Node};

/// Headers that the HTTP client sets.
const OF_THE_TRANSPORT: [&str; 8] = [
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "te",
    "upgrade",
    "accept-encoding",
];

pub(super) fn check(root: &Node, report: &mut Report<'_>) {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for entry in root.get("endpoints").entries() {
        if report.full() {
            return;
        }
        check_name(entry, report);
        let line = report.source.position(entry.key_span.start).line;
        if let Some(first) = seen.insert(canonical(&entry.key), line) {
            let message =
                format!("there is an endpoint `{}` already, in line {first}", canonical(&entry.key));
            report.error(&entry.key_span, message);
        }
        check_headers(entry.value.get("headers").entries(), report);
    }
    check_models(root, report);
}

/// Warns of providers that are none and nearly one. More cannot be said: a file may be part of a team whose file knows
/// the endpoint, and programs have models of their own.
fn check_models(root: &Node, report: &mut Report<'_>) {
    let own: Vec<&str> = root.get("endpoints").entries().iter().map(|entry| entry.key.as_str()).collect();
    let mut known = own.clone();
    known.extend(Provider::all().iter().map(|provider| provider.name()));
    let chats = std::iter::once(root.get("chat")).chain(root.get("chats").items());
    let reflected = chats.map(|chat| chat.get("summary").get("reflect"));
    for node in std::iter::once(root).chain(root.get("agents").items()).chain(reflected) {
        let model = node.get("model");
        let Some((provider, id)) = model.text().and_then(|text| text.split_once([':', '/'])) else {
            continue;
        };
        if own.contains(&provider) || Provider::find(provider).is_some() || report.full() {
            continue;
        }
        if let Some(meant) = suggest::closest(provider, known.iter().copied()) {
            let hint = format!("did you mean `{meant}:{id}`?");
            report.warning(&model.span, format!("there is no provider `{provider}`"), hint);
        }
    }
}

fn check_name(entry: &Entry, report: &mut Report<'_>) {
    let name = &entry.key;
    if !vars::is_name(name) {
        let hint = "a name begins with a letter, followed by letters, digits, `_` and `-`";
        report.error_with_hint(&entry.key_span, format!("no endpoint can be called `{name}`"), hint);
    } else if Provider::find(name).is_none()
        && matches!(entry.value.data, Data::Map(_))
        && entry.value.entry("base_url").is_none()
    {
        let providers = Provider::all().iter().map(Provider::name);
        let hint = match suggest::closest(name, providers) {
            Some(provider) => format!("did you mean `{provider}`? Further endpoints need an address"),
            None => "such as `base_url: http://127.0.0.1:8000/v1`".to_owned(),
        };
        report.error_with_hint(
            &entry.key_span,
            format!("the endpoint `{name}` needs the key `base_url`"),
            hint,
        );
    }
}

fn check_headers(headers: &[Entry], report: &mut Report<'_>) {
    let mut seen: HashSet<String> = HashSet::new();
    for Entry { key, key_span, value } in headers {
        if report.full() {
            return;
        }
        let name = key.to_ascii_lowercase();
        if OF_THE_TRANSPORT.contains(&name.as_str()) {
            report
                .error(key_span, format!("the header `{key}` cannot be set: it says how a request is sent"));
        } else if !seen.insert(name) {
            report.error(key_span, format!("there is a header `{key}` already"));
        }
        if let (true, Some(text)) = (secret::is_secret_header(key), value.text())
            && !secret::looks_like_key(text)
        {
            let message = format!("a key never stands in a team file, and `{key}` looks like one");
            report.error_with_hint(&value.span, message, format!("{KEEP_SECRET}: `{{env: NAME}}`"));
        }
        // A text that holds variables is looked at for what can be known of it.
        let text = value.text().unwrap_or("x");
        if let Err(error) = sendable(key, text) {
            report.error(key_span, error);
        }
    }
}

/// Whether a header can be sent. The text itself is in no message.
fn sendable(name: &str, text: &str) -> Result<(), String> {
    let headers = vec![(name.to_owned(), text.to_owned())];
    let config = Config { headers, ..Config::new("http://127.0.0.1") };
    Endpoint::new(config).map(drop).map_err(|error| error.message)
}

/// Says of two teams of other files that they mean different endpoints by one name, which only this file can
/// decide.
pub(super) fn check_teams(root: &Node, teams: &[Option<Team>], report: &mut Report<'_>) {
    let own: Vec<&str> = root.get("endpoints").entries().iter().map(|entry| canonical(&entry.key)).collect();
    let mut seen: HashMap<&str, (&crate::Endpoint, &str)> = HashMap::new();
    for (entry, team) in root.get("teams").items().iter().zip(teams) {
        let Some(team) = team else { continue };
        for (name, endpoint) in team.all_endpoints().into_iter().filter(|(name, _)| !own.contains(name)) {
            let (first, whose) = *seen.entry(name).or_insert((endpoint, team.name.as_str()));
            if first != endpoint {
                let message = format!("this team has another endpoint `{name}` than the team `{whose}`");
                let hint = format!("say in this file which it is: `endpoints: {{{name}: ...}}`");
                report.error_with_hint(&entry.get("file").span, message, hint);
            }
        }
    }
}

/// Hides whatever may be a secret in a file, before a line of it is shown.
pub(super) fn hide_secrets(root: &Node, report: &mut Report<'_>) {
    hide_keys(root, report);
    for endpoint in root.get("endpoints").entries() {
        hide_strange_variable(endpoint.value.get("key"), report);
        for header in endpoint.value.get("headers").entries() {
            hide_strange_variable(header.value.get("env"), report);
            if secret::is_secret_header(&header.key) && !matches!(header.value.data, Data::Map(_)) {
                report.hide(&header.value.span);
            }
        }
    }
}

/// Where the name of a variable belongs, what is none may be a key.
fn hide_strange_variable(node: &Node, report: &mut Report<'_>) {
    if !node.text().is_some_and(crate::text::is_variable) {
        report.hide(&node.span);
    }
}

fn hide_keys(node: &Node, report: &mut Report<'_>) {
    match &node.data {
        Data::Text(text) if secret::looks_like_key(text) => report.hide(&node.span),
        Data::List(items) => items.iter().for_each(|item| hide_keys(item, report)),
        Data::Map(entries) => entries.iter().for_each(|entry| hide_keys(&entry.value, report)),
        _ => {}
    }
}
