//! Extra fields with which a request costs more than the known price of its model.

use serde_json::{Map, Value};

/// Tiers of service that cost no more than usual. An account can have others as its default.
const TIERS: &[&str] =
    &["auto", "default", "standard", "standard_only", "on_demand", "flex", "batch", "reserved"];

/// Fields, and their values with which a request costs no more than usual: tiers of OpenAI, Groq, Gemini and Amazon,
/// Anthropic's fast mode and places, Amazon's fast replies.
const FIELDS: [(&str, &[&str]); 5] = [
    ("service_tier", TIERS),
    ("serviceTier", TIERS),
    ("speed", &["standard"]),
    ("inference_geo", &["global"]),
    ("performanceConfig", &["standard"]),
];

/// The field with those of the model at Amazon Bedrock.
const OWN: &str = "additionalModelRequestFields";

/// Whether a request to `model` with the fields `extra` costs no more than the known price.
pub(crate) fn has_usual_price(extra: &Map<String, Value>, model: &str) -> bool {
    let asks_usual = |name: &str, usual: &[&str]| extra.get(name).is_none_or(|value| is_one_of(value, usual));
    let own = extra.get(OWN).and_then(Value::as_object);
    extra.get("model").is_none_or(|other| other == model)
        && FIELDS.iter().all(|(name, usual)| asks_usual(name, usual))
        && own.is_none_or(|own| has_usual_price(own, model))
}

/// Whether `value`, or what an object says, is one of these.
fn is_one_of(value: &Value, usual: &[&str]) -> bool {
    let value = value.get("type").or_else(|| value.get("latency")).unwrap_or(value);
    let is_usual = |text: &str| usual.iter().any(|usual| usual.eq_ignore_ascii_case(text));
    value.is_null() || value.as_str().is_some_and(is_usual)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_asks_for_other_service_has_no_known_price() {
        for (extra, expected) in [
            (json!({}), true),
            (json!({"model": "m", "service_tier": "flex", "logprobs": true}), true),
            (json!({"service_tier": null, "serviceTier": {"type": "default"}}), true),
            (json!({"performanceConfig": {"latency": "standard"}, "speed": "standard"}), true),
            (json!({"model": "another"}), false),
            (json!({"service_tier": "priority"}), false),
            (json!({"serviceTier": "PRIORITY"}), false),
            (json!({"serviceTier": {"type": "priority"}}), false),
            (json!({"performanceConfig": {"latency": "optimized"}}), false),
            (json!({"speed": "fast"}), false),
            (json!({"additionalModelRequestFields": {"speed": "fast"}}), false),
            (json!({"inference_geo": "us"}), false),
            (json!({"service_tier": 1}), false),
        ] {
            assert_eq!(has_usual_price(extra.as_object().unwrap(), "m"), expected, "{extra}");
        }
    }
}
