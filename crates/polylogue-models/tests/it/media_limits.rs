//! More of pictures and documents than providers take: refused before the call, or named in the text, and refused by the strict servers,
//! which have their own statement of the limits.

use polylogue_core::{Capabilities, Capability, Entry, Media, ModelErrorKind, Part, ToolCall, ToolResult};
use polylogue_models::{Api, Config, Endpoint, EndpointModel};
use polylogue_test::pdf::{HUNDRED_PAGES, of_pages};
use polylogue_test::picture::png;
use polylogue_test::server::{Answer, Behavior, Playbook, Server, Vendor};

use crate::common::{Asked, ask, config_of};

fn picture(side: u32, bytes: usize) -> Media {
    Media::of_bytes(&png(side, 1, bytes)).unwrap()
}

fn pages(count: usize) -> Media {
    Media::of_bytes(&of_pages(count)).unwrap()
}

async fn start(vendor: Option<Vendor>) -> Server {
    let behavior = Behavior::from(Playbook::always(Answer::text("I see.")));
    Server::start(match vendor {
        Some(vendor) => behavior.vendor(vendor),
        None => behavior,
    })
    .await
}

fn model(api: Api, provider: &str, name: &str, server: &Server) -> EndpointModel {
    let capabilities = Capabilities::default().with(Capability::Vision);
    // Mistral knows no field that asks for usage.
    let config = Config { capabilities, stream_usage: false, ..config_of(api, provider, server) };
    Endpoint::new(config).unwrap().model(name)
}

fn asked(media: Vec<Media>) -> Asked {
    let parts = std::iter::once(Part::text("What is it?")).chain(media.into_iter().map(Part::Media));
    Asked::new([Entry::User { parts: parts.collect() }])
}

/// What an agent cannot leave out, such as a picture that a tool returned, does not end the conversation.
#[tokio::test]
async fn one_that_is_more_than_its_provider_takes_is_named_in_the_text() {
    for (api, provider, name, vendor, media, why, refusal) in [
        (
            Api::Messages,
            "anthropic",
            "claude-opus-5",
            None,
            picture(1, 7_864_321),
            "a picture can have at most 7.5 MB, and this one has 7.51 MB",
            "image exceeds 10 MB maximum",
        ),
        (
            Api::Messages,
            "anthropic",
            "claude-opus-5",
            None,
            picture(8_001, 0),
            "a picture can have at most 8000 pixels on a side, and this one has 8001 x 1",
            "max allowed size: 8000 pixels",
        ),
        (
            Api::Messages,
            "anthropic",
            "claude-haiku-4-5",
            None,
            pages(101),
            "a document can have at most 100 pages, and this one has 101",
            "A maximum of 100 PDF pages",
        ),
        (
            Api::ChatCompletions,
            "mistral",
            "pixtral-large-latest",
            Some(Vendor::Mistral),
            picture(10_001, 0),
            "a picture can have at most 10000 pixels on a side, and this one has 10001 x 1",
            "max allowed size: 10000 pixels",
        ),
        (
            Api::Gemini,
            "gemini",
            "gemini-2.5-pro",
            None,
            pages(1_001),
            "a document can have at most 1000 pages, and this one has 1001",
            "more than 1000 pages",
        ),
        (
            Api::Converse,
            "bedrock",
            "anthropic.claude-opus-4-8",
            None,
            picture(8_001, 0),
            "a picture can have at most 8000 pixels on a side, and this one has 8001 x 1",
            "max allowed size: 8000 pixels",
        ),
    ] {
        let server = start(vendor).await;
        let known = model(api, provider, name, &server);
        assert_eq!(known.exceeds(&media).map(|excess| excess.why).as_deref(), Some(why), "{provider}");
        assert_eq!(known.reads(&media), Some(false), "{provider}");
        ask(&known, &asked(vec![media.clone()])).await.0.unwrap();
        let sent = server.requests()[0].body.to_string();
        assert!(sent.contains(&format!("[{}]", media.media_type)), "{provider}: {:?}", sent.get(..300));
        assert_eq!(server.violations(), [""; 0], "{provider}");
        if api == Api::Converse {
            continue;
        }
        // An endpoint of which nothing is known gets all of it.
        let unknown = model(api, "house", name, &server);
        assert_eq!(unknown.exceeds(&media), None, "{provider}");
        assert_ne!(unknown.reads(&media), Some(false), "{provider}");
        ask(&unknown, &asked(vec![media])).await.0.unwrap_err();
        let violations = server.violations();
        assert!(violations.len() == 1 && violations[0].contains(refusal), "{provider}: {violations:?}");
    }
}

