//! Recognizes the errors of requests that are longer than a model's context window.

/// In which order an error names the tokens of the request and the limit, after its text.
#[derive(Debug, Clone, Copy)]
enum Numbers {
    /// The tokens of the request, and the limit as the last number.
    Tokens,
    /// The limit, and then the tokens of the request, if they are there.
    Limit,
    /// None that can be relied on.
    No,
}

use Numbers::{Limit, No, Tokens};

/// Texts of providers and servers, in lower case.
const TEXTS: [(&str, Numbers); 25] = [
    // Anthropic, Bedrock.
    ("prompt is too long", Tokens),
    ("context limit", No),
    ("input is too long", No),
    ("too many input tokens", No),
    ("expected maxlength", No),
    // OpenAI, Azure, vLLM, OpenRouter.
    ("maximum context length is", Limit),
    ("exceeds the context window", No),
    ("exceed the configured limit", No),
    ("longer than the maximum model length", No),
    // Gemini.
    ("input token count", Tokens),
    // Mistral.
    ("prompt contains", Tokens),
    ("too large for model with", Limit),
    // Groq, xAI, Cerebras, Cohere.
    ("reduce the length of the messages", No),
    ("maximum prompt length is", Limit),
    ("current length is", Tokens),
    ("too many tokens", No),
    // SGLang, TGI.
    ("longer than the model's context length", No),
    ("`inputs` tokens + `max_new_tokens` must be", No),
    // llama.cpp, LM Studio, Ollama.
    ("exceeds the available context size", No),
    ("context length of only", Limit),
    ("trying to keep the first", No),
    ("exceeds the context length", No),
    ("maximum context length", No),
    ("context length exceeded", No),
    ("context size", No),
];

/// Codes and types, in lower case.
const CODES: [&str; 2] = ["context_length_exceeded", "exceed_context_size_error"];

/// Codes and texts of errors about other lengths: of one field, of the body in bytes, of a rate.
const OTHERS: [&str; 5] =
    ["string_above_max_length", "request_too_large", "rate_limit", "per minute", "string too long"];

/// The tokens of a request and the limit, as far as an error with this `message` names them; `None` if it is about
/// something else.
pub(crate) fn too_long(message: &str, codes: &[String]) -> Option<(Option<u32>, Option<u32>)> {
    let message = message.to_ascii_lowercase();
    let is_other = |text: &&str| message.contains(*text) || codes.iter().any(|code| code.contains(*text));
    if OTHERS.iter().any(is_other) {
        return None;
    }
    let found = TEXTS.iter().find_map(|(text, order)| Some((message.get(message.find(text)?..)?, *order)));
    match found {
        Some((rest, order)) => Some(in_order(&numbers(rest), order)),
        None => codes.iter().any(|code| CODES.contains(&code.as_str())).then_some((None, None)),
    }
}

fn in_order(numbers: &[u32], order: Numbers) -> (Option<u32>, Option<u32>) {
    match (order, numbers) {
        (Tokens, [tokens, .., limit]) => (Some(*tokens), Some(*limit)),
        (Limit, [limit, tokens, ..]) => (Some(*tokens), Some(*limit)),
        (Limit, [limit]) => (None, Some(*limit)),
        _ => (None, None),
    }
}

/// The whole numbers in `text`, with or without commas.
fn numbers(text: &str) -> Vec<u32> {
    let is_part = |c: char| c.is_ascii_digit() || c == ',';
    let words = text.split(|c: char| !is_part(c)).map(|word| word.replace(',', ""));
    words.filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P14.
    #[test]
    fn every_provider_is_understood_with_its_numbers() {
        for (message, expected) in [
            ("prompt is too long: 215000 tokens > 200000 maximum", (Some(215_000), Some(200_000))),
            (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
                (Some(9001), Some(8192)),
            ),
            (
                "The input token count (1,048,600) exceeds the maximum number of tokens allowed (1,048,576).",
                (Some(1_048_600), Some(1_048_576)),
            ),
            (
                "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
                (Some(65_673), Some(32_768)),
            ),
            (
                "This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
                (Some(150_000), Some(131_072)),
            ),
            ("Current length is 9000 while limit is 8192", (Some(9000), Some(8192))),
            ("Please reduce the length of the messages or completion.", (None, None)),
            ("the request exceeds the available context size, try increasing it", (None, None)),
            ("input length and `max_tokens` exceed context limit: 190000 + 21000 > 200000", (None, None)),
            ("Your input exceeds the context window of this model.", (None, None)),
            ("Input tokens exceed the configured limit of 272000 tokens.", (None, None)),
            ("Input is too long for requested model.", (None, None)),
            ("Too many input tokens. Max input tokens: 8192, request input token count: 9000", (None, None)),
            (
                "Malformed input request: expected maxLength: 51200, actual: 60000, please reformat.",
                (None, None),
            ),
            (
                "This endpoint's maximum context length is 65536 tokens. However, you requested about 70000 tokens.",
                (Some(70_000), Some(65_536)),
            ),
            (
                "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
                (None, None),
            ),
            (
                "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
                (None, None),
            ),
            ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens", (None, None)),
            (
                "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
                (None, Some(4096)),
            ),
            ("too many tokens: total number of tokens in the prompt cannot exceed 4081", (None, None)),
        ] {
            assert_eq!(too_long(message, &[]), Some(expected), "{message}");
        }
        for code in ["context_length_exceeded", "exceed_context_size_error"] {
            assert_eq!(too_long("No.", &[code.to_owned()]), Some((None, None)));
        }
    }

    #[test]
    fn other_lengths_are_something_else() {
        for (message, code) in [
            (
                "Invalid 'user': string too long. Expected a string with maximum length 64",
                "string_above_max_length",
            ),
            ("Request exceeds the maximum size", "request_too_large"),
            ("Request too large for model on tokens per minute (TPM): Limit 6000", "rate_limit_exceeded"),
            ("There is no such model", "model_not_found"),
        ] {
            assert_eq!(too_long(message, &[code.to_owned()]), None, "{message}");
        }
    }
}
