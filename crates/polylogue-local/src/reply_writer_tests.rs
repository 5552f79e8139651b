//! Tests of replies from bytes.

use serde_json::json;

use super::*;

const TEMPLATE: &str = "tools <tool_call>";

fn written(form: ReplyForm, pieces: &[&[u8]]) -> (Reply, Vec<Delta>) {
    let mut deltas = Vec::new();
    let mut writer = ReplyWriter::new(form, |delta| deltas.push(delta));
    for piece in pieces {
        if !writer.push(piece) {
            break;
        }
    }
    let reply = writer.finish(FinishReason::Stop, Usage::default());
    (reply, deltas)
}

fn form(template: &str) -> ReplyForm {
    ReplyForm { format: CallFormat::of(template), call_ids: "c".into(), ..ReplyForm::default() }
}

#[test]
fn characters_that_tokens_split_arrive_whole() {
    let (reply, deltas) = written(ReplyForm::default(), &[b"a\xF0", b"\x9F\xA6", b"\x80b", b"\xFFc\xC3"]);
    assert_eq!(reply.parts, [Part::text("a🦀b\u{FFFD}c\u{FFFD}")]);
    let texts: Vec<&Delta> = deltas.iter().collect();
    assert!(
        matches!(texts.as_slice(), [Delta::Text(a), Delta::Text(b), Delta::Text(c), Delta::Text(d)]
        if a == "a" && b == "🦀b" && c == "\u{FFFD}c" && d == "\u{FFFD}"),
        "{texts:?}"
    );
}

#[test]
fn calls_thoughts_and_text_are_separated_at_any_split() {
    let text = "<think>hm</think>Sure.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"é\"}}\n</tool_call>\n<tool_call>{\"name\": \"g\"}</tool_call>";
    for size in 1..text.len() {
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
        let (reply, deltas) = written(form(TEMPLATE), &pieces);
        let call =
            |id: &str, tool: &str, args| Part::ToolCall(ToolCall { id: id.into(), tool: tool.into(), args });
        let expected = [
            Part::Thought("hm".into()),
            Part::text("Sure."),
            call("c0", "f", json!({"a": "é"})),
            call("c1", "g", json!({})),
        ];
        assert_eq!(reply.parts, expected, "in pieces of {size}");
        assert_eq!(reply.finish, FinishReason::Calls);
        assert_eq!(deltas.iter().filter(|delta| matches!(delta, Delta::Call { .. })).count(), 2);
    }
}

#[test]
fn marks_within_the_arguments_of_a_call_are_a_part_of_them() {
    let args = json!({"a": "<tool_call> ends with </tool_call>", "b": "</tool_call>\""});
    let text = format!("<tool_call>\n{}\n</tool_call> b", json!({"name": "f", "arguments": args}));
    for size in [1, 5, text.len()] {
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
        let (reply, _) = written(form(TEMPLATE), &pieces);
        let call = ToolCall { id: "c0".into(), tool: "f".into(), args: args.clone() };
        assert_eq!(reply.parts, [Part::text("b"), Part::ToolCall(call)], "in pieces of {size}");
    }
    // What is no JSON ends with the first mark, so that the next call is one.
    let broken = "<tool_call>{\"name\": </tool_call><tool_call>{\"name\": \"g\"}</tool_call>";
    let (reply, _) = written(form(TEMPLATE), &[broken.as_bytes()]);
    assert_eq!((reply.text().as_ref(), reply.calls().len()), ("<tool_call>{\"name\": </tool_call>", 1));
}

#[test]
fn what_looks_like_a_call_and_is_none_stays_text() {
    for text in
        ["a <tool_call>no json</tool_call> b", "a <tool_call>{\"name\": ", "a <tool_c", "{\"name\": \"f\"}"]
    {
        let (reply, deltas) = written(form(TEMPLATE), &[text.as_bytes()]);
        assert_eq!(reply.text(), text);
        let streamed: String = deltas
            .iter()
            .map(|delta| if let Delta::Text(text) = delta { text.as_str() } else { "" })
            .collect();
        assert_eq!(streamed, text);
        assert_eq!(reply.finish, FinishReason::Stop);
    }
}

#[test]
fn a_reply_that_is_a_call_in_whole_is_read_without_marks() {
    let llama = "tools <|python_tag|>";
    let (reply, _) = written(form(llama), &[b" {\"name\": \"f\", ", b"\"parameters\": {\"a\": 1}}"]);
    assert_eq!(
        reply.parts,
        [Part::ToolCall(ToolCall { id: "c0".into(), tool: "f".into(), args: json!({"a": 1}) })]
    );
    let (reply, _) = written(form(llama), &[b"Text with {\"name\": \"f\"}"]);
    assert_eq!(reply.text(), "Text with {\"name\": \"f\"}");
    let (reply, _) = written(form(llama), &[b"{no"]);
    assert_eq!(reply.text(), "{no");
    let mistral = "tools [TOOL_CALLS]";
    let (reply, _) = written(form(mistral), &[b"[TOOL_", b"CALLS][{\"name\": \"f\", \"arguments\": {}}]"]);
    assert_eq!(reply.calls().len(), 1);
}

#[test]
fn a_stop_sequence_ends_text_and_not_thoughts_or_calls() {
    let stops = ReplyForm { stops: vec!["END".into(), String::new()], ..form(TEMPLATE) };
    let pieces: [&[u8]; 4] = [b"<think>END</think>", b"a E", b"ND b", b"c"];
    let (reply, _) = written(stops, &pieces);
    assert_eq!(reply.parts, [Part::Thought("END".into()), Part::text("a ")]);
}

#[test]
fn a_prompt_within_a_thought_and_a_space_of_the_tokenizer_are_known() {
    let thinking = ReplyForm { is_thinking: true, ..ReplyForm::default() };
    let (reply, _) = written(thinking, &[b"hm", b"</think>", b"\n\nyes"]);
    assert_eq!(reply.parts, [Part::Thought("hm".into()), Part::text("yes")]);
    assert_eq!(reply.usage.reasoning, Some(1));
    let spaced = ReplyForm { skips_space: true, ..ReplyForm::default() };
    assert_eq!(written(spaced, &[b" a", b" b"]).0.text(), "a b");
}
