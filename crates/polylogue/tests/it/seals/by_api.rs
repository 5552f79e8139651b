//! Conversations with thoughts and tools by every API that takes thoughts back: resumed and forked at every event, trimmed by a
//! window, compacted, and with another model in between. The servers are strict: those of providers that sign thoughts check
//! every signature, and most of them together with everything that was sent before it. The others remember the thoughts that
//! they sent, and after which messages.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use polylogue::agents::compaction::{Compaction, CompactionLimit};
use polylogue::models::{Env, Models};
use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::tools::FunctionTool;
use polylogue::{AnyModel, Assistant, Chat, round_robin};
use polylogue_core::{
    AnyStore, Body, DeltaSink, Entry, Event, Model, ModelError, Reply, Request, Verbatim, ViewOptions, Window,
};
use polylogue_store::Memory;
use polylogue_test::cut::{Calls, Cut};
use polylogue_test::server::{Answer, Behavior, Playbook, Received, Server, Vendor};
use serde_json::{Value, json};

use crate::common::{log_of, run_or_resume};

const KEY: &str = "a-key-that-no-one-may-see";

/// An API: two of its models, the variables of its address and key, and the field in which a thought goes back.
struct Api {
    models: [&'static str; 2],
    variables: fn(&Server) -> Vec<(&'static str, String)>,
    /// The field of a signature, or of a thought without one.
    field: &'static str,
    is_signed: bool,
    /// Whose chat completions the server plays.
    vendor: Option<Vendor>,
}

/// The beginning of an API that signs thoughts.
const SIGNED: Api =
    Api { models: ["", ""], variables: |_| Vec::new(), field: "", is_signed: true, vendor: None };

/// That of one which does not.
const PLAIN: Api = Api { is_signed: false, ..SIGNED };

fn with_key(address: (&'static str, String), key: &'static str) -> Vec<(&'static str, String)> {
    vec![address, (key, KEY.to_owned())]
}

const APIS: [Api; 10] = [
    Api {
        models: ["anthropic:claude-sonnet-5", "anthropic:claude-opus-5"],
        variables: |server| with_key(("ANTHROPIC_BASE_URL", server.root_url()), "ANTHROPIC_API_KEY"),
        field: "signature",
        ..SIGNED
    },
    Api {
        models: ["openai-responses:gpt-5", "openai-responses:o3"],
        variables: |server| with_key(("OPENAI_BASE_URL", server.base_url()), "OPENAI_API_KEY"),
        field: "encrypted_content",
        ..SIGNED
    },
    Api {
        models: ["gemini:gemini-3-pro", "gemini:gemini-3-flash"],
        variables: |server| with_key(("GEMINI_BASE_URL", server.root_url()), "GEMINI_API_KEY"),
        field: "thoughtSignature",
        ..SIGNED
    },
    Api {
        models: ["vertex:gemini-3-pro", "vertex:gemini-3-flash"],
        variables: |server| {
            let place = [("GOOGLE_CLOUD_PROJECT", "acme"), ("GOOGLE_CLOUD_LOCATION", "global")];
            let place = place.map(|(name, value)| (name, value.to_owned()));
            let mut all = with_key(("VERTEX_BASE_URL", server.root_url()), "GOOGLE_OAUTH_ACCESS_TOKEN");
            all.extend(place);
            all
        },
        field: "thoughtSignature",
        ..SIGNED
    },
    Api {
        models: [
            "bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0",
            "bedrock:anthropic.claude-opus-4-5-v1:0",
        ],
        variables: |server| {
            let address = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.root_url());
            with_key(address, "AWS_BEARER_TOKEN_BEDROCK")
        },
        field: "signature",
        ..SIGNED
    },
    Api {
        models: ["deepseek:deepseek-reasoner", "deepseek:deepseek-v4"],
        variables: |server| with_key(("DEEPSEEK_BASE_URL", server.base_url()), "DEEPSEEK_API_KEY"),
        field: "reasoning_content",
        vendor: Some(Vendor::DeepSeek),
        ..PLAIN
    },
    Api {
        models: ["openrouter:a/one", "openrouter:a/two"],
        variables: |server| with_key(("OPENROUTER_BASE_URL", server.base_url()), "OPENROUTER_API_KEY"),
        field: "reasoning_details",
        vendor: Some(Vendor::OpenRouter),
        ..PLAIN
    },
    Api {
        models: ["mistral:magistral-medium-latest", "mistral:magistral-small-latest"],
        variables: |server| with_key(("MISTRAL_BASE_URL", server.base_url()), "MISTRAL_API_KEY"),
        field: "thinking",
        vendor: Some(Vendor::Mistral),
        ..PLAIN
    },
    Api {
        models: ["ollama:qwen3", "ollama:gpt-oss"],
        variables: |server| vec![("OLLAMA_HOST", server.ollama_url())],
        field: "thinking",
        ..PLAIN
    },
    Api {
        models: ["groq:openai/gpt-oss-120b", "groq:qwen/qwen3-32b"],
        variables: |server| with_key(("GROQ_BASE_URL", server.base_url()), "GROQ_API_KEY"),
        field: "",
        vendor: Some(Vendor::Groq),
        ..PLAIN
    },
];

/// What `model` thinks after `messages`: another text after another past.
fn thought(model: &str, messages: &[Value]) -> String {
    let mut hasher = DefaultHasher::new();
    (model, Value::from(messages).to_string()).hash(&mut hasher);
    format!("Thought {:016x}.", hasher.finish())
}

/// What replaces the older part of a conversation.
const SUMMARY: &str = r#"{"task": "talk", "decisions": [], "facts": ["It is sunny."], "done": [], "open": [], "files": [],
    "outdated": []}"#;

/// Thinks, calls the tool, and speaks when it has returned. It summarizes when asked for that.
fn answer(request: &Received, _: usize) -> Answer {
    if request.system().is_some_and(|system| system.contains("You summarize")) {
        return Answer::text(SUMMARY).think(thought(request.model(), request.messages()));
    }
    let answer = Answer::text("I look.").think(thought(request.model(), request.messages()));
    match &*request.last_text() {
        "Sunny." => answer,
        _ => answer.call("weather", json!({"b": 1, "a": [2]})),
    }
}

impl Api {
    async fn server(&self) -> Server {
        let behavior = Behavior::from(Playbook::new(answer));
        Server::start(self.vendor.into_iter().fold(behavior, Behavior::vendor)).await
    }

