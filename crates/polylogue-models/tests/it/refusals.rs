//! What each provider answers to wrong keys, expired tokens, unknown models, accounts without access or credit: a typed error that
//! says what to do, and never the key.

use std::collections::BTreeMap;

use crate::common::{KEY, quick, reply};
use polylogue_core::{Fault, ModelError, ModelErrorKind as Kind};
use polylogue_models::{Config, Endpoint, Env, Provider};
use polylogue_test::server::{Behavior, Server};
use serde::Deserialize;
use serde_json::Value;

/// What a provider answers to a request that it refuses.
#[derive(Deserialize)]
struct Row {
    status: u16,
    /// Amazon's type, in a header.
    #[serde(default)]
    r#type: String,
    body: Value,
    fault: String,
    hint: String,
    sent: usize,
}

/// The rows of each provider, or of one of its ways to authorize requests.
fn rows() -> BTreeMap<String, Vec<Row>> {
    serde_saphyr::from_str(include_str!("../data/refusals.yaml")).unwrap()
}

/// The configuration by the environment, in which every secret is [`KEY`].
fn config(name: &str, server: &Server) -> Config {
    let provider = name.strip_suffix("-signed").or(name.strip_suffix("-token")).unwrap_or(name);
    let found = Provider::find(provider).unwrap();
    let url = match provider {
        "azure" | "anthropic" | "gemini" | "vertex" | "bedrock" | "ollama" => server.root_url(),
        "foundry" => format!("{}/anthropic", server.root_url()),
        _ => server.base_url(),
    };
    let secrets: &[(&str, &str)] = match name {
        "bedrock-signed" => &[
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", KEY),
            ("AWS_SESSION_TOKEN", KEY),
            ("AWS_CONFIG_FILE", "/none"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/none"),
        ],
        "azure-token" => &[("AZURE_OPENAI_AD_TOKEN", KEY)],
        _ => &[(found.key_variables()[0], KEY)],
    };
    let places = [
        ("AWS_REGION", "eu-west-1"),
        ("GOOGLE_CLOUD_PROJECT", "p"),
        ("GOOGLE_CLOUD_LOCATION", "global"),
        (found.url_variables()[0], &*url),
    ];
    let config = found.config(&Env::of(places.into_iter().chain(secrets.iter().copied()))).unwrap();
    Config { retries: quick(2), ..config }
}

fn answer(row: &Row) -> Behavior {
    let body = row.body.to_string().replace("<key>", KEY);
    let (status, kind, length) = (row.status, &row.r#type, body.len());
    Behavior::raw(format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nx-amzn-errortype: {kind}\r\n\
         content-length: {length}\r\n\r\n{body}"
    ))
}

/// What the provider says in a body of an error.
fn said(body: &Value) -> &str {
    let places = ["/error/message", "/error", "/message", "/Message", "/detail"];
    places.iter().find_map(|place| body.pointer(place)?.as_str()).unwrap_or_default()
}

/// What of `row` does not hold of `error`.
fn wrong(row: &Row, error: &ModelError, sent: usize) -> Vec<String> {
    let is_spent = ["billing page", "quota of the day", "quota of the service"].contains(&&*row.hint);
    let kind = match &*row.fault {
        "config" => Kind::Config,
        _ if is_spent => Kind::QuotaExceeded,
        _ => Kind::Unavailable,
    };
    let (shown, hint) = (format!("{error} {error:?}"), error.hint.as_deref().unwrap_or_default());
    let repeats = row.body.to_string().contains("<key>");
    let said = said(&row.body).trim_end_matches('.').replace("<key>", "[key]");
    let checks = [
        (error.kind == kind && error.status == Some(row.status), format!("it is {:?}", error.kind)),
        (!said.is_empty() && error.message.contains(&said), "the provider's words".into()),
        (
            error.fault() == if row.fault == "config" { Fault::Config } else { Fault::Provider },
            "the fault".into(),
        ),
        (hint.contains(&row.hint), format!("the hint is: {hint}")),
        (sent == row.sent, format!("sent {sent} times")),
        (!shown.contains(KEY) && (!repeats || shown.contains("[key]")), format!("the key is in: {shown}")),
    ];
    checks.into_iter().filter(|(holds, _)| !holds).map(|(_, what)| format!("{error}: {what}")).collect()
}

#[tokio::test]
async fn every_refusal_of_every_provider_has_its_fault_and_hint_and_never_shows_the_key() {
    let mut found = Vec::new();
    for (name, rows) in rows() {
        for row in rows {
            let server = Server::start(answer(&row)).await;
            let model = Endpoint::new(config(&name, &server)).unwrap().model("m");
            let error = reply(&model).await.unwrap_err();
            found.extend(wrong(&row, &error, server.count()));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The first row of each provider, under status 200, but for Amazon, whose replies are frames.
#[tokio::test]
async fn a_wrong_key_under_status_200_is_not_tried_again() {
    for (name, rows) in rows().into_iter().filter(|(name, _)| !name.starts_with("bedrock")) {
        let row = Row { status: 200, ..rows.into_iter().next().unwrap() };
        let server = Server::start(answer(&row)).await;
        let error = reply(&Endpoint::new(config(&name, &server)).unwrap().model("m")).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains(KEY), "{name}: {error:?}");
        assert_eq!(server.count(), 1, "{name}: {error:?}");
    }
}

/// What has to be set besides a key is named before anything is sent.
#[test]
fn a_missing_address_region_or_project_is_named() {
    for (provider, variables, says, hint) in [
        ("bedrock", vec![("AWS_BEARER_TOKEN_BEDROCK", KEY)], "region", "`AWS_REGION`"),
        ("vertex", vec![("GOOGLE_CLOUD_LOCATION", "eu")], "no project", "`GOOGLE_CLOUD_PROJECT`"),
        ("vertex", vec![("GOOGLE_CLOUD_PROJECT", "p")], "no region", "`GOOGLE_CLOUD_LOCATION`"),
        ("azure", vec![("AZURE_OPENAI_API_KEY", KEY)], "`AZURE_OPENAI_ENDPOINT`", "azure.com"),
        ("foundry", vec![("ANTHROPIC_FOUNDRY_API_KEY", KEY)], "`ANTHROPIC_FOUNDRY_BASE_URL`", "azure.com"),
        ("compatible", vec![("OPENAI_API_KEY", KEY)], "`OPENAI_BASE_URL`", "base URL"),
    ] {
        let error = Provider::find(provider).unwrap().config(&Env::of(variables)).unwrap_err();
        assert_eq!(error.kind, Kind::Config, "{provider}: {error:?}");
        assert!(error.message.contains(says), "{provider}: {error:?}");
        assert!(error.hint.clone().unwrap().contains(hint), "{provider}: {error:?}");
        assert!(!format!("{error:?}").contains(KEY));
    }
}
