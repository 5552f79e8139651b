//! The reasoning that chat completions return with the messages of the assistant: it must be what the server sent.
//!
//! Unlike a signed thought, reasoning as a plain text shows nothing of its origin, so the server remembers what it sent.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::Quirk;
use super::completion::{Completion, DETAILS, SIGNATURE};
use super::rules::{Checked, role};
use super::seal::seal;

/// The fields in which reasoning is sent and returned; the last one is Ollama's.
const FIELDS: [&str; 4] = ["reasoning_content", "reasoning", DETAILS, "thinking"];

/// The reasoning that was sent: what a model reasoned after a list of messages.
#[derive(Debug, Default)]
pub(super) struct Reasoned(HashMap<String, Vec<Reasoning>>);

/// The reasoning of a reply.
#[derive(Debug, PartialEq)]
pub(super) struct Reasoning {
    /// In the form in which it was sent: an object with one field.
    form: Value,
    /// The id of the first call in the reply.
    call: Option<String>,
}

impl Reasoned {
    /// Remembers the reasoning of a reply to `messages`.
    pub(super) fn sent(&mut self, model: &str, messages: &[Value], reasoning: Reasoning) {
        let all = self.0.entry(place(model, messages)).or_default();
        if !all.contains(&reasoning) {
            all.push(reasoning);
        }
    }

    /// Checks the reasoning that comes back with `messages`. With `is_required`, none may be missing from the messages with
    /// calls that are waiting for the next reply: those after the last message of a user.
    pub(super) fn check(&self, model: &str, messages: &[Value], is_required: bool) -> Checked {
        let last_user = messages.iter().rposition(|message| role(message) == "user");
        for (at, message) in messages.iter().enumerate() {
            let is_own = role(message) == "assistant";
            let sent =
                || self.0.get(&place(model, messages.get(..at).unwrap_or_default())).into_iter().flatten();
            let call = message.pointer("/tool_calls/0/id").and_then(Value::as_str);
            let checked = match returned(message)? {
                Some(_) if !is_own => Err("has reasoning, and is not the assistant's"),
                Some(form) if sent().any(|sent| sent.form == form) => Ok(()),
                Some(_) => Err("has reasoning that this model did not send in this place"),
                None if is_required
                    && is_own
                    && last_user.is_none_or(|last| at > last)
                    && call.is_some()
                    && sent().any(|sent| sent.call.as_deref() == call) =>
                {
                    Err("lacks the reasoning that was sent with its calls")
                }
                None => Ok(()),
            };
            checked.map_err(|flaw| format!("messages[{at}] {flaw}"))?;
        }
        Ok(())
    }
}

/// A place in a conversation: a model, and all that it read.
fn place(model: &str, messages: &[Value]) -> String {
    seal("reasoning", &format!("{model}\0{}", Value::from(messages)))
}

/// The reasoning of a reply; `None` if it has none.
pub(super) fn reasoning(completion: &Completion<'_>) -> Option<Reasoning> {
    let thoughts = completion.thoughts();
    if thoughts.is_empty() {
        return None;
    }
    let form = match completion.thought_field() {
        DETAILS => json!({ DETAILS: [completion.detail(&thoughts, true)] }),
        field if completion.has(&Quirk::ThinkingParts) => json!({ field: in_order(&completion.chunks()) }),
        field => json!({ field: thoughts }),
    };
    let call = completion.answer.calls.first().and_then(|call| completion.call_id(0, call));
    Some(Reasoning { form, call })
}

/// The reasoning that a message returns, as an object with one field.
fn returned(message: &Value) -> Checked<Option<Value>> {
    let is_blank = |value: &Value| value.as_str().is_some_and(|text| text.trim().is_empty());
    let fields = FIELDS.iter().filter_map(|name| Some((*name, message.get(name)?.clone())));
    let mut found: Vec<(&str, Value)> = fields.filter(|(_, value)| !is_blank(value)).collect();
    // Some providers behind OpenRouter know no more than the text of the details.
    let details = message.get(DETAILS).map(text_of_details);
    found.retain(|(name, value)| *name != "reasoning_content" || details.as_ref() != Some(value));
    let parts = message.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let chunks = parts.iter().any(is_thinking).then(|| ("thinking", in_order(parts)));
    found.extend(chunks);
    match &*found {
        [] => Ok(None),
        [(name, value)] => Ok(Some(json!({ *name: value }))),
        [(one, _), (other, _), ..] => Err(format!("has reasoning twice: `{one}` and `{other}`")),
    }
}

