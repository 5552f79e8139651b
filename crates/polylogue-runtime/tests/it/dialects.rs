//! Every team that ships, with models that reply at random, by every API: the strict servers of the providers refuse no request.
//! `POLYLOGUE_SEEDS` sets with how many seeds each team is played, `POLYLOGUE_SEED` the first of them. With each seed a team is played
//! plain and streamed.
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use polylogue_core::{LimitOverrides, Responder, RunOutcome, Status};
use polylogue_models::Env;
use polylogue_runtime::{Access, Conversation, ModelOptions, Prepared, RunOptions, Runtime, StoreLocation};
use polylogue_store::Memory;
use polylogue_team::{Grant, Loaded};
use polylogue_test::server::{Answer, Behavior, Dialect, Playbook, Received, Server};
use serde_json::json;

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

const KEY: &str = "sk-test-7f3a9c51d2";

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

/// Requests: all, those that offer tools, and those with signed thoughts of earlier replies.
#[derive(Debug, Default)]
struct Counted {
    all: AtomicUsize,
    with_tools: AtomicUsize,
    with_seals: AtomicUsize,
}

impl Counted {
    fn add(&self, received: &Received, place: &Place) {
        assert_eq!(received.dialect(), Some(place.dialect));
        let seal = place.seal.map(|field| format!("\"{field}\":"));
        let has_seal = seal.is_some_and(|field| memmem(&received.bytes, field.as_bytes()));
        self.all.fetch_add(1, Ordering::Relaxed);
        self.with_tools.fetch_add(usize::from(!received.tools().is_empty()), Ordering::Relaxed);
        self.with_seals.fetch_add(usize::from(has_seal), Ordering::Relaxed);
    }

    fn of(&self) -> [usize; 3] {
        [&self.all, &self.with_tools, &self.with_seals].map(|count| count.load(Ordering::Relaxed))
    }
}

fn memmem(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// How a team is run, by models at `server`.
fn options(place: &Place, streams: bool) -> RunOptions {
    let models = ModelOptions { model: Some(place.model.into()), stream: streams, ..ModelOptions::default() };
    let limits = LimitOverrides { turns: Some(12), ..LimitOverrides::default() };
    RunOptions { models, limits, ..RunOptions::default() }
}

/// Runs a conversation, and answers for people, for a while. How it ended, if it does not wait for a person.
async fn play(conversation: &Conversation) -> Result<Option<RunOutcome>, String> {
    for _ in 0..5 {
        match conversation.run().await.map_err(|error| format!("{error:?}"))? {
            Status::Closed { reason, .. } => return Ok(Some(reason.outcome())),
            Status::Waiting(questions) => {
                for (at, question) in questions {
                    let answered =
                        conversation.answer(&at, &question.who, "So be it.", Responder::Unnamed).await;
                    answered.map_err(|error| format!("{error:?}"))?;
                }
            }
            other @ Status::Cancelled => return Err(format!("{other:?}")),
        }
    }
    Ok(None)
}

/// Plays `team` at `place`.
async fn check(place: &'static Place, loaded: Loaded, seed: u64, streams: bool, counted: &Arc<Counted>) {
    let case = format!("{} by {} from seed {seed}, streamed: {streams}", loaded.team.name, place.model);
    let counts = Arc::clone(counted);
    let book = Playbook::new(move |request, _| {
        counts.add(request, place);
        wander(request, seed)
    });
    let server = Server::start(Behavior::from(book).key(KEY)).await;
    let folder = tempfile::tempdir().unwrap();
    let at = StoreLocation::new(folder.path().join("store.db"));
    let env = Env::of([(place.key, KEY), (place.address.0, &(place.address.1)(&server))]);
    let mut access = Access::new(env, loaded.digest.as_str());
    access.grants.insert(Grant::Mcp);
    let Loaded { team, digest, .. } = loaded;
    let prepared = Prepared::new(&at, team, digest, access, options(place, streams)).await;
    let prepared = prepared.unwrap_or_else(|error| panic!("{case}: {error:?}"));
    let runtime = Runtime::with_store(at, Memory::new().into());
    let conversation = runtime.begin(&prepared.run()).await.unwrap();
    let ended = play(&conversation).await;
    assert_eq!(server.violations(), [""; 0], "{case}: {ended:?}");
    // It ends, reaches a limit, or waits for a person.
    let is_expected = matches!(ended, Ok(None | Some(RunOutcome::Done | RunOutcome::Limit)));
    assert!(is_expected, "{case}: {ended:?}");
    assert!(server.count() > 0, "{case}: it asked nothing");
}

fn set(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
}

/// The teams that ship, as they were read.
fn teams() -> Vec<Loaded> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../teams"));
    let paths: BTreeSet<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let files = paths.iter().filter(|path| path.extension().is_some_and(|end| end == "yaml"));
    files.map(|path| polylogue_team::load(path, &Default::default()).unwrap()).collect()
}

/// Plays all teams at `place`, with each seed plain and streamed.
fn check_all(place: &'static Place) {
    let (seeds, first) = (set("POLYLOGUE_SEEDS", 2), set("POLYLOGUE_SEED", 1));
    let (teams, counted) = (teams(), Arc::new(Counted::default()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for seed in first..first + seeds {
        for (team, streams) in teams.iter().flat_map(|team| [(team, false), (team, true)]) {
            runtime.block_on(check(place, team.clone(), seed, streams, &counted));
        }
        let [all, with_tools, with_seals] = counted.of();
        println!(
            "seeds {first} to {seed} by {}: {all} requests, {with_tools} with tools, {with_seals} with seals",
            place.model
        );
    }
    let [all, with_tools, with_seals] = counted.of();
    assert!(all > 800 && with_tools > 100, "{counted:?}");
    assert!(place.seal.is_none() || with_seals > 40, "{counted:?}");
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
