//! One reply that many deviations of servers must leave unchanged.

use polylogue_core::{FinishReason, Part, Reply};
use polylogue_test::server::Answer;
use serde_json::json;

use super::{calls, text};

/// A reply with reasoning, a text and two calls.
pub(crate) fn weather() -> Answer {
    Answer::text("It is sunny \u{2600} in \"Oslo\".")
        .think("Where? In Oslo.")
        .call("weather", json!({"city": "Oslo"}))
        .call("weather", json!({"city": "Rome", "days": [1, 2]}))
        .usage(12, 34)
}

/// Asserts that `reply` is the one of [`weather`].
pub(crate) fn is_weather(reply: &Reply, case: &str) {
    assert_eq!(reply.parts[0], Part::Thought("Where? In Oslo.".into()), "{case}");
    assert_eq!(text(reply), "It is sunny \u{2600} in \"Oslo\".", "{case}");
    let calls = calls(reply);
    let made: Vec<_> = calls.iter().map(|(_, tool, args)| (&**tool, &**args)).collect();
    let expected = [("weather", r#"{"city":"Oslo"}"#), ("weather", r#"{"city":"Rome","days":[1,2]}"#)];
    assert_eq!(made, expected, "{case}");
    assert!(calls[0].0 != calls[1].0 && calls[0].0.len() >= 9, "{case}: {calls:?}");
    assert_eq!(reply.finish, FinishReason::Calls, "{case}");
}
