//! Keys, credentials and regions of Bedrock.

use polylogue_core::{Model as _, ModelErrorKind as Kind};
use polylogue_models::{Auth, Aws, Config, Endpoint, Env, Key, Models, Provider};
use polylogue_test::server::{Answer, Behavior, Playbook, Server};

use crate::bedrock::config;
use crate::common::{Asked, KEY, ask, model, reply};

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const TOKEN: &str = "IQoJb3JpZ2luX2VjEXAMPLETOKEN";

fn env() -> Vec<(&'static str, &'static str)> {
    vec![
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_SESSION_TOKEN", TOKEN),
        ("AWS_CONFIG_FILE", "/none"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/none"),
    ]
}

fn signed(server: &Server) -> Config {
    Config { auth: Auth::Aws(Aws::of(&Env::of(env())).unwrap()), ..config(server) }
}

/// P84: the server works the signature out on its own.
#[tokio::test]
async fn requests_are_signed_and_wrong_secrets_refused() {
    for model_name in
        ["m", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "arn:aws:bedrock:eu-west-1:1:a/b c"]
    {
        let server = Server::start(Behavior::from("Sunny.").signed_with(SECRET)).await;
        let model = Endpoint::new(signed(&server)).unwrap().model(model_name);
        ask(&model, &Asked::default()).await.0.unwrap();
        let received = &server.requests()[0];
        let authorization = received.header("authorization").unwrap();
        assert!(authorization.contains("/eu-west-1/bedrock/aws4_request"), "{authorization}");
        assert_eq!(received.header("x-amz-security-token"), Some(TOKEN));
    }
    let server = Server::start(Behavior::from("Sunny.").signed_with("another")).await;
    let error = reply(&model(signed(&server))).await.unwrap_err();
    assert_eq!((&error.kind, error.status), (&Kind::Config, Some(403)));
    let shown = format!("{error:?}");
    assert!(shown.contains("x-amz-security-token") && shown.contains("[key]"), "{shown}");
    assert!(!shown.contains(TOKEN) && !shown.contains(SECRET), "{shown}");
    assert_eq!(server.requests().len(), 1);
}

/// A wrong clock is corrected once, by the date of the refusal, and stays corrected.
#[tokio::test]
async fn a_wrong_clock_is_corrected_by_that_of_the_server() {
    for ahead in [-90_000, 7_200] {
        let behavior = Behavior::from("Sunny.").signed_with(SECRET).seconds_ahead(ahead);
        let server = Server::start(behavior).await;
        let model = model(signed(&server));
        for asked in [2, 3] {
            reply(&model).await.unwrap();
            assert_eq!(server.requests().len(), asked);
        }
    }
}

/// P85.
#[tokio::test]
async fn a_bearer_key_is_sent_without_a_signature() {
    let server = Server::start(Behavior::from("Sunny.").key(KEY)).await;
    reply(&model(Config { key: Key::new(KEY), ..config(&server) })).await.unwrap();
    let received = &server.requests()[0];
    assert_eq!(received.header("authorization"), Some(&*format!("Bearer {KEY}")));
    let of_signature = received.headers.iter().filter(|(name, _)| name.starts_with("x-amz-"));
    assert_eq!(of_signature.count(), 0, "{:?}", received.headers);
}

#[tokio::test]
async fn the_provider_finds_keys_credentials_region_and_address() {
    let provider = Provider::find("bedrock").unwrap();
    let config = provider.config(&Env::of(env())).unwrap();
    assert_eq!(config.base_url, "https://bedrock-runtime.eu-west-1.amazonaws.com");
    assert!(matches!(&config.auth, Auth::Aws(aws) if aws.region() == "eu-west-1"));
    let shown = format!("{config:?}");
    assert!(!shown.contains(SECRET) && !shown.contains(TOKEN), "{shown}");

    let bearer = [env(), vec![("AWS_BEARER_TOKEN_BEDROCK", KEY)]].concat();
    let config = provider.config(&Env::of(bearer)).unwrap();
    assert_eq!(
        (config.auth, config.key.map(|key| key.reveal().to_owned())),
        (Auth::Bearer, Some(KEY.into()))
    );

    let without = |name: &str| Env::of(env().into_iter().filter(|(other, _)| *other != name));
    let error = Models::new(without("AWS_REGION")).model("bedrock:m").unwrap_err();
    assert_eq!(error.kind, Kind::Config);
    assert!(error.hint.unwrap().contains("AWS_REGION"));
    let odd = [vec![("AWS_REGION", "evil.example/")], env()[1..].to_vec()].concat();
    assert!(provider.config(&Env::of(odd)).is_err());

    // Missing credentials are an error of the first call.
    let model = Models::new(without("AWS_ACCESS_KEY_ID")).model("bedrock:m").unwrap();
    let error = ask(&model, &Asked::default()).await.0.unwrap_err();
    assert_eq!((error.kind, model.name()), (Kind::Config, "bedrock:m"));
    assert!(error.hint.unwrap().contains("AWS_BEARER_TOKEN_BEDROCK"));
}

#[tokio::test]
async fn a_refused_token_is_an_error_with_a_hint() {
    let answer = Answer::error(403, "The security token included in the request is expired")
        .code("ExpiredTokenException");
    let server = Server::start(Behavior::from(Playbook::list([answer]))).await;
    let provider = Provider::find("bedrock").unwrap();
    let url = server.root_url();
    let vars = [env(), vec![("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", &*url)]].concat();
    let error = reply(&model(provider.config(&Env::of(vars)).unwrap())).await.unwrap_err();
    assert_eq!(error.kind, Kind::Config);
    let hint = error.hint.unwrap();
    assert!(error.message.contains("expired") && hint.contains("AWS_ACCESS_KEY_ID"), "{hint}");
    assert!(hint.starts_with("log in again"), "{hint}");
}

/// Credentials that a login renewed are read again when the service no longer accepts the old ones.
#[tokio::test]
async fn expired_credentials_are_read_again_from_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("credentials");
    let write = |secret: &str| {
        let profile = format!(
            "[default]\naws_access_key_id = ID\naws_secret_access_key = {secret}\naws_session_token = T\n"
        );
        std::fs::write(&path, profile).unwrap();
    };
    write("old-secret");
    let vars = [
        ("AWS_REGION", "eu-west-1"),
        ("AWS_CONFIG_FILE", "/none"),
        ("AWS_SHARED_CREDENTIALS_FILE", path.to_str().unwrap()),
    ];
    let expired = || {
        Answer::error(403, "The security token included in the request is expired")
            .code("ExpiredTokenException")
    };
    let server = Server::start(Playbook::list([expired(), expired(), Answer::text("Sunny.")])).await;
    let model = model(Config { auth: Auth::Aws(Aws::of(&Env::of(vars)).unwrap()), ..config(&server) });
    let error = reply(&model).await.unwrap_err();
    assert_eq!((error.kind, server.count()), (Kind::Config, 1), "the file has the same");
    write("new-secret");
    reply(&model).await.unwrap();
    let signature = |nth: usize| server.requests()[nth].header("authorization").unwrap().to_owned();
    assert_eq!(server.count(), 3);
    assert_ne!(signature(1), signature(2));
}

