//! Questions to users of clients, as forms with one text field.

use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequests, InputResponses, RequestMetaObject,
};
use serde_json::Value;

/// The name of the only field of the form.
const FIELD: &str = "answer";
/// The name of the question as data in the metadata of the form.
const DATA: &str = "polylogue/question";

/// A question to the user of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormQuestion {
    /// Identifies it in the answers.
    pub key: String,
    /// The text of the question.
    pub text: String,
    /// The question as data, an object, for clients that have forms of their own: `polylogue/question` in the `_meta` of the form.
    /// Default: none.
    pub data: Option<Value>,
}

/// The answer of a client's user to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormAnswer {
    /// The key of the question.
    pub key: String,
    /// The answer. `None`: the user declined.
    pub text: Option<String>,
}

impl FormAnswer {
    /// The answers that a client sent. Those that do not fit the form are none: it is sent again.
    pub(super) fn all(responses: InputResponses) -> Vec<Self> {
        let answer = |(key, response): (String, Value)| {
            let result = serde_json::from_value::<ElicitResult>(response).ok()?;
            Some(Self { key, text: accepted(&result).ok()? })
        };
        responses.into_iter().filter_map(answer).collect()
    }
}

/// The form of a question; `None` if it cannot be written.
pub(super) fn form(question: &FormQuestion) -> Option<ElicitRequestParams> {
    let requested_schema = ElicitationSchema::builder().required_string(FIELD).build().ok()?;
    let meta = question.data.clone().map(|data| {
        let mut meta = RequestMetaObject::default();
        meta.insert(DATA.to_owned(), data);
        meta
    });
    let message = question.text.clone();
    Some(ElicitRequestParams::FormElicitationParams { meta, message, requested_schema })
}

/// The requests for `questions`, by their keys.
pub(super) fn requests(questions: &[FormQuestion]) -> InputRequests {
    let request = |question: &FormQuestion| {
        let request = InputRequest::Elicitation(ElicitRequest::new(form(question)?));
        Some((question.key.clone(), request))
    };
    questions.iter().filter_map(request).collect()
}

/// What was accepted does not fit the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unfit;

/// The text of an answer; `None` if it was declined. A form in which nothing was written is an empty answer.
pub(super) fn accepted(given: &ElicitResult) -> Result<Option<String>, Unfit> {
    if given.action != ElicitationAction::Accept {
        return Ok(None);
    }
    match given.content.as_ref() {
        None | Some(Value::Null) => Ok(Some(String::new())),
        Some(Value::Object(fields)) if fields.is_empty() => Ok(Some(String::new())),
        Some(content) => match content.get(FIELD) {
            Some(Value::String(text)) => Ok(Some(text.clone())),
            _ => Err(Unfit),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_accepted_texts_are_answers_and_what_does_not_fit_the_form_is_none() {
        let responses = [
            ("a", json!({"action": "accept", "content": {"answer": "yes"}})),
            ("b", json!({"action": "decline"})),
            ("c", json!({"action": "cancel"})),
            ("d", json!({"action": "accept"})),
            ("e", json!({"action": "accept", "content": {"answer": 7}})),
            ("f", json!({"action": "ok", "content": {"answer": "yes"}})),
            ("g", json!("yes")),
            ("h", json!({"action": "accept", "content": {"reply": "yes"}})),
            ("i", json!({"action": "accept", "content": ["yes"]})),
            ("j", json!({"action": "accept", "content": {}})),
        ];
        let responses = responses.map(|(key, response)| (key.to_owned(), response)).into_iter().collect();
        let answers = FormAnswer::all(responses);
        let texts: Vec<_> =
            answers.iter().map(|answer| (answer.key.as_str(), answer.text.as_deref())).collect();
        assert_eq!(texts, [("a", Some("yes")), ("b", None), ("c", None), ("d", Some("")), ("j", Some(""))]);
    }

    #[test]
    fn a_question_is_a_form_with_one_field() {
        let question = |data| FormQuestion { key: "q5".into(), text: "Which?".into(), data };
        let requests = |data| serde_json::to_value(requests(&[question(data)])).unwrap();
        let mut form = json!({"mode": "form", "message": "Which?", "requestedSchema":
            {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}});
        let of = |form: &Value| json!({"q5": {"method": "elicitation/create", "params": form}});
        assert_eq!(requests(None), of(&form));
        form["_meta"] = json!({"polylogue/question": {"kind": "text"}});
        assert_eq!(requests(Some(json!({"kind": "text"}))), of(&form));
    }
}
