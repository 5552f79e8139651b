//! Lists of models: all of their pages, and what their models are for.

use polylogue_core::ModelErrorKind;
use polylogue_models::{Api, Config, Endpoint};
use polylogue_test::server::{Behavior, Server, Vendor};

use crate::common::config_of;

/// APIs whose lists can have pages.
const APIS: [(Api, &str); 3] =
    [(Api::Messages, "anthropic"), (Api::Gemini, "gemini"), (Api::ChatCompletions, "openai")];

#[tokio::test]
async fn all_pages_of_a_list_are_read() {
    let names: Vec<String> = (0..45).map(|nth| format!("model-{nth:02}")).collect();
    let apis = APIS.map(|(api, provider)| (api, provider, None));
    let cohere = (Api::ChatCompletions, "cohere", Some(Vendor::Cohere));
    for (api, provider, vendor) in apis.into_iter().chain([cohere]) {
        let behavior = Behavior::from("x").models(names.clone()).models_per_page(20);
        let behavior = match vendor {
            Some(vendor) => behavior.vendor(vendor),
            None => behavior,
        };
        let server = Server::start(behavior).await;
        let models = Endpoint::new(config_of(api, provider, &server)).unwrap().models().await.unwrap();
        let listed: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
        assert_eq!(listed, names, "{provider}");
        assert_eq!(server.requests().len(), 3, "{provider}");
    }
}

#[tokio::test]
async fn a_list_without_end_is_an_error() {
    for (api, provider) in APIS.into_iter().chain([(Api::Converse, "bedrock")]) {
        let behavior = Behavior::from("x").models(["a", "b"]).models_per_page(1).endless_models();
        let server = Server::start(behavior).await;
        let config = Config { list_url: Some(server.root_url()), ..config_of(api, provider, &server) };
        let error = Endpoint::new(config).unwrap().models().await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::InvalidReply, "{provider}");
        assert!(error.message.contains("does not end after 20 pages"), "{provider}: {}", error.message);
        // Bedrock has another list before that of its profiles.
        assert_eq!(server.requests().len(), 20 + usize::from(api == Api::Converse), "{provider}");
    }
}

#[tokio::test]
async fn what_is_no_list_is_shown_with_its_type_and_its_beginning() {
    let answer = |kind: &str, body: &str| {
        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    };
    let page = "that is a web page: check the base URL ";
    let other = "check the base URL ";
    for (kind, body, message, hint) in [
        ("text/html; charset=utf-8", "<!doctype html>", "it is `text/html; charset=utf-8`, not JSON (", page),
        (
            "text/plain",
            "It works!",
            "it is `text/plain`, not JSON (expected value at line 1 column 1): `It works!`",
            other,
        ),
        (
            "application/json",
            "{\"data\"",
            "it is not valid JSON (EOF while parsing an object at line 1 column 7): `{\"data\"`",
            other,
        ),
        ("application/json", "", "the reply is empty", other),
    ] {
        let server = Server::start(Behavior::raw(answer(kind, body))).await;
        let config = config_of(Api::ChatCompletions, "openai", &server);
        let error = Endpoint::new(config).unwrap().models().await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::InvalidReply, "{kind}");
        assert!(error.message.contains(message), "{}", error.message);
        assert!(error.hint.as_deref().is_some_and(|found| found.starts_with(hint)), "{error:?}");
    }
}

#[tokio::test]
async fn models_for_vectors_are_marked_and_those_for_pictures_left_out() {
    for (api, provider, vendor) in [
        (Api::Gemini, "gemini", None),
        (Api::ChatCompletions, "mistral", Some(Vendor::Mistral)),
        (Api::ChatCompletions, "openrouter", Some(Vendor::OpenRouter)),
        (Api::ChatCompletions, "together", Some(Vendor::Together)),
        (Api::ChatCompletions, "cohere", Some(Vendor::Cohere)),
    ] {
        let behavior = Behavior::from("x").models(["chat-1", "an-embed-2", "an-image-3"]);
        let behavior = match vendor {
            Some(vendor) => behavior.vendor(vendor),
            None => behavior,
        };
        let server = Server::start(behavior).await;
        let models = Endpoint::new(config_of(api, provider, &server)).unwrap().models().await.unwrap();
        let listed: Vec<_> = models.iter().map(|model| (model.name.as_str(), model.embeds)).collect();
        assert_eq!(listed, [("chat-1", false), ("an-embed-2", true)], "{provider}");
    }
}
