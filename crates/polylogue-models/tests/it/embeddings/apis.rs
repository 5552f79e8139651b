//! Embeddings of each provider: addresses, forms, purposes, batches, dimensions, usage.

use std::collections::BTreeMap;

use polylogue_core::ModelErrorKind as Kind;
use polylogue_memory::{Embed, EmbedPurpose, Embedded};
use polylogue_models::{
    Api, Auth, Aws, Config, Embedder, EmbeddingApi, Endpoint, Env, Key, Provider, Retries,
};
use polylogue_models::{Day, Prices, list_price};
use serde_json::{Value, json};

use crate::common::KEY;
use crate::embeddings::server::{Does, Server};
use crate::embeddings::{STORE, lengths, texts};

const SEARCH: EmbedPurpose = EmbedPurpose::Search;

/// The configuration of `provider` whose address is `path` of `server`.
fn config(server: &Server, provider: &str, path: &str) -> Config {
    let config = Provider::find(provider).unwrap().config_at(&format!("http://{}{path}", server.address));
    Config { key: Key::new(KEY), retries: Retries::none(), ..config }
}

fn embedder(config: Config, model: &str) -> Embedder {
    Endpoint::new(config).unwrap().embedder(model).unwrap()
}

/// A provider, the path of its address, a model, and what is sent for two texts: the path, and the bodies.
struct Case {
    provider: &'static str,
    at: &'static str,
    model: &'static str,
    path: &'static str,
    /// For a purpose, named as the provider names it, and dimensions.
    bodies: fn(EmbedPurpose, Option<u32>) -> Vec<Value>,
    tokens: u64,
}

fn cohere(purpose: EmbedPurpose, dimensions: Option<u32>) -> Value {
    let input_type = if purpose == STORE { "search_document" } else { "search_query" };
    with(
        json!({"texts": ["x", "xx"], "input_type": input_type, "embedding_types": ["float"]}),
        "output_dimension",
        dimensions,
    )
}

fn task(purpose: EmbedPurpose) -> &'static str {
    if purpose == STORE { "RETRIEVAL_DOCUMENT" } else { "RETRIEVAL_QUERY" }
}

/// What Gemini's newest models expect before a text.
fn prefixed(purpose: EmbedPurpose, text: &str) -> String {
    let prefix = if purpose == STORE { "title: none | text: " } else { "task: search result | query: " };
    format!("{prefix}{text}")
}

fn with(mut body: Value, name: &str, dimensions: Option<u32>) -> Value {
    if let Some(dimensions) = dimensions {
        body[name] = dimensions.into();
    }
    body
}

const VERTEX: &str = "/v1/projects/p/locations/eu/publishers/google";

const CASES: &[Case] = &[
    Case {
        provider: "openai-chat",
        at: "/v1",
        model: "text-embedding-3-small",
        path: "/v1/embeddings",
        bodies: |_, dimensions| {
            vec![with(
                json!({"model": "text-embedding-3-small", "input": ["x", "xx"]}),
                "dimensions",
                dimensions,
            )]
        },
        tokens: 6,
    },
    Case {
        provider: "mistral",
        at: "/v1",
        model: "codestral-embed",
        path: "/v1/embeddings",
        bodies: |_, dimensions| {
            vec![with(
                json!({"model": "codestral-embed", "input": ["x", "xx"]}),
                "output_dimension",
                dimensions,
            )]
        },
        tokens: 6,
    },
    Case {
        provider: "cohere",
        at: "/compatibility/v1",
        model: "embed-v4.0",
        path: "/v2/embed",
        bodies: |purpose, dimensions| {
            let mut body = cohere(purpose, dimensions);
            body["model"] = "embed-v4.0".into();
            vec![body]
        },
        tokens: 8,
    },
    Case {
        provider: "gemini",
        at: "/v1beta",
        model: "gemini-embedding-001",
        path: "/v1beta/models/gemini-embedding-001:batchEmbedContents",
        bodies: |purpose, dimensions| {
            let one = |text: &str| {
                let content = json!({"parts": [{"text": text}]});
                let model = "models/gemini-embedding-001";
                let request = json!({"model": model, "content": content, "taskType": task(purpose)});
                with(request, "outputDimensionality", dimensions)
            };
            vec![json!({"requests": [one("x"), one("xx")]})]
        },
        tokens: 7,
    },
    Case {
        provider: "vertex",
        at: VERTEX,
        model: "text-embedding-005",
        path: "/v1/projects/p/locations/eu/publishers/google/models/text-embedding-005:predict",
        bodies: |purpose, dimensions| {
            let one = |text: &str| json!({"content": text, "task_type": task(purpose)});
            let mut body = json!({"instances": [one("x"), one("xx")]});
            if dimensions.is_some() {
                body["parameters"] = with(json!({}), "outputDimensionality", dimensions);
            }
            vec![body]
        },
        tokens: 12,
    },
    Case {
        provider: "vertex",
        at: VERTEX,
        model: "gemini-embedding-2",
        path: "/v1/projects/p/locations/eu/publishers/google/models/gemini-embedding-2:embedContent",
        bodies: |purpose, dimensions| {
            let one = |text: &str| {
                let body = json!({"content": {"parts": [{"text": prefixed(purpose, text)}]}});
                with(body, "outputDimensionality", dimensions)
            };
            vec![one("x"), one("xx")]
        },
        tokens: 14,
    },
    Case {
        provider: "bedrock",
        at: "",
        model: "amazon.titan-embed-text-v2:0",
        path: "/model/amazon.titan-embed-text-v2%3A0/invoke",
        bodies: |_, dimensions| {
            let one = |text: &str| with(json!({"inputText": text}), "dimensions", dimensions);
            vec![one("x"), one("xx")]
        },
        tokens: 10,
    },
    Case {
        provider: "bedrock",
        at: "",
        model: "us.cohere.embed-v4:0",
        path: "/model/us.cohere.embed-v4%3A0/invoke",
        bodies: |purpose, dimensions| vec![cohere(purpose, dimensions)],
        // By a header.
        tokens: 77,
    },
];

