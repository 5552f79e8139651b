//! Gemini at Vertex AI: its address, its credentials, and its access tokens.

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{Entry, Model as _, ModelErrorKind as Kind, Params, ToolResult, ToolSpec};
use polylogue_models::{
    Api, Config, Endpoint, EndpointModel, Env, GoogleCredentials, Models, Provider, Retries, Timeouts,
};
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use serde_json::json;
use tokio::net::TcpListener;

use crate::common::{Asked, ask, quick, weather};
use crate::gemini::NEW;
use crate::tokens::Tokens;

/// The file of a user's credentials for tokens of `tokens`.
fn file_for(tokens: &Tokens, folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("credentials.json");
    let file = json!({
        "type": "authorized_user", "client_id": "id", "client_secret": "a-client-secret",
        "refresh_token": "a-refresh-token", "quota_project_id": "acme",
        "token_uri": format!("{}/token", tokens.address),
    });
    std::fs::write(&path, file.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The file of a workload, whose token is in a file next to it and is exchanged at `tokens`, and then at `accounts`.
fn workload_file(tokens: &Tokens, accounts: Option<&Tokens>, folder: &tempfile::TempDir) -> String {
    let (path, token) = (folder.path().join("credentials.json"), folder.path().join("token"));
    let file = json!({
        "type": "external_account", "audience": "//iam.googleapis.com/projects/1/pools/p/providers/q",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": format!("{}/token", tokens.address),
        "service_account_impersonation_url": accounts.map(|accounts| format!("{}/sa:generateAccessToken", accounts.address)),
        "credential_source": {"file": token}, "quota_project_id": "acme",
    });
    std::fs::write(&path, file.to_string()).unwrap();
    std::fs::write(&token, "a-token-of-kubernetes").unwrap();
    path.to_str().unwrap().to_owned()
}

fn env(server: &Server, file: &str) -> Env {
    Env::of([
        ("VERTEX_BASE_URL", server.root_url()),
        ("GOOGLE_CLOUD_LOCATION", "europe-west4".to_owned()),
        ("GOOGLE_APPLICATION_CREDENTIALS", file.to_owned()),
    ])
}

fn config(server: &Server, file: &str, retries: Retries) -> Config {
    let config = Provider::find("vertex").unwrap().config(&env(server, file)).unwrap();
    assert!(!config.needs_key, "the credentials are enough");
    Config { retries, ..config }
}

/// P67: tokens are cached, and one that the server refuses is replaced once.
#[tokio::test]
async fn a_token_is_requested_once_for_many_requests_and_again_when_it_is_refused() {
    let (folder, tokens) = (tempfile::tempdir().unwrap(), Tokens::start(200, "refresh_token").await);
    let server = Server::start(Behavior::from("fine").key("token-2")).await;
    let endpoint = Endpoint::new(config(&server, &file_for(&tokens, &folder), Retries::none())).unwrap();
    let model = endpoint.model(NEW);
    for _ in 0..3 {
        ask(&model, &Asked::default()).await.0.unwrap();
    }
    let sent: Vec<_> =
        server.requests().iter().map(|request| request.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(sent, ["Bearer token-1", "Bearer token-2", "Bearer token-2", "Bearer token-2"]);
    assert_eq!(tokens.count(), 2);
    let path = "/v1/projects/acme/locations/europe-west4/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse";
    assert_eq!(server.requests()[0].path, path);
    assert_eq!(server.requests()[0].header("x-goog-api-key"), None);
}

/// Workload identity federation: the token of another issuer, in a file, is exchanged for one of Google, and that for one of a service
/// account.
#[tokio::test]
async fn a_workload_exchanges_the_token_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let (tokens, accounts) =
        (Tokens::start(200, "subject_token").await, Tokens::of_service_account(200).await);
    let server = Server::start(Behavior::from("fine").key("service-token-1")).await;
    let file = workload_file(&tokens, Some(&accounts), &folder);
    let model = Endpoint::new(config(&server, &file, Retries::none())).unwrap().model(NEW);
    for _ in 0..2 {
        ask(&model, &Asked::default()).await.0.unwrap();
    }
    assert_eq!((tokens.count(), accounts.count(), server.count()), (1, 1, 2));
    assert!(tokens.last().ends_with("&subject_token=a-token-of-kubernetes"), "{}", tokens.last());
    let asked = accounts.last();
    assert!(
        asked.starts_with("POST /sa:generateAccessToken ") && asked.contains("Bearer token-1\r\n"),
        "{asked}"
    );
    assert!(asked.ends_with(r#"{"scope":["https://www.googleapis.com/auth/cloud-platform"]}"#), "{asked}");
    // Without a service account the first token is used.
    let file = workload_file(&tokens, None, &folder);
    let server = Server::start(Behavior::from("fine").key("token-2")).await;
    let model = Endpoint::new(config(&server, &file, Retries::none())).unwrap().model(NEW);
    ask(&model, &Asked::default()).await.0.unwrap();
    assert_eq!((tokens.count(), accounts.count()), (2, 1));
}

#[tokio::test]
async fn a_service_account_that_a_workload_cannot_use_is_an_error_without_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let (tokens, accounts) =
        (Tokens::start(200, "subject_token").await, Tokens::of_service_account(403).await);
    let server = Server::start(Behavior::from("fine")).await;
    let file = workload_file(&tokens, Some(&accounts), &folder);
    let endpoint = Endpoint::new(config(&server, &file, quick(3))).unwrap();
    let error = ask(&endpoint.model(NEW), &Asked::default()).await.0.unwrap_err();
    assert_eq!((&error.kind, server.count(), accounts.count()), (&Kind::Config, 0, 1));
    assert!(
        error.message.starts_with("no access token: ") && error.message.contains("not allowed for"),
        "{error:?}"
    );
    assert!(error.hint.clone().unwrap().contains("its service account"), "{error:?}");
    assert!(!format!("{error:?} {endpoint:?}").contains("token-1"));
    // Nor is the token of the other issuer shown, which the first server quotes.
    let quotes = Tokens::describing(400, "subject_token", "no provider for a-token-of-kubernetes").await;
    let file = workload_file(&quotes, Some(&accounts), &folder);
    let endpoint = Endpoint::new(config(&server, &file, quick(3))).unwrap();
    let error = ask(&endpoint.model(NEW), &Asked::default()).await.0.unwrap_err();
    assert!(error.message.contains("no provider for "), "{error:?}");
    assert!(!format!("{error:?} {endpoint:?}").contains("a-token-of-kubernetes"));
}

/// Express mode: neither project nor region, and no model of Anthropic.
#[tokio::test]
async fn an_api_key_needs_no_project() {
    let server = Server::start(Behavior::from("fine").key("a-key")).await;
    let env = Env::of([
        ("VERTEX_BASE_URL", server.root_url()),
        ("GOOGLE_VERTEX_API_KEY", "a-key".to_owned()),
        // Set for other programs.
        ("GOOGLE_CLOUD_PROJECT", "acme".to_owned()),
    ]);
    let config = Provider::find("vertex").unwrap().config(&env).unwrap();
    assert!(config.needs_key && config.key_variables == ["GOOGLE_VERTEX_API_KEY"]);
    let endpoint = Endpoint::new(Config { retries: Retries::none(), ..config }).unwrap();
    ask(&endpoint.model(NEW), &Asked::default()).await.0.unwrap();
    let sent = &server.requests()[0];
    assert_eq!(sent.path, "/v1/publishers/google/models/gemini-3-pro:streamGenerateContent?alt=sse");
    assert_eq!((sent.header("x-goog-api-key"), sent.header("authorization")), (Some("a-key"), None));
    let error = ask(&endpoint.model("claude-sonnet-5"), &Asked::default()).await.0.unwrap_err();
    assert_eq!((&error.kind, server.count()), (&Kind::Config, 1));
    assert!(error.message.contains("no API key for models of Anthropic"), "{error:?}");
}

/// The endpoint of a machine whose metadata server is `tokens`.
fn on_machine(server: &Server, tokens: &Tokens, retries: Retries) -> Endpoint {
    let env = Env::of([
        ("VERTEX_BASE_URL", server.root_url()),
        ("GOOGLE_CLOUD_PROJECT", "acme".to_owned()),
        ("GOOGLE_CLOUD_LOCATION", "europe-west4".to_owned()),
        ("GCE_METADATA_HOST", tokens.address.trim_start_matches("http://").to_owned()),
    ]);
    let config = Provider::find("vertex").unwrap().config(&env).unwrap();
    assert!(!config.needs_key, "the machine has a service account");
    Endpoint::new(Config { retries, ..config }).unwrap()
}

#[tokio::test]
async fn a_machine_of_google_gets_its_token_from_the_metadata_server() {
    let tokens = Tokens::metadata(200).await;
    let server = Server::start(Behavior::from("fine").key("token-1")).await;
    let model = on_machine(&server, &tokens, Retries::none()).model(NEW);
    for _ in 0..2 {
        ask(&model, &Asked::default()).await.0.unwrap();
    }
    assert_eq!((tokens.count(), server.count()), (1, 2));
    let asked = tokens.last().to_lowercase();
    let path = "get /computemetadata/v1/instance/service-accounts/default/token http/1.1\r\n";
    assert!(asked.starts_with(path) && asked.contains("\r\nmetadata-flavor: google\r\n"), "{asked}");
}

#[tokio::test]
async fn a_metadata_server_without_a_service_account_is_an_error_of_the_machine() {
    let tokens = Tokens::metadata(404).await;
    let server = Server::start(Behavior::from("fine")).await;
    let model = on_machine(&server, &tokens, Retries::none()).model(NEW);
    let error = ask(&model, &Asked::default()).await.0.unwrap_err();
    assert!(error.message.starts_with("no access token: "), "{error:?}");
    assert!(error.hint.clone().unwrap().contains("service account of this machine"), "{error:?}");
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn a_server_that_refuses_every_token_is_an_error_and_not_a_loop() {
    let (folder, tokens) = (tempfile::tempdir().unwrap(), Tokens::start(200, "refresh_token").await);
    let server = Server::start(Behavior::from("fine").key("another")).await;
    let endpoint = Endpoint::new(config(&server, &file_for(&tokens, &folder), quick(3))).unwrap();
    let error = ask(&endpoint.model(NEW), &Asked::default()).await.0.unwrap_err();
    assert_eq!((&error.kind, error.status, server.count()), (&Kind::Config, Some(401), 2));
    assert!(error.hint.unwrap().contains("`GOOGLE_APPLICATION_CREDENTIALS`"));
}

#[tokio::test]
async fn revoked_credentials_are_an_error_without_secrets() {
    let (folder, tokens) = (tempfile::tempdir().unwrap(), Tokens::start(400, "refresh_token").await);
    let server = Server::start(Behavior::from("fine")).await;
    let endpoint = Endpoint::new(config(&server, &file_for(&tokens, &folder), quick(3))).unwrap();
    let error = ask(&endpoint.model(NEW), &Asked::default()).await.0.unwrap_err();
    assert_eq!((&error.kind, server.count(), tokens.count()), (&Kind::Config, 0, 1));
    assert!(error.message.starts_with("no access token: ") && error.message.contains("revoked"), "{error:?}");
    assert!(error.hint.clone().unwrap().contains("gcloud auth"), "{error:?}");
    assert!(!format!("{error:?} {endpoint:?}").contains("a-refresh-token"));
}

#[tokio::test]
async fn a_wrong_clock_is_no_fault_of_the_credentials() {
    let says = "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your \
                iat and exp values in the JWT claim.";
    let (folder, tokens) =
        (tempfile::tempdir().unwrap(), Tokens::describing(400, "refresh_token", says).await);
    let server = Server::start(Behavior::from("fine")).await;
    let endpoint = Endpoint::new(config(&server, &file_for(&tokens, &folder), quick(3))).unwrap();
    let error = ask(&endpoint.model(NEW), &Asked::default()).await.0.unwrap_err();
    assert_eq!((&error.kind, server.count(), tokens.count()), (&Kind::Config, 0, 1));
    let hint = error.hint.clone().unwrap();
    assert!(hint.contains("set the clock of this machine") && !hint.contains("gcloud"), "{error:?}");
}

#[tokio::test]
async fn a_token_server_that_is_away_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    let server = Server::start(Behavior::from("fine")).await;
    let file = file_for(&Tokens { address, count: Arc::default(), last: Arc::default() }, &folder);
    let endpoint = Endpoint::new(config(&server, &file, quick(3))).unwrap();
    let error = ask(&endpoint.model(NEW), &Asked::default()).await.0.unwrap_err();
    assert_eq!((&error.kind, server.count()), (&Kind::Connection, 0));
    assert!(error.message.contains("no access token") && error.message.contains("3 "), "{error:?}");
}

/// The network broke the reply: the credentials are not wrong.
#[tokio::test]
async fn a_token_server_whose_reply_breaks_off_is_tried_again() {
    let (folder, tokens) = (tempfile::tempdir().unwrap(), Tokens::breaking("refresh_token").await);
    let server = Server::start(Behavior::from("fine")).await;
    let endpoint = Endpoint::new(config(&server, &file_for(&tokens, &folder), quick(3))).unwrap();
    let error = ask(&endpoint.model(NEW), &Asked::default()).await.0.unwrap_err();
    assert_eq!((&error.kind, server.count(), tokens.count()), (&Kind::Connection, 0, 3));
    assert!(error.message.starts_with("no access token: the connection broke"), "{error:?}");
}

/// The model's server is not to blame: it was sent nothing.
#[tokio::test]
async fn a_token_server_that_does_not_answer_is_named_as_what_is_late() {
    let folder = tempfile::tempdir().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let server = Server::start(Behavior::from("fine")).await;
    let file = file_for(&Tokens { address, count: Arc::default(), last: Arc::default() }, &folder);
    let timeouts = Timeouts { total: Duration::from_millis(200), ..Timeouts::default() };
    let config = Config { timeouts, ..config(&server, &file, Retries::none()) };
    let endpoint = Endpoint::new(config).unwrap();
    for _ in 0..5 {
        let error = ask(&endpoint.model(NEW), &Asked::default()).await.0.unwrap_err();
        assert_eq!((&error.kind, server.count()), (&Kind::Timeout, 0));
        assert!(error.message.contains("issued the credentials"), "{error:?}");
    }
    assert_eq!(endpoint.model(NEW).unavailable_for(), None, "the endpoint did not fail");
}

#[tokio::test]
async fn a_given_token_is_sent() {
    let server = Server::start(Behavior::from("fine").key("given")).await;
    let env = Env::of([
        ("VERTEX_BASE_URL", server.root_url()),
        ("GOOGLE_CLOUD_PROJECT", "acme".to_owned()),
        ("GOOGLE_CLOUD_LOCATION", "global".to_owned()),
        ("GOOGLE_OAUTH_ACCESS_TOKEN", "given".to_owned()),
    ]);
    let models = Models::new(env);
    assert!(ask(&models.model("vertex:gemini-3-pro").unwrap(), &Asked::default()).await.0.is_ok());
}

/// Asks `model`, then once more with the results of the calls of its reply.
async fn ask_with_tools(model: &EndpointModel, asked: &mut Asked) {
    let reply = ask(model, asked).await.0.unwrap();
    asked.entries.push(Entry::Assistant { parts: reply.parts.clone(), verbatim: reply.verbatim.clone() });
    for call in reply.calls() {
        asked.entries.push(Entry::Tool { id: call.id, tool: call.tool, result: ToolResult::done("sunny") });
    }
    ask(model, asked).await.0.unwrap();
}

/// P50: Claude at Vertex AI is sent what Anthropic is sent, but for the address, the token, and the place of the version.
#[tokio::test]
async fn claude_is_sent_its_own_api() {
    let look = || Answer::text("I look.").think("Hm.").call("weather", json!({}));
    let server = Server::start(Playbook::list([look(), Answer::text("Sunny."), look()])).await;
    let (folder, tokens) = (tempfile::tempdir().unwrap(), Tokens::start(200, "refresh_token").await);
    let config = config(&server, &file_for(&tokens, &folder), Retries::none());
    let model = Endpoint::new(config.clone()).unwrap().model("claude-sonnet-5@default");
    assert_eq!((model.api(), model.price().is_some()), (Api::Messages, true));
    let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
    ask_with_tools(&model, &mut asked).await;
    let whole = Endpoint::new(Config { stream: false, ..config }).unwrap().model("claude-sonnet-5");
    let params = Params { temperature: Some(0.5), ..Params::default() };
    ask(&whole, &Asked { tools: vec![weather()], params, ..Asked::default() }).await.0.unwrap();
    assert_eq!(server.violations(), [""; 0]);
    let requests = server.requests();
    let path = "/v1/projects/acme/locations/europe-west4/publishers/anthropic/models/";
    assert_eq!(requests[1].path, format!("{path}claude-sonnet-5@default:streamRawPredict"));
    assert_eq!(requests[2].path, format!("{path}claude-sonnet-5:rawPredict"));
    assert!(requests[1].body.to_string().contains("\"signature\""), "the thought goes back");
    assert_eq!(requests[1].header("authorization"), Some("Bearer token-1"));
    // The rest of the body is that of Anthropic's own service.
    let own = Endpoint::new(Config {
        provider: "anthropic".into(),
        ..Config::of(Api::Messages, &server.root_url())
    });
    let refused = ask(&own.unwrap().model("claude-sonnet-5"), &asked).await.0;
    assert!(refused.is_err(), "the list of answers is used up");
    let [mut there, mut here] = [1, 3].map(|nth| server.requests()[nth].body.as_object().unwrap().clone());
    assert_eq!(there.shift_remove("anthropic_version"), Some(json!("vertex-2023-10-16")));
    assert_eq!(
        (here.shift_remove("model"), there.contains_key("model")),
        (Some(json!("claude-sonnet-5")), false)
    );
    // The thought of one model is not sent to another.
    let [_, said] = [&mut there, &mut here].map(|body| body.shift_remove("messages").unwrap());
    assert!(!said.to_string().contains("\"signature\""), "{said}");
    assert_eq!(there, here);
}

/// Vertex AI takes fewer functions than the Gemini API.
#[tokio::test]
async fn too_many_tools_are_refused_before_they_are_sent() {
    let server = Server::start(Behavior::from("fine")).await;
    let (folder, tokens) = (tempfile::tempdir().unwrap(), Tokens::start(200, "refresh_token").await);
    let own = config(&server, &file_for(&tokens, &folder), Retries::none());
    let tool =
        |nth: usize| ToolSpec::new(format!("tool_{nth}"), "Does something.", json!({"type": "object"}));
    let asked = Asked { tools: (0..129).map(tool).collect(), ..Asked::default() };
    for (max_tools, refusals) in [(own.deviations.max_tools, 0), (None, 1)] {
        let mut config = own.clone();
        config.deviations.max_tools = max_tools;
        let error = ask(&Endpoint::new(config).unwrap().model(NEW), &asked).await.0.unwrap_err();
        assert_eq!((server.count(), server.violations().len()), (refusals, refusals), "{error:?}");
    }
}

/// Vertex AI refuses ids of calls, which the strict server does, too.
#[tokio::test]
async fn calls_and_results_have_no_ids() {
    let server = Server::start(Playbook::list([
        Answer::text("I look.").think("Hm.").call("weather", json!({})).call("weather", json!({"a": 1})),
        Answer::text("Sunny."),
    ]))
    .await;
    let (folder, tokens) = (tempfile::tempdir().unwrap(), Tokens::start(200, "refresh_token").await);
    let endpoint = Endpoint::new(config(&server, &file_for(&tokens, &folder), Retries::none())).unwrap();
    let model = endpoint.model(NEW);
    let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
    ask_with_tools(&model, &mut asked).await;
    assert_eq!(server.violations(), [""; 0]);
    assert!(!server.requests()[1].body["contents"].to_string().contains("\"id\""));
}

#[test]
fn missing_credentials_project_or_region_are_errors_with_a_hint() {
    let error =
        |vars: &[(&str, &str)]| Models::new(Env::of(vars.iter().copied())).model("vertex:m").unwrap_err();
    for (vars, says, hint) in [
        (&[("GOOGLE_CLOUD_LOCATION", "eu")][..], "no project", "`GOOGLE_CLOUD_PROJECT`"),
        (&[("GOOGLE_CLOUD_PROJECT", "p")], "no region", "`GOOGLE_CLOUD_LOCATION`"),
        (&[("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json")], "`/nowhere.json`", "gcloud"),
    ] {
        let error = error(vars);
        assert_eq!(error.kind, Kind::Config);
        assert!(error.message.contains(says) && error.hint.clone().unwrap().contains(hint), "{error:?}");
    }
    assert!(GoogleCredentials::parse("[]").is_err());
}

#[tokio::test]
async fn without_credentials_nothing_is_sent() {
    let env = Env::of([("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "global")]);
    let model = Models::new(env).model("vertex:m").unwrap();
    let error = ask(&model, &Asked::default()).await.0.unwrap_err();
    assert!(error.message.contains("no API key"), "{error:?}");
    assert!(error.hint.unwrap().contains("`GOOGLE_APPLICATION_CREDENTIALS`"));
}
