//! Replies of servers that deviate in every way that is known, over real sockets.

use crate::common;

use std::time::{Duration, Instant};

use crate::common::weather::{is_weather, weather};
use crate::common::{Asked, KEY, ask, config, model, reply, text};
use polylogue_core::{Fault, ModelErrorKind as Kind};
use polylogue_models::{Config, Retries, Timeouts};
use polylogue_test::server::{Answer, Behavior, Quirk, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Every deviation that leaves the reply readable, and none at all.
fn tolerable() -> Vec<(&'static str, Option<Quirk>)> {
    let spoiled = [
        "html", "empty-body", "invalid-json", "error-in-stream", "endless-stream", "endless-line",
        "endless-comments", "hang-up", "truncated", "reset", "length-too-long", "length-too-short",
        "bad-chunk", "slow-headers", "pause-before-first", "stall", "silent", "echo-key", "redirect",
        "status",
    ];
    let quirks = Quirk::CATALOG.iter().filter(|entry| !spoiled.contains(&entry.name));
    quirks.map(|entry| (entry.name, Some(entry.quirk.clone()))).chain([("none", None)]).collect()
}

#[tokio::test]
async fn every_tolerable_deviation_gives_the_same_reply_streamed_and_not() {
    let quirks = tolerable();
    assert!(quirks.len() > 40, "{}", quirks.len());
    for (name, quirk) in quirks {
        for stream in [true, false] {
            let answer = quirk.iter().fold(weather(), |answer, quirk| answer.with(quirk.clone()));
            let server = Server::start(Behavior::from(answer)).await;
            let config = Config { stream, ..config(&server) };
            let (reply, received) = ask(&model(config), &Asked::default()).await;
            let case = format!("{name}, stream {stream}");
            if name == "empty-choices" && !stream {
                assert!(
                    reply.unwrap_err().message.contains("`choices`"),
                    "a whole reply without choices is none"
                );
                continue;
            }
            let reply = reply.unwrap_or_else(|error| panic!("{case}: {error:?}"));
            is_weather(&reply, &case);
            // Usage was not requested: the server streams it anyway.
            let untold = name == "no-usage" || (name == "streamed-unasked" && !stream);
            let usage = (!untold).then_some((12, 34));
            assert_eq!(reply.usage.input.zip(reply.usage.output), usage, "{case}");
            let received = received.replace(")(", "");
            assert!(received.starts_with("(Where? In Oslo.)It is sunny"), "{case}: {received}");
            assert!(server.violations().is_empty(), "{:?}", server.violations());
        }
    }
}

#[tokio::test]
async fn deviations_may_come_together() {
    let all = [
        Quirk::Crlf,
        Quirk::Comments,
        Quirk::NoSpace,
        Quirk::NoCallIndex,
        Quirk::NoCallId,
        Quirk::ArgumentFragments,
        Quirk::NullFields,
        Quirk::EmptyChoices,
        Quirk::ThinkTags,
        Quirk::NoDone,
        Quirk::SplitEvery(1),
    ];
    let whole = [Quirk::NoCallIndex, Quirk::SameCallId, Quirk::CallWhole];
    for quirks in [&all[..], &whole] {
        let answer = quirks.iter().cloned().fold(weather(), Answer::with);
        let server = Server::start(Behavior::from(answer)).await;
        is_weather(&reply(&model(config(&server))).await.unwrap(), &format!("{quirks:?}"));
    }
}

#[tokio::test]
async fn a_reply_in_two_thousand_pieces_is_whole() {
    let text = "word ".repeat(2000);
    let server = Server::start(Behavior::from(Answer::text(&*text).pieces(2000).usage(1, 2000))).await;
    let (reply, received) = ask(&model(config(&server)), &Asked::default()).await;
    let reply = reply.unwrap();
    assert_eq!((common::text(&reply), reply.usage.output), (text.clone(), Some(2000)));
    assert_eq!(received, text);
}

#[tokio::test]
async fn every_malformed_reply_is_an_error_that_says_what_happened_within_the_time_limit() {
    let short = Timeouts {
        first_token: Duration::from_millis(300),
        idle: Duration::from_millis(300),
        total: Duration::from_millis(1500),
        ..Timeouts::default()
    };
    let far = Duration::from_secs(60);
    for (quirk, streamed, whole, says) in [
        (Quirk::Html, Kind::InvalidReply, Kind::InvalidReply, "cannot be read"),
        (Quirk::EmptyBody, Kind::InvalidReply, Kind::InvalidReply, "the reply is empty"),
        (Quirk::ErrorInStream(2), Kind::Unavailable, Kind::Unavailable, "the provider"),
        (Quirk::EndlessLine, Kind::InvalidReply, Kind::InvalidReply, "does not end"),
        (Quirk::EndlessComments(Duration::from_millis(5)), Kind::Timeout, Kind::Timeout, "no complete reply"),
        (Quirk::HangUp, Kind::Connection, Kind::Connection, "broke"),
        (Quirk::Truncated, Kind::Connection, Kind::Connection, "broke"),
        (Quirk::Reset, Kind::Connection, Kind::Connection, "broke"),
        (Quirk::SlowHeaders(far), Kind::Timeout, Kind::Timeout, "within"),
        (Quirk::PauseBeforeFirst(far), Kind::Timeout, Kind::Timeout, "within"),
        (Quirk::Silent, Kind::Timeout, Kind::Timeout, "within"),
        (Quirk::Redirect("http://127.0.0.2:9/v1".into()), Kind::Config, Kind::Config, "redirects"),
        (Quirk::Status(500), Kind::Unavailable, Kind::Unavailable, "status 500"),
    ] {
        for stream in [true, false] {
            let server = Server::start(Behavior::from(weather().with(quirk.clone()))).await;
            let begun = Instant::now();
            let timeouts = if streamed == Kind::Timeout { short } else { Timeouts::default() };
            let model = model(Config { stream, timeouts, ..config(&server) });
            let error = reply(&model).await.expect_err(&format!("{quirk:?} {stream}"));
            let case = format!("{quirk:?}, stream {stream}: {error:?}");
            assert!(begun.elapsed() < Duration::from_secs(30), "{case}");
            assert_eq!(error.kind, if stream { streamed } else { whole }, "{case}");
            assert!(error.message.contains(says), "{case}");
            assert_eq!(error.model, "test:m", "{case}");
        }
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_body_does_not_matter_after_the_mark_of_its_end() {
    for quirk in [Quirk::LengthTooLong, Quirk::BadChunk] {
        let server = Server::start(Behavior::from(weather().with(quirk))).await;
        let whole = reply(&model(Config { stream: false, ..config(&server) })).await;
        assert_eq!(whole.unwrap_err().kind, Kind::Connection);
        is_weather(&reply(&model(config(&server))).await.unwrap(), "`[DONE]` came");
    }
    let server = Server::start(Behavior::from(weather().with(Quirk::LengthTooShort))).await;
    for stream in [true, false] {
        let error = reply(&model(Config { stream, ..config(&server) })).await.unwrap_err();
        assert_eq!(error.kind, Kind::Connection, "{error:?}");
    }
}

/// No request asks for compression, but gateways compress.
#[tokio::test]
async fn a_body_that_is_compressed_is_an_error_that_says_so() {
    for encoding in ["gzip", " br "] {
        let answer = Answer::text("x").header("content-encoding", encoding);
        let server = Server::start(Behavior::from(answer)).await;
        for stream in [true, false] {
            let error = reply(&model(Config { stream, ..config(&server) })).await.unwrap_err();
            assert_eq!((error.kind, error.status), (Kind::InvalidReply, Some(200)));
            assert!(error.message.contains(&format!("compressed (`{}`)", encoding.trim())), "{error}");
            assert!(error.hint.unwrap().contains("gateway"));
        }
    }
    let answer = Answer::text("x").header("content-encoding", "identity");
    let server = Server::start(Behavior::from(answer)).await;
    assert_eq!(text(&reply(&model(config(&server))).await.unwrap()), "x");
    let refused =
        Answer::error(503, "these bytes stand for compressed ones").header("content-encoding", "gzip");
    let server = Server::start(Behavior::from(refused)).await;
    let error = reply(&model(config(&server))).await.unwrap_err();
    assert_eq!((error.kind, error.status, &error.body), (Kind::Unavailable, Some(503), &None), "{error}");
}

/// Answers each request on one connection with a chunked body that has trailers. There is no other connection.
async fn answer_with_trailers(listener: TcpListener) {
    let (mut stream, _) = listener.accept().await.unwrap();
    drop(listener);
    let body =
        r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}"#;
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\ntrailer: x-sum";
    let response = format!("{head}\r\n\r\n{:x}\r\n{body}\r\n0\r\nx-sum: 1\r\n\r\n", body.len());
    let mut received = String::new();
    loop {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).await.unwrap();
        if count == 0 {
            return;
        }
        received.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        let Some((head, sent)) = received.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if Some(sent.len()) == length {
            received.clear();
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_body_with_trailers_is_whole_and_its_connection_is_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(answer_with_trailers(listener));
    let model = model(Config { stream: false, retries: Retries::none(), ..Config::new(url) });
    for _ in 0..3 {
        assert_eq!(text(&reply(&model).await.unwrap()), "x");
    }
}

#[tokio::test]
async fn each_time_limit_is_an_error_of_its_own() {
    let ms = Duration::from_millis;
    let far = Duration::from_secs(60);
    for (quirk, timeouts, says) in [
        (
            Quirk::Silent,
            Timeouts { first_token: ms(200), ..Timeouts::default() },
            "no first piece of a reply within 200ms",
        ),
        (Quirk::Stall(far), Timeouts { idle: ms(200), ..Timeouts::default() }, "the reply stalled for 200ms"),
        (
            Quirk::Stall(far),
            Timeouts { total: ms(200), ..Timeouts::default() },
            "no complete reply within 200ms",
        ),
        (
            Quirk::EndlessStream,
            Timeouts { total: ms(200), ..Timeouts::default() },
            "no complete reply within 200ms",
        ),
    ] {
        let answer = Answer::text("one two three four five").pieces(5).with(quirk);
        let server = Server::start(Behavior::from(answer)).await;
        let error = reply(&model(Config { timeouts, ..config(&server) })).await.unwrap_err();
        assert_eq!((error.kind, &*error.message), (Kind::Timeout, says));
    }
}

#[tokio::test]
async fn a_slow_but_living_stream_outlasts_the_limits_between_pieces() {
    let answer =
        Answer::text("a b c d e f g h i j k l").pieces(12).with(Quirk::Pace(Duration::from_millis(200)));
    let server = Server::start(Behavior::from(answer)).await;
    // Ten times what a piece takes: a loaded machine may be late.
    let limit = Duration::from_secs(2);
    let timeouts = Timeouts { first_token: limit, idle: limit, ..Timeouts::default() };
    let begun = Instant::now();
    let reply = reply(&model(Config { timeouts, ..config(&server) })).await.unwrap();
    assert_eq!(text(&reply), "a b c d e f g h i j k l");
    assert!(begun.elapsed() >= limit, "together the pieces took longer than the limit for one");
}

#[tokio::test]
async fn an_error_names_the_fault_and_never_shows_the_key() {
    let server = Server::start(Behavior::from(Answer::text("x").with(Quirk::EchoKey))).await;
    let config = Config { headers: vec![("x-api-key".into(), "another-secret".into())], ..config(&server) };
    let model = model(config);
    let error = reply(&model).await.unwrap_err();
    assert_eq!((error.kind, error.fault(), error.status), (Kind::Config, Fault::Config, Some(401)));
    assert!(error.body.as_ref().unwrap().contains("[key]"), "the server repeated it: {error:?}");
    assert!(error.hint.as_ref().unwrap().contains("`TEST_API_KEY`"), "{error:?}");
    for shown in [format!("{error:?}"), error.to_string(), format!("{model:?}")] {
        assert!(!shown.contains(KEY) && !shown.contains("another-secret"), "{shown}");
    }
    let sent = &server.requests()[0];
    assert_eq!(sent.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(sent.header("x-api-key"), Some("another-secret"));
}

/// The header has the decoded password, or the user alone, in base64.
#[tokio::test]
async fn a_secret_in_the_address_is_shown_in_no_form() {
    for credentials in ["me:a%40secret%2Fpassword", "a-token-instead-of-a-user"] {
        let server = Server::start(Behavior::from(Answer::text("x").with(Quirk::EchoKey))).await;
        let base_url = server.base_url().replace("http://", &format!("http://{credentials}@"));
        let error = reply(&model(Config { base_url, key: None, ..config(&server) })).await.unwrap_err();
        let header = server.requests()[0].header("authorization").unwrap().to_owned();
        let shown = format!("{error:?} {error}");
        assert!(header.starts_with("Basic ") && !shown.contains(&header), "{shown}");
        assert!(shown.contains("[key]"), "the server repeated it: {shown}");
    }
}

#[tokio::test]
async fn a_redirect_takes_the_key_nowhere() {
    let other = Server::start(Behavior::from("I am the wrong one.")).await;
    let place = format!("{}/chat/completions?key={KEY}", other.base_url());
    for status in [301, 302, 303, 307, 308] {
        let head = format!("HTTP/1.1 {status} Moved\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n");
        let server = Server::start(Behavior::raw(head)).await;
        let error = reply(&model(config(&server))).await.unwrap_err();
        assert!(error.message.contains(&other.base_url()), "{status}: {error}");
        assert!(!format!("{error:?}").contains(KEY), "{status}: {error:?}");
    }
    assert_eq!(other.count(), 0);
}

#[tokio::test]
async fn an_unreachable_server_is_an_error_of_the_connection() {
    let server = Server::start(Behavior::from("x")).await;
    let config = config(&server);
    drop(server);
    let error = reply(&model(config)).await.unwrap_err();
    assert_eq!((error.kind, error.fault()), (Kind::Connection, Fault::Provider));
    assert!(error.message.starts_with("cannot connect to http://127.0.0.1:"), "{error}");
    assert!(error.message.to_lowercase().contains("refused"), "{error}");
}

#[tokio::test]
async fn a_connection_that_does_not_come_about_meets_its_limit() {
    // The server takes the beginning of the encryption for that of a request, and waits for the rest of it.
    let server = Server::start(Behavior::from("x")).await;
    let base_url = server.base_url().replace("http://", "https://");
    let timeouts = Timeouts { connect: Duration::from_millis(300), ..Timeouts::default() };
    let error = reply(&model(Config { base_url, timeouts, ..config(&server) })).await.unwrap_err();
    assert_eq!(error.kind, Kind::Timeout);
    assert!(error.message.starts_with("no connection to https://127.0.0.1:"), "{error}");
    assert!(error.message.ends_with("within 300ms"), "{error}");
}
