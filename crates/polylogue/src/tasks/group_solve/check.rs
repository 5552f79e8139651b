//! Checks whether a task is complete: questions and answers.

use std::sync::Arc;

use polylogue_core::{ConfigError, Params, PatternError, Result};
use serde_json::{Value, json};

use crate::Assistant;
use crate::agents::lenient::without_thoughts;
use crate::agents::tooling::ModelSettings;

/// How agents are asked whether their task is complete: first what is left to do, in free text; then whether anything
/// is, in one word.
///
/// The decision is requested as a JSON boolean where the model is known to support schemas, unless its question is
/// [set](Self::decision), and in one word otherwise. An unclear answer is requested once more; if it is still unclear,
/// the task is not complete.
///
/// ```
/// use polylogue::tasks::group_solve::Check;
///
/// let check = Check::default().reflection("What is left to do?").decision("Is anything left to do?").words("yes", "no");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Check {
    reflection: Arc<str>,
    decision: Option<Arc<str>>,
    again: Option<Arc<str>>,
    open: String,
    complete: String,
    temperature: Option<f64>,
    /// Whether the decision is requested as JSON; `None` for where the model is known to support schemas.
    as_json: Option<bool>,
}

/// The name of the field of a structured answer.
const FIELD: &str = "objectives_left";

impl Check {
    /// Default first question. Prompts of tasks should speak of objectives, too: "Your objective is fulfilled when
    /// ...".
    pub const REFLECTION: &str =
        "In your opinion, what objectives from your initial task have you NOT completed ?";
    /// Default second question.
    pub const DECISION: &str = "To summarize in one word, did you still had some objectives to fulfill ? Answer ONLY by \
                                'yes' or 'no'. Do not output anything else !";
    /// Default question after an unclear answer.
    pub const AGAIN: &str = "Answer with the one word 'yes' if you still have objectives to fulfill, or with the one word \
                             'no' if you have none.";
    /// Default question for a structured answer.
    pub const STRUCTURED: &str = "Do you still have objectives to fulfill? Answer with {\"objectives_left\": true} or \
                                  {\"objectives_left\": false}, and with nothing else.";
    /// Default temperature of the decision.
    pub const TEMPERATURE: f64 = 0.3;

    /// Sets the first question: what is left to do. The answer is free text.
    pub fn reflection(self, question: impl Into<Arc<str>>) -> Self {
        Self { reflection: question.into(), ..self }
    }

    /// Sets the second question: whether anything is left to do.
    pub fn decision(self, question: impl Into<Arc<str>>) -> Self {
        Self { decision: Some(question.into()), ..self }
    }

    /// Sets the question after an unclear answer.
    pub fn again(self, question: impl Into<Arc<str>>) -> Self {
        Self { again: Some(question.into()), ..self }
    }

    /// Sets the words of the decision: `open` if something is left to do, `complete` if nothing is. Case-insensitive.
    pub fn words(self, open: impl Into<String>, complete: impl Into<String>) -> Self {
        Self { open: open.into(), complete: complete.into(), ..self }
    }

    /// Sets the temperature of the decision; `None` for that of the agent, for models that accept no other.
    pub fn temperature(self, temperature: Option<f64>) -> Self {
        Self { temperature, ..self }
    }

    /// Requests the decision as a JSON boolean from every model, in the best way that it supports, as with
    /// [`Assistant::output_schema`]. A model that returns no JSON is asked for a word.
    pub fn structured(self) -> Self {
        Self { as_json: Some(true), ..self }
    }

    /// Requests the decision in one word from every model.
    pub fn in_a_word(self) -> Self {
        Self { as_json: Some(false), ..self }
    }

    pub(super) fn asks_first(&self) -> &str {
        &self.reflection
    }

    /// The questions about the decision, the first and the retry, with the agents that answer them: after a reply in
    /// the wrong format, the retry asks for a word.
    pub(super) fn asks_then(&self, agent: Assistant, keeps_to_schemas: bool) -> [(Arc<str>, Assistant); 2] {
        let as_json = self.as_json.unwrap_or(keeps_to_schemas && self.decision.is_none());
        let own = agent.model_params().clone();
        let agent = agent.params(Params { temperature: self.temperature.or(own.temperature), ..own });
        let (decision, decider) = if as_json {
            (Self::STRUCTURED, agent.clone().output_schema(schema()).output_retries(0))
        } else {
            (Self::DECISION, agent.clone())
        };
        let decision = self.decision.clone().unwrap_or_else(|| decision.into());
        [(decision, decider), (self.again.clone().unwrap_or_else(|| Self::AGAIN.into()), agent)]
    }

    /// Returns the settings of all kinds of requests to `agent`: see [`Assistant::request_settings`].
    pub fn request_settings(&self, agent: &Assistant) -> Vec<ModelSettings> {
        let agent = agent.clone().without_tools();
        let deciders =
            [true, false].map(|as_json| self.asks_then(agent.clone(), as_json).map(|(_, agent)| agent));
        let deciders = deciders.into_iter().flatten();
        std::iter::once(agent).chain(deciders).flat_map(|agent| agent.request_settings()).collect()
    }

