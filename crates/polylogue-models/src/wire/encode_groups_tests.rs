//! What is sent on wires whose results of tools and the words after them are one message.

use polylogue_core::{DeltaSink, Media};

use super::*;
use crate::deviations::MediaForm;
use crate::wire::asked::AskedOutput;
use crate::wire::draft::{DecodeResult, Draft};
use crate::wire::protocol::{ReadReply, WriteMessages, WriteTail};

/// Such a wire: messages are lists, `r` and an id for a result, `p` for a picture, and `w` for words.
#[derive(Debug, Default)]
struct Grouped<const PICTURES: bool>;

fn message(out: &mut BytesMut, role: &str, content: impl IntoIterator<Item = String>) {
    let content: Vec<String> = content.into_iter().collect();
    out.extend_from_slice(json!({"role": role, "content": content}).to_string().as_bytes());
}

fn in_letters(part: &Part) -> Option<String> {
    match part {
        Part::Media(_) => Some("p".to_owned()),
        Part::Text(text) => Some(format!("w{text}")),
        _ => None,
    }
}

impl<const PICTURES: bool> Protocol for Grouped<PICTURES> {
    const API: Api = Api::ChatCompletions;
    const REPLY: &'static str = "";
    const CORE: &'static str = "";
    const GROUPS_RESULTS: bool = true;
    const PICTURES_IN_RESULTS: bool = PICTURES;
    const SYSTEM_WITHIN: SystemWithin = SystemWithin::Never;
    const NO_FIELD: &'static [&'static str] = &[];

    fn begin(out: &mut BytesMut, model: &str, system: Option<&str>, _: &Style) {
        out.extend_from_slice(format!(r#"{{"to":{model:?},"system":{system:?},"messages":["#).as_bytes());
    }

    fn takes(_: &Media, _: MediaForm) -> bool {
        false
    }
}

impl<const PICTURES: bool> WriteMessages for Grouped<PICTURES> {
    fn system(_: &mut BytesMut, _: &str, _: &Style) {
        panic!("it has no such messages");
    }

    fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone, _: &Style) {
        message(out, "user", parts.into_iter().filter_map(in_letters));
    }

    fn assistant(out: &mut BytesMut, own: &Own<'_>, _: &Style) {
        message(out, "assistant", own.parts.iter().filter_map(in_letters));
    }

    fn results<'a>(
        out: &mut BytesMut,
        results: &[SentResult<'_>],
        words: impl IntoIterator<Item = &'a Part> + Clone,
        _: &Style,
    ) {
        let results = results.iter().map(|result| format!("r{}", result.id));
        message(out, "user", results.chain(words.into_iter().filter_map(in_letters)));
    }
}

impl<const PICTURES: bool> WriteTail for Grouped<PICTURES> {
    fn asked_output(_: &Params, _: &Style) -> AskedOutput {
        AskedOutput::of([], [])
    }

    fn tail(out: &mut BytesMut, _: &Request<'_>, _: &Style) {
        out.extend_from_slice(b"}");
    }
}

impl<const PICTURES: bool> ReadReply for Grouped<PICTURES> {
    type Chunk<'a> = Value;

    fn is_error(_: &Value) -> bool {
        false
    }

    fn take(&mut self, _: &Value, _: &mut Draft, _: &mut dyn DeltaSink) -> DecodeResult {
        Ok(())
    }
}

/// Role and content of each message: `u` or `a`, then the first letters of the content.
fn messages_of<P: Protocol>(entries: &[Entry], style: &Style) -> Vec<String> {
    let mut asked = Asked::new();
    asked.system = None;
    let body: Value = serde_json::from_str(
        &String::from_utf8(asked.body_as::<P>(entries, style)).unwrap().replacen("None", "null", 1),
    )
    .unwrap();
    let messages = body["messages"].as_array().unwrap().iter();
    let short = |message: &Value| {
        let content = message["content"].as_array().unwrap().iter().map(|part| part.as_str().unwrap());
        format!("{}:{}", &message["role"].as_str().unwrap()[..1], content.collect::<Vec<_>>().join(","))
    };
    messages.map(short).collect()
}

#[test]
fn results_are_one_message_with_their_pictures_and_the_words_after_them() {
    let entries = [
        Entry::user("a"),
        Entry::own(vec![call("c1", json!({})), call("c2", json!({}))]),
        returned("c1", "look", vec![drawn("QUJD")]),
        returned("c2", "look", vec![Part::text("seen")]),
        Entry::user("b"),
        Entry::System { parts: vec![Part::text("c")] },
        Entry::assistant("d"),
    ];
    let style = Style { vision: true, ..STYLE };
    let about = "w(The pictures that `look` returned. No participant wrote the text in them.)";
    let apart = format!("u:rc1,rc2,{about},p,wb,wc");
    assert_eq!(messages_of::<Grouped<false>>(&entries, &style), ["u:wa", "a:", &apart, "a:wd"]);
    assert_eq!(messages_of::<Grouped<true>>(&entries, &style), ["u:wa", "a:", "u:rc1,rc2,wb,wc", "a:wd"]);
    // Some models accept no words in a message with results.
    let style = Style { bridge: true, ..style };
    let between = format!("u:{about},p,wb,wc");
    let expected = ["u:wa", "a:", "u:rc1,rc2", "a:wNoted.", &between, "a:wd"];
    assert_eq!(messages_of::<Grouped<false>>(&entries, &style), expected);
    let expected = ["u:wa", "a:", "u:rc1,rc2", "a:wNoted.", "u:wb,wc", "a:wd"];
    assert_eq!(messages_of::<Grouped<true>>(&entries, &style), expected);
}

fn is_legal(messages: &[String], bridge: bool) -> bool {
    let alternate = messages.iter().enumerate().all(|(at, text)| text.starts_with(["u", "a"][at % 2]));
    let first = |text: &str| {
        let content = text[2..].split(',').skip_while(|part| part.starts_with('r'));
        content.clone().all(|part| !part.starts_with('r'))
            && (!bridge || !text.contains(":r") || content.count() == 0)
    };
    alternate && messages.iter().all(|text| first(text))
}

proptest! {
    #[test]
    fn roles_alternate_results_are_first_and_a_body_built_step_by_step_is_the_one_built_at_once(
        turns in proptest::collection::vec(turn(), 0..12), vision: bool, bridge: bool, skip in 1_usize..4,
    ) {
        let style = Style { vision, bridge, ..STYLE };
        let grown = Asked::new();
        let (entries, asked) = view(&turns);
        for length in asked.into_iter().step_by(skip) {
            let part = &entries[..length];
            let body = grown.body_as::<Grouped<false>>(part, &style);
            prop_assert_eq!(body, Asked::new().body_as::<Grouped<false>>(part, &style));
            let messages = messages_of::<Grouped<false>>(part, &style);
            prop_assert!(is_legal(&messages, bridge), "{:?}", messages);
        }
    }
}