    /// Its two models, at `server`.
    fn models(&self, server: &Server) -> [AnyModel; 2] {
        let models = Models::new(Env::of((self.variables)(server)));
        self.models.map(|name| AnyModel::new(models.model(name).unwrap()))
    }

    /// Checks that the server refused nothing, and that thoughts went back.
    fn check(&self, server: &Server, case: &str) {
        let case = format!("{}, {case}", self.models[0]);
        assert_eq!(server.violations(), [""; 0], "{case}");
        let requests = server.requests();
        let (field, empty) = (format!("\"{}\":", self.field), format!("\"{}\":\"\"", self.field));
        let has_thought = |text: String| text.replace(&empty, "").contains(&field);
        let returned = requests.iter().filter(|request| has_thought(request.body.to_string())).count();
        match self.field {
            "" => assert_eq!(returned, 0, "{case}"),
            _ => assert!(returned > 1, "{case}: thoughts went back in {returned} requests"),
        }
    }
}

/// Two models in turn, by the number of the agent's own messages.
#[derive(Clone)]
struct Alternating([AnyModel; 2]);

impl Model for Alternating {
    fn name(&self) -> &str {
        self.0[0].name()
    }

    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let own = request.entries.iter().filter(|entry| matches!(entry, Entry::Assistant { .. })).count();
        self.0[own.div_ceil(2) % 2].complete(request, deltas).await
    }
}

fn pair(model: &AnyModel, window: Window, turns: u64) -> Chat {
    pair_of(model, turns, |agent| agent.view(ViewOptions { window, ..ViewOptions::default() }))
}

fn pair_of(model: &AnyModel, turns: u64, change: impl Fn(Assistant) -> Assistant) -> Chat {
    let agent = |name: &str| {
        let weather = FunctionTool::new("weather", "Tells the weather.", async |_: Value| Ok("Sunny."));
        change(Assistant::new(name, model.clone()).unwrap().tool(weather.repeatable()))
    };
    let policy = with_termination(round_robin(), max_turns(turns));
    Chat::builder("pair").participant(agent("Ann")).participant(agent("Bob")).policy(policy).build().unwrap()
}

