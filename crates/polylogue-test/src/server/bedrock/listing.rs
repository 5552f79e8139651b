//! The lists of models and of inference profiles.

use serde_json::{Value, json};

/// The models `names`, and two that cannot be called by their ids.
pub(in super::super) fn foundation_models(names: &[String]) -> Value {
    let model = |name: &str, by: &str, out: &str| json!({"modelId": name, "outputModalities": [out], "inferenceTypesSupported": [by], "providerName": "Any"});
    let mut all: Vec<Value> = names.iter().map(|name| model(name, "ON_DEMAND", "TEXT")).collect();
    all.push(model("by-profile-only", "INFERENCE_PROFILE", "TEXT"));
    all.push(model("of-pictures", "ON_DEMAND", "IMAGE"));
    json!({"modelSummaries": all})
}

/// The inference profiles, in two pages.
pub(in super::super) fn inference_profiles(path: &str) -> Value {
    match path.contains("nextToken=two%2B") {
        false => {
            json!({"inferenceProfileSummaries": [{"inferenceProfileId": "us.by-profile-only"}], "nextToken": "two+"})
        }
        true => json!({"inferenceProfileSummaries": [{"inferenceProfileId": "global.by-profile-only"}]}),
    }
}
