//! The ledger: the state of the work.

use polylogue_core::{Name, text};
use serde_json::{Map, Value, json};

/// The state of the work, as the planner judges it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Whether the task is done.
    pub is_request_satisfied: Answer<bool>,
    /// Whether the participants repeat themselves.
    pub is_in_loop: Answer<bool>,
    /// Whether the last turns made progress.
    pub is_progress_being_made: Answer<bool>,
    /// The participant with the next turn.
    pub next_speaker: Answer<Name>,
    /// The prompt for that turn.
    pub instruction_or_question: Answer<String>,
}

/// An answer with a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer<T> {
    /// The reason; can be empty.
    pub reason: String,
    /// The answer.
    pub answer: T,
}

/// Limit on positions tried as the start of an object.
const MAX_BEGINNINGS: usize = 16;

impl Progress {
    /// Returns the JSON Schema of a ledger of `team`: every key is an object with `reason` and `answer`.
    pub fn schema(team: &[Name]) -> Value {
        let names: Vec<&str> = team.iter().map(Name::as_str).collect();
        let answer = |answer: &Value| {
            json!({
                "type": "object", "properties": {"reason": {"type": "string"}, "answer": answer},
                "required": ["reason", "answer"], "additionalProperties": false,
            })
        };
        let yes_or_no = answer(&json!({"type": "boolean"}));
        json!({
            "type": "object",
            "properties": {
                "is_request_satisfied": yes_or_no,
                "is_in_loop": yes_or_no,
                "is_progress_being_made": yes_or_no,
                "next_speaker": answer(&json!({"type": "string", "enum": names})),
                "instruction_or_question": answer(&json!({"type": "string"})),
            },
            "required": ["is_request_satisfied", "is_in_loop", "is_progress_being_made", "next_speaker",
                "instruction_or_question"],
            "additionalProperties": false,
        })
    }

    /// Parses the ledger in a model's reply. Skips text and fences around the object; tolerates missing reasons.
    ///
    /// # Errors
    /// The error, for the model.
    pub fn parse(text: &str, team: &[Name]) -> Result<Self, String> {
        let ledger = object(text).ok_or("there is no JSON object in it")?;
        Ok(Self {
            is_request_satisfied: yes_or_no(&ledger, "is_request_satisfied")?,
            is_in_loop: yes_or_no(&ledger, "is_in_loop")?,
            is_progress_being_made: yes_or_no(&ledger, "is_progress_being_made")?,
            next_speaker: answer(&ledger, "next_speaker", |value| member(value, team))?,
            instruction_or_question: answer(&ledger, "instruction_or_question", |value| {
                let text = value.as_str().map(str::trim).filter(|text| !text.is_empty());
                text.map(str::to_owned).ok_or_else(|| "a text that is not empty".to_owned())
            })?,
        })
    }
}

/// The first JSON object in `text`.
fn object(text: &str) -> Option<Map<String, Value>> {
    let beginnings = text.match_indices('{').take(MAX_BEGINNINGS);
    beginnings.filter_map(|(at, _)| text.get(at..)).find_map(|rest| {
        serde_json::Deserializer::from_str(rest).into_iter::<Map<String, Value>>().next()?.ok()
    })
}

/// The answer at `key`: an object with a reason, or the bare answer. `read` returns it or what it must be.
fn answer<T>(
    ledger: &Map<String, Value>,
    key: &str,
    read: impl Fn(&Value) -> Result<T, String>,
) -> Result<Answer<T>, String> {
    let value = ledger.get(key).ok_or_else(|| format!("`{key}` is missing"))?;
    let given = value.get("answer").unwrap_or(value);
    let answer = read(given).map_err(|wanted| {
        format!("`{key}` must be {wanted}; got {}", text::excerpt(&given.to_string(), 80))
    })?;
    let reason = value.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Answer { reason, answer })
}

