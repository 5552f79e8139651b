//! Error statuses.

use std::time::Duration;

use polylogue_test::server::{Answer, Behavior, Quirk};

use crate::client::{Client, hello, once, serve, streamed};

#[test]
fn statuses_come_with_openai_error_bodies() {
    for (status, code) in [
        (400, None),
        (401, Some("invalid_api_key")),
        (403, Some("unsupported_country_region_territory")),
        (404, Some("model_not_found")),
        (408, None),
        (409, None),
        (429, Some("rate_limit_exceeded")),
        (500, None),
        (503, None),
    ] {
        for answer in [Answer::status(status), Answer::text("x").with(Quirk::Status(status))] {
            let response = once(answer, &streamed());
            assert_eq!(response.status(), status);
            let error = &response.json()["error"];
            assert!(!error["message"].as_str().unwrap().is_empty());
            assert!(error["type"].is_string());
            assert_eq!(error["code"].as_str(), code);
        }
    }
    assert_eq!(once(Answer::quota(), &hello()).json()["error"]["code"], "insufficient_quota");
    let own = once(Answer::error(422, "no such thing"), &hello());
    assert_eq!((own.status(), &own.json()["error"]["message"]), (422, &"no such thing".into()));
}

#[test]
fn retry_after_comes_in_seconds_and_as_a_date() {
    let seconds = once(Answer::status(429).retry_after_secs(7), &hello());
    assert_eq!(seconds.header("retry-after"), Some("7"));
    let dated = once(Answer::status(503).retry_after_date(Duration::from_secs(100)), &hello());
    let date = |name| httpdate::parse_http_date(dated.header(name).unwrap()).unwrap();
    assert_eq!(date("retry-after").duration_since(date("date")).unwrap(), Duration::from_secs(100));
}

#[test]
fn a_key_is_echoed() {
    let server = serve(Behavior::from("ok").with(Quirk::EchoKey));
    let mut client = Client::of(&server);
    client.post_with(&hello(), "authorization: Bearer sk-secret\r\n");
    let response = client.response();
    assert_eq!(response.status(), 401);
    assert!(response.text().contains("Bearer sk-secret"));
}

#[test]
fn a_redirect_goes_elsewhere() {
    let response = once(Answer::text("x").with(Quirk::Redirect("http://127.0.0.2:9/x".into())), &hello());
    assert_eq!((response.status(), response.header("location")), (307, Some("http://127.0.0.2:9/x")));
}

#[test]
fn headers_can_be_added() {
    let response = once(Answer::text("x").header("x-request-id", "r1"), &hello());
    assert_eq!(response.header("x-request-id"), Some("r1"));
}
