//! Wrong keys and missing settings of each provider: the exit code, the hint, and no key in the output, the log or the files.

use polylogue_test::server::Behavior;

use crate::home::{Home, KEY, serve, shipped};

/// A provider, its variables with the address `URL` and secrets, and the status and body with which it refuses a wrong key.
type Refusing = (&'static str, &'static [(&'static str, &'static str)], u16, &'static str);

const PROVIDERS: [Refusing; 10] = [
    (
        "openai-chat",
        &[("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", "URL/v1")],
        401,
        r#"{"error":{"message":"Incorrect API key provided: <key>.","code":"invalid_api_key"}}"#,
    ),
    (
        "openai-responses",
        &[("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", "URL/v1")],
        401,
        r#"{"error":{"message":"Incorrect API key provided: <key>.","code":"invalid_api_key"}}"#,
    ),
    (
        "anthropic",
        &[("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", "URL")],
        401,
        r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key: <key>"}}"#,
    ),
    (
        "gemini",
        &[("GEMINI_API_KEY", KEY), ("GEMINI_BASE_URL", "URL")],
        400,
        r#"{"error":{"code":400,"message":"API key not valid: <key>.","details":[{"reason":"API_KEY_INVALID"}]}}"#,
    ),
    (
        "vertex",
        &[
            ("GOOGLE_OAUTH_ACCESS_TOKEN", KEY),
            ("VERTEX_BASE_URL", "URL"),
            ("GOOGLE_CLOUD_PROJECT", "p"),
            ("GOOGLE_CLOUD_LOCATION", "eu"),
        ],
        401,
        r#"{"error":{"code":401,"message":"Invalid credentials <key>.","status":"UNAUTHENTICATED"}}"#,
    ),
    (
        "vertex",
        &[("GOOGLE_VERTEX_API_KEY", KEY), ("VERTEX_BASE_URL", "URL")],
        400,
        r#"{"error":{"code":400,"message":"API key not valid: <key>.","details":[{"reason":"API_KEY_INVALID"}]}}"#,
    ),
    (
        "bedrock",
        &[
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", KEY),
            ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "URL"),
        ],
        403,
        r#"{"message":"The security token included in the request is invalid: <key>.","__type":"UnrecognizedClientException"}"#,
    ),
    (
        "azure",
        &[("AZURE_OPENAI_API_KEY", KEY), ("AZURE_OPENAI_ENDPOINT", "URL")],
        401,
        r#"{"error":{"code":"401","message":"Access denied due to invalid subscription key <key>."}}"#,
    ),
    (
        "mistral",
        &[("MISTRAL_API_KEY", KEY), ("MISTRAL_BASE_URL", "URL/v1")],
        401,
        r#"{"detail":"Unauthorized: <key>"}"#,
    ),
    ("ollama", &[("OLLAMA_API_KEY", KEY), ("OLLAMA_HOST", "URL")], 401, r#"{"error":"unauthorized: <key>"}"#),
];

/// Every home checks at its end that no file has the key, and every run that its output has none.
#[test]
fn a_wrong_key_fails_the_run_with_a_hint_and_is_shown_nowhere() {
    for (provider, variables, status, body) in PROVIDERS {
        let body = body.replace("<key>", KEY);
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let server = serve(Behavior::raw(head + &body));
        let mut home = Home::new();
        for (name, value) in variables {
            home.set(name, &value.replace("URL", &server.root_url()));
        }
        let model = format!("{provider}:m");
        let ran = home.run(&["run", &shipped("writer-critic"), "-vv", "--model", &model]).exits(1);
        let secret = variables.iter().find(|(_, value)| *value == KEY).unwrap().0;
        let named = if provider == "bedrock" { "AWS_ACCESS_KEY_ID" } else { secret };
        assert!(ran.err.contains("error (config)"), "{provider}: {}", ran.err);
        assert!(ran.err.contains("[key]"), "{provider} repeats the key: {}", ran.err);
        let hint = ran.err.lines().rfind(|line| line.trim_start().starts_with("hint:")).unwrap();
        assert!(hint.contains(&format!("`{named}`")), "{provider}: {hint}");
        assert_eq!(server.count(), 1, "{provider}");
        home.run(&["show", "last", "--json"]).ok();
    }
}

/// A setting that is missing is known before the first request: exit code 2, and no run in the store.
#[test]
fn missing_credentials_and_places_end_a_run_before_it_begins() {
    for (model, variables, named) in [
        ("bedrock:m", &[("AWS_BEARER_TOKEN_BEDROCK", KEY)][..], "`AWS_REGION`"),
        ("bedrock:m", &[("AWS_REGION", "eu-west-1")], "AWS_BEARER_TOKEN_BEDROCK"),
        (
            "bedrock:m",
            &[("AWS_REGION", "eu-west-1"), ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")],
            "`AWS_SECRET_ACCESS_KEY`",
        ),
        (
            "bedrock-mantle:m",
            &[("AWS_REGION", "eu-west-1"), ("AWS_PROFILE", "gone")],
            "there is no profile `gone`",
        ),
        ("vertex:m", &[("GOOGLE_OAUTH_ACCESS_TOKEN", KEY)], "`GOOGLE_CLOUD_PROJECT`"),
        ("azure:m", &[("AZURE_OPENAI_API_KEY", KEY)], "`AZURE_OPENAI_ENDPOINT`"),
        ("foundry:m", &[("ANTHROPIC_FOUNDRY_API_KEY", KEY)], "`ANTHROPIC_FOUNDRY_BASE_URL`"),
        ("anthropic:m", &[], "`ANTHROPIC_API_KEY`"),
        ("mistral:m", &[], "`MISTRAL_API_KEY`"),
    ] {
        let mut home = Home::new();
        for (name, value) in variables {
            home.set(name, value);
        }
        let ran = home.run(&["run", &shipped("writer-critic"), "-vv", "--model", model]).exits(2);
        assert!(ran.err.contains("error (config)") && ran.err.contains(named), "{model}: {}", ran.err);
        assert!(home.listed().is_empty(), "{model}");
    }
}