/// Continues a log that begins with `events`, and is empty without any.
async fn continued(events: &[Arc<Event>], chat: &Chat) -> Vec<Arc<Event>> {
    let mut log = log_of(events).await;
    run_or_resume(chat, &mut log, "Talk.").await.unwrap();
    log.events().await
}

fn replies(events: &[Arc<Event>]) -> usize {
    events.iter().filter(|event| matches!(event.body, Body::ModelReplied(_))).count()
}

/// P24: wherever a log is cut, the resumed run sends requests that the uncut one sent, byte for byte.
#[tokio::test]
async fn every_api_accepts_what_a_resumed_run_sends() {
    for api in APIS {
        let server = api.server().await;
        let [model, _] = api.models(&server);
        let chat = |calls: &Calls| pair(&calls.through(model.clone()), Window::All, 3);
        let store = || AnyStore::new(Memory::new());
        let cut = Cut { task: "Talk.", chat: &chat, store: &store, answer: &|_, _, _| String::new() };
        let events = cut.everywhere().await.unwrap_or_else(|flaw| panic!("{}: {flaw}", api.models[0]));
        api.check(&server, "resumed");
        let requests = server.requests();
        let (whole, resumed) = requests.split_at(replies(&events));
        let sent: HashSet<&[u8]> = whole.iter().map(|request| &*request.bytes).collect();
        assert!(resumed.len() > whole.len(), "{}", api.models[0]);
        assert!(resumed.iter().all(|request| sent.contains(&*request.bytes)), "{}", api.models[0]);
    }
}

/// P107: from every event on another model continues, and the first one again after it.
#[tokio::test]
async fn every_api_accepts_a_change_of_model_and_back() {
    for api in APIS {
        let server = api.server().await;
        let [first, second] = api.models(&server);
        let events = continued(&[], &pair(&first, Window::All, 3)).await;
        let other = AnyModel::new(Alternating([second, first]));
        for at in 1..events.len() {
            let forked = continued(&events[..at], &pair(&other, Window::All, 5)).await;
            assert!(replies(&forked) >= replies(&events), "{} at {at}", api.models[0]);
        }
        api.check(&server, "with another model");
        let named: HashSet<String> = server.requests().iter().map(|one| one.model().to_owned()).collect();
        assert_eq!(named.len(), 2, "{}", api.models[0]);
    }
}

/// The thoughts that `server` replied with.
fn thoughts(server: &Server) -> Vec<String> {
    server.requests().iter().map(|request| thought(request.model(), request.messages())).collect()
}

/// P107: models of two APIs in one conversation. Neither is sent a thought of the other.
#[tokio::test]
async fn every_pair_of_apis_accepts_a_change_of_the_model() {
    for (nth, one) in APIS.iter().enumerate() {
        for other in &APIS[nth + 1..] {
            let case = format!("{} and {}", one.models[0], other.models[0]);
            let servers = [one.server().await, other.server().await];
            let [first, _] = one.models(&servers[0]);
            let [second, _] = other.models(&servers[1]);
            let model = AnyModel::new(Alternating([first, second]));
            continued(&[], &pair(&model, Window::All, 8)).await;
            for (server, foreign) in [(&servers[0], &servers[1]), (&servers[1], &servers[0])] {
                assert_eq!(server.violations(), [""; 0], "{case}");
                let (requests, foreign) = (server.requests(), thoughts(foreign));
                assert!(!requests.is_empty() && !foreign.is_empty(), "{case}");
                for request in requests {
                    let sent = request.body.to_string();
                    assert!(!foreign.iter().any(|thought| sent.contains(thought)), "{case}: {sent}");
                }
            }
        }
    }
}

/// P106: a window that leaves entries out ends the use of the seals behind it.
#[tokio::test]
async fn every_api_accepts_what_a_window_leaves() {
    for api in APIS {
        let server = api.server().await;
        let [model, _] = api.models(&server);
        for messages in 2..7 {
            continued(&[], &pair(&model, Window::Messages(messages), 6)).await;
        }
        api.check(&server, "with a window");
    }
}