/// Models that are called by their ids, and inference profiles of all pages, but for those of pictures; requests are signed for the same
/// service.
#[tokio::test]
async fn models_and_inference_profiles_are_listed() {
    let server = Server::start(Behavior::from("fine").models(["anthropic.claude-x"])).await;
    let url = server.root_url();
    let vars = [env(), vec![("AWS_ENDPOINT_URL_BEDROCK", &*url)]].concat();
    let config = Provider::find("bedrock").unwrap().config(&Env::of(vars)).unwrap();
    let endpoint = Endpoint::new(config).unwrap();
    let models = endpoint.models().await.unwrap();
    let names = |embeds: bool| -> Vec<&str> {
        models.iter().filter(|model| model.embeds == embeds).map(|model| model.name.as_str()).collect()
    };
    assert_eq!(names(false), ["anthropic.claude-x", "global.by-profile-only", "us.by-profile-only"]);
    assert_eq!(names(true), ["global.of-vectors", "of-vectors"]);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert!(request.header("authorization").unwrap().contains("/eu-west-1/bedrock/aws4_request"));
    }
    // Next to another address of the models, the address of the lists is unknown.
    let vars = [env(), vec![("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", &*url)]].concat();
    let config = Provider::find("bedrock").unwrap().config(&Env::of(vars)).unwrap();
    let error = Endpoint::new(config).unwrap().models().await.unwrap_err();
    assert!(error.hint.unwrap().contains("`AWS_ENDPOINT_URL_BEDROCK`"), "{}", error.message);
}
