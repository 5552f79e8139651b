//! How many tokens a text has for a model, without a network: exact where the vocabulary is public and bundled, otherwise an
//! upper bound.

/// A vocabulary that is bundled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vocabulary {
    Cl100k,
    O200k,
}

impl Vocabulary {
    const fn name(self) -> &'static str {
        match self {
            Self::Cl100k => "cl100k_base",
            Self::O200k => "o200k_base",
        }
    }

    /// The tokens of `text`, where what looks like a control token counts as text.
    fn count(self, text: &str) -> Option<u64> {
        Some(tiktoken::get_encoding(self.name())?.count(text) as u64)
    }
}

/// How the tokens of a model are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    /// The model has this vocabulary.
    Same(Vocabulary),
    /// The model's vocabulary is public: its worst ratio to o200k, in percent, was measured over the languages of the
    /// translations of Vim's tutor in pieces of 400 characters, and rounded up. A digit counts as a token in addition: o200k has up to three
    /// in one, and the vocabularies of Qwen and Mistral have none with two.
    Measured(u64),
    /// The model's vocabulary is not public. Published comparisons give a ratio to o200k for English text, in percent; a
    /// character beyond ASCII counts as its bytes in addition, and a digit as a token: that of Gemini has none with two.
    Compared(u64),
    /// Nothing is known: a token has at least one byte.
    Bytes,
}

/// Parts of models' names, in lower case, and how their tokens are counted. The first that occurs counts.
const METHODS: [(&str, Method); 41] = [
    ("gpt-oss", Method::Same(Vocabulary::O200k)),
    ("gpt-4o", Method::Same(Vocabulary::O200k)),
    ("gpt-4.1", Method::Same(Vocabulary::O200k)),
    ("gpt-4.5", Method::Same(Vocabulary::O200k)),
    ("gpt-5", Method::Same(Vocabulary::O200k)),
    ("gpt-4", Method::Same(Vocabulary::Cl100k)),
    ("gpt-3.5", Method::Same(Vocabulary::Cl100k)),
    ("gpt-35", Method::Same(Vocabulary::Cl100k)),
    ("text-embedding-3", Method::Same(Vocabulary::Cl100k)),
    ("text-embedding-ada-002", Method::Same(Vocabulary::Cl100k)),
    ("gpt-", Method::Compared(150)),
    ("gemini", Method::Compared(115)),
    ("claude-instant", Method::Compared(135)),
    ("claude-2", Method::Compared(135)),
    ("claude-3", Method::Compared(135)),
    ("claude-opus-4-7", Method::Compared(175)),
    ("claude-opus-4-8", Method::Compared(175)),
    ("claude-opus-4-9", Method::Compared(175)),
    ("claude-opus-4", Method::Compared(135)),
    ("claude-sonnet-4", Method::Compared(135)),
    ("claude-haiku-4", Method::Compared(135)),
    ("claude", Method::Compared(175)),
    ("llama-3", Method::Measured(150)),
    ("llama3", Method::Measured(150)),
    ("glm-4", Method::Measured(160)),
    ("glm-5", Method::Measured(160)),
    ("deepseek-v3", Method::Measured(175)),
    ("deepseek-v4", Method::Measured(175)),
    ("deepseek-chat", Method::Measured(175)),
    ("deepseek-reasoner", Method::Measured(175)),
    ("mistral-large", Method::Measured(175)),
    ("mistral-small", Method::Measured(175)),
    ("mixtral", Method::Measured(175)),
    ("codestral", Method::Measured(175)),
    ("kimi-k2", Method::Measured(225)),
    ("kimi-k3", Method::Measured(225)),
    ("minimax-m2", Method::Measured(225)),
    ("qwen2", Method::Measured(275)),
    ("qwen-2", Method::Measured(275)),
    ("qwen3", Method::Measured(275)),
    ("qwen-3", Method::Measured(275)),
];

/// Reasoning models of OpenAI, by the beginning of their names.
const O_SERIES: [&str; 3] = ["o1", "o3", "o4"];

fn method(model: &str) -> Method {
    let name = model.to_ascii_lowercase();
    let last = name.rsplit(['/', ':']).next().unwrap_or_default();
    let is_edition = |rest: &str| rest.is_empty() || rest.starts_with('-');
    if O_SERIES.iter().any(|begin| last.strip_prefix(begin).is_some_and(is_edition)) {
        return Method::Same(Vocabulary::O200k);
    }
    // Aggregators write versions with a dot that others write with a dash.
    let dashed = name.replace('.', "-");
    let is_named = |part: &str| name.contains(part) || dashed.contains(part);
    METHODS.iter().find(|(part, _)| is_named(part)).map_or(Method::Bytes, |(_, method)| *method)
}

/// A number of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenCount {
    /// The model's own vocabulary counted them.
    Exact(u64),
    /// A bound: there are not more, but there can be fewer.
    AtMost(u64),
}

