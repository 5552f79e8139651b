//! What is tried again, how often, and what the subscriber receives.

use std::time::{Duration, Instant};

use crate::common::{Asked, ask, config, model, quick, reply, text};
use polylogue_core::{DeltaRef, DeltaSink, Model as _, ModelErrorKind as Kind};
use polylogue_models::{Config, Retries, Timeouts};
use polylogue_test::server::{Answer, Behavior, Field, Playbook, Quirk, Server};

fn list(answers: impl IntoIterator<Item = Answer>) -> Behavior {
    Playbook::list(answers).into()
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    for failing in [
        // A limit on what requests in flight may cost.
        Answer::status(402).retry_after_secs(0),
        Answer::status(408),
        Answer::status(409),
        Answer::status(429).retry_after_secs(0),
        Answer::status(500),
        Answer::status(502),
        Answer::status(503),
        Answer::status(529),
        Answer::text("x").with(Quirk::HangUp),
        Answer::text("x").with(Quirk::Truncated),
        Answer::text("x").with(Quirk::Reset),
    ] {
        for stream in [true, false] {
            let server =
                Server::start(list([failing.clone(), failing.clone(), Answer::text("at last")])).await;
            let model = model(Config { stream, retries: quick(3), ..config(&server) });
            let reply = reply(&model).await.unwrap_or_else(|error| panic!("{failing:?}: {error:?}"));
            assert_eq!((text(&reply), server.count()), ("at last".to_owned(), 3));
        }
    }
}

#[tokio::test]
async fn permanent_errors_are_not_retried() {
    for failing in [
        Answer::status(400),
        Answer::status(401),
        Answer::status(403),
        Answer::status(404),
        Answer::status(422),
        Answer::quota(),
        Answer::text("x").with(Quirk::Html),
        Answer::text("x").with(Quirk::EmptyBody),
        Answer::status(500).header("x-should-retry", "false"),
    ] {
        let server = Server::start(list([failing.clone(), Answer::text("never")])).await;
        let error = reply(&model(Config { retries: quick(3), ..config(&server) })).await.unwrap_err();
        assert_eq!(server.count(), 1, "{error:?}");
        assert!(!error.message.contains("tried"), "{error}");
    }
}

#[tokio::test]
async fn attempts_are_counted_and_the_last_error_is_shown_with_its_body() {
    let server = Server::start(list(vec![Answer::error(503, "come back later"); 9])).await;
    let error = reply(&model(Config { retries: quick(4), ..config(&server) })).await.unwrap_err();
    assert_eq!((error.kind, error.status, server.count()), (Kind::Unavailable, Some(503), 4));
    assert_eq!(error.message, "the provider answered with status 503: come back later (tried 4 times)");
    assert!(error.body.unwrap().contains("come back later"));
}

