//! Calls over HTTP that are declared as data.

use polylogue_core::{Money, Tool as _, ToolStatus};
use polylogue_http::{Client, Env};
use polylogue_tools::http::{Call, Declaration};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::site::{Site, answer, redirect};
use crate::{call, done, failed};

fn declared(mut value: Value) -> Declaration {
    value
        .as_object_mut()
        .unwrap()
        .extend([("name".to_owned(), json!("test")), ("description".to_owned(), json!("Tests."))]);
    serde_json::from_value(value).unwrap()
}

fn made(value: Value, env: &Env) -> Result<Call, String> {
    Call::new(declared(value), Client::new, env).map_err(|error| error.to_string())
}

fn nothing() -> Env {
    Env::of::<String, String>([])
}

/// A site that tells what it was asked.
async fn echo() -> Site {
    Site::acting(|path, mut stream| {
        Box::pin(async move {
            stream
                .write_all(&answer("200 OK", "content-type: text/plain\r\n", format!("you asked for {path}")))
                .await
        })
    })
    .await
}

#[tokio::test]
async fn what_is_declared_is_asked_with_arguments_in_their_places() {
    let site = echo().await;
    let env = Env::of([("HOUSE_KEY", "my-secret-key")]);
    let tool = made(
        json!({
            "method": "post", "url": format!("http://127.0.0.1:{}/api/{{project}}/tickets?fixed=a%20b", site.port),
            "query": {"limit": "{limit}", "tag": "{tags}", "both": "{project}-{limit}", "left_out": "x{note}"},
            "headers": {"Authorization": {"env": "HOUSE_KEY", "before": "Bearer "}, "X-Team": "of {project}", "X-Note": "{note}"},
            "json": {"title": "On {project}", "count": "{limit}", "tags": "{tags}", "note": "{note}", "list": ["{note}", 1], "braces": "{{x}}"},
            "arguments": {
                "project": {"type": "string"}, "limit": {"type": "integer", "default": 3},
                "tags": {"type": "strings", "optional": true}, "note": {"type": "string", "optional": true}
            }
        }),
        &env,
    )
    .unwrap();
    assert!(!tool.spec().repeatable);
    assert_eq!(tool.spec().parameters["required"], json!(["project"]));
    let outcome = call(&tool, json!({"project": "a/b", "tags": ["x", "y&z"]})).await.unwrap();
    let path = "/api/a%2Fb/tickets?fixed=a+b&both=a%2Fb-3&limit=3&tag=x&tag=y%26z";
    assert_eq!(outcome.text(), format!("you asked for {path}"));
    assert_eq!(
        outcome.outside.as_deref(),
        Some(format!("http://127.0.0.1:{}/api/a%2Fb/tickets", site.port).as_str())
    );
    let asked = &site.asked()[0];
    for part in [
        "POST ",
        "authorization: Bearer my-secret-key\r\n",
        "x-team: of a/b\r\n",
        "content-type: application/json\r\n",
    ] {
        assert!(asked.contains(part), "{part} in {asked}");
    }
    assert!(!asked.contains("x-note"));
    let sent: Value = serde_json::from_str(asked.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(
        sent,
        json!({"title": "On a/b", "count": 3, "tags": ["x", "y&z"], "list": [1], "braces": "{x}"})
    );
    assert!(!format!("{tool:?}").contains("my-secret"));
    for wrong in [
        json!({}),
        json!({"project": ""}),
        json!({"project": ".."}),
        json!({"project": "a", "note": "a\r\nx-evil: 1"}),
        json!({"project": "a", "host": "b"}),
    ] {
        failed(&tool, wrong).await;
    }
    assert_eq!(site.asked().len(), 1);
}

#[tokio::test]
async fn a_header_of_the_response_says_what_a_call_cost() {
    let site = Site::of(&[
        ("/paid", answer("200 OK", "x-cost: $0.004\r\n", "a hit")),
        ("/unsaid", answer("200 OK", "", "a hit")),
        ("/wrong", answer("200 OK", "x-cost: -3\r\n", "a hit")),
        ("/failed", answer("500 Internal Server Error", "x-cost: 0\r\n", "sorry")),
    ])
    .await;
    let cost = async |path: &str| {
        let url = format!("http://127.0.0.1:{}{path}", site.port);
        let tool = made(json!({"url": url, "max_cost": 0.01, "cost_header": "X-Cost"}), &nothing()).unwrap();
        assert_eq!(tool.spec().max_cost, Some(Money::dollars(0.01)));
        call(&tool, json!({})).await.unwrap().own_cost()
    };
    assert_eq!(cost("/paid").await, Some(Money::dollars(0.004)));
    assert_eq!((cost("/unsaid").await, cost("/wrong").await), (None, None));
    assert_eq!(cost("/failed").await, Some(Money::default()));
    let wrong = made(json!({"url": "https://a.example/", "cost_header": "no header"}), &nothing());
    assert!(wrong.unwrap_err().contains("no header can be called `no header`"));
}

#[tokio::test]
async fn results_of_calls_are_returned_without_secrets() {
    let site = Site::of(&[
        ("/ok", answer("200 OK", "content-type: application/json\r\n", "{\"a\": 1}\n")),
        ("/empty", answer("204 No Content", "", "")),
        ("/bad", answer("422 Unprocessable Entity", "", "the key my-secret-key is not enough")),
        ("/moved", redirect("http://169.254.169.254/?k=my-secret-key")),
        ("/picture", answer("200 OK", "content-type: image/png\r\n", b"\x89PNG\0\0")),
        ("/long", answer("200 OK", "", "x".repeat(60_000))),
        ("/short", b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"a\":".to_vec()),
    ])
    .await;
    let env = Env::of([("K", "my-secret-key")]);
    let tool = |path: &str| {
        let url = format!("http://127.0.0.1:{}{path}", site.port);
        made(json!({"url": url, "headers": {"X-Key": {"env": "K"}}}), &env).unwrap()
    };
    assert_eq!(done(&tool("/ok"), json!({})).await, "{\"a\": 1}");
    assert_eq!(done(&tool("/empty"), json!({})).await, "(204 No Content)");
    assert_eq!(done(&tool("/picture"), json!({})).await, "(6 bytes of image/png)");
    let long = done(&tool("/long"), json!({})).await;
    assert!(long.len() < 50_000 && long.ends_with("\n(The answer is longer.)"));
    assert!(
        done(&tool("/short"), json!({}))
            .await
            .ends_with("(The connection broke before the end of the answer.)")
    );
    assert_eq!(
        failed(&tool("/bad"), json!({})).await,
        "422 Unprocessable Entity\nthe key [key] is not enough"
    );
    let moved = failed(&tool("/moved"), json!({})).await;
    assert_eq!(moved, "302 Found: it leads to `http://169.254.169.254/?k=[key]`, which is not followed");
    let outcome = call(&tool("/bad"), json!({})).await.unwrap();
    assert!(outcome.status == ToolStatus::Failed && outcome.outside.is_some());
}

#[tokio::test]
async fn a_call_reaches_its_host_and_gives_up_in_time() {
    let site = Site::acting(|_, stream| {
        Box::pin(async move {
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            drop(stream);
            Ok(())
        })
    })
    .await;
    let url = format!("http://127.0.0.1:{}/", site.port);
    let tool = made(json!({"method": "delete", "url": url, "time_s": 1}), &nothing()).unwrap();
    let why = failed(&tool, json!({})).await;
    assert!(why.ends_with("there was no answer within 1 s; whether it was done is not known"), "{why}");
    // Where clouds keep their secrets, a name that stands for it is not enough.
    let client = |reach| Client::new(reach).host("inner.example", ["169.254.169.254".parse().unwrap()]);
    let tool = Call::new(declared(json!({"url": "http://inner.example/"})), client, &nothing()).unwrap();
    assert!(failed(&tool, json!({})).await.contains("is not public"));
}

#[test]
fn an_invalid_http_tool_is_refused() {
    let argument = json!({"a": {"type": "string"}});
    let optional = json!({"a": {"type": "string", "optional": true}});
    for (value, expected) in [
        (json!({"url": "https://h.example/{a}"}), "there is no argument `a`"),
        (json!({"url": "https://h.example/", "arguments": argument}), "the argument `a` is not used"),
        (
            json!({"url": "https://h.example/{a}", "arguments": optional}),
            "`a` is a piece of the path, and cannot be left out",
        ),
        (json!({"url": "https://{a}/", "arguments": argument}), "an argument cannot name the host"),
        (json!({"url": "file:///etc/passwd"}), "is not a web address"),
        (json!({"url": "https://h.example/", "json": {}}), "a request by `get` has no `json`"),
        (json!({"url": "https://h.example/", "headers": {"Host": "x"}}), "the header `Host` cannot be set"),
        (json!({"url": "https://h.example/", "headers": {"X": "a\nb"}}), "the header `X` cannot be sent"),
        (
            json!({"url": "https://h.example/", "headers": {"X": {"env": "NONE"}}}),
            "`NONE` is not set, in the environment or in `.env`",
        ),
        (json!({"method": "post", "url": "https://h.example/", "json": ["{"]}), "`{` has a brace"),
        (json!({"url": "https://h.example/", "query": {"a": "{b}"}}), "there is no argument `b`"),
    ] {
        let why = made(value.clone(), &nothing()).unwrap_err();
        assert!(why.contains("the call `test`: ") && why.contains(expected), "{value}: {why}");
    }
}
