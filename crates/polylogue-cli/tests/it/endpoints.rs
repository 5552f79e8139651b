//! Endpoints of a team file: what reaches the server, what is kept, and what is said when something is missing.

use std::fs;
use std::time::Duration;

use expect_test::expect;
use polylogue_test::server::{Answer, Behavior, Playbook, Received, Server};
use rustix::process::Signal;

use crate::home::{Home, KEY, serve, until};
use crate::models::{CALLS, TALK, said, talk};

/// The value of a secret header. The key's digits are in it, so that every check for the key is one for it.
const TOKEN: &str = "Token sk-test-7f3a9c51d2";

/// The talk at its own endpoint: `house`, at `server`, with `more` said of it.
fn house(server: &Server, more: &str) -> String {
    let url = server.base_url();
    format!("{TALK}model: house:big\nendpoints:\n  house: {{base_url: \"{url}\", {more}}}\n")
}

const ALL: &str = "key: HOUSE_KEY, headers: {X-Team: writers, X-Gateway: {env: GATEWAY_TOKEN}}, \
                   in_flight: 2, timeouts: {total: 20 s}";

fn secrets() -> Home {
    Home::new().var("HOUSE_KEY", KEY).var("GATEWAY_TOKEN", TOKEN)
}

#[test]
fn headers_and_keys_arrive_and_are_kept_nowhere() {
    let server = serve(talk());
    let home = secrets();
    home.file("team.yaml", &house(&server, ALL));
    // Neither the store, when the home is given up, nor what is written, when a run ends, may hold the secrets.
    let ran = home.run(&["run", "team.yaml", "--allow", "endpoints,env"]).ok();
    let host = server.base_url().replace("http://", "").replace("/v1", "");
    let sent = format!("`HOUSE_KEY -> {host}`, `GATEWAY_TOKEN -> {host}`");
    assert!(ran.err.contains(&server.base_url()) && ran.err.contains(&sent), "{}", ran.err);
    let requests = server.requests();
    assert_eq!(requests.len(), CALLS);
    for request in requests {
        assert_eq!((request.header("x-team"), request.header("x-gateway")), (Some("writers"), Some(TOKEN)));
        assert_eq!(request.model(), "big");
    }
}

#[test]
fn a_run_that_was_stopped_finds_its_endpoint_again_without_its_file() {
    let server = serve(talk());
    let home = secrets();
    home.file("team.yaml", &house(&server, ALL));
    home.run(&["run", "team.yaml", "--max-turns", "1", "--allow", "endpoints,env"]).exits(3);
    fs::remove_file(home.path("team.yaml")).unwrap();
    home.run(&["resume", "last", "--max-turns", "100"]).ok();
    assert_eq!(server.count(), CALLS);
    assert!(server.requests().iter().all(|request| request.header("x-gateway") == Some(TOKEN)));
    assert_eq!(said(&home.events()).len(), 5);
}

#[test]
fn a_variable_that_is_not_set_ends_a_run_before_its_first_request() {
    let server = serve(talk());
    let mut home = Home::new().var("HOUSE_KEY", KEY).with_team(&house(&server, ALL));
    let ran = home.run(&["run", "team.yaml", "--quiet", "--allow", "endpoints,env"]).exits(2);
    assert_eq!(
        ran.err,
        "error (config): house: the header `X-Gateway` of `house` is in `GATEWAY_TOKEN`, which is not set\n  \
         hint: set `GATEWAY_TOKEN`, in the environment or in `.env`\n"
    );
    home.set("GATEWAY_TOKEN", TOKEN);
    home.set("HOUSE_KEY", "");
    let ran = home.run(&["run", "team.yaml", "--quiet", "--allow", "endpoints,env"]).exits(2);
    let hint = "  hint: set `HOUSE_KEY`, in the environment or in `.env`\n";
    assert_eq!(ran.err, format!("error (config): house:big: no API key is set for `house`\n{hint}"));
    assert_eq!((server.count(), home.listed().len()), (0, 0));
    // An endpoint that no agent uses is not missed.
    home.set("HOUSE_KEY", KEY);
    home.file(".env", &format!("GATEWAY_TOKEN='{TOKEN}'\n"));
    home.run(&["run", "team.yaml", "--allow", "endpoints,env"]).ok();
    fs::remove_file(home.path(".env")).unwrap();
}

#[test]
fn a_known_provider_takes_other_settings_and_keeps_its_key_from_other_addresses() {
    let (own, other) = (serve(talk()), serve(Playbook::echo()));
    let home = Home::at(&own);
    let headers = "headers: {X-Team: writers}";
    home.file("own.yaml", &format!("{TALK}endpoints: {{OpenAI: {{{headers}}}}}\n"));
    home.run(&["run", "own.yaml", "-m", "openai:test"]).ok();
    assert!(own.requests().iter().all(|request| request.header("x-team") == Some("writers")));
    let url = other.base_url();
    home.file("moved.yaml", &format!("{TALK}endpoints: {{openai: {{base_url: \"{url}\", {headers}}}}}\n"));
    home.run(&["run", "moved.yaml", "-m", "openai:test", "--max-turns", "2", "--allow", "endpoints,env"])
        .exits(3);
    let requests = other.requests();
    assert!(!requests.is_empty() && requests.iter().all(|request| request.header("authorization").is_none()));
    assert_eq!(own.count(), CALLS);
}

