//! What is sent depending on what providers take: pictures of tools, and texts that no participant wrote.

use polylogue_core::{Media, Part};
use serde_json::{Value, json};

use super::*;

#[test]
fn pictures_of_tools_follow_the_last_result_of_their_run_for_models_that_see() {
    let entries = [
        Entry::user("Look."),
        Entry::own(vec![call("c1", json!({})), call("c2", json!({})), call("c3", json!({}))]),
        returned("c1", "look", vec![Part::text("a cat"), drawn("QUJD"), drawn("REVG")]),
        returned("c2", "count", vec![Part::text("two")]),
        returned("c3", "draw", vec![drawn("R0hJ")]),
        Entry::assistant("A cat, twice."),
    ];
    let words = "(The pictures that `look`, `draw` returned. No participant wrote the text in them.)";
    let shown = |data: &str| json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}});
    let body = Asked::new().json(&entries, &Style { vision: true, ..STYLE });
    let sent = body["messages"].as_array().unwrap();
    let tools: Vec<&Value> = sent[3..6].iter().map(|message| &message["content"]).collect();
    assert_eq!(tools, ["a cat\n\n[image/png]\n\n[image/png]", "two", "[image/png]"]);
    assert_eq!(
        sent[6..],
        [
            json!({"role": "user", "content":
                [{"type": "text", "text": words}, shown("QUJD"), shown("REVG"), shown("R0hJ")]}),
            json!({"role": "assistant", "content": "A cat, twice."}),
        ]
    );
    // Nothing is added for others.
    let body = Asked::new().json(&entries, &STYLE);
    assert_eq!(body["messages"].as_array().unwrap().len(), 7);
}

/// Role and text of each message after the system text.
fn reported(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] != "system");
    let reported = |message: &Value| {
        let content = &message["content"];
        let parts: Vec<&str> = match content.as_array() {
            Some(parts) => parts.iter().map(|part| part["text"].as_str().unwrap_or("[picture]")).collect(),
            None => vec![content.as_str().unwrap_or_default()],
        };
        format!("{}: {}", message["role"].as_str().unwrap(), parts.join(" | "))
    };
    messages.map(reported).collect()
}

#[test]
fn texts_that_no_participant_wrote_are_sent_only_where_the_provider_needs_them() {
    let entries = [
        Entry::assistant("Hello."),
        Entry::own(vec![Part::text("Wait."), call("c1", json!({}))]),
        returned("c1", "look", vec![Part::text("a cat")]),
        Entry::user("Well?"),
    ];
    let sent = |style: Style| reported(&Asked::new().json(&entries, &style));
    let plain = ["assistant: Hello.", "assistant: Wait.", "tool: a cat", "user: Well?"];
    assert_eq!(sent(Style { merge: false, ..STYLE }), plain);
    let alternating = [
        "user: Begin.", "assistant: Hello.", "user: Continue.", "assistant: Wait.", "tool: a cat",
        "user: Well?",
    ];
    assert_eq!(sent(STYLE), alternating);
    let bridged = sent(Style { bridge: true, ..STYLE });
    assert_eq!(bridged[5..], ["assistant: Noted.", "user: Well?"]);
    assert_eq!(sent(Style { fold: true, ..STYLE })[0], "user: Be brief.\n\nBegin.");
    assert_eq!(
        sent(Style { fold: true, merge: false, ..STYLE })[..2],
        ["user: Be brief.", "assistant: Hello."]
    );
}

#[test]
fn words_after_the_pictures_of_a_tool_join_their_message_where_roles_alternate() {
    let entries = [
        Entry::user("Look."),
        Entry::own(vec![call("c1", json!({}))]),
        returned("c1", "look", vec![Part::text("a cat"), drawn("QUJD")]),
        Entry::user("Well?"),
        Entry::user("Which one?"),
    ];
    let words = "(The pictures that `look` returned. No participant wrote the text in them.)";
    let sent =
        |style: Style| reported(&Asked::new().json(&entries, &Style { vision: true, ..style }))[3..].to_vec();
    let joined = format!("user: {words} | [picture] | Well? | Which one?");
    assert_eq!(sent(STYLE), [joined.as_str()]);
    assert_eq!(sent(Style { bridge: true, ..STYLE }), ["assistant: Noted.", joined.as_str()]);
    let apart = format!("user: {words} | [picture]");
    let loose = sent(Style { merge: false, bridge: true, ..STYLE });
    assert_eq!(loose, ["assistant: Noted.", apart.as_str(), "user: Well?", "user: Which one?"]);
}

#[test]
fn what_a_model_could_not_read_is_only_named() {
    let media = |kind: &str, url: &str| Part::Media(Media { media_type: kind.into(), url: url.into() });
    let parts = vec![
        image(),
        media("image/svg+xml", "data:image/svg+xml;base64,QUJD"),
        media("audio/wav", "data:audio/wav;base64,QUJD"),
        media("image/png", "data:image/png,QUJD"),
        drawn(""),
    ];
    let entries =
        [Entry::user("Look."), Entry::own(vec![call("c1", json!({}))]), returned("c1", "look", parts)];
    let seen = Asked::new().body(&entries, &Style { vision: true, ..STYLE });
    assert_eq!(seen, Asked::new().body(&entries, &STYLE));
}

#[test]
fn a_run_that_grows_and_a_change_of_sight_are_written_again() {
    let asked = Asked::new();
    let sees = Style { vision: true, ..STYLE };
    let mut entries = vec![
        Entry::user("Look."),
        Entry::own(vec![call("c1", json!({})), call("c2", json!({}))]),
        returned("c1", "look", vec![drawn("QUJD")]),
    ];
    asked.body(&entries, &sees);
    entries.push(returned("c2", "look", vec![drawn("REVG")]));
    assert_eq!(asked.body(&entries, &sees), Asked::new().body(&entries, &sees));
    entries.push(Entry::assistant("Well."));
    assert_eq!(asked.body(&entries, &sees), Asked::new().body(&entries, &sees));
    assert_eq!(asked.body(&entries, &STYLE), Asked::new().body(&entries, &STYLE));
    assert_eq!(asked.body(&entries, &sees), Asked::new().body(&entries, &sees));
}
