//! A reply as Amazon writes it, whole or as the events of its stream.

use polylogue_core::Usage;
use serde_json::{Value, json};

use super::super::Quirk;
use super::super::chunks::{Chunks, pieces};
use super::super::completion::{Completion, object};
use super::super::seal::bedrock as signature;

/// The body of a reply that is not streamed.
pub(in super::super) fn body(completion: &Completion<'_>) -> Value {
    let mut content = Vec::new();
    if !completion.thought.is_empty() {
        let signature = signed(completion);
        let text = json!({"text": completion.thought, "signature": signature});
        content.push(json!({"reasoningContent": {"reasoningText": text}}));
    }
    if !completion.text.is_empty() {
        content.push(json!({"text": completion.text}));
    }
    for (nth, call) in completion.answer.calls.iter().enumerate() {
        let id = completion.call_id(nth, call);
        content.push(json!({"toolUse": {"toolUseId": id, "name": call.tool, "input": object(&call.args)}}));
    }
    json!({
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": reason(completion),
        "usage": if completion.has(&Quirk::NoUsage) { Value::Null } else { usage(&completion.usage) },
        "metrics": {"latencyMs": 1},
    })
}

/// The events of a streamed reply, each an object with the event's type as its only field.
pub(in super::super) fn chunks(completion: &Completion<'_>) -> Chunks {
    let mut events = vec![json!({"messageStart": {"role": "assistant"}})];
    let mut index = 0;
    let mut block = |start: Option<Value>, deltas: Vec<Value>| {
        let begin =
            start.map(|start| json!({"contentBlockStart": {"contentBlockIndex": index, "start": start}}));
        let deltas = deltas
            .into_iter()
            .map(|delta| json!({"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}));
        let end = json!({"contentBlockStop": {"contentBlockIndex": index}});
        events.extend(begin.into_iter().chain(deltas).chain([end]));
        index += 1;
    };
    if !completion.thought.is_empty() {
        let texts = pieces(completion.thought, None).into_iter();
        let mut deltas: Vec<Value> = texts.map(|text| json!({"reasoningContent": {"text": text}})).collect();
        deltas.push(json!({"reasoningContent": {"signature": signed(completion)}}));
        block(None, deltas);
    }
    if !completion.text.is_empty() {
        let texts = pieces(&completion.text, completion.answer.pieces).into_iter();
        block(None, texts.map(|text| json!({"text": text})).collect());
    }
    for (nth, call) in completion.answer.calls.iter().enumerate() {
        let start = json!({"toolUse": {"toolUseId": completion.call_id(nth, call), "name": call.tool}});
        let inputs = pieces(&call.args, Some(call.args.len().div_ceil(8))).into_iter();
        block(Some(start), inputs.map(|input| json!({"toolUse": {"input": input}})).collect());
    }
    let before_finish = events.len();
    events.push(json!({"messageStop": {"stopReason": reason(completion)}}));
    if !completion.has(&Quirk::NoUsage) {
        events.push(json!({"metadata": {"usage": usage(&completion.usage), "metrics": {"latencyMs": 1}, "p": "abcd"}}));
    }
    Chunks { chunks: events.iter().map(Value::to_string).collect(), before_finish }
}

/// The signature of the thought of a reply.
fn signed(completion: &Completion<'_>) -> String {
    let received = completion.received;
    signature(completion.model(), &received.body, received.messages(), completion.thought)
}

/// One more event with text, for streams that never end.
pub(in super::super) fn one_more(_: &Completion<'_>, text: &str) -> String {
    json!({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": text}}}).to_string()
}

fn reason<'a>(completion: &'a Completion<'_>) -> &'a str {
    completion.stop_reason("content_filtered")
}

/// What was read from a cache is counted apart from the rest of the input.
fn usage(usage: &Usage) -> Value {
    let (input, output) = (usage.input.unwrap_or_default(), usage.output.unwrap_or_default());
    let cached = usage.cached.unwrap_or_default();
    json!({
        "inputTokens": input.saturating_sub(cached),
        "outputTokens": output,
        "totalTokens": input.saturating_add(output),
        "cacheReadInputTokens": cached,
        "cacheWriteInputTokens": 0,
    })
}

/// The bytes of an event of a stream, a frame with its type as a header; of an exception, if there is a text instead of an object.
pub(in super::super) fn frame(chunk: &str) -> Vec<u8> {
    let event: Value = serde_json::from_str(chunk).unwrap_or_default();
    let Some((kind, payload)) = event.as_object().and_then(|fields| fields.iter().next()) else {
        return Vec::new();
    };
    match payload {
        Value::String(message) => {
            framed(&[(":message-type", "exception"), (":exception-type", kind)], &json!({"message": message}))
        }
        _ => framed(
            &[(":message-type", "event"), (":event-type", kind), (":content-type", "application/json")],
            payload,
        ),
    }
}

fn framed(headers: &[(&str, &str)], payload: &Value) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).unwrap_or_default());
        head.extend_from_slice(name.as_bytes());
        // A text.
        head.push(7);
        head.extend_from_slice(&u16::try_from(value.len()).unwrap_or_default().to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    let payload = payload.to_string();
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or_default().to_be_bytes();
    let mut frame = length(16 + head.len() + payload.len()).to_vec();
    frame.extend_from_slice(&length(head.len()));
    frame.extend_from_slice(&checksum(&frame).to_be_bytes());
    frame.extend_from_slice(&head);
    frame.extend_from_slice(payload.as_bytes());
    frame.extend_from_slice(&checksum(&frame).to_be_bytes());
    frame
}

/// CRC-32 bit by bit: independent of the table that the client uses.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standard() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_frame_begins_with_its_length() {
        let frame = frame(r#"{"messageStart":{"role":"assistant"}}"#);
        assert_eq!(u32::from_be_bytes(frame[..4].try_into().unwrap()) as usize, frame.len());
        assert!(frame.windows(12).any(|bytes| bytes == b"messageStart"));
    }
}
