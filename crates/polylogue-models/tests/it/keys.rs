//! Several keys of one endpoint: taken in turn, and left out when their accounts have no credit left.

use crate::common::{Asked, config, model, quick, reply, text};
use polylogue_core::{Model, ModelErrorKind as Kind};
use polylogue_models::{Config, Env, FailureClass, Fallback, Key, Models, Retries};
use polylogue_test::server::{Answer, Playbook, Quirk, Server};

/// The keys that requests came with, without what all of them begin with.
fn keys(server: &Server) -> Vec<String> {
    let key = |value: &str| value.trim_start_matches("Bearer sk-of-account-").to_owned();
    server.requests().iter().map(|request| key(request.header("authorization").unwrap_or_default())).collect()
}

fn with_keys(server: &Server, keys: &[&str], retries: Retries) -> Config {
    let key = |name: &&str| Key::new(&format!("sk-of-account-{name}")).unwrap();
    let mut keys = keys.iter().map(key);
    Config { key: keys.next(), further_keys: keys.collect(), retries, ..config(server) }
}

/// L48.
#[tokio::test]
async fn keys_are_taken_in_turn_and_one_without_credit_is_left_out() {
    let answers = [
        Answer::text("1"),
        Answer::quota(),
        Answer::text("2"),
        Answer::text("3"),
        Answer::text("4"),
        Answer::status(402),
        Answer::text("5"),
        Answer::text("6"),
    ];
    let server = Server::start(Playbook::list(answers)).await;
    let model = model(with_keys(&server, &["a", "b", "c"], Retries::none()));
    let mut said = Vec::new();
    for _ in 0..6 {
        said.push(text(&reply(&model).await.unwrap()));
    }
    assert_eq!(said, ["1", "2", "3", "4", "5", "6"]);
    let keys = keys(&server);
    assert_eq!(keys[..3], ["a", "b", "c"]);
    assert!(keys[3..].iter().all(|key| key != "b"), "{keys:?}");
    assert_ne!(keys[5], keys[6], "the other key is used at once");
    assert_eq!(keys[6], keys[7]);
}

/// L48: the error is that of the provider. In every call one key is tried: the bill may have been paid.
#[tokio::test]
async fn when_all_are_without_credit_it_is_an_error() {
    let answers =
        [Answer::quota(), Answer::quota(), Answer::quota(), Answer::text("paid"), Answer::text("still")];
    let server = Server::start(Playbook::list(answers)).await;
    let two = model(with_keys(&server, &["a", "b"], quick(3)));
    for sent in [2, 3] {
        let error = reply(&two).await.unwrap_err();
        assert_eq!((error.kind, error.status), (Kind::QuotaExceeded, Some(429)));
        assert!(error.hint.unwrap().contains("billing"));
        assert_eq!(server.count(), sent);
    }
    assert!(two.unavailable_for().unwrap().as_secs() > 500);
    assert_eq!(text(&reply(&two).await.unwrap()), "paid");
    assert_eq!((two.unavailable_for(), text(&reply(&two).await.unwrap())), (None, "still".to_owned()));
    let keys = keys(&server);
    assert_eq!((keys[..2].concat(), &keys[3]), ("ab".to_owned(), &keys[4]));

    let server = Server::start(Playbook::list([Answer::quota(), Answer::text("paid")])).await;
    let one = model(with_keys(&server, &["a"], quick(3)));
    reply(&one).await.unwrap_err();
    assert_eq!(text(&reply(&one).await.unwrap()), "paid");
}

/// Whatever status the provider has for that; the circuit of the endpoint stays closed.
#[tokio::test]
async fn an_endpoint_whose_keys_are_all_without_credit_is_skipped_by_a_fallback() {
    let low = || Answer::error(400, "Your credit balance is too low to access the API.");
    for spent in [Answer::quota(), Answer::status(402), low()] {
        for keys in [&["a"][..], &["a", "b"]] {
            let broke = Server::start(Playbook::always(spent.clone())).await;
            let other = Server::start(Playbook::always(Answer::text("Hi."))).await;
            let first = model(with_keys(&broke, keys, quick(5)));
            let fallback = Fallback::new([first.clone().into(), model(config(&other)).into()]);
            let fallback = fallback.on([FailureClass::Rate]);
            for _ in 0..7 {
                let reply = fallback.complete(&Asked::default().request(), &mut ()).await.unwrap();
                assert_eq!(text(&reply), "Hi.");
            }
            assert_eq!((broke.count(), other.count()), (keys.len(), 7), "each key once, then none");
            for _ in 0..7 {
                assert_eq!(reply(&first).await.unwrap_err().kind, Kind::QuotaExceeded);
            }
            assert_eq!(broke.count(), keys.len() + 7, "without a fallback one key is tried");
        }
    }
}