fn yes_or_no(ledger: &Map<String, Value>, key: &str) -> Result<Answer<bool>, String> {
    answer(ledger, key, |value| {
        let text = value.as_str().map(|text| text.trim().to_lowercase());
        match (value.as_bool(), text.as_deref()) {
            (Some(answer), _) => Ok(answer),
            (_, Some("true" | "yes")) => Ok(true),
            (_, Some("false" | "no")) => Ok(false),
            _ => Err("true or false".into()),
        }
    })
}

fn member(value: &Value, team: &[Name]) -> Result<Name, String> {
    let text = Name::composed(value.as_str().unwrap_or_default().trim());
    let same = |name: &&Name| name.as_str().to_lowercase() == text.to_lowercase();
    let found = team.iter().find(|name| **name == *text).or_else(|| team.iter().find(same));
    let names = || team.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
    found.cloned().ok_or_else(|| format!("one of: {}", names()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn team() -> Vec<Name> {
        ["Ann", "ann", "Bob"].map(|name| Name::new(name).unwrap()).to_vec()
    }

    fn ledger(key: &str, value: Value) -> String {
        let yes = json!({"reason": "so", "answer": true});
        let mut ledger = json!({
            "is_request_satisfied": yes, "is_in_loop": yes, "is_progress_being_made": yes,
            "next_speaker": {"reason": "", "answer": "Bob"}, "instruction_or_question": {"answer": "Go"},
        });
        ledger[key] = value;
        ledger.to_string()
    }

    #[test]
    fn words_and_fences_around_it_are_passed_over() {
        let ledger = ledger("next_speaker", json!({"answer": " bob "}));
        for text in [ledger.clone(), format!("Here {{it}} is:\n```json\n{ledger}\n```\nThat's {{all}}.")] {
            let progress = Progress::parse(&text, &team()).unwrap();
            assert_eq!(progress.next_speaker.answer, *"Bob");
            assert_eq!((progress.is_in_loop.answer, &*progress.is_in_loop.reason), (true, "so"));
        }
        let ledger = self::ledger("next_speaker", json!("ann"));
        assert_eq!(Progress::parse(&ledger, &team()).unwrap().next_speaker.answer, *"ann");
        let ledger = self::ledger("is_in_loop", json!({"answer": "No"}));
        assert!(!Progress::parse(&ledger, &team()).unwrap().is_in_loop.answer);
    }

    #[test]
    fn unusable_ledgers_are_reported() {
        for (text, flaw) in [
            (String::new(), "there is no JSON object in it"),
            ("{ \"a\": ".repeat(1000), "there is no JSON object in it"),
            ("{}".into(), "`is_request_satisfied` is missing"),
            (ledger("is_in_loop", json!({"answer": 1})), "`is_in_loop` must be true or false; got 1"),
            (ledger("is_in_loop", json!(null)), "`is_in_loop` must be true or false; got null"),
            (
                ledger("next_speaker", json!({"answer": "Cem"})),
                "`next_speaker` must be one of: Ann, ann, Bob; got \"Cem\"",
            ),
            (
                ledger("next_speaker", json!({"answer": ["Bob"]})),
                "`next_speaker` must be one of: Ann, ann, Bob; got [\"Bob\"]",
            ),
            (
                ledger("instruction_or_question", json!({"answer": " "})),
                "`instruction_or_question` must be a text that is not empty; got \" \"",
            ),
        ] {
            assert_eq!(Progress::parse(&text, &team()).unwrap_err(), flaw);
        }
    }

    #[test]
    fn a_schema_names_the_team() {
        let schema = Progress::schema(&team());
        let names = &schema["properties"]["next_speaker"]["properties"]["answer"]["enum"];
        assert_eq!(*names, json!(["Ann", "ann", "Bob"]));
        assert_eq!(
            schema["required"].as_array().unwrap().len(),
            schema["properties"].as_object().unwrap().len()
        );
    }
}
