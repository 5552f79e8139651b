//! OpenAI's models at Azure: addresses, keys, deployments, errors.

use std::collections::BTreeMap;

use crate::common::{Asked, KEY, ask, quick, reply, text};
use crate::tokens::Tokens;
use polylogue_core::{Fault, Model as _, ModelErrorKind as Kind, Params};
use polylogue_memory::{Embed as _, EmbedPurpose};
use polylogue_models::{
    Api, Auth, Config, Endpoint, EndpointModel, Env, FailureClass, Fallback, Models, Provider, list_price,
};
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use serde_json::json;

async fn server(answer: Answer) -> Server {
    Server::start(Behavior::from(Playbook::always(answer)).key(KEY)).await
}

/// The configuration by the environment that is given besides the address of `server`.
fn config(server: &Server, variables: &[(&str, &str)]) -> Config {
    let address = server.root_url();
    let all = [("AZURE_OPENAI_ENDPOINT", &*address)].into_iter().chain(variables.iter().copied());
    let config = Provider::find("azure").unwrap().config(&Env::of(all)).unwrap();
    Config { retries: quick(3), ..config }
}

/// A deployment of `gpt-5`, and one of an unknown model.
fn deployments(config: Config) -> (EndpointModel, EndpointModel) {
    let deployments = Some(BTreeMap::from([("prod".to_owned(), "gpt-5".to_owned())]));
    let endpoint = Endpoint::new(Config { deployments, ..config }).unwrap();
    (endpoint.model("prod"), endpoint.model("gpt-4o"))
}

/// P80: also by chat completions, a model that reasons is sent no temperature.
#[tokio::test]
async fn a_deployment_of_a_model_that_reasons_is_sent_no_temperature() {
    let server = server(Answer::text("Sunny.")).await;
    let config = config(&server, &[("AZURE_OPENAI_API_KEY", KEY)]);
    let (reasoning, other) = deployments(Config { reasoning_api: None, ..config });
    let params = Params { temperature: Some(0.5), top_p: Some(0.9), ..Params::default() };
    assert_eq!(reasoning.ignored(&params), ["temperature", "top_p"]);
    assert_eq!(other.ignored(&params), [""; 0]);
    let asked = Asked { params, ..Asked::default() };
    for (model, expected) in [(reasoning, [None, None]), (other, [Some(0.5), Some(0.9)])] {
        assert_eq!(text(&ask(&model, &asked).await.0.unwrap()), "Sunny.");
        let request = server.requests().pop().unwrap();
        let body = &request.body;
        assert_eq!(["temperature", "top_p"].map(|name| body[name].as_f64()), expected, "{body}");
        assert!(body["messages"].is_array(), "{body}");
    }
}

/// P97: the v1 address and that of a deployment, with a key or a token.
#[tokio::test]
async fn every_address_and_key_is_accepted() {
    let server = server(Answer::text("Sunny.")).await;
    let key = ("AZURE_OPENAI_API_KEY", KEY);
    for (variables, chat, responses) in [
        (vec![key], "/openai/v1/chat/completions", "/openai/v1/responses"),
        (vec![("AZURE_OPENAI_AD_TOKEN", KEY)], "/openai/v1/chat/completions", "/openai/v1/responses"),
        (
            vec![key, ("AZURE_OPENAI_API_VERSION", "2024-10-21")],
            "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
            // That version has no other API.
            "/openai/deployments/prod/chat/completions?api-version=2024-10-21",
        ),
        (
            vec![key, ("AZURE_OPENAI_API_VERSION", "2025-03-01-preview")],
            "/openai/deployments/gpt-4o/chat/completions?api-version=2025-03-01-preview",
            "/openai/responses?api-version=2025-03-01-preview",
        ),
        (
            vec![key, ("OPENAI_API_VERSION", "preview")],
            "/openai/v1/chat/completions?api-version=preview",
            "/openai/v1/responses?api-version=preview",
        ),
    ] {
        let (known, unknown) = deployments(config(&server, &variables));
        for (model, path, deployment) in [(&unknown, chat, "gpt-4o"), (&known, responses, "prod")] {
            assert_eq!(text(&reply(model).await.unwrap()), "Sunny.", "{path}");
            let sent = server.requests().pop().unwrap();
            assert_eq!((&*sent.path, sent.model()), (path, deployment));
            let is_token = variables[0].0 == "AZURE_OPENAI_AD_TOKEN";
            assert_eq!(
                (sent.header("api-key").is_some(), sent.header("authorization").is_some()),
                (!is_token, is_token)
            );
        }
    }
    assert_eq!(server.violations(), [""; 0]);
}

