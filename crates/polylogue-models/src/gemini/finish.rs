//! The finish reasons of Gemini.
//!
//! <https://ai.google.dev/api/generate-content#FinishReason>

use polylogue_core::FinishReason;
use serde_json::{Value, json};

/// How a reply ends.
#[derive(Debug, PartialEq)]
pub(super) enum End {
    With(FinishReason),
    /// With an error, in the form of Google's errors.
    Error(Value),
    /// It does not end.
    Not,
}

/// How a reply with the finish reason `reason` and its explanation `message` ends.
pub(super) fn end(reason: &str, message: Option<&str>, has_content: bool) -> End {
    End::With(match reason {
        "FINISH_REASON_UNSPECIFIED" => return End::Not,
        "MISSING_THOUGHT_SIGNATURE" => {
            let message = message.unwrap_or("a call of the model was sent back without its signature");
            return End::Error(json!({"error": {"code": 400, "message": message, "status": reason}}));
        }
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        // The reply has reached the limit of a request, not that of the reply.
        "CONTINUATION" => FinishReason::Paused,
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" | "MALFORMED_RESPONSE" => {
            FinishReason::Malformed
        }
        filtered if is_filter(filtered) => match has_content {
            true => FinishReason::Filter,
            false => FinishReason::Refused {
                category: Some(reason.to_ascii_lowercase().into()),
                explanation: message.map(Into::into),
            },
        },
        _ => FinishReason::Unknown,
    })
}

fn is_filter(reason: &str) -> bool {
    const FILTERS: [&str; 8] = [
        "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "MODEL_ARMOR",
        "ESCALATION",
    ];
    FILTERS.contains(&reason) || reason.starts_with("IMAGE_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_meaning() {
        let finish = |reason| match end(reason, Some("why"), true) {
            End::With(finish) => finish,
            other => panic!("{reason}: {other:?}"),
        };
        for (reason, expected) in [
            ("STOP", FinishReason::Stop),
            ("MAX_TOKENS", FinishReason::Length),
            ("SAFETY", FinishReason::Filter),
            ("SPII", FinishReason::Filter),
            ("IMAGE_SAFETY", FinishReason::Filter),
            ("MALFORMED_FUNCTION_CALL", FinishReason::Malformed),
            ("TOO_MANY_TOOL_CALLS", FinishReason::Malformed),
            ("CONTINUATION", FinishReason::Paused),
            ("OTHER", FinishReason::Unknown),
            ("SOMETHING_NEW", FinishReason::Unknown),
        ] {
            assert_eq!(finish(reason), expected, "{reason}");
        }
        assert_eq!(end("FINISH_REASON_UNSPECIFIED", None, true), End::Not);
    }

    #[test]
    fn a_filter_that_leaves_nothing_is_a_refusal_with_its_category() {
        let refused =
            FinishReason::Refused { category: Some("safety".into()), explanation: Some("why".into()) };
        assert_eq!(end("SAFETY", Some("why"), false), End::With(refused));
    }

    #[test]
    fn a_missing_signature_is_an_error_of_the_request() {
        let End::Error(error) = end("MISSING_THOUGHT_SIGNATURE", None, false) else { panic!() };
        assert_eq!(error["error"]["code"], 400);
        assert_eq!(error["error"]["status"], "MISSING_THOUGHT_SIGNATURE");
    }
}