fn is_thinking(part: &Value) -> bool {
    part.get("type").is_some_and(|kind| kind == "thinking")
}

/// The reasoning of a content with its signatures, and where there are texts around it.
fn in_order(parts: &[Value]) -> Value {
    let reduced = |part: &Value| match is_thinking(part) {
        true => json!({"thinking": text_of(part), SIGNATURE: part.get(SIGNATURE)}),
        false => "text".into(),
    };
    let mut reduced: Vec<Value> = parts.iter().map(reduced).collect();
    reduced.dedup_by(|next, before| *next == "text" && *before == "text");
    reduced.into()
}

/// The text of details.
fn text_of_details(details: &Value) -> Value {
    let details = details.as_array().into_iter().flatten();
    details.filter_map(|detail| detail.get("text")?.as_str()).collect::<String>().into()
}

/// The text of a part with reasoning.
fn text_of(part: &Value) -> Value {
    let texts = part.get("thinking").and_then(Value::as_array).into_iter().flatten();
    texts.filter_map(|part| part.get("text")?.as_str()).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn own(reasoning: Value) -> Value {
        let mut message = json!({"role": "assistant", "content": "a", "tool_calls": [{"id": "c"}]});
        message.as_object_mut().unwrap().extend(reasoning.as_object().unwrap().clone());
        message
    }

    /// What the server that sent `reasoning` to `m` after `[user("A")]` says of `messages`.
    fn check(reasoning: &Value, model: &str, messages: &[Value]) -> Result<(), String> {
        let mut reasoned = Reasoned::default();
        let call = Some("c".to_owned());
        reasoned.sent("m", &[user("A")], Reasoning { form: reasoning.clone(), call });
        reasoned.check(model, messages, true)
    }

    #[test]
    fn reasoning_goes_back_as_it_was_in_every_form() {
        let detail = json!([{"type": "reasoning.text", "text": "Hm.", "signature": "s"}]);
        for form in [
            json!({"reasoning_content": "Hm."}),
            json!({"reasoning": "Hm."}),
            json!({"thinking": "Hm."}),
            json!({"reasoning_details": detail}),
        ] {
            assert_eq!(check(&form, "m", &[user("A"), own(form.clone()), user("B")]), Ok(()), "{form}");
        }
        let part = json!({"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}], "closed": true, "signature": "s"});
        let listed = json!({"role": "assistant", "content": [part, {"type": "text", "text": "a"}]});
        let sent = json!({"thinking": [{"thinking": "Hm.", "signature": "s"}, "text"]});
        assert_eq!(check(&sent, "m", &[user("A"), listed]), Ok(()));
        let details = own(json!({"reasoning_details": detail, "reasoning_content": "Hm."}));
        assert_eq!(
            check(&json!({"reasoning_details": detail}), "m", &[user("A"), details, user("B")]),
            Ok(())
        );
    }

    #[test]
    fn what_is_altered_moved_missing_or_of_another_model_is_refused() {
        let sent = json!({"reasoning_content": "Hm."});
        let other = json!({"reasoning_content": "Hm!"});
        let twice = json!({"reasoning_content": "Hm.", "reasoning": "Hm."});
        let of_user = json!({"role": "user", "content": "A", "reasoning": "Hm."});
        for (model, messages, flaw) in [
            ("m", vec![user("A"), own(other)], "did not send in this place"),
            ("m", vec![user("B"), own(sent.clone())], "did not send in this place"),
            ("n", vec![user("A"), own(sent.clone())], "did not send in this place"),
            ("m", vec![user("A"), own(json!({"reasoning": "Hm."}))], "did not send in this place"),
            ("m", vec![user("A"), own(json!({}))], "lacks the reasoning"),
            ("m", vec![user("A"), own(json!({"reasoning_content": ""}))], "lacks the reasoning"),
            ("m", vec![user("A"), own(json!({"reasoning_content": " "}))], "lacks the reasoning"),
            ("m", vec![user("A"), own(twice)], "has reasoning twice"),
            ("m", vec![of_user], "not the assistant's"),
        ] {
            let refused = check(&sent, model, &messages).unwrap_err();
            assert!(refused.contains(flaw), "{refused}");
        }
        // After the next message of a user, or with the calls of another reply, none is required.
        assert_eq!(check(&sent, "m", &[user("A"), own(json!({})), user("B")]), Ok(()));
        let other = json!({"role": "assistant", "tool_calls": [{"id": "d"}]});
        assert_eq!(check(&sent, "m", &[user("A"), other]), Ok(()));
    }
}