#[tokio::test]
async fn more_than_a_request_can_have_is_an_error_before_it_is_sent() {
    let (small, wide) = (picture(1, 0), picture(2_001, 0));
    let hundred = Media::of_bytes(HUNDRED_PAGES).unwrap();
    for (api, provider, name, vendor, most, more, why) in [
        (
            Api::ChatCompletions,
            "mistral",
            "pixtral-large-latest",
            Some(Vendor::Mistral),
            vec![&small; 8],
            vec![&small; 9],
            "a request can have at most 8 pictures, and this one has 9",
        ),
        (
            Api::Messages,
            "anthropic",
            "claude-haiku-4-5",
            None,
            vec![&small; 100],
            vec![&small; 101],
            "a request can have at most 100 pictures, and this one has 101",
        ),
        (
            Api::Messages,
            "anthropic",
            "claude-opus-5",
            None,
            vec![&wide; 20],
            vec![&wide; 21],
            "in a request with more than 20 pictures, each can have at most 2000 pixels on a side, and one has 2001 x 1",
        ),
        (
            Api::Messages,
            "anthropic",
            "claude-haiku-4-5",
            None,
            vec![&hundred],
            vec![&hundred, &hundred],
            "the documents of a request can have at most 100 pages, and those of this one have 200",
        ),
        (
            Api::Responses,
            "openai",
            "gpt-5",
            None,
            vec![&small; 1_500],
            vec![&small; 1_501],
            "a request can have at most 1500 pictures, and this one has 1501",
        ),
    ] {
        let server = start(vendor).await;
        let model = model(api, provider, name, &server);
        ask(&model, &asked(most.into_iter().cloned().collect())).await.0.unwrap();
        let error = ask(&model, &asked(more.into_iter().cloned().collect())).await.0.unwrap_err();
        assert_eq!((error.kind, &*error.message), (ModelErrorKind::Config, why), "{provider}");
        assert!(error.hint.unwrap().contains("`view`"), "{provider}");
        assert_eq!((server.requests().len(), server.violations()), (1, vec![]), "{provider}");
    }
}

/// Pictures that tools returned count, too, for a model that sees.
#[tokio::test]
async fn pictures_of_results_count() {
    let server = start(None).await;
    let model = model(Api::Messages, "anthropic", "claude-haiku-4-5", &server);
    let turn = |nth: usize| {
        let id = format!("call_{nth}");
        let call =
            Part::ToolCall(ToolCall { id: id.clone(), tool: "look".into(), args: serde_json::json!({}) });
        let outcome = ToolResult { parts: vec![Part::Media(picture(1, 0)); 51], ..ToolResult::done("Here.") };
        [Entry::own(vec![call]), Entry::Tool { id, tool: "look".into(), result: outcome }]
    };
    let begin = [Entry::user("Look.")];
    let one = Asked::new(begin.clone().into_iter().chain(turn(1)));
    ask(&model, &one).await.0.unwrap();
    let two = Asked::new(begin.into_iter().chain(turn(1)).chain(turn(2)));
    let error = ask(&model, &two).await.0.unwrap_err();
    assert!(error.message.contains("at most 100 pictures, and this one has 102"), "{}", error.message);
    assert_eq!((server.requests().len(), server.violations()), (1, vec![]));
}

/// Five pictures that each can be sent.
#[tokio::test]
async fn a_request_that_is_too_long_is_not_sent() {
    let server = start(None).await;
    let model = model(Api::Messages, "anthropic", "claude-opus-5", &server);
    let error = ask(&model, &asked(vec![picture(1, 5 << 20); 5])).await.0.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Config);
    assert!(
        error.message.starts_with("a request can have at most 32 MB, and this one has 33."),
        "{}",
        error.message
    );
    assert_eq!(server.requests().len(), 0);
    ask(&model, &Asked::default()).await.0.unwrap();
}
