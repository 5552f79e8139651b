//! How much of a long conversation is read from prompt caches, by each API: `--nocapture` prints the shares.

use crate::common::{Asked, ask, entry, weather};
use polylogue_core::{Entry, ToolResult};
use polylogue_models::{Api, Config, Endpoint};
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use serde_json::json;

/// The messages of others in the conversation. Each leads to two replies, 40 in all: a call of a tool, and what is said of its
/// result.
const TURNS: usize = 20;

/// Each API: its provider, a model, and how the end of what is to be cached is marked; nothing for a provider that caches on its own.
const APIS: [(Api, &str, &str, &str); 6] = [
    (Api::ChatCompletions, "openai", "gpt-4o", ""),
    (Api::Responses, "openai", "gpt-5", ""),
    (Api::Messages, "anthropic", "claude-sonnet-5", r#","cache_control":{"type":"ephemeral"}"#),
    (Api::Gemini, "gemini", "gemini-3-pro-preview", ""),
    (
        Api::Converse,
        "bedrock",
        "anthropic.claude-sonnet-4-5-20250929-v1:0",
        r#",{"cachePoint":{"type":"default"}}"#,
    ),
    (Api::Ollama, "ollama", "qwen3", ""),
];

/// The bodies of a long conversation, as they were sent.
async fn bodies(api: Api, provider: &str, model: &str) -> Vec<String> {
    let answers = (0..TURNS).flat_map(|turn| {
        let call = Answer::text("I look.").think("Where?").call("weather", json!({"turn": turn}));
        [call, Answer::text(format!("It is sunny in turn {turn}, and it was before.")).think("Warm.")]
    });
    let server = Server::start(Behavior::from(Playbook::list(answers))).await;
    let url = if matches!(api, Api::ChatCompletions | Api::Responses) {
        server.base_url()
    } else {
        server.root_url()
    };
    let config = Config { provider: provider.into(), ..Config::of(api, &url) };
    let model = Endpoint::new(config).unwrap().model(model);
    let mut asked = Asked {
        tools: vec![weather()],
        system: Some("You know the weather. ".repeat(60)),
        ..Asked::default()
    };
    for turn in 0..TURNS {
        let called = ask(&model, &asked).await.0.unwrap();
        asked.entries.push(entry(&called));
        for call in called.calls() {
            let outcome = ToolResult::done(format!("Sunny, {turn} degrees, no wind."));
            asked.entries.push(Entry::Tool { id: call.id, tool: call.tool, result: outcome });
        }
        let said = ask(&model, &asked).await.0.unwrap();
        asked.entries.extend([entry(&said), Entry::user(format!("And how is it after turn {turn}?"))]);
    }
    assert_eq!(server.violations(), [""; 0], "{api:?}");
    server.requests().iter().map(|request| String::from_utf8(request.bytes.clone()).unwrap()).collect()
}

/// The length of what both begin with.
fn common(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
}

/// What a cache holds after the requests so far, and how much of each was read from it.
#[derive(Default)]
struct Cache {
    prefixes: Vec<String>,
    before: Option<String>,
    read: usize,
    /// What could have been read: all that the request before has, up to its last message.
    readable: usize,
    sent: usize,
}

impl Cache {
    fn request(&mut self, body: &str, mark: &str) {
        let plain = if mark.is_empty() { body.to_owned() } else { body.replace(mark, "") };
        self.sent += plain.len();
        let Some(before) = self.before.replace(plain.clone()) else { return self.store(body, mark) };
        self.readable += common(&plain, &before);
        self.read += match mark {
            "" => common(&plain, &before),
            _ => prefixes(body, mark)
                .filter(|prefix| self.prefixes.contains(prefix))
                .map(|prefix| prefix.len())
                .max()
                .unwrap_or(0),
        };
        self.store(body, mark);
    }

    fn store(&mut self, body: &str, mark: &str) {
        if !mark.is_empty() {
            self.prefixes.extend(prefixes(body, mark));
        }
    }
}

/// What stands before each mark of a body, without the marks before it.
fn prefixes<'a>(body: &'a str, mark: &'a str) -> impl Iterator<Item = String> + 'a {
    body.match_indices(mark).map(move |(at, _)| body[..at].replace(mark, ""))
}

/// P109: at least 90 % of the input is read, and 95 % of what the request before allows.
#[tokio::test]
async fn most_of_a_long_conversation_is_read_from_prompt_caches() {
    for (api, provider, model, mark) in APIS {
        let mut cache = Cache::default();
        let bodies = bodies(api, provider, model).await;
        assert_eq!(bodies.len(), 2 * TURNS);
        bodies.iter().for_each(|body| cache.request(body, mark));
        let share = |of: usize| cache.read * 1000 / of;
        let (of_input, of_readable) = (share(cache.sent), share(cache.readable));
        println!(
            "{api:?}: {} of {} bytes read, {of_input} ‰ of the input, {of_readable} ‰ of what is readable",
            cache.read, cache.sent
        );
        assert!(of_input >= 900, "{api:?}: {of_input} ‰ of the input");
        assert!(of_readable >= 950, "{api:?}: {of_readable} ‰ of what could be read");
        assert_eq!(mark.is_empty(), cache.prefixes.is_empty());
    }
}