/// P106: a summary that replaces the older part of a conversation ends the use of the seals behind it, also where the log is
/// cut before or after the compaction.
#[tokio::test]
async fn every_api_accepts_what_a_compaction_leaves() {
    let compaction = || Compaction::at(CompactionLimit::Messages(8)).keep_messages(2);
    let chat = |model: &AnyModel| pair_of(model, 8, |agent| agent.compaction(compaction()));
    for api in APIS {
        let server = api.server().await;
        let [model, _] = api.models(&server);
        let events = continued(&[], &chat(&model)).await;
        let compacted = |event: &Arc<Event>| matches!(event.body, Body::Compacted(_));
        let count = events.iter().filter(|event| compacted(event)).count();
        assert!(count > 1, "{}: {count} compactions", api.models[0]);
        let first = events.iter().position(compacted).unwrap();
        for at in [first - 1, first, first + 1, first + 4] {
            let again = continued(&events[..at], &chat(&model)).await;
            assert_eq!(replies(&again), replies(&events), "{} at {at}", api.models[0]);
        }
        api.check(&server, "compacted");
    }
}

/// P24, P106, P107: a conversation that is compacted is resumed at every event; and forked there, where it continues with another
/// model, then with the first one again, and is compacted further.
async fn accepts_a_compacted_conversation_cut_and_forked_at_every_event(api: &Api) {
    let compaction = || Compaction::at(CompactionLimit::Messages(6)).keep_messages(2);
    let chat = |model: &AnyModel, turns| pair_of(model, turns, |agent| agent.compaction(compaction()));
    let count = |events: &[Arc<Event>]| {
        events.iter().filter(|event| matches!(event.body, Body::Compacted(_))).count()
    };
    let server = api.server().await;
    let [first, second] = api.models(&server);
    let events = continued(&[], &chat(&first, 4)).await;
    assert!(count(&events) > 0, "{}", api.models[0]);
    let other = AnyModel::new(Alternating([second, first.clone()]));
    for at in 1..events.len() {
        let again = continued(&events[..at], &chat(&first, 4)).await;
        assert_eq!(replies(&again), replies(&events), "{} resumed at {at}", api.models[0]);
        let forked = continued(&events[..at], &chat(&other, 6)).await;
        assert!(count(&forked) > 0 && replies(&forked) > replies(&events), "{} at {at}", api.models[0]);
    }
    api.check(&server, "compacted and forked with another model");
}

/// The API whose signatures are bound to all that was sent before, or as many APIs as `POLYLOGUE_APIS` says.
#[tokio::test]
async fn a_compacted_conversation_is_accepted_wherever_it_is_cut_and_forked() {
    let count = std::env::var("POLYLOGUE_APIS").map_or(1, |count| count.parse().unwrap());
    for api in APIS.iter().take(count) {
        println!("{}", api.models[0]);
        accepts_a_compacted_conversation_cut_and_forked_at_every_event(api).await;
    }
}

/// A model whose seals are damaged on the way.
#[derive(Clone)]
struct Damaging(AnyModel);

impl Model for Damaging {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let mut reply = self.0.complete(request, deltas).await?;
        let mut verbatim = reply.verbatim.as_deref().cloned().unwrap_or_else(Verbatim::default);
        let seals = verbatim.seals.iter_mut().flat_map(|seals| &mut seals.parts);
        seals.for_each(|seal| damage(&mut seal.data));
        reply.verbatim = Some(Arc::new(verbatim));
        Ok(reply)
    }
}

/// Changes every signature in `value`.
fn damage(value: &mut Value) {
    match value {
        Value::String(text) if text.len() == 32 => *text = text.chars().rev().collect(),
        Value::Array(values) => values.iter_mut().for_each(damage),
        Value::Object(fields) => fields.values_mut().for_each(damage),
        _ => {}
    }
}

/// The checks above can fail: a signature that was changed is refused. That of unsigned thoughts is shown in the server's tests.
#[tokio::test]
async fn damaged_thoughts_are_noticed_by_every_api() {
    for api in APIS.iter().filter(|api| api.is_signed) {
        let server = api.server().await;
        let [model, _] = api.models(&server);
        let events = continued(&[], &pair(&AnyModel::new(Damaging(model)), Window::All, 3)).await;
        let refused = events.iter().filter(|event| matches!(event.body, Body::SealsRefused { .. })).count();
        assert!(refused > 0 && !server.violations().is_empty(), "{}: {refused}", api.models[0]);
    }
}
