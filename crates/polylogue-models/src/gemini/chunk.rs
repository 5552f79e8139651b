//! The JSON of Gemini's replies: one type for whole replies and for pieces of them.

use polylogue_core::Usage;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::wire::lenient::{Arguments, Count, Text};
use crate::wire::object::Object;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow)]
    pub(super) prompt_feedback: Option<Feedback<'a>>,
    #[serde(default)]
    pub(super) usage_metadata: Object<Box<Tokens>>,
    pub(super) error: Option<IgnoredAny>,
}

/// Why a request was refused.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Feedback<'a> {
    #[serde(borrow, default)]
    pub(super) block_reason: Text<'a>,
    #[serde(borrow, default)]
    pub(super) block_reason_message: Text<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    #[serde(default)]
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) content: Option<Content<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Text<'a>,
    #[serde(borrow, default)]
    pub(super) finish_message: Text<'a>,
    /// What the same request is sent with to have the rest of the reply.
    #[serde(borrow, default)]
    pub(super) continuation_token: Text<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Content<'a> {
    #[serde(borrow)]
    pub(super) parts: Option<Vec<Part<'a>>>,
}

/// A part: exactly one of its kinds, of which unknown ones are skipped.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    pub(super) thought: Option<bool>,
    #[serde(borrow, default)]
    pub(super) thought_signature: Text<'a>,
    #[serde(borrow)]
    pub(super) function_call: Option<Box<FunctionCall<'a>>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FunctionCall<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) args: Arguments<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Tokens {
    prompt_token_count: Count,
    /// The tokens of each kind of content. Anything else is as if it were not there.
    prompt_tokens_details: Value,
    cached_content_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
    tool_use_prompt_token_count: Count,
    total_token_count: Count,
}

impl Tokens {
    /// The usage. A count of zero for a prompt is unknown, since a prompt is never empty.
    pub(super) fn usage(&self) -> Usage {
        let Some(prompt) = self.prompt_token_count.0.filter(|&tokens| tokens > 0) else {
            return Usage::default();
        };
        let input = prompt.saturating_add(self.tool_use_prompt_token_count.0.unwrap_or_default());
        // Candidates do not include thoughts.
        let (written, thoughts) = (self.candidates_token_count.0, self.thoughts_token_count.0);
        let counted = written.unwrap_or_default().saturating_add(thoughts.unwrap_or_default());
        let counted = written.or(thoughts).map(|_| counted);
        Usage {
            input: Some(input),
            output: self.total_token_count.0.and_then(|total| total.checked_sub(input)).or(counted),
            cached: self.cached_content_token_count.0,
            audio: self.audio(),
            reasoning: thoughts,
            ..Usage::default()
        }
    }

    fn audio(&self) -> Option<u64> {
        let is_audio = |of: &&Value| of.get("modality").is_some_and(|modality| modality == "AUDIO");
        let of = self.prompt_tokens_details.as_array()?.iter().find(is_audio)?;
        Count::deserialize(of.get("tokenCount")?).ok()?.0.filter(|&tokens| tokens > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_and_prompts_of_tools_are_counted() {
        let usage = |json: &str| serde_json::from_str::<Tokens>(json).unwrap().usage();
        let of = |input, output, cached, reasoning| Usage {
            input: Some(input),
            output,
            cached,
            reasoning,
            ..Usage::default()
        };
        for (json, expected) in [
            (
                r#"{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":4,"totalTokenCount":17}"#,
                of(10, Some(7), None, Some(4)),
            ),
            (
                r#"{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":4}"#,
                of(10, Some(7), None, Some(4)),
            ),
            (
                r#"{"promptTokenCount":10,"toolUsePromptTokenCount":5,"cachedContentTokenCount":8,
                    "candidatesTokenCount":3,"totalTokenCount":18}"#,
                of(15, Some(3), Some(8), None),
            ),
            (r#"{"promptTokenCount":10,"totalTokenCount":10}"#, of(10, Some(0), None, None)),
            (r#"{"promptTokenCount":10}"#, of(10, None, None, None)),
            (
                r#"{"promptTokenCount":10,"promptTokensDetails":[{"modality":"TEXT","tokenCount":4},{"modality":"AUDIO","tokenCount":6}]}"#,
                Usage { audio: Some(6), ..of(10, None, None, None) },
            ),
            (
                r#"{"promptTokenCount":"10","promptTokensDetails":[{"modality":"AUDIO","tokenCount":"6"}]}"#,
                Usage { audio: Some(6), ..of(10, None, None, None) },
            ),
            (r#"{"promptTokenCount":10,"promptTokensDetails":{"AUDIO":6}}"#, of(10, None, None, None)),
            (
                r#"{"promptTokenCount":10,"promptTokensDetails":[3,{"modality":null}]}"#,
                of(10, None, None, None),
            ),
            (r#"{"promptTokenCount":0,"totalTokenCount":4}"#, Usage::default()),
            ("{}", Usage::default()),
        ] {
            assert_eq!(usage(json), expected, "{json}");
        }
    }
}
