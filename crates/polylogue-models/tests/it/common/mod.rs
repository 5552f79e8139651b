//! What the tests of endpoints share: a request to ask with, and a record of the pieces that arrive.

pub(crate) mod weather;

use std::time::Duration;

use polylogue_core::{
    DeltaRef, DeltaSink, EncodeCache, Entry, Model, ModelError, Name, Origin, Params, Part, Path, Reply,
    Request, ToolSpec,
};
use polylogue_models::{Api, Config, Endpoint, EndpointModel, Key, Retries, Timeouts};
use polylogue_test::server::Server;

pub(crate) const KEY: &str = "sk-a-key-that-no-one-may-see";

/// How `server` is reached: with a key, without retries, with limits of time no test waits for.
pub(crate) fn config(server: &Server) -> Config {
    Config {
        provider: "test".into(),
        key: Key::new(KEY),
        key_variables: vec!["TEST_API_KEY".into()],
        retries: Retries::none(),
        timeouts: Timeouts { total: Duration::from_secs(60), ..Timeouts::default() },
        ..Config::new(server.base_url())
    }
}

/// How `server` is reached by `api`, without retries.
pub(crate) fn config_of(api: Api, provider: &str, server: &Server) -> Config {
    let url = match api {
        Api::ChatCompletions | Api::Responses => server.base_url(),
        _ => server.root_url(),
    };
    Config { provider: provider.into(), retries: Retries::none(), ..Config::of(api, &url) }
}

pub(crate) fn model(config: Config) -> EndpointModel {
    Endpoint::new(config).unwrap().model("m")
}

/// Quick retries: the waits themselves are tested with paused time.
pub(crate) fn quick(attempts: u32) -> Retries {
    Retries { attempts, first_wait: Duration::from_millis(1), seed: Some(1), ..Retries::default() }
}

/// One agent's view, to ask with.
pub(crate) struct Asked {
    pub(crate) at: Path,
    pub(crate) who: Name,
    pub(crate) nth: u64,
    pub(crate) system: Option<String>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) params: Params,
    pub(crate) wire: EncodeCache,
}

impl Asked {
    pub(crate) fn new(entries: impl IntoIterator<Item = Entry>) -> Self {
        Self {
            at: Path::root(),
            who: Name::new("weather_girl").unwrap(),
            nth: 0,
            system: Some("Be brief.".into()),
            entries: entries.into_iter().collect(),
            tools: Vec::new(),
            params: Params::default(),
            wire: EncodeCache::default(),
        }
    }

    pub(crate) fn request(&self) -> Request<'_> {
        let origin = Origin::new(&self.at, &self.who, self.nth);
        let Self { system, entries, tools, params, wire, .. } = self;
        Request { origin, system: system.as_deref(), entries, tools, params, encoded: wire, reserved: None }
    }
}

/// A tool to ask with.
pub(crate) fn weather() -> ToolSpec {
    let parameters = serde_json::json!({"type": "object", "properties": {}});
    ToolSpec::new("weather", "Tells the weather.", parameters).repeatable()
}

impl Default for Asked {
    fn default() -> Self {
        Self::new([Entry::user("How is the weather?")])
    }
}

/// The pieces as one readable line.
#[derive(Default)]
pub(crate) struct Heard(pub(crate) String);

impl DeltaSink for Heard {
    fn push(&mut self, delta: DeltaRef<'_>) {
        self.0.push_str(&match delta {
            DeltaRef::Text(text) => text.to_owned(),
            DeltaRef::Thought(text) => format!("({text})"),
            DeltaRef::Call { tool, args, .. } => {
                tool.map(|tool| format!("<{tool}>")).unwrap_or_default() + args
            }
            DeltaRef::Restart => "|".to_owned(),
            DeltaRef::Retry { .. } => String::new(),
            _ => "?".to_owned(),
        });
    }
}

/// Asks, and tells the reply and the pieces.
pub(crate) async fn ask(model: &EndpointModel, asked: &Asked) -> (Result<Reply, ModelError>, String) {
    let mut received = Heard::default();
    let reply = model.complete(&asked.request(), &mut received).await;
    (reply, received.0)
}

pub(crate) async fn reply(model: &EndpointModel) -> Result<Reply, ModelError> {
    ask(model, &Asked::default()).await.0
}

/// A reply as later requests have it.
pub(crate) fn entry(reply: &Reply) -> Entry {
    Entry::Assistant { parts: reply.parts.clone(), verbatim: reply.verbatim.clone() }
}

/// All text of a reply.
pub(crate) fn text(reply: &Reply) -> String {
    polylogue_core::text_of(&reply.parts).into_owned()
}

/// The calls of a reply: id, tool and arguments.
pub(crate) fn calls(reply: &Reply) -> Vec<(String, String, String)> {
    let call = |part: &Part| match part {
        Part::ToolCall(call) => Some((call.id.clone(), call.tool.clone(), call.args.to_string())),
        _ => None,
    };
    reply.parts.iter().filter_map(call).collect()
}
