//! Many agents on one endpoint, and agents that stop listening.

use crate::common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{Asked, ask, config, reply, text};
use polylogue_core::Model as _;
use polylogue_models::{Config, Endpoint, Env, Key, Limits, Models};
use polylogue_test::server::{Answer, Behavior, Playbook, Quirk, Server};

/// P25.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_in_flight_are_bounded_over_all_models_of_an_endpoint() {
    let behavior = Behavior::from("x").latency(Duration::from_millis(5));
    let server = Server::start(behavior).await;
    let limits = Limits { in_flight: Some(3), per_minute: None };
    let endpoint = Endpoint::new(Config { limits, ..config(&server) }).unwrap();
    let models = Arc::new([endpoint.model("m"), endpoint.clone().model("n")]);
    let tasks: Vec<_> = (0..100)
        .map(|index| {
            let models = Arc::clone(&models);
            tokio::spawn(async move { reply(&models[index % 2]).await.map(|reply| text(&reply)) })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap(), "x");
    }
    assert_eq!((server.count(), server.violations().len()), (100, 0));
    // A client has the last byte of a reply before the server notes that it is sent, so each of the three may be counted
    // together with its successor. Without a limit there would be 100.
    assert!((1..=6).contains(&server.most_at_once()), "{}", server.most_at_once());
    // They are kept, and used by all.
    assert!((1..=6).contains(&server.connections()), "{}", server.connections());
}

/// P112: a program prepares its models for each conversation.
#[tokio::test]
async fn models_of_a_process_share_what_is_known_of_an_endpoint_with_the_same_configuration() {
    let server = Server::start(Behavior::from(Playbook::always(Answer::status(503)))).await;
    let model_with = |models: Models, config: Config| {
        models.define(config).unwrap();
        models.model("test:m").unwrap()
    };
    let shared = |config| model_with(Models::new(Env::of::<String, String>([])).of_process(), config);
    let (one, other) = (shared(config(&server)), shared(config(&server)));
    for _ in 0..5 {
        reply(&one).await.unwrap_err();
    }
    assert!(one.unavailable_for().is_some() && other.unavailable_for().is_some());
    drop((one, other));
    assert!(shared(config(&server)).unavailable_for().is_some(), "also for the next conversation");
    // With another key, another limit, or on its own it is another endpoint.
    let limits = Limits { in_flight: Some(3), per_minute: None };
    let apart = [
        shared(Config { key: Key::new("sk-another-4d1c"), ..config(&server) }),
        shared(Config { limits, ..config(&server) }),
        model_with(Models::new(Env::of::<String, String>([])), config(&server)),
    ];
    assert!(apart.iter().all(|model| model.unavailable_for().is_none()));
}

#[tokio::test]
async fn requests_per_minute_are_bounded_too() {
    let server = Server::start(Behavior::from("x")).await;
    let limits = Limits { in_flight: None, per_minute: Some(2) };
    let endpoint = Endpoint::new(Config { limits, ..config(&server) }).unwrap();
    let model = endpoint.model("m");
    for _ in 0..2 {
        reply(&model).await.unwrap();
    }
    // The third would have to wait for most of a minute.
    let third = tokio::time::timeout(Duration::from_millis(200), reply(&model)).await;
    assert!(third.is_err());
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn who_stops_listening_leaves_no_connection_and_no_slot_behind() {
    let answer = Answer::text("one two three four").pieces(4).with(Quirk::Stall(Duration::from_secs(60)));
    for answer in [answer, Answer::text("x").with(Quirk::Silent)] {
        let server = Server::start(Behavior::from(answer)).await;
        let limits = Limits { in_flight: Some(1), per_minute: None };
        let model = Endpoint::new(Config { limits, ..config(&server) }).unwrap().model("m");
        for round in 1..=3 {
            let asked = Asked::default();
            let stopped = tokio::time::timeout(Duration::from_millis(150), ask(&model, &asked)).await;
            assert!(stopped.is_err());
            let begun = Instant::now();
            while server.count() < round || server.connections() > 0 {
                assert!(begun.elapsed() < Duration::from_secs(20), "{} open", server.connections());
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

#[tokio::test]
async fn an_aborted_call_does_not_spoil_the_next_of_the_same_view() {
    let silent = Answer::text("x").with(Quirk::Silent);
    let server = Server::start(Behavior::from(polylogue_test::server::Playbook::list([
        Answer::text("first"),
        silent,
        Answer::text("third"),
    ])))
    .await;
    let model = common::model(config(&server));
    let mut asked = Asked::default();
    assert!(ask(&model, &asked).await.0.is_ok());
    asked.entries.push(polylogue_core::Entry::assistant("first"));
    asked.entries.push(polylogue_core::Entry::user("and?"));
    assert!(tokio::time::timeout(Duration::from_millis(200), ask(&model, &asked)).await.is_err());
    assert_eq!(text(&ask(&model, &asked).await.0.unwrap()), "third");
    assert_eq!(server.violations(), [""; 0]);
    let requests = server.requests();
    assert_eq!(requests[1].bytes, requests[2].bytes);
}

#[test]
fn an_endpoint_outlives_the_runtime_it_was_used_in() {
    let server = Server::bind(([127, 0, 0, 1], 0).into(), Behavior::from("x")).unwrap();
    let model = common::model(config(&server));
    for round in 1..=3 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(text(&runtime.block_on(reply(&model)).unwrap()), "x");
        assert_eq!(server.count(), round);
    }
}