/// A key that meets a rate limit is not used until that is over, and another one is used at once.
#[tokio::test]
async fn a_key_at_its_rate_limit_is_left_out_and_the_next_one_is_used_at_once() {
    let limited = Answer::status(429).retry_after_secs(60);
    let answers = [limited, Answer::text("1"), Answer::text("2"), Answer::text("3")];
    let server = Server::start(Playbook::list(answers)).await;
    let model = model(with_keys(&server, &["a", "b", "c"], quick(2)));
    for _ in 0..3 {
        reply(&model).await.unwrap();
    }
    assert_eq!(keys(&server), ["a", "b", "c", "b"]);
    assert_eq!(model.unavailable_for(), None);
}

/// Without a key that is not at its rate limit, the wait that the provider asks for is too long, and other models are asked.
#[tokio::test]
async fn an_endpoint_whose_keys_are_all_at_their_limits_is_skipped_by_a_fallback() {
    let limited = Server::start(Playbook::always(Answer::status(429).retry_after_secs(300))).await;
    let other = Server::start(Playbook::always(Answer::text("Hi."))).await;
    let first = model(with_keys(&limited, &["a", "b"], quick(5)));
    let models = [first.clone().into(), model(config(&other)).into()];
    let fallback = Fallback::new(models);
    for _ in 0..3 {
        let reply = fallback.complete(&Asked::default().request(), &mut ()).await.unwrap();
        assert_eq!(text(&reply), "Hi.");
    }
    assert_eq!(keys(&limited), ["a", "b"], "each key once, then none");
    let reply = fallback.complete(&Asked::default().request(), &mut ()).await.unwrap();
    let why = reply.answered_by.unwrap().because.clone().unwrap();
    assert!(why.contains("it is not asked for a while"), "{why}");
    assert!(first.unavailable_for().unwrap().as_secs() > 200);
}

/// After five failures in a row an endpoint is skipped, by all agents that share it. A model alone is asked in any case.
#[tokio::test]
async fn an_endpoint_that_fails_repeatedly_is_skipped_by_a_fallback() {
    for failing in [Answer::status(500), Answer::text("He").with(Quirk::HangUp)] {
        let broken = Server::start(Playbook::always(failing)).await;
        let other = Server::start(Playbook::always(Answer::text("Hi."))).await;
        let first = model(config(&broken));
        let fallback = || Fallback::new([first.clone().into(), model(config(&other)).into()]);
        for _ in 0..8 {
            let reply = fallback().complete(&Asked::default().request(), &mut ()).await.unwrap();
            assert_eq!(text(&reply), "Hi.");
        }
        assert_eq!((broken.count(), other.count()), (5, 8));
        reply(&first).await.unwrap_err();
        assert_eq!(broken.count(), 6);
    }
}

/// A rate that is met, or a server that is down, says nothing of a key.
#[tokio::test]
async fn other_failures_leave_no_key_out() {
    let failing = [Answer::status(429).retry_after_secs(0), Answer::status(500), Answer::status(503)];
    for failing in failing {
        let answers = [failing, Answer::text("1"), Answer::text("2"), Answer::text("3")];
        let server = Server::start(Playbook::list(answers)).await;
        let model = model(with_keys(&server, &["a", "b"], quick(2)));
        for _ in 0..3 {
            reply(&model).await.unwrap();
        }
        assert_eq!(keys(&server), ["a", "b", "a", "b"]);
    }
}

/// A variable may hold several keys, with commas between; none of them is in an error.
#[tokio::test]
async fn a_variable_holds_several_keys() {
    let refused = |name: &str| Answer::error(401, format!("sk-of-account-{name} is wrong"));
    let server = Server::start(Playbook::list([Answer::text("1"), refused("b"), refused("a")])).await;
    let env = Env::of([
        ("OPENAI_API_KEY", "sk-of-account-a, sk-of-account-b,".to_owned()),
        ("OPENAI_BASE_URL", server.base_url()),
    ]);
    let model = Models::new(env).model("openai:m").unwrap();
    reply(&model).await.unwrap();
    let error = reply(&model).await.unwrap_err();
    assert_eq!(keys(&server), ["a", "b", "a"]);
    assert!(
        error.message.contains("[key] is wrong") && !format!("{error:?}").contains("account"),
        "{error:?}"
    );
}

/// A key that was revoked, or whose account was closed, while others work.
#[tokio::test]
async fn a_key_that_is_refused_is_left_out_and_the_next_one_is_used() {
    for refused in [Answer::status(401), Answer::error(400, "Incorrect API key provided")] {
        let answers = [refused, Answer::text("1"), Answer::text("2"), Answer::text("3")];
        let server = Server::start(Playbook::list(answers)).await;
        let model = model(with_keys(&server, &["a", "b"], Retries { attempts: 2, ..Retries::default() }));
        for expected in ["1", "2", "3"] {
            assert_eq!(text(&reply(&model).await.unwrap()), expected);
        }
        assert_eq!(keys(&server), ["a", "b", "b", "b"]);
        assert_eq!(model.unavailable_for(), None);
    }
}
