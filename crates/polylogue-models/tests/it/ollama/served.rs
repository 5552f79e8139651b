//! What a server has: its models, and its version.

use polylogue_core::ModelErrorKind as Kind;
use polylogue_models::{Api, Config, Endpoint, Key};
use polylogue_test::server::{Answer, Behavior, Server};

use crate::ollama::config;

#[tokio::test]
async fn models_and_version_are_listed() {
    let server = Server::start(Behavior::from("x").models(["llama3.2:latest", "qwen3:8b"])).await;
    let ollama = Endpoint::new(config(&server)).unwrap();
    assert_eq!(ollama.api(), Api::Ollama);
    let models = ollama.models().await.unwrap();
    let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(names, ["llama3.2:latest", "qwen3:8b"]);
    assert!(models.iter().all(|model| model.bytes.is_some()));
    assert_eq!(ollama.version().await.unwrap().as_deref(), Some("0.13.0"));

    let key = Key::new("some-key-or-other");
    let compatible = Endpoint::new(Config { key, ..Config::new(server.base_url()) }).unwrap();
    let models = compatible.models().await.unwrap();
    assert_eq!((models.len(), models[0].bytes), (2, None));
    assert_eq!(compatible.version().await, Ok(None));
    let requests = server.requests();
    let paths: Vec<&str> = requests.iter().map(|received| received.path.as_str()).collect();
    assert_eq!(paths, ["/api/tags", "/api/version", "/v1/models"]);
    assert_eq!(requests[2].header("authorization"), Some("Bearer some-key-or-other"));
    assert_eq!(server.count(), 0, "no reply was asked for");
}

#[tokio::test]
async fn what_is_no_list_is_an_error() {
    for (response, kind) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", Kind::InvalidReply),
        ("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>", Kind::InvalidReply),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", Kind::InvalidReply),
        ("HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{", Kind::Connection),
        ("HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n", Kind::Unavailable),
    ] {
        let server = Server::start(Behavior::raw(response)).await;
        let ollama = Endpoint::new(Config {
            timeouts: polylogue_models::Timeouts {
                total: std::time::Duration::from_secs(2),
                ..polylogue_models::Timeouts::default()
            },
            ..config(&server)
        })
        .unwrap();
        let kinds = [ollama.models().await.unwrap_err().kind, ollama.version().await.unwrap_err().kind];
        let late = if kind == Kind::Connection { Kind::Timeout } else { kind };
        assert!(kinds.iter().all(|met| *met == kind || *met == late), "{response}: {kinds:?}");
    }
    let server = Server::start(Behavior::from(Answer::text("x"))).await;
    let gone = config(&server);
    drop(server);
    let error = Endpoint::new(gone).unwrap().models().await.unwrap_err();
    assert!(error.hint.unwrap().contains("`ollama serve`"));
}