#[test]
fn retries_and_time_limits_are_the_endpoints() {
    let server = serve(Playbook::always(Answer::error(503, "busy")));
    let home = Home::new().with_team(&house(&server, "retries: 1"));
    home.run(&["run", "team.yaml", "--allow", "endpoints,env"]).exits(1);
    assert_eq!(server.count(), 2);
    let slow = serve(Behavior::from(Playbook::echo()).latency(Duration::from_secs(20)));
    home.file("slow.yaml", &house(&slow, "retries: 0, timeouts: {first_token: 300 ms}"));
    let ran = home.run(&["run", "slow.yaml", "--allow", "endpoints,env"]).exits(1);
    assert!(ran.err.contains("no first piece of a reply within 300ms"), "{}", ran.err);
    assert_eq!(slow.count(), 1);
}

#[test]
fn a_retry_is_said_where_no_terminal_shows_it() {
    let server = serve(Playbook::new(|_: &Received, nth| match nth % 2 {
        0 => Answer::status(429).retry_after_secs(0),
        _ => Answer::text("Done."),
    }));
    let home = Home::new().with_team(&house(&server, "retries: 3"));
    for (option, is_said) in
        [("--verbose", true), ("--json", true), ("--style=autogen", true), ("--quiet", false)]
    {
        let ran = home.run(&["run", "team.yaml", option, "--allow", "endpoints,env"]);
        assert_eq!(ran.err.contains(": 429 from house, retry 1 of 3 "), is_said, "{option}: {}", ran.err);
        assert!(!ran.out.contains("retry 1 of 3"), "{option}: {}", ran.out);
    }
}

#[test]
fn a_wait_that_is_longer_than_the_endpoint_allows_ends_the_call() {
    let server = serve(Playbook::always(Answer::status(429).retry_after_secs(120)));
    let home = Home::new();
    for (settings, allowed) in [("merge: true", "60s"), ("max_wait: 90 s", "90s")] {
        home.file("team.yaml", &house(&server, settings));
        let ran = home.run(&["run", "team.yaml", "--quiet", "--allow", "endpoints,env"]).exits(1);
        let both = format!("it asks to wait 120s, but at most {allowed} are allowed");
        assert!(ran.err.contains(&both), "{}", ran.err);
        let hint = "hint: try again later, or allow longer waits with `max_wait` of its endpoint";
        assert!(ran.err.contains(hint), "{}", ran.err);
    }
    assert_eq!(server.count(), 2);
}

#[test]
fn a_limit_per_minute_holds_requests_back() {
    let server = serve(talk());
    let home = secrets();
    home.file("team.yaml", &house(&server, "key: HOUSE_KEY, per_minute: 1"));
    let mut running = home.start(&["run", "team.yaml", "--allow", "endpoints,env"]);
    until("the first reply is kept", || {
        let ran = home.run(&["show", "last", "--json"]);
        ran.out.contains("\"type\":\"message\"")
    });
    // Without the limit the other requests would be there before another process has begun.
    home.run(&["runs"]).ok();
    assert!(!running.is_over());
    assert_eq!(server.count(), 1);
    running.signal(Signal::TERM);
    running.end().exits(6);
}

#[test]
fn doctor_shows_the_endpoints_of_a_team() {
    let server = serve(talk());
    let mut home = secrets();
    home.file("team.yaml", &format!("{}  openai: {{per_minute: 500}}\n", house(&server, ALL)));
    let shown = |home: &Home| {
        let out = home.run(&["doctor", "team.yaml", "--allow", "endpoints,env"]).ok().out;
        let from = out.find("endpoints of ").unwrap();
        out[from..out.find("\ncapabilities of models").unwrap()].replace(&server.base_url(), "SERVER")
    };
    expect![[r#"
        endpoints of talk
          house             answers at SERVER
                            key found in `HOUSE_KEY`
                            headers `X-Gateway`, `X-Team`
                            at most 2 at once; 20 s to the first word, 20 s in all
          openai            at https://api.openai.com/v1
                            no key: set `OPENAI_API_KEY`
                            at most 256 at once, 500 a minute; 180 s to the first word, 600 s in all
    "#]]
    .assert_eq(&shown(&home));
    home.set("GATEWAY_TOKEN", "");
    expect![[r#"
        endpoints of talk
          house             the header `X-Gateway` of `house` is in `GATEWAY_TOKEN`, which is not set
          openai            at https://api.openai.com/v1
                            no key: set `OPENAI_API_KEY`
                            at most 256 at once, 500 a minute; 180 s to the first word, 600 s in all
    "#]]
    .assert_eq(&shown(&home));
    assert_eq!(server.count(), 0);
    home.file("plain.yaml", TALK);
    assert!(
        home.run(&["doctor", "plain.yaml"]).ok().out.contains("\nendpoints of talk\n  no key of its own\n")
    );
    let ran = home.run(&["doctor", "none.yaml"]).exits(2);
    assert!(ran.err.contains("the file does not exist"), "{}", ran.err);
}