#[tokio::test]
async fn a_wait_that_is_asked_for_is_waited_for_in_seconds_and_as_a_date() {
    for answer in [
        Answer::status(429).retry_after_secs(1),
        Answer::status(503).retry_after_date(Duration::from_secs(1)),
        Answer::status(429).header("retry-after-ms", "1000"),
        Answer::status(429)
            .header("x-ratelimit-remaining-requests", "0")
            .header("x-ratelimit-reset-requests", "1s"),
    ] {
        let server = Server::start(list([answer, Answer::text("ok")])).await;
        let begun = Instant::now();
        reply(&model(Config { retries: quick(2), ..config(&server) })).await.unwrap();
        let waited = begun.elapsed();
        assert!((Duration::from_secs(1)..Duration::from_secs(30)).contains(&waited), "{waited:?}");
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_fails_at_once() {
    for answer in [
        Answer::status(429).retry_after_secs(3600),
        Answer::status(429)
            .header("x-ratelimit-remaining-tokens", "0")
            .header("x-ratelimit-reset-tokens", "1h0m0s"),
    ] {
        let server = Server::start(list([answer, Answer::text("never")])).await;
        let begun = Instant::now();
        let error = reply(&model(Config { retries: quick(5), ..config(&server) })).await.unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert!(error.message.ends_with("it asks to wait 3600s, but at most 60s are allowed"), "{error}");
        assert_eq!(server.count(), 1);
    }
}

/// Takes the reports of retries.
#[derive(Default)]
struct Reported(Vec<(String, u32, u32)>);

impl DeltaSink for Reported {
    fn push(&mut self, delta: DeltaRef<'_>) {
        if let DeltaRef::Retry { cause, retry, retries, .. } = delta {
            self.0.push((cause.to_owned(), retry, retries));
        }
    }
}

#[tokio::test]
async fn every_retry_is_reported_with_its_cause() {
    let missing = [Quirk::Missing(Field::FinishReason), Quirk::NoDone, Quirk::NoUsage];
    let cut = missing.into_iter().fold(Answer::text("It is"), Answer::with);
    let answers = [Answer::status(429), Answer::error(503, "busy"), cut, Answer::text("ok")];
    let server = Server::start(list(answers)).await;
    let mut reported = Reported::default();
    let model = model(Config { retries: quick(5), ..config(&server) });
    model.complete(&Asked::default().request(), &mut reported).await.unwrap();
    let provider = model.endpoint().provider().to_owned();
    let report = |status: u16, nth: u32| (format!("{status} from {provider}"), nth, 4);
    // Its status was that of a reply.
    let broke = ("the connection broke: the reply ended before it was finished".to_owned(), 3, 4);
    assert_eq!(reported.0, [report(429, 1), report(503, 2), broke]);
}

#[tokio::test]
async fn retries_end_when_their_time_is_over() {
    let server = Server::start(list(vec![Answer::status(500); 50])).await;
    let retries = Retries { within: Duration::ZERO, ..quick(50) };
    let error = reply(&model(Config { retries, ..config(&server) })).await.unwrap_err();
    assert!(error.message.contains("tried for as long as"), "{error}");
    assert!(server.count() < 3, "a wait may be drawn as nothing, but hardly twice: {}", server.count());
}

#[tokio::test]
async fn a_retry_retracts_the_streamed_deltas() {
    let torn = Answer::text("one two three four").pieces(4).with(Quirk::Reset);
    let stalled =
        Answer::text("five six seven eight nine").pieces(5).with(Quirk::Stall(Duration::from_secs(60)));
    let refused = Answer::status(500);
    let server = Server::start(list([torn, refused, stalled, Answer::text("all of it")])).await;
    let timeouts = Timeouts { idle: Duration::from_secs(1), ..Timeouts::default() };
    let model = model(Config { retries: quick(5), timeouts, ..config(&server) });
    let (reply, received) = ask(&model, &Asked::default()).await;
    assert_eq!(text(&reply.unwrap()), "all of it");
    let (taken_back, rest) = received.rsplit_once('|').unwrap();
    assert_eq!(rest, "all of it");
    assert_eq!(taken_back.matches('|').count(), 1, "a refusal streamed no deltas: {received}");
    assert!(taken_back.starts_with("one") && taken_back.contains("|five"), "{received}");
}

#[tokio::test]
async fn errors_in_the_middle_of_a_stream_are_tried_again_when_they_may_pass() {
    let torn = Answer::text("one two three").pieces(3).with(Quirk::ErrorInStream(2));
    let server = Server::start(list([torn, Answer::text("fine")])).await;
    let (reply, received) =
        ask(&model(Config { retries: quick(2), ..config(&server) }), &Asked::default()).await;
    assert_eq!(text(&reply.unwrap()), "fine");
    assert!(received.ends_with("|fine"), "{received}");
}

#[tokio::test]
async fn a_server_that_comes_up_late_is_found() {
    let server = Server::start(Behavior::from("x")).await;
    let (address, config) = (server.address(), config(&server));
    drop(server);
    let model =
        model(Config { retries: Retries { first_wait: Duration::from_millis(50), ..quick(30) }, ..config });
    let asking = tokio::spawn(async move { reply(&model).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let server = Server::bind(address, "here I am").unwrap();
    assert_eq!(text(&asking.await.unwrap().unwrap()), "here I am");
    drop(server);
}