/// The name of a deployment says nothing of its model.
#[test]
fn what_is_known_of_a_deployment_is_what_is_said_of_it() {
    let models = Models::new(Env::of([("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com")]));
    let model = models.model("azure:gpt-4o").unwrap();
    assert_eq!((model.price(), model.api(), model.name()), (None, Api::ChatCompletions, "azure:gpt-4o"));
    let (known, unknown) = deployments(models.config("azure").unwrap());
    assert_eq!((known.price(), known.api()), (list_price("azure", "gpt-5"), Api::Responses));
    assert!(known.price().is_some() && unknown.price().is_none());
}

/// P98: a first piece with the results of the filter, and without a choice.
#[tokio::test]
async fn the_results_of_the_filter_are_no_reply() {
    let filtered = json!({"hate": {"filtered": false, "severity": "safe"}});
    let chunks = [
        json!({"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": filtered}]}),
        json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Sun"}, "content_filter_results": {}}]}),
        json!({"choices": [{"index": 0, "delta": {"content": "ny."}, "content_filter_results": filtered}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "content_filter_results": {}}]}),
    ];
    let body = chunks.map(|chunk| format!("data: {chunk}\n\n")).concat() + "data: [DONE]\n\n";
    let length = body.len();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n");
    let server = Server::start(Behavior::raw(head + &body)).await;
    let (_, model) = deployments(config(&server, &[("AZURE_OPENAI_API_KEY", KEY)]));
    let (reply, received) = ask(&model, &Asked::default()).await;
    assert_eq!((text(&reply.unwrap()), &*received), ("Sunny.".to_owned(), "Sunny."));
}

/// P99: a prompt that the filter refuses is no mistake of the configuration, and is not tried again.
#[tokio::test]
async fn a_filtered_prompt_is_refused() {
    let message =
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.";
    let server = server(Answer::error(400, message).code("content_filter")).await;
    let (known, unknown) = deployments(config(&server, &[("AZURE_OPENAI_API_KEY", KEY)]));
    for model in [known, unknown] {
        let error = reply(&model).await.unwrap_err();
        assert_eq!((error.kind, error.fault()), (Kind::ContentFiltered, Fault::Provider), "{error:?}");
        assert!(error.hint.as_ref().unwrap().contains("content filter"), "{error:?}");
    }
    assert_eq!(server.count(), 2);
}

/// A filtered prompt is sent to the next model only if that is asked for, and however often, it says nothing of the endpoint.
#[tokio::test]
async fn a_filtered_prompt_goes_to_the_next_model_only_if_that_is_asked_for() {
    let filtering = server(Answer::error(400, "It was filtered.").code("content_filter")).await;
    let replying = server(Answer::text("Sunny.")).await;
    let of = |server| deployments(config(server, &[("AZURE_OPENAI_API_KEY", KEY)])).1;
    let (first, second) = (of(&filtering), of(&replying));
    let model = || Fallback::new([first.clone().into(), second.clone().into()]);
    let asked = Asked::default();
    for _ in 0..6 {
        let error = model().complete(&asked.request(), &mut ()).await.unwrap_err();
        assert_eq!(error.kind, Kind::ContentFiltered, "{error:?}");
    }
    assert_eq!((filtering.count(), replying.count(), first.unavailable_for()), (6, 0, None));
    let model = model().on([FailureClass::Refusal]);
    assert_eq!(text(&model.complete(&asked.request(), &mut ()).await.unwrap()), "Sunny.");
    assert_eq!((filtering.count(), replying.count()), (7, 1));
}

