//! Recordings of calls by each API are replayed without a server, with the seals of the replies.

use crate::common::{Asked, Heard, entry, weather};
use polylogue_core::{Entry, Model, Reply, ToolResult};
use polylogue_models::{Api, Cassette, Config, Endpoint, Recorder, Recording};
use polylogue_test::server::{Answer, Playbook, Server};

/// Each API: its provider, a model, and whether the thoughts of its replies are kept to be sent back.
const APIS: [(Api, &str, &str, bool); 6] = [
    (Api::ChatCompletions, "openai", "gpt-4o", false),
    (Api::Responses, "openai", "gpt-5", true),
    (Api::Messages, "anthropic", "claude-sonnet-5", true),
    (Api::Gemini, "gemini", "gemini-3-pro-preview", true),
    (Api::Converse, "bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", true),
    (Api::Ollama, "ollama", "qwen3", true),
];

/// A call of a tool and what is said of its result: the replies, and their pieces.
async fn talk(model: &impl Model) -> Vec<(Reply, String)> {
    let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
    let mut replies = Vec::new();
    for nth in 0..3 {
        asked.nth = nth;
        let mut received = Heard::default();
        let reply = model.complete(&asked.request(), &mut received).await.unwrap();
        asked.entries.push(entry(&reply));
        for call in reply.calls() {
            asked.entries.push(Entry::Tool {
                id: call.id,
                tool: call.tool,
                result: ToolResult::done("Sunny."),
            });
        }
        asked.entries.push(Entry::user("And then?"));
        replies.push((reply, received.0));
    }
    replies
}

/// P23.
#[tokio::test]
async fn a_recording_is_replayed_without_a_server_and_with_its_seals() {
    let folder = tempfile::tempdir().unwrap();
    for (api, provider, name, is_sealed) in APIS {
        let place = folder.path().join(format!("{api:?}.jsonl"));
        let look = Answer::text("I look.").think("Where?").call_raw("weather", r#"{"b": 1.0, "a": "é"}"#);
        let answers = [look.clone(), Answer::text("Sunny.").think("Warm."), look];
        let server = Server::start(Playbook::list(answers)).await;
        let url = match api {
            Api::ChatCompletions | Api::Responses => server.base_url(),
            _ => server.root_url(),
        };
        let config = Config { provider: provider.into(), ..Config::of(api, &url) };
        let model = Endpoint::new(config).unwrap().model(name);
        let recorded = talk(&Recorder::new(model, &Cassette::create(&place).unwrap())).await;
        assert_eq!(server.violations(), [""; 0], "{api:?}");
        drop(server);
        let recording = Recording::open(&place).unwrap();
        let replayed = talk(&recording.model(&format!("{provider}:{name}"))).await;
        assert_eq!(format!("{replayed:?}"), format!("{recorded:?}"), "{api:?}");
        assert_eq!(recording.unplayed(), [""; 0], "{api:?}");
        let seals = |reply: &Reply| reply.verbatim.as_ref().is_some_and(|verbatim| verbatim.seals.is_some());
        assert_eq!(recorded.iter().any(|(reply, _)| seals(reply)), is_sealed, "{api:?}");
    }
}
