//! `response_format`: the form of a result belongs to the team. A client can ask for the one that the team declares.

use polylogue_team::Team;
use serde_json::Value;

use crate::problem::Problem;

/// A form that a client asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    /// Any JSON.
    Json,
    /// JSON of this schema.
    Schema(Value),
}

fn refused(what: &str) -> Problem {
    Problem::unsupported_parameter(what)
        .at("/response_format", "not the form of the team")
        .hint("leave it out: the result has the form that the team declares by the `output_schema` of who speaks last")
}

impl Form {
    /// The form that a body asks for; `None` if any text is fine.
    pub(super) fn of(body: &Value) -> Result<Option<Self>, Problem> {
        let Some(format) = body.get("response_format").filter(|format| !format.is_null()) else {
            return Ok(None);
        };
        match format.get("type").and_then(Value::as_str) {
            Some("text") => Ok(None),
            Some("json_object") => Ok(Some(Self::Json)),
            Some("json_schema") => {
                let schema = format.pointer("/json_schema/schema").filter(|schema| schema.is_object());
                let schema = schema.ok_or_else(|| {
                    Problem::bad_request("`response_format.json_schema.schema` must be a JSON Schema")
                        .at("/response_format", "no schema")
                })?;
                Ok(Some(Self::Schema(schema.clone())))
            }
            _ => Err(refused("`response_format.type` must be `text`, `json_object` or `json_schema`")),
        }
    }

    /// Refuses a form that the results of the team do not have.
    pub(super) fn check(&self, team: &Team) -> Result<(), Problem> {
        match (self, team.result_schema()) {
            (_, None) => Err(refused("the team declares no form of its result")),
            (Self::Json, Some(_)) => Ok(()),
            (Self::Schema(wanted), Some(own)) if wanted.as_object() == Some(own) => Ok(()),
            (Self::Schema(_), Some(_)) => Err(refused("the team declares another schema of its result")
                .hint("`json_object` takes the schema of the team, which is in its file")),
        }
    }
}

#[cfg(test)]
mod tests {
    use polylogue_team::Overrides;
    use serde_json::json;

    use super::*;

    fn team(chat: &str) -> Team {
        let schema = "{type: object, required: [answer], properties: {answer: {type: integer}}}";
        let text = format!(
            "name: sums\ntask: Add.\nagents:\n  - {{name: Ann, model: 'openai:gpt-4o-mini', output_schema: {schema}}}\n  - {{name: Bob, model: 'openai:gpt-4o-mini'}}\nchat: {chat}\n"
        );
        polylogue_team::parse(&text, "team.yaml", &Overrides::default()).unwrap().team
    }

    #[test]
    fn the_form_of_the_team_is_accepted_and_no_other() {
        let own =
            json!({"type": "object", "required": ["answer"], "properties": {"answer": {"type": "integer"}}});
        let ask = |format: Value| Form::of(&json!({"response_format": format}));
        let of_schema =
            |schema: &Value| json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
        assert_eq!(ask(json!(null)).unwrap(), None);
        assert_eq!(ask(json!({"type": "text"})).unwrap(), None);
        let wanted = [
            (ask(json!({"type": "json_object"})).unwrap().unwrap(), true),
            (ask(of_schema(&own)).unwrap().unwrap(), true),
            (ask(of_schema(&json!({"type": "object"}))).unwrap().unwrap(), false),
        ];
        // Ann speaks last, or alone; where Bob can speak last, the team has no form.
        for (chat, has_form) in [
            ("{participants: [Bob, Ann], pattern: sequential}", true),
            ("{participants: [Ann, Bob], pattern: sequential}", false),
            ("{participants: [Ann, Bob], pattern: round_robin}", false),
            ("{participants: [Bob, Ann], pattern: sequential, summary: none}", false),
        ] {
            for (form, is_own) in &wanted {
                let checked = form.check(&team(chat));
                assert_eq!(checked.is_ok(), has_form && *is_own, "{chat} {form:?}");
                if let Err(problem) = checked {
                    assert_eq!(problem.param().as_deref(), Some("response_format"));
                }
            }
        }
        for wrong in [json!({"type": "grammar"}), json!("json"), json!({"type": "json_schema"})] {
            assert_eq!(ask(wrong).unwrap_err().param().as_deref(), Some("response_format"));
        }
    }
}
