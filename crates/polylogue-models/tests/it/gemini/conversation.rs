//! Conversations: what a reply has next to its parts goes back as it came.

use polylogue_core::{Entry, Part, ToolResult};
use polylogue_models::{Config, Endpoint, EndpointModel};
use polylogue_test::server::{Answer, Behavior, Dialect, Playbook, Server};
use serde_json::json;

use crate::common::{Asked, ask, entry, weather};
use crate::gemini::{NEW, OLD, config, model};

/// Asks, and adds the reply, the results of its calls, and the words of a person.
async fn turn(model: &EndpointModel, asked: &mut Asked) {
    let reply = ask(model, asked).await.0.unwrap();
    asked.entries.push(entry(&reply));
    for call in reply.calls() {
        let outcome = ToolResult::done("sunny");
        asked.entries.push(Entry::Tool { id: call.id, tool: call.tool, result: outcome });
    }
    asked.entries.push(Entry::user("And then?"));
    asked.nth += 1;
}

/// Replies with thoughts, texts and calls, one after the other.
fn answers() -> Playbook {
    Playbook::new(|received, _| {
        let nth = received.messages().len();
        let thinking = Answer::text(format!("Text {nth}.")).think(format!("Thought {nth}."));
        match nth % 3 {
            0 => Answer::text("Plain."),
            1 => thinking,
            _ => thinking.call("weather", json!({"b": nth, "a": [1]})).call("weather", json!({})),
        }
    })
}

/// Thoughts, signatures, tools and people: the strict server accepts every request, and compares every signature.
#[tokio::test]
async fn every_signature_goes_back_on_its_part() {
    for stream in [true, false] {
        for name in [NEW, OLD] {
            let server = Server::start(answers()).await;
            let model = model(Config { stream, ..config(&server) }, name);
            let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
            for _ in 0..8 {
                turn(&model, &mut asked).await;
            }
            assert_eq!(server.violations(), [""; 0], "{name} {stream}");
            let sent = server.requests().last().unwrap().body.to_string();
            assert!(sent.matches("thoughtSignature").count() > 4, "{sent}");
            assert!(!sent.contains("skip_thought"), "{sent}");
        }
    }
}

/// A later request begins with the bytes of the one before, so that the provider's cache is used.
#[tokio::test]
async fn a_request_begins_with_the_bytes_of_the_one_before() {
    let server = Server::start(answers()).await;
    let model = model(config(&server), NEW);
    let mut asked = Asked::default();
    for _ in 0..6 {
        turn(&model, &mut asked).await;
    }
    let requests = server.requests();
    for pair in requests.windows(2) {
        let contents = |at: usize| {
            let text = String::from_utf8(pair[at].bytes.clone()).unwrap();
            text.trim_end_matches(['}', ']']).to_owned()
        };
        assert!(contents(1).starts_with(&contents(0)), "{}\n{}", contents(0), contents(1));
    }
}

/// Signatures are of one model, so another model gets none, and the first gets its own again only while what was before
/// them is what it was.
#[tokio::test]
async fn switching_to_chat_completions_and_back_is_accepted() {
    let server = Server::start(Behavior::from(answers())).await;
    let endpoint = Endpoint::new(config(&server)).unwrap();
    let chat = Endpoint::new(Config { key: config(&server).key, ..Config::new(server.base_url()) }).unwrap();
    let models = [endpoint.model(NEW), chat.model("m"), endpoint.model(OLD), endpoint.model(NEW)];
    let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
    for nth in 0..12 {
        turn(&models[nth % models.len()], &mut asked).await;
    }
    assert_eq!(server.violations(), [""; 0]);
    let used =
        |dialect| server.requests().iter().filter(|request| request.dialect() == Some(dialect)).count();
    assert_eq!((used(Dialect::GenerateContent), used(Dialect::ChatCompletions)), (9, 3));
}

/// The strict server notices a changed signature, so that the tests above mean something.
#[tokio::test]
async fn a_changed_signature_is_refused() {
    let server = Server::start(answers()).await;
    let model = model(config(&server), NEW);
    let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
    turn(&model, &mut asked).await;
    let Entry::Assistant { verbatim: Some(verbatim), .. } = &mut asked.entries[1] else { panic!() };
    let seals = &mut std::sync::Arc::make_mut(verbatim).seals;
    for seal in &mut seals.as_mut().unwrap().parts {
        seal.data = serde_json::from_str(&seal.data.to_string().replace(['0', '1'], "2")).unwrap();
    }
    assert!(ask(&model, &asked).await.0.is_err());
    assert_eq!(server.violations().len(), 1);
}

/// A reply without its signatures is sent with the documented stand-in.
#[tokio::test]
async fn calls_without_signatures_have_the_stand_in() {
    let server = Server::start(answers()).await;
    let model = model(config(&server), NEW);
    let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
    turn(&model, &mut asked).await;
    turn(&model, &mut asked).await;
    for entry in &mut asked.entries {
        if let Entry::Assistant { parts, verbatim } = entry {
            *verbatim = None;
            parts.retain(|part| !matches!(part, Part::Thought(_)));
        }
    }
    ask(&model, &asked).await.0.unwrap();
    assert_eq!(server.violations(), [""; 0]);
}