impl TokenCount {
    /// Counts the tokens of `text` for `model`, named with or without its provider.
    ///
    /// ```
    /// use polylogue_models::TokenCount;
    /// assert_eq!(TokenCount::of("openai:gpt-4o", "Hello, world!"), TokenCount::Exact(4));
    /// assert_eq!(TokenCount::of("anthropic:claude-sonnet-4-5", "Hello, world!"), TokenCount::AtMost(6));
    /// assert_eq!(TokenCount::of("unheard:of", "Hello, world!"), TokenCount::AtMost(13));
    /// ```
    pub fn of(model: &str, text: &str) -> Self {
        let bytes = text.len() as u64;
        let ratio = |percent: u64, others: u64| {
            let same = Vocabulary::O200k.count(text)?;
            Some(same.saturating_mul(percent).div_ceil(100).saturating_add(others))
        };
        let most = match method(model) {
            Method::Same(vocabulary) => match vocabulary.count(text) {
                Some(tokens) => return Self::Exact(tokens),
                None => None,
            },
            Method::Measured(percent) => ratio(percent, digits(text)),
            Method::Compared(percent) => ratio(percent, beyond_ascii(text) + digits(text)),
            Method::Bytes => None,
        };
        Self::AtMost(most.unwrap_or(bytes).min(bytes))
    }

    /// Returns the number, whether exact or a bound.
    pub const fn most(self) -> u64 {
        match self {
            Self::Exact(tokens) | Self::AtMost(tokens) => tokens,
        }
    }
}

/// The bytes of characters that are not ASCII.
fn beyond_ascii(text: &str) -> u64 {
    text.bytes().filter(|byte| !byte.is_ascii()).count() as u64
}

fn digits(text: &str) -> u64 {
    text.bytes().filter(u8::is_ascii_digit).count() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn models_have_their_vocabularies() {
        for (model, expected) in [
            ("openai:gpt-4o-mini", Method::Same(Vocabulary::O200k)),
            ("gpt-4.1-2025-04-14", Method::Same(Vocabulary::O200k)),
            ("azure:gpt-4-32k", Method::Same(Vocabulary::Cl100k)),
            ("openai:o3-mini", Method::Same(Vocabulary::O200k)),
            ("o1", Method::Same(Vocabulary::O200k)),
            ("openrouter:openai/o4-mini", Method::Same(Vocabulary::O200k)),
            ("openai:gpt-6", Method::Compared(150)),
            ("bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", Method::Compared(135)),
            ("anthropic:claude-opus-4-8", Method::Compared(175)),
            ("openrouter:anthropic/claude-opus-4.7", Method::Compared(175)),
            ("anthropic:claude-sonnet-5", Method::Compared(175)),
            ("vertex:gemini-3-pro", Method::Compared(115)),
            ("ollama:llama3.2", Method::Measured(150)),
            ("ollama:qwen3:8b", Method::Measured(275)),
            ("fine:tuned-o1", Method::Bytes),
            ("local:a.gguf", Method::Bytes),
        ] {
            assert_eq!(method(model), expected, "{model}");
        }
    }

    #[test]
    fn public_examples_are_counted_exactly() {
        // From the examples and tests of OpenAI's `tiktoken`.
        assert_eq!(TokenCount::of("gpt-4", "hello world"), TokenCount::Exact(2));
        assert_eq!(TokenCount::of("gpt-4", "tiktoken is great!"), TokenCount::Exact(6));
        assert_eq!(TokenCount::of("gpt-4", "2 + 2 = 4"), TokenCount::Exact(7));
        assert_eq!(TokenCount::of("gpt-4", "お誕生日おめでとう"), TokenCount::Exact(9));
        assert_eq!(TokenCount::of("gpt-4o", "お誕生日おめでとう"), TokenCount::Exact(8));
        assert_eq!(TokenCount::of("gpt-4o", ""), TokenCount::Exact(0));
    }

    #[test]
    fn each_digit_can_be_a_token() {
        let digits = "1234567890".repeat(100);
        assert!(TokenCount::of("gpt-4o", &digits).most() < 400);
        for model in ["mistral-large-latest", "qwen3-32b", "gemini-3-pro"] {
            assert_eq!(TokenCount::of(model, &digits).most(), 1_000, "{model}");
        }
    }

    #[test]
    fn a_text_that_names_a_control_token_is_text() {
        assert!(TokenCount::of("gpt-4o", "<|endoftext|>").most() > 1);
    }

    /// Characters of all scripts.
    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(any::<char>(), 0..80).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn no_count_is_above_the_bytes(text in text()) {
            for model in ["gpt-4o", "gpt-4", "claude-opus-5", "gemini-3-pro", "qwen3", "unknown"] {
                prop_assert!(TokenCount::of(model, &text).most() <= text.len() as u64);
            }
        }

        #[test]
        fn a_bound_is_at_least_the_count_of_the_nearest_public_vocabulary(text in text()) {
            let (exact, bytes) = (TokenCount::of("gpt-4o", &text).most(), text.len() as u64);
            for model in ["claude-opus-5", "gemini-3-pro", "qwen3", "unknown"] {
                prop_assert!(TokenCount::of(model, &text).most() >= exact.min(bytes));
            }
        }
    }
}
