//! What the families of models ask of their own fields, in `additionalModelRequestFields`.

use serde_json::Value;

use super::super::rules::{Checked, Object, object};

/// The fields about reasoning, each with the part of the names of the models that have it.
const FIELDS: [(&str, &str); 3] =
    [("thinking", "claude"), ("reasoningConfig", "nova-2"), ("reasoning_effort", "gpt-oss")];

/// Parts of the names of all families of which something is known.
const FAMILIES: [&str; 5] = ["claude", "nova", "gpt-oss", "deepseek", "llama"];

/// Checks the fields of a request to `model`.
pub(super) fn check(model: &str, body: &Object) -> Checked {
    let Some(own) = body.get("additionalModelRequestFields") else { return Ok(()) };
    let own = object(own, "additionalModelRequestFields")?;
    let is_known = FAMILIES.iter().any(|family| model.contains(family));
    for (field, family) in FIELDS {
        let Some(value) = own.get(field) else { continue };
        if is_known && !model.contains(family) {
            return Err(format!("Malformed input request: extraneous key [{field}] is not permitted"));
        }
        let settings = body.get("inferenceConfig").unwrap_or(&Value::Null);
        match field {
            "thinking" => thinking(value, settings)?,
            "reasoningConfig" => reasoning_config(value, settings)?,
            _ => level(value)?,
        }
    }
    Ok(())
}

fn thinking(value: &Value, settings: &Value) -> Checked {
    match value.get("type").and_then(Value::as_str) {
        Some("adaptive" | "disabled") => Ok(()),
        Some("enabled") => {
            let budget = value.get("budget_tokens").and_then(Value::as_u64).unwrap_or(0);
            let most = settings.get("maxTokens").and_then(Value::as_u64).unwrap_or(u64::MAX);
            match () {
                () if budget < 1024 => Err("thinking.enabled.budget_tokens: must be at least 1024".into()),
                () if budget >= most => Err("max_tokens must be greater than thinking.budget_tokens".into()),
                () if settings.get("temperature").is_some() => {
                    Err("temperature may only be set to 1 when thinking is enabled".into())
                }
                () => Ok(()),
            }
        }
        _ => Err("thinking.type: Field required".into()),
    }
}

fn reasoning_config(value: &Value, settings: &Value) -> Checked {
    match value.get("type").and_then(Value::as_str) {
        Some("disabled") => return Ok(()),
        Some("enabled") => {}
        _ => return Err("reasoningConfig.type is required".into()),
    }
    let effort = value.get("maxReasoningEffort").unwrap_or(&Value::Null);
    level(effort)?;
    let refused = ["temperature", "topP", "maxTokens"].iter().find(|name| settings.get(**name).is_some());
    match refused.filter(|_| effort == "high") {
        Some(name) => Err(format!("{name} must be unset when maxReasoningEffort is high")),
        None => Ok(()),
    }
}

fn level(value: &Value) -> Checked {
    match value.as_str() {
        Some("low" | "medium" | "high") => Ok(()),
        _ => Err(format!("{value} is not a level of reasoning: low, medium or high")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(model: &str, own: &Value, settings: &Value) -> Checked {
        let body = json!({"additionalModelRequestFields": own, "inferenceConfig": settings});
        check(model, body.as_object().unwrap())
    }

    #[test]
    fn each_family_has_its_field() {
        let claude = json!({"thinking": {"type": "enabled", "budget_tokens": 2048}});
        let nova = json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}});
        let open = json!({"reasoning_effort": "low"});
        let none = json!({});
        for (model, own) in
            [("us.anthropic.claude-x", &claude), ("amazon.nova-2-lite", &nova), ("gpt-oss-20b", &open)]
        {
            assert_eq!(checked(model, own, &none), Ok(()), "{model}");
            assert_eq!(checked("another", own, &none), Ok(()), "an unknown model");
            assert!(checked("deepseek.r1", own, &none).unwrap_err().contains("extraneous key"), "{model}");
        }
        assert!(
            checked("claude", &claude, &json!({"temperature": 0.5})).unwrap_err().contains("temperature")
        );
        assert!(checked("claude", &claude, &json!({"maxTokens": 2048})).unwrap_err().contains("greater"));
        assert!(checked("nova-2", &nova, &json!({"maxTokens": 9})).unwrap_err().contains("unset"));
        assert!(checked("gpt-oss", &json!({"reasoning_effort": "max"}), &none).is_err());
    }
}