/// A conversation that is too long for a deployment is not sent to one of a model with a smaller window.
#[tokio::test]
async fn the_window_of_a_deployment_is_that_of_its_model() {
    let message = "This model's maximum context length is 128000 tokens.";
    let server = server(Answer::error(400, message).code("context_length_exceeded")).await;
    let names = [("large", "gpt-4o"), ("small", "gpt-4"), ("unknown", "own")];
    let deployments = Some(names.map(|(name, model)| (name.to_owned(), model.to_owned())).into());
    let config = config(&server, &[("AZURE_OPENAI_API_KEY", KEY)]);
    let endpoint = Endpoint::new(Config { deployments, ..config }).unwrap();
    let model = Fallback::new(["large", "small", "unknown"].map(|name| endpoint.model(name).into()));
    model.complete(&Asked::default().request(), &mut ()).await.unwrap_err();
    assert_eq!(
        server.requests().iter().map(|sent| sent.model().to_owned()).collect::<Vec<_>>(),
        ["large", "unknown"]
    );
}

#[tokio::test]
async fn a_wrong_deployment_is_an_error_that_says_what_the_name_is() {
    let message = "The API deployment for this resource does not exist.";
    let server = server(Answer::error(404, message).code("DeploymentNotFound")).await;
    let (_, model) = deployments(config(&server, &[("AZURE_OPENAI_API_KEY", KEY)]));
    let error = reply(&model).await.unwrap_err();
    assert_eq!((error.kind, server.count()), (Kind::Config, 1));
    assert!(error.hint.as_ref().unwrap().contains("the name of a deployment"), "{error:?}");
    assert!(!format!("{error:?}").contains(KEY));
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let azure = Provider::find("azure").unwrap();
    let error = azure.config(&Env::default()).unwrap_err();
    assert!(error.message.contains("`AZURE_OPENAI_ENDPOINT` is not set"), "{error}");
    assert!(error.hint.unwrap().contains("https://NAME.openai.azure.com"));
    let server = server(Answer::text("Sunny.")).await;
    let (_, model) = deployments(config(&server, &[]));
    let error = reply(&model).await.unwrap_err();
    assert!(error.hint.unwrap().contains("`AZURE_OPENAI_API_KEY`"));
    let (_, model) = deployments(config(&server, &[("AZURE_OPENAI_API_KEY", "another")]));
    let error = reply(&model).await.unwrap_err();
    assert_eq!((error.kind, error.status, server.count()), (Kind::Config, Some(401), 1));
}

/// A token that another program renews is used without a restart.
#[tokio::test]
async fn a_token_in_a_file_is_read_for_each_request() {
    let server = server(Answer::text("Sunny.")).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "an-old-token").unwrap();
    let (_, model) = deployments(config(&server, &[("AZURE_OPENAI_AD_TOKEN_FILE", file.to_str().unwrap())]));
    let error = reply(&model).await.unwrap_err();
    assert_eq!((&error.kind, error.status, server.count()), (&Kind::Config, Some(401), 1), "{error:?}");
    assert!(!format!("{error:?} {model:?}").contains("an-old-token"));
    std::fs::write(&file, format!("{KEY}\n")).unwrap();
    assert_eq!(text(&reply(&model).await.unwrap()), "Sunny.");
    let sent = server.requests().pop().unwrap();
    assert_eq!(sent.header("authorization"), Some(&*format!("Bearer {KEY}")));
    std::fs::remove_file(&file).unwrap();
    let error = reply(&model).await.unwrap_err();
    assert!(error.message.contains("cannot be read") && error.kind == Kind::Config, "{error:?}");
    assert_eq!(server.count(), 2);
}

/// The token is in no configuration, and providers quote it in errors with status 200, too: in replies, vectors and lists.
#[tokio::test]
async fn a_token_that_the_server_quotes_is_shown_nowhere() {
    const TOKEN: &str = "eyJhbGciOiJSUzI1NiJ9.a-token-that-no-one-may-see.abcdef";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, TOKEN).unwrap();
    let quoted = format!("rejected header: Bearer {TOKEN}");
    let error = json!({"error": {"code": 400, "message": quoted}});
    // What is of another type than expected is quoted by the parser.
    for (status, body) in
        [("200 OK", &error), ("400 Bad Request", &error), ("200 OK", &json!({"data": quoted}))]
    {
        let body = body.to_string();
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: ");
        let server = Server::start(Behavior::raw(format!("{head}{}\r\n\r\n{body}", body.len()))).await;
        let config = config(&server, &[("AZURE_OPENAI_AD_TOKEN_FILE", file.to_str().unwrap())]);
        let endpoint = Endpoint::new(config).unwrap();
        let embedder = endpoint.embedder("text-embedding-3-small").unwrap();
        for error in [
            reply(&endpoint.model("gpt-4o")).await.unwrap_err(),
            embedder.embed(&["hi".to_owned()], EmbedPurpose::Search).await.unwrap_err(),
            endpoint.models().await.unwrap_err(),
        ] {
            assert!(!format!("{error:?} {error}").contains("no-one-may-see"), "{body}: {error:?}");
        }
    }
}

