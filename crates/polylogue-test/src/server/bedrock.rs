//! The Converse API: what Amazon asks of requests, and how it replies.

mod own_fields;
mod reply;
mod signature;
mod validate;

use serde_json::{Value, json};

use super::answer::Refusal;

pub(super) use reply::{body, chunks, frame, one_more};
pub(super) use signature::check as check_signature;
pub(super) use validate::validate;

/// The body of a refusal; its type is in a header.
pub(super) fn error_body(refusal: &Refusal) -> Value {
    let usual = match refusal.status {
        401 | 403 => "The security token included in the request is invalid.",
        404 => "The requested resource could not be found.",
        429 => "Too many requests, please wait before trying again.",
        400..500 => "The request is invalid.",
        503 => "The service is unavailable.",
        _ => "The system encountered an unexpected error during processing. Try your request again.",
    };
    json!({"message": refusal.message.as_deref().unwrap_or(usual)})
}

/// The type of a refusal, as the header has it.
pub(super) fn error_type(refusal: &Refusal) -> String {
    let usual = match refusal.status {
        401 | 403 => "UnrecognizedClientException",
        404 => "ResourceNotFoundException",
        408 => "ModelTimeoutException",
        424 => "ModelErrorException",
        429 => "ThrottlingException",
        400..500 => "ValidationException",
        503 => "ServiceUnavailableException",
        _ => "InternalServerException",
    };
    format!("{}:http://internal.amazon.com/", refusal.code.as_deref().unwrap_or(usual))
}

/// The models `names`, and others that cannot be called by their ids or do not reply.
pub(super) fn foundation_models(names: &[String]) -> Value {
    let model = |name: &str, by: &str, out: &str| json!({"modelId": name, "outputModalities": [out], "inferenceTypesSupported": [by], "providerName": "Any"});
    let mut all: Vec<Value> = names.iter().map(|name| model(name, "ON_DEMAND", "TEXT")).collect();
    all.push(model("by-profile-only", "INFERENCE_PROFILE", "TEXT"));
    all.push(model("of-pictures", "ON_DEMAND", "IMAGE"));
    all.push(model("of-vectors", "ON_DEMAND", "EMBEDDING"));
    json!({"modelSummaries": all})
}

/// The inference profiles, in two pages; or always the first one, if the list has no end.
pub(super) fn inference_profiles(path: &str, is_endless: bool) -> Value {
    let named = |names: &[&str]| -> Vec<Value> {
        names.iter().map(|name| json!({"inferenceProfileId": name})).collect()
    };
    match path.contains("nextToken=two%2B") && !is_endless {
        false => {
            json!({"inferenceProfileSummaries": named(&["us.by-profile-only", "us.of-pictures"]), "nextToken": "two+"})
        }
        true => json!({"inferenceProfileSummaries": named(&["global.by-profile-only", "global.of-vectors"])}),
    }
}
