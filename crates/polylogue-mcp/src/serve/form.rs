//! Questions to users of clients, as forms with one text field.

use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequests, InputResponses,
};
use serde_json::Value;

/// The name of the only field of the form.
const FIELD: &str = "answer";

/// A question to the user of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormQuestion {
    /// Identifies it in the answers.
    pub key: String,
    /// Its text.
    pub text: String,
}

/// What a client's user says to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormAnswer {
    /// The key of the question.
    pub key: String,
    /// The answer. `None`: the user declined, or the client sent none that can be read.
    pub text: Option<String>,
}

impl FormAnswer {
    /// The answers that a client sent.
    pub(super) fn all(responses: InputResponses) -> Vec<Self> {
        let answer = |(key, response): (String, Value)| {
            let result = serde_json::from_value::<ElicitResult>(response).ok();
            Self { key, text: result.as_ref().and_then(accepted) }
        };
        responses.into_iter().map(answer).collect()
    }
}

/// The form that asks `text`; `None` if it cannot be written.
pub(super) fn form(text: &str) -> Option<ElicitRequestParams> {
    let requested_schema = ElicitationSchema::builder().required_string(FIELD).build().ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: text.to_owned(),
        requested_schema,
    })
}

/// The requests for `questions`, by their keys.
pub(super) fn requests(questions: &[FormQuestion]) -> InputRequests {
    let request = |question: &FormQuestion| {
        let request = InputRequest::Elicitation(ElicitRequest::new(form(&question.text)?));
        Some((question.key.clone(), request))
    };
    questions.iter().filter_map(request).collect()
}

/// The text of an answer, unless it was declined. A form that was sent without a text is an empty answer.
pub(super) fn accepted(given: &ElicitResult) -> Option<String> {
    if given.action != ElicitationAction::Accept {
        return None;
    }
    let content = given.content.as_ref();
    match content.and_then(|content| content.get(FIELD)) {
        None => Some(String::new()),
        Some(Value::String(text)) => Some(text.clone()),
        // No text was asked for in this form.
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_accepted_texts_are_answers() {
        let responses = [
            ("a", json!({"action": "accept", "content": {"answer": "yes"}})),
            ("b", json!({"action": "decline"})),
            ("c", json!({"action": "cancel"})),
            ("d", json!({"action": "accept"})),
            ("e", json!({"action": "accept", "content": {"answer": 7}})),
            ("f", json!({"action": "ok", "content": {"answer": "yes"}})),
            ("g", json!("yes")),
        ];
        let responses = responses.map(|(key, response)| (key.to_owned(), response)).into_iter().collect();
        let texts: Vec<_> = FormAnswer::all(responses).into_iter().map(|answer| answer.text).collect();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(texts, [text("yes"), None, None, text(""), None, None, None]);
    }

    #[test]
    fn a_question_is_a_form_with_one_field() {
        let question = FormQuestion { key: "q5".into(), text: "Which?".into() };
        let request = serde_json::to_value(requests(&[question])).unwrap();
        assert_eq!(
            request,
            json!({"q5": {"method": "elicitation/create", "params": {"mode": "form", "message": "Which?", "requestedSchema":
                {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}}}})
        );
    }
}
