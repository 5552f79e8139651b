//! PDF documents: what a call that reads them is reserved at, and what providers take at most.

use polylogue_core::{Bound, Entry, Media, Model as _, Part};
use polylogue_models::{Api, Endpoint, EndpointModel, Fallback, KnownModel};
use polylogue_test::pdf::{HUNDRED_PAGES, THREE_PAGES, damaged};
use polylogue_test::server::{Answer, Playbook, Received, Server};

use crate::common::{Asked, ask, config_of};

/// Models, the most tokens that their provider publishes of a page, and the input tokens at which a call is reserved that reads three pages, a
/// hundred pages, or a document whose pages cannot be counted.
const MODELS: [(Api, &str, &str, u64, [u64; 3]); 10] = [
    (Api::Messages, "anthropic", "claude-opus-4-7", 3_000 + 4_784, [23_628, 781_008, 1_000_000]),
    (Api::Messages, "anthropic", "claude-haiku-4-5", 3_000 + 1_600, [23_628, 200_000, 200_000]),
    (Api::Converse, "bedrock", "anthropic.claude-opus-4-7", 3_000 + 4_784, [23_628, 781_008, 1_000_000]),
    (Api::Converse, "bedrock", "amazon.nova-pro-v1:0", 3_000 + 50_000, [159_276, 300_000, 300_000]),
    (Api::Gemini, "gemini", "gemini-2.5-pro", 258, [15_996, 526_608, 1_048_576]),
    (Api::Gemini, "gemini", "gemini-3-flash-preview", 3_000 + 2_240, [15_996, 526_608, 1_048_576]),
    (Api::Responses, "openai", "gpt-5.6", 3_000 + 6_150, [27_726, 917_608, 922_000]),
    (Api::ChatCompletions, "openai", "gpt-4o-mini", 3_000 + 48_169, [128_000, 128_000, 128_000]),
    (Api::ChatCompletions, "compatible", "unheard-of", 3_000 + 50_000, [159_276, 5_302_608, 53_000_216]),
    // It reads none.
    (Api::Ollama, "ollama", "unheard-of", 0, [276, 2_608, 216]),
];

/// The documents, with the pages and the tokens of their texts that a provider finds in them at most.
fn documents() -> [(&'static [u8], u64, u64); 3] {
    [(THREE_PAGES, 3, 60), (HUNDRED_PAGES, 100, 2_392), (damaged(), 100, 0)]
}

fn asking(document: &[u8]) -> Asked {
    Asked::new([Entry::User { parts: vec![Part::Media(Media::of_bytes(document).unwrap())] }])
}

fn model(api: Api, provider: &str, name: &str, server: &Server) -> EndpointModel {
    Endpoint::new(config_of(api, provider, server)).unwrap().model(name)
}

#[tokio::test]
async fn a_document_is_reserved_by_its_pages_and_never_below_what_its_provider_takes() {
    for (api, provider, name, page, reserved) in MODELS {
        // A provider refuses what does not fit into the window.
        let window = KnownModel::find(provider, name).and_then(|known| known.max_input).unwrap_or(u64::MAX);
        let taken = documents().map(|(_, pages, text)| (pages * page + text + 20).min(window));
        let play = move |_: &Received, nth: usize| Answer::text("Yes.").usage(taken[nth], 2);
        let server = Server::start(Playbook::new(play)).await;
        let model = model(api, provider, name, &server);
        for (at, (document, ..)) in documents().into_iter().enumerate() {
            let asked = asking(document);
            let bound = Bound::of(&model, &asked.request());
            assert_eq!(bound.input, reserved[at], "{provider}:{name}, document {at}");
            let used = ask(&model, &asked).await.0.unwrap().usage;
            assert_eq!(used.input, Some(taken[at]), "{provider}:{name}, document {at}");
            assert!(taken[at] <= bound.input, "{provider}:{name}, document {at}: {} tokens", taken[at]);
            let is_enough = bound.cost.is_none_or(|most| model.cost(&used) <= Some(most));
            assert!(is_enough, "{provider}:{name}, document {at}: {used:?}");
        }
        assert_eq!(server.violations(), [""; 0], "{provider}:{name}");
    }
}

/// Any of the models can reply.
#[tokio::test]
async fn one_of_several_models_reads_pages_as_the_most_expensive_one() {
    let server = Server::start(Playbook::always(Answer::text("Yes."))).await;
    let [claude, gemini] = [(Api::Messages, "anthropic", "m"), (Api::Gemini, "gemini", "m")]
        .map(|(api, provider, name)| model(api, provider, name, &server));
    let asked = asking(THREE_PAGES);
    let most = Bound::of(&claude, &asked.request());
    assert!(most.input > Bound::of(&gemini, &asked.request()).input);
    let any = Fallback::new([gemini, claude].map(Into::into));
    assert_eq!(Bound::of(&any, &asked.request()).input, most.input);
}

/// At an address, its pages are not known, and neither are those of other packed documents.
#[test]
fn documents_that_are_not_read_have_as_many_pages_as_a_provider_accepts() {
    for (kind, url) in [
        ("application/pdf", "https://example.org/a.pdf"),
        ("application/pdf", "data:application/pdf,%25PDF"),
        ("application/msword", "data:application/msword;base64,AAAA"),
    ] {
        let tokens = Media { media_type: kind.into(), url: url.into() }.input_tokens();
        assert_eq!(tokens.pages, Bound::MAX_PAGES, "{kind} {url}");
    }
}
