//! What the tests of endpoints share: a request to ask with, and a record of the pieces that arrive.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::time::Duration;

use polylogue_core::{
    Delta, Deltas, Entry, Model, ModelError, Name, Origin, Params, Part, Path, Reply, Request, ToolSpec, Wire,
};
use polylogue_models::{Config, Endpoint, Key, OpenAi, Retries, Timeouts};
use polylogue_test::server::Server;

pub const KEY: &str = "sk-a-key-that-nobody-may-see";

/// How `server` is reached: with a key, without retries, with limits of time no test waits for.
pub fn config(server: &Server) -> Config {
    Config {
        provider: "test".into(),
        key: Key::new(KEY),
        key_variables: vec!["TEST_API_KEY".into()],
        retries: Retries::none(),
        timeouts: Timeouts { total: Duration::from_secs(60), ..Timeouts::default() },
        ..Config::new(server.base_url())
    }
}

pub fn model(config: Config) -> OpenAi {
    Endpoint::new(config).unwrap().model("m")
}

/// Quick retries: the waits themselves are tested with paused time.
pub fn quick(attempts: u32) -> Retries {
    Retries { attempts, first_wait: Duration::from_millis(1), seed: Some(1), ..Retries::default() }
}

/// One agent's view, to ask with.
pub struct Asked {
    pub at: Path,
    pub who: Name,
    pub nth: u64,
    pub system: Option<String>,
    pub entries: Vec<Entry>,
    pub tools: Vec<ToolSpec>,
    pub params: Params,
    pub wire: Wire,
}

impl Asked {
    pub fn new(entries: impl IntoIterator<Item = Entry>) -> Self {
        Self {
            at: Path::root(),
            who: Name::new("weather_girl").unwrap(),
            nth: 0,
            system: Some("Be brief.".into()),
            entries: entries.into_iter().collect(),
            tools: Vec::new(),
            params: Params::default(),
            wire: Wire::default(),
        }
    }

    pub fn request(&self) -> Request<'_> {
        let origin = Origin { at: &self.at, who: &self.who, nth: self.nth };
        let Self { system, entries, tools, params, wire, .. } = self;
        Request { origin, system: system.as_deref(), entries, tools, params, wire }
    }
}

impl Default for Asked {
    fn default() -> Self {
        Self::new([Entry::user("How is the weather?")])
    }
}

/// The pieces as one readable line.
#[derive(Default)]
pub struct Heard(pub String);

impl Deltas for Heard {
    fn push(&mut self, delta: Delta<'_>) {
        self.0.push_str(&match delta {
            Delta::Text(text) => text.to_owned(),
            Delta::Thought(text) => format!("({text})"),
            Delta::Call { tool, args, .. } => tool.map(|tool| format!("<{tool}>")).unwrap_or_default() + args,
            Delta::Restart => "|".to_owned(),
            _ => "?".to_owned(),
        });
    }
}

/// Asks, and tells the reply and the pieces.
pub async fn ask(model: &OpenAi, asked: &Asked) -> (Result<Reply, ModelError>, String) {
    let mut heard = Heard::default();
    let reply = model.complete(&asked.request(), &mut heard).await;
    (reply, heard.0)
}

pub async fn reply(model: &OpenAi) -> Result<Reply, ModelError> {
    ask(model, &Asked::default()).await.0
}

/// All text of a reply.
pub fn text(reply: &Reply) -> String {
    polylogue_core::plain(&reply.parts).into_owned()
}

/// The calls of a reply: id, tool and arguments.
pub fn calls(reply: &Reply) -> Vec<(String, String, String)> {
    let call = |part: &Part| match part {
        Part::Call(call) => Some((call.id.clone(), call.tool.clone(), call.args.to_string())),
        _ => None,
    };
    reply.parts.iter().filter_map(call).collect()
}