#[tokio::test]
async fn each_provider_is_sent_texts_purpose_and_dimensions_in_its_form() {
    for Case { provider, at, model, path, bodies, tokens } in CASES {
        for (purpose, dimensions) in [(STORE, None), (SEARCH, None), (STORE, Some(5))] {
            let server = Server::start([Does::Embeds]);
            let embedder = embedder(config(&server, provider, at), model).with_dimensions(dimensions);
            let embedded = embedder.embed(&texts(2), purpose).await.unwrap();
            let (paths, sent): (Vec<String>, Vec<Value>) =
                server.asked().into_iter().map(|(path, _, body)| (path, body)).unzip();
            assert!(paths.iter().all(|other| other == path), "{provider}: {paths:?}");
            assert_eq!(sent, bodies(purpose, dimensions), "{provider}:{model}");
            assert_eq!(embedded.usage.input, Some(*tokens), "{provider}:{model}");
            check(&embedded, dimensions, *model == "gemini-embedding-2");
            let price = list_price(provider, model).unwrap();
            assert!(embedded.cost.is_some_and(|cost| Some(cost) == price.of(&embedded.usage)), "{provider}");
        }
    }
}

/// Vectors in the order of the texts, of length 1.
fn check(embedded: &Embedded, dimensions: Option<u32>, is_prefixed: bool) {
    let all = lengths(embedded);
    assert!(if is_prefixed { all[0] + 1.0 == all[1] } else { all == [1.0, 2.0] }, "{all:?}");
    for vector in &embedded.vectors {
        assert_eq!(vector.len(), dimensions.unwrap_or(2) as usize);
        let length: f32 = vector.iter().map(|number| number * number).sum();
        assert!((length - 1.0).abs() < 1e-5, "{length}");
    }
}

#[tokio::test]
async fn batches_are_as_long_as_the_provider_takes() {
    for (provider, at, model, field, sizes) in [
        ("openai-chat", "/v1", "m", "input", vec![64, 64, 2]),
        ("cohere", "/compatibility/v1", "embed-v4.0", "texts", vec![96, 34]),
        ("gemini", "/v1beta", "gemini-embedding-001", "requests", vec![100, 30]),
        ("vertex", VERTEX, "text-embedding-005", "instances", vec![130]),
        ("vertex", VERTEX, "gemini-embedding-001", "instances", vec![1; 130]),
        ("bedrock", "", "cohere.embed-english-v3", "texts", vec![96, 34]),
    ] {
        let server = Server::start([Does::Embeds]);
        let embedded =
            embedder(config(&server, provider, at), model).embed(&texts(130), STORE).await.unwrap();
        let expected: Vec<f32> = texts(130).iter().map(|text| text.len() as f32).collect();
        assert_eq!(lengths(&embedded), expected, "{provider}");
        let sent: Vec<usize> =
            server.asked().iter().map(|(_, _, body)| body[field].as_array().unwrap().len()).collect();
        assert_eq!(sent, sizes, "{provider}:{model}");
    }
}

#[tokio::test]
async fn bedrock_is_asked_with_a_signature_or_a_key_and_by_json() {
    let env = Env::of([
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_CONFIG_FILE", "/none"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/none"),
    ]);
    let server = Server::start([Does::Embeds]);
    let keyed = config(&server, "bedrock", "");
    let signed = Config { key: None, auth: Auth::Aws(Aws::of(&env).unwrap()), ..keyed.clone() };
    for (config, authorization) in [(keyed, format!("bearer {KEY}")), (signed, "aws4-hmac-sha256".to_owned())]
    {
        embedder(config, "amazon.titan-embed-text-v2:0").embed(&texts(1), STORE).await.unwrap();
        let head = server.head();
        assert!(head.contains(&format!("authorization: {}", authorization.to_lowercase())), "{head}");
        assert!(head.contains("accept: application/json\r\n"), "{head}");
    }
}