    /// Whether there is a question, and both words differ.
    pub(super) fn validate(&self) -> Result<()> {
        let questions = [Some(&self.reflection), self.decision.as_ref(), self.again.as_ref()];
        if questions.into_iter().flatten().any(|question| question.trim().is_empty()) {
            return Err(PatternError::Blank { what: "the question to an agent about its task".into() }.into());
        }
        if let Some(temperature) = self.temperature.filter(|temperature| !(0.0..=2.0).contains(temperature)) {
            let why = format!("{temperature} is not between 0 and 2");
            return Err(ConfigError::invalid("the temperature of a decision", why).into());
        }
        let [open, complete] = [&self.open, &self.complete].map(|word| word.to_lowercase());
        let is_word = |word: &str| !word.is_empty() && word.chars().all(char::is_alphanumeric);
        if is_word(&open) && is_word(&complete) && open != complete {
            return Ok(());
        }
        let why =
            format!("`{}` and `{}` are not two different words of letters only", self.open, self.complete);
        Err(ConfigError::invalid("the decision on whether a task is complete", why).into())
    }

    /// Whether `reply` says that the task is complete; `None` when unclear.
    pub(super) fn read(&self, reply: &str) -> Option<bool> {
        let reply = without_thoughts(reply);
        match object(&reply) {
            Some(object) => object.get(FIELD)?.as_bool().map(|left| !left),
            None => self.read_words(&reply),
        }
    }

    /// The first decisive word: one that stands alone between punctuation marks, or is the first or last of such a
    /// phrase. "I have no idea" is not a "no".
    fn read_words(&self, reply: &str) -> Option<bool> {
        let reply = reply.to_lowercase();
        let [open, complete] = [&self.open, &self.complete].map(|word| word.to_lowercase());
        let decides = |word: &str| (word == complete).then_some(true).or((word == open).then_some(false));
        reply.split(ends_clause).find_map(|clause| {
            let mut words =
                clause.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
            let (first, last) = (words.next()?, words.next_back());
            let bare = |word: &str| decides(word.trim_matches('\''));
            bare(first).or_else(|| last.and_then(bare))
        })
    }
}

const fn ends_clause(c: char) -> bool {
    matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '\n' | '(' | ')' | '–' | '—' | '。' | '，' | '！' | '、')
}

impl Default for Check {
    fn default() -> Self {
        Self {
            reflection: Self::REFLECTION.into(),
            decision: None,
            again: None,
            open: "yes".into(),
            complete: "no".into(),
            temperature: Some(Self::TEMPERATURE),
            as_json: None,
        }
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": { FIELD: { "type": "boolean" } },
        "required": [FIELD],
        "additionalProperties": false,
    })
}

/// The JSON object in `reply`, with any text around it.
fn object(reply: &str) -> Option<Value> {
    let (from, to) = (reply.find('{')?, reply.rfind('}')?);
    serde_json::from_str(reply.get(from..=to)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(check: &Check, complete: Option<bool>, replies: &[&str]) {
        for reply in replies {
            assert_eq!(check.read(reply), complete, "{reply}");
        }
    }

    #[test]
    fn the_first_decisive_word_decides_and_no_part_of_a_word_does() {
        let words = Check::default();
        let complete =
            ["no", "No.", " NO!", "'no'", "**no**", "\"no\"", "The answer is no.", "NO, not yes", "Well, no"];
        check(&words, Some(true), &complete);
        check(&words, Some(false), &["yes", "Yes", "yes.", "YES, two left", "I would say: yes", "`yes`"]);
        let neither = [
            "", "maybe", "not sure", "I know it", "none of your business", "nope", "I have no idea", "noyes",
        ];
        check(&words, None, &neither);
    }

    #[test]
    fn yes_and_no_within_reasoning_are_not_the_decision() {
        let words = Check::default();
        check(
            &words,
            Some(true),
            &["<think>yes</think>no", "yes? yes.</think>\n\nno", "<thinking>yes</thinking> No"],
        );
        check(&words, None, &["<think>no, no, no", "<think>yes</think>"]);
    }

    #[test]
    fn structured_answers_are_read_with_words_around_them_and_words_instead_of_them() {
        let json = Check::default().structured();
        check(
            &json,
            Some(true),
            &[r#"{"objectives_left": false}"#, "```json\n{\"objectives_left\":false}\n```", "no"],
        );
        check(&json, Some(false), &[r#"{"objectives_left": true}"#, "yes"]);
        check(&json, None, &[r#"{"objectives_left": "no idea"}"#, "}{", "{}"]);
    }

    #[test]
    fn the_words_are_of_any_language() {
        let words = Check::default().words("ja", "Nein");
        check(&words, Some(true), &["NEIN", "Nein, nichts mehr"]);
        check(&words, Some(false), &["Ja."]);
        assert!(words.validate().is_ok());
        for (open, complete) in [("yes", "YES"), ("", "no"), ("not yet", "no")] {
            let error = Check::default().words(open, complete).validate().unwrap_err().to_string();
            assert!(
                error.contains(&format!("`{open}` and `{complete}` are not two different words")),
                "{error}"
            );
        }
    }
}
