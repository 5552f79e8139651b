//! Every team that ships, with models that reply at random, by every API: the strict servers of the providers refuse no request.
//! `POLYLOGUE_SEEDS` sets with how many seeds each team is played, `POLYLOGUE_SEED` the first of them. A team is played
//! streamed with every other seed.

use std::sync::Arc;

use polylogue_test::server::{Answer, Behavior, Dialect, Playbook, Received, Server};
use serde_json::json;

use crate::home::{Home, KEY, Ran, serve, shipped};
use crate::repeats::teams;

/// A provider's model, the variables for its key and address, and the API by which it is asked.
struct Place {
    model: &'static str,
    key: &'static str,
    address: (&'static str, fn(&Server) -> String),
    dialect: Dialect,
    /// The field with the signature of a thought, or with the encrypted thought, which goes back.
    seal: Option<&'static str>,
}

const CHAT_COMPLETIONS: Place = Place {
    model: "openai-chat:gpt-4o",
    key: "OPENAI_API_KEY",
    address: ("OPENAI_BASE_URL", Server::base_url),
    dialect: Dialect::ChatCompletions,
    seal: None,
};

const RESPONSES: Place = Place {
    model: "openai-responses:gpt-5",
    key: "OPENAI_API_KEY",
    address: ("OPENAI_BASE_URL", Server::base_url),
    dialect: Dialect::Responses,
    seal: Some("encrypted_content"),
};

const ANTHROPIC: Place = Place {
    model: "anthropic:claude-sonnet-5",
    key: "ANTHROPIC_API_KEY",
    address: ("ANTHROPIC_BASE_URL", Server::root_url),
    dialect: Dialect::Messages,
    seal: Some("signature"),
};

const GEMINI: Place = Place {
    model: "gemini:gemini-3-pro-preview",
    key: "GEMINI_API_KEY",
    address: ("GEMINI_BASE_URL", Server::root_url),
    dialect: Dialect::GenerateContent,
    seal: Some("thoughtSignature"),
};

const BEDROCK: Place = Place {
    model: "bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0",
    key: "AWS_BEARER_TOKEN_BEDROCK",
    address: ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", Server::root_url),
    dialect: Dialect::Converse,
    seal: Some("signature"),
};

const OLLAMA: Place = Place {
    model: "ollama:any",
    key: "OLLAMA_API_KEY",
    address: ("OLLAMA_HOST", Server::ollama_url),
    dialect: Dialect::Ollama,
    seal: None,
};

/// Words, thoughts and calls of the tools that are offered, by the request and the seed alone.
fn wander(request: &Received, seed: u64) -> Answer {
    let body = request.body.to_string();
    let mut state = body.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % limit
    };
    let texts =
        ["I think so.", "What now? 7", "", "{\"say\": \"Well.\"}", "Yes.", "Let us see.\n\n- one\n- two"];
    let text = texts[below(texts.len())];
    let tools = request.tools();
    let calls = if tools.is_empty() || below(3) == 0 { 0 } else { 1 + below(2) };
    let text = if calls == 0 && text.is_empty() { "Well." } else { text };
    let answer = (0..calls).fold(Answer::text(text), |answer, _| {
        answer.call(tools[below(tools.len())], json!({"text": "x", "n": 1.5, "a": [1]}))
    });
    if below(3) == 0 { answer.think("Hm.") } else { answer }
}

/// Runs `team`, and answers for people, for a while.
fn play(home: &Home, team: &str, model: &str, streams: bool) -> Ran {
    let mode: &[&str] = if streams { &[] } else { &["--no-stream"] };
    let mut ran = home
        .run(&[&["run", &shipped(team), "-m", model, "--max-turns", "12", "--allow", "mcp"], mode].concat());
    for _ in 0..4 {
        if ran.code != 5 {
            break;
        }
        ran = home.run(&[&["resume", "last", "--answer", "So be it."], mode].concat());
    }
    ran
}

/// Requests: all, those that offer tools, and those with signed thoughts of earlier replies.
#[derive(Debug, Default)]
struct Counted {
    all: usize,
    with_tools: usize,
    with_seals: usize,
}

impl Counted {
    fn add(&mut self, requests: &[Arc<Received>], seal: Option<&str>) {
        self.all += requests.len();
        self.with_tools += requests.iter().filter(|received| !received.tools().is_empty()).count();
        let seal = seal.map(|field| format!("\"{field}\":"));
        let has_seal = |received: &&Arc<Received>| {
            seal.as_ref().is_some_and(|field| received.body.to_string().contains(field))
        };
        self.with_seals += requests.iter().filter(has_seal).count();
    }
}

/// Plays `team` at `place`.
fn check(place: &Place, team: &str, seed: u64, streams: bool, counted: &mut Counted) {
    let server = serve(Behavior::from(Playbook::new(move |request, _| wander(request, seed))));
    let home = Home::new().var(place.key, KEY).var(place.address.0, &(place.address.1)(&server));
    let ran = play(&home, team, place.model, streams);
    let case = format!("{team} by {} from seed {seed}, streamed: {streams}: {ran:?}", place.model);
    assert_eq!(server.violations(), [""; 0], "{case}");
    // It ends, reaches a limit, or waits for a person.
    assert!([0, 3, 5].contains(&ran.code), "{case}");
    let requests = server.requests();
    assert!(requests.iter().all(|received| received.dialect() == Some(place.dialect)), "{case}");
    assert!(!requests.is_empty(), "{case}");
    counted.add(&requests, place.seal);
}

fn set(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
}

/// Plays all teams at `place`: with each seed half of them streamed, with the next one the other half.
fn check_all(place: &Place) {
    let (seeds, first) = (set("POLYLOGUE_SEEDS", 1), set("POLYLOGUE_SEED", 1));
    let mut counted = Counted::default();
    for seed in first..first + seeds {
        for (nth, team) in (0_u64..).zip(teams()) {
            check(place, &team, seed, (nth + seed).is_multiple_of(2), &mut counted);
        }
    }
    println!("{seeds} seeds from {first} by {}: {counted:?}", place.model);
    assert!(counted.all > 400 && counted.with_tools > 50, "{counted:?}");
    assert!(place.seal.is_none() || counted.with_seals > 20, "{counted:?}");
}

// P1.
#[test]
fn chat_completions_refuse_no_request_of_a_team_that_ships() {
    check_all(&CHAT_COMPLETIONS);
}

#[test]
fn responses_refuse_no_request_of_a_team_that_ships() {
    check_all(&RESPONSES);
}

#[test]
fn anthropic_refuses_no_request_of_a_team_that_ships() {
    check_all(&ANTHROPIC);
}

#[test]
fn gemini_refuses_no_request_of_a_team_that_ships() {
    check_all(&GEMINI);
}

#[test]
fn bedrock_refuses_no_request_of_a_team_that_ships() {
    check_all(&BEDROCK);
}

#[test]
fn ollama_refuses_no_request_of_a_team_that_ships() {
    check_all(&OLLAMA);
}