#[tokio::test]
async fn azure_has_the_path_of_a_deployment_and_the_price_of_its_model() {
    let server = Server::start([Does::Embeds]);
    let deployments = Some(BTreeMap::from([("prod".to_owned(), "text-embedding-3-small".to_owned())]));
    let config = Config { deployments, ..config(&server, "azure", "") };
    let versioned = Config { api_version: Some("2024-10-21".into()), ..config.clone() };
    for (config, path) in [
        (config, "/openai/v1/embeddings"),
        (versioned, "/openai/deployments/prod/embeddings?api-version=2024-10-21"),
    ] {
        let embedder = embedder(config, "prod");
        assert_eq!(embedder.price(), list_price("azure", "text-embedding-3-small"));
        embedder.embed(&texts(1), STORE).await.unwrap();
        assert_eq!(server.asked().pop().unwrap().0, path);
        assert!(server.head().contains(&format!("api-key: {}", KEY.to_lowercase())));
    }
    let (url, model) = ("https://me.openai.azure.com/openai/v1", "text-embedding-3-small");
    assert!(Prices::default().at("azure", url, model, Day::today()).is_some());
}

/// A local server does not add what the model expects before a text.
#[tokio::test]
async fn models_that_expect_a_prefix_receive_it() {
    let server = Server::start([Does::Embeds]);
    let model = embedder(Config::ollama(&server.address), "nomic-embed-text");
    for (purpose, prefix) in [(STORE, "search_document: x"), (SEARCH, "search_query: x")] {
        model.embed(&texts(1), purpose).await.unwrap();
        assert_eq!(server.asked().pop().unwrap().2["input"], json!([prefix]));
    }
    let bytes = |model: &Embedder| model.bound(&texts(1)).input;
    let without = embedder(Config::ollama(&server.address), "other");
    assert_eq!(bytes(&model) - bytes(&without), "search_document: ".len() as u64);
}

#[tokio::test]
async fn what_cannot_be_embedded_is_an_error_that_says_what_to_do() {
    let server = Server::start([Does::Embeds]);
    for (provider, model, message, hint) in [
        ("anthropic", "claude-sonnet-4-5", "no embeddings", "openai:text-embedding-3-small"),
        ("bedrock", "meta.llama4", "unknown how `meta.llama4`", "`titan-embed` or `cohere.embed`"),
    ] {
        let error =
            Endpoint::new(config(&server, provider, "")).unwrap().embedder(model).map(drop).unwrap_err();
        assert_eq!(error.kind, Kind::Config);
        assert!(error.message.contains(message), "{error}");
        assert!(error.hint.as_ref().unwrap().contains(hint), "{error:?}");
    }
    assert_eq!(server.asked().len(), 0);

    // A server that ignores the dimensions.
    let rows = json!({"data": [{"embedding": [3, 4, 5]}]});
    let server = Server::start([Does::Json(rows)]);
    let model = embedder(server.config(), "m").with_dimensions(Some(2));
    let error = model.embed(&texts(1), STORE).await.unwrap_err();
    assert_eq!(
        (&error.kind, error.message.contains("3 dimensions instead of 2")),
        (&Kind::Config, true),
        "{error}"
    );
    assert!(error.hint.unwrap().contains("leave the dimensions at 3"));
}

/// Refusals of each provider are errors of configuration, shown without the key.
#[tokio::test]
async fn refusals_quote_the_provider_and_no_key() {
    for (provider, at, model, body) in [
        ("cohere", "/compatibility/v1", "embed-v4.0", json!({"id": "1", "message": "no such model"})),
        ("mistral", "/v1", "codestral-embed", json!({"detail": [{"loc": ["body"], "msg": "no such model"}]})),
        ("bedrock", "", "cohere.embed-v4:0", json!({"message": "no such model"})),
        (
            "vertex",
            VERTEX,
            "text-embedding-005",
            json!([{"error": {"code": 400, "message": "no such model"}}]),
        ),
    ] {
        let text = body.to_string();
        let head = format!(
            "HTTP/1.1 400 x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            text.len()
        );
        let server = Server::start([Does::Raw(format!("{head}{text}").into_bytes())]);
        let error = embedder(config(&server, provider, at), model).embed(&texts(1), STORE).await.unwrap_err();
        assert_eq!((&error.kind, error.status), (&Kind::Config, Some(400)), "{provider}: {error}");
        assert!(error.message.contains("no such model"), "{provider}: {error}");
        assert!(!format!("{error:?}").contains(KEY), "{provider}");
    }
}

/// An endpoint that is configured with an API of its own name.
#[tokio::test]
async fn any_endpoint_can_have_another_api_of_embeddings() {
    let server = Server::start([Does::Embeds]);
    let config = Config { embeddings: Some(EmbeddingApi::Cohere), ..server.config() };
    assert_eq!((config.api, config.embeddings), (Api::ChatCompletions, Some(EmbeddingApi::Cohere)));
    embedder(config, "embed-v4.0").embed(&texts(1), SEARCH).await.unwrap();
    let (path, _, body) = server.asked().remove(0);
    assert_eq!((&*path, &body["input_type"]), ("/v2/embed", &json!("search_query")));
}
