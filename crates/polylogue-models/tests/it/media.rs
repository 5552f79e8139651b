//! Pictures, documents and sounds by every API: sent where the API has a form for them, and else named in the text; an endpoint says
//! before the call which it is.

use crate::common::{Asked, ask, config_of};
use polylogue_core::{Bound, Capabilities, Capability, Entry, Media, Part};
use polylogue_models::{Api, Config, Endpoint};
use polylogue_test::server::{Answer, Playbook, Server};

/// The APIs, each with a model.
const APIS: [(Api, &str, &str); 6] = [
    (Api::ChatCompletions, "openai", "gpt-4o"),
    (Api::Responses, "openai", "gpt-5"),
    (Api::Messages, "anthropic", "claude-sonnet-4-5"),
    (Api::Gemini, "gemini", "gemini-3-pro-preview"),
    (Api::Converse, "bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
    (Api::Ollama, "ollama", "llava"),
];

/// Media, and by which APIs they are sent, in the order above.
const MEDIA: [(&str, &str, [u8; 6]); 14] = [
    ("image/png", "data:image/png;base64,iVBORw0KGgo=", [1, 1, 1, 1, 1, 1]),
    ("image/gif", "data:image/gif;base64,R0lGODlh", [1, 1, 1, 0, 1, 1]),
    ("image/png", "https://example.org/a.png", [1, 1, 1, 1, 0, 0]),
    ("application/pdf", "data:application/pdf;base64,JVBERi0=", [1, 1, 1, 1, 1, 0]),
    ("application/pdf", "https://example.org/a.pdf", [0, 1, 1, 1, 0, 0]),
    ("audio/wav", "data:audio/wav;base64,UklGRgAA", [1, 1, 0, 1, 0, 0]),
    ("audio/ogg", "data:audio/ogg;base64,T2dnUw==", [0, 0, 0, 1, 0, 0]),
    ("text/csv", "data:text/csv;base64,YSxi", [0, 0, 0, 1, 1, 0]),
    // No provider reads these.
    ("image/svg+xml", "data:image/svg+xml;base64,PHN2Zz4=", [0; 6]),
    ("image/png", "data:image/png;base64,no base64", [0; 6]),
    ("image/png", "data:image/png;base64,", [0; 6]),
    ("image/png", "data:,text", [0; 6]),
    ("image/png", "file:///etc/passwd", [0; 6]),
    ("", "", [0; 6]),
];

#[tokio::test]
async fn media_is_sent_where_the_api_has_a_form_for_it_and_else_named() {
    for (at, (api, provider, name)) in APIS.into_iter().enumerate() {
        let server = Server::start(Playbook::always(Answer::text("I see."))).await;
        let vision = Capabilities::default().with(Capability::Vision);
        let config = Config { capabilities: vision, ..config_of(api, provider, &server) };
        let model = Endpoint::new(config).unwrap().model(name);
        for (kind, url, sent) in MEDIA {
            let media = Media { media_type: kind.into(), url: url.into() };
            let parts = vec![Part::text("What is it?"), Part::Media(media.clone())];
            ask(&model, &Asked::new([Entry::User { parts }])).await.0.unwrap();
            let last = server.requests().last().unwrap().body.to_string();
            let words =
                if url.starts_with("data:") { format!("[{kind}]") } else { format!("[{kind}: {url}]") };
            let content = url.rsplit(";base64,").next().unwrap();
            let is_sent = last.contains(content) && !last.contains(&words);
            assert_eq!(is_sent, sent[at] == 1, "{api:?} {kind} {url}: {last}");
            assert!(is_sent || last.contains(&words), "{api:?} {kind} {url}: {last}");
            let reads = model.reads(&media);
            // The table of models knows more of documents and sounds.
            let is_picture = is_sent && kind.starts_with("image/");
            assert!(is_sent || reads == Some(false), "{api:?} {kind} {url}: {reads:?}");
            assert!(!is_picture || reads == Some(true), "{api:?} {kind} {url}: {reads:?}");
        }
        assert_eq!(server.violations(), [""; 0], "{api:?}");
    }
}

/// 32 dollars for a million tokens of sound, 2.5 for those of text.
#[tokio::test]
async fn a_sound_is_reserved_at_its_own_price() {
    let server = Server::start(Playbook::always(Answer::text("A bell."))).await;
    let model = Endpoint::new(config_of(Api::ChatCompletions, "openai", &server)).unwrap().model("gpt-audio");
    let url = format!("data:audio/wav;base64,{}", "A".repeat(100_000));
    let tokens = u64::try_from(url.len()).unwrap();
    let bound = |part| Bound::of(&model, &Asked::new([Entry::User { parts: vec![part] }]).request());
    let text = bound(Part::text(url.clone()));
    let sound = bound(Part::Media(Media { media_type: "audio/wav".into(), url: url.into() }));
    assert_eq!(sound.input, text.input);
    let [sound, text] = [sound, text].map(|bound| bound.least_cost.unwrap().picodollars);
    assert_eq!(sound - text, tokens * (32_000_000 - 2_500_000));
}

/// The most that a message of Bedrock has: what is more is named.
#[tokio::test]
async fn more_media_than_a_message_can_have_is_named() {
    let server = Server::start(Playbook::always(Answer::text("I see."))).await;
    let model =
        Endpoint::new(config_of(Api::Converse, "bedrock", &server)).unwrap().model("amazon.nova-pro-v1:0");
    let one = |kind: &str| {
        Part::Media(Media { media_type: kind.into(), url: format!("data:{kind};base64,AAAA").into() })
    };
    let media = [vec![one("image/png"); 22], vec![one("application/pdf"); 7]].concat();
    ask(&model, &Asked::new([Entry::User { parts: media }])).await.0.unwrap();
    let body = server.requests()[0].body.clone();
    let content = body.pointer("/messages/0/content").unwrap().as_array().unwrap();
    let count = |kind: &str| content.iter().filter(|block| block.get(kind).is_some()).count();
    assert_eq!([count("image"), count("document"), count("text")], [20, 5, 4], "{body}");
    assert_eq!(server.violations(), [""; 0]);
}

/// P94: Bedrock refuses larger pictures and documents, in each later request, too. For PDFs some of its models have no limit.
#[tokio::test]
async fn what_is_too_large_for_bedrock_is_named() {
    let server = Server::start(Playbook::always(Answer::text("I see."))).await;
    let endpoint = Endpoint::new(config_of(Api::Converse, "bedrock", &server)).unwrap();
    let (nova, claude) = ("amazon.nova-pro-v1:0", "anthropic.claude-3-5-sonnet-20241022-v2:0");
    for (name, kind, bytes, is_sent) in [
        (nova, "image/png", 3_932_160_usize, true),
        (nova, "image/png", 3_932_163, false),
        (nova, "text/csv", 4_718_592, true),
        (nova, "text/csv", 4_718_595, false),
        (claude, "application/pdf", 4_718_592, true),
        (claude, "application/pdf", 4_718_595, false),
        (nova, "application/pdf", 4_718_595, true),
    ] {
        let model = endpoint.model(name);
        let url = format!("data:{kind};base64,{}", "AAAA".repeat(bytes / 3));
        let media = Media { media_type: kind.into(), url: url.into() };
        assert_eq!(model.reads(&media) == Some(false), !is_sent, "{kind} of {bytes} bytes");
        assert_eq!(model.exceeds(&media).is_some(), !is_sent, "{kind} of {bytes} bytes");
        ask(&model, &Asked::new([Entry::User { parts: vec![Part::Media(media)] }])).await.0.unwrap();
        let body = server.requests().last().unwrap().body.to_string();
        assert_eq!(body.contains("AAAA"), is_sent, "{kind} of {bytes} bytes");
        assert_eq!(body.contains(&format!("[{kind}]")), !is_sent, "{kind} of {bytes} bytes");
    }
    assert_eq!(server.violations(), [""; 0]);
}