/// The identity of a workload is exchanged for tokens, one for many requests, and for another one that replaces a refused one.
#[tokio::test]
async fn the_identity_of_a_workload_is_exchanged_for_tokens() {
    let (folder, tokens) = (tempfile::tempdir().unwrap(), Tokens::start(200, "client_assertion").await);
    let file = folder.path().join("workload");
    std::fs::write(&file, "signed").unwrap();
    let identity = [
        ("AZURE_AUTHORITY_HOST", &*tokens.address),
        ("AZURE_TENANT_ID", "tenant"),
        ("AZURE_CLIENT_ID", "client"),
        ("AZURE_FEDERATED_TOKEN_FILE", file.to_str().unwrap()),
    ];
    let server = Server::start(Behavior::from("fine").key("token-2")).await;
    let (_, model) = deployments(config(&server, &identity));
    for _ in 0..2 {
        assert_eq!(text(&reply(&model).await.unwrap()), "fine");
    }
    assert_eq!((tokens.count(), server.count()), (2, 3));
    // Claude at a resource of the same tenant.
    let address = format!("{}/anthropic", server.root_url());
    let all = identity.into_iter().chain([("ANTHROPIC_FOUNDRY_BASE_URL", &*address)]);
    let config = Provider::find("foundry").unwrap().config(&Env::of(all)).unwrap();
    assert!(matches!(config.auth, Auth::Azure(_)) && !config.needs_key);
    // A key counts more, and is sent as one.
    let env =
        Env::of(identity.into_iter().chain([
            ("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com"),
            ("AZURE_OPENAI_API_KEY", KEY),
        ]));
    let keyed = Provider::find("azure").unwrap().config(&env).unwrap();
    assert!(matches!(keyed.auth, Auth::Header(_)) && keyed.key.is_some());
}

#[tokio::test]
async fn an_identity_that_is_refused_says_so_without_secrets() {
    let tokens = Tokens::start(400, "client_secret").await;
    let identity = [
        ("AZURE_AUTHORITY_HOST", &*tokens.address),
        ("AZURE_TENANT_ID", "tenant"),
        ("AZURE_CLIENT_ID", "client"),
        ("AZURE_CLIENT_SECRET", "s3cret-of-mine"),
    ];
    let server = Server::start(Behavior::from("fine")).await;
    let (_, model) = deployments(config(&server, &identity));
    let error = reply(&model).await.unwrap_err();
    assert!(error.message.starts_with("no access token: "), "{error:?}");
    assert!(error.hint.as_ref().unwrap().contains("`AZURE_CLIENT_ID`"), "{error:?}");
    assert!(!format!("{error:?} {model:?}").contains("s3cret-of-mine"));
    assert_eq!((&error.kind, server.count()), (&Kind::Config, 0));
    let alone = Env::of([
        ("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com"),
        ("AZURE_FEDERATED_TOKEN_FILE", "/run/token"),
    ]);
    let error = Provider::find("azure").unwrap().config(&alone).unwrap_err();
    assert!(error.message.contains("`AZURE_TENANT_ID` is not"), "{error:?}");
}

#[test]
fn a_resource_of_foundry_is_named_by_its_address_or_its_name() {
    let address = |vars: &[(&str, &str)]| {
        Provider::find("foundry")
            .unwrap()
            .config(&Env::of(vars.iter().copied()))
            .map(|config| config.base_url)
    };
    let own = ("ANTHROPIC_FOUNDRY_RESOURCE", "my-resource");
    assert_eq!(address(&[own]).unwrap(), "https://my-resource.services.ai.azure.com/anthropic");
    let other = ("ANTHROPIC_FOUNDRY_BASE_URL", "https://other.services.ai.azure.com/anthropic");
    assert_eq!(address(&[own, other]).unwrap(), other.1);
    assert!(address(&[("ANTHROPIC_FOUNDRY_RESOURCE", "evil.example/x")]).is_err());
}
