//! Splitting a text into words before bytes are merged, as `tokenizer.ggml.pre` says.

use fancy_regex::Regex;
use polylogue_core::text;

use crate::error::Defect;
use crate::gguf::GgufFile;

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const SMOLLM: &str = r"\p{N}|'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The patterns of words, by name.
const PATTERNS: [(&[&str], &str); 6] = [
    (&["default", "gpt-2", "gpt2", "phi-2", "olmo"], GPT2),
    (&["llama-bpe", "llama3", "llama-v3", "smaug-bpe", "falcon3", "pixtral"], LLAMA3),
    (&["qwen2", "deepseek-r1-qwen", "megrez"], QWEN2),
    (&["smollm", "starcoder", "refact", "command-r", "codeshell"], SMOLLM),
    (&["tekken"], TEKKEN),
    (&["gpt-4o", "gpt4o", "llama4"], GPT4O),
];

/// Splits texts into words.
#[derive(Debug)]
pub(crate) struct PreTokenizer {
    pattern: Regex,
    /// Whether a word that is a token is not made by merges.
    pub(crate) takes_whole_words: bool,
}

impl PreTokenizer {
    pub(crate) fn of(file: &GgufFile) -> Result<Self, Defect> {
        let name = file.text("tokenizer.ggml.pre").unwrap_or("default");
        let found = PATTERNS.iter().find(|(names, _)| names.contains(&name));
        let (_, pattern) = found.ok_or_else(|| {
            let names: Vec<&str> = PATTERNS.iter().flat_map(|(names, _)| names.iter().copied()).collect();
            let name = text::excerpt(name, 60);
            Defect::unsupported(
                format!("its tokenizer splits words as `{name}`"),
                format!("the supported ways are {}", names.join(", ")),
            )
        })?;
        let pattern_compiled = Regex::new(pattern).map_err(|error| Defect::broken(error.to_string()))?;
        Ok(Self { pattern: pattern_compiled, takes_whole_words: *pattern == LLAMA3 || *pattern == TEKKEN })
    }

    /// The words of `text`, without a gap.
    pub(crate) fn words<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut words = Vec::new();
        let mut end = 0;
        // Where the pattern fails, the rest is one word.
        for found in self.pattern.find_iter(text).map_while(Result::ok) {
            words.extend(text.get(end..found.start()).filter(|gap| !gap.is_empty()));
            words.push(found.as_str());
            end = found.end();
        }
        words.extend(text.get(end..).filter(|rest| !rest.is_empty()));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(pattern: &str, text: &str) -> Vec<String> {
        let splitter = PreTokenizer { pattern: Regex::new(pattern).unwrap(), takes_whole_words: false };
        splitter.words(text).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn words_are_split_as_the_models_were_trained() {
        assert_eq!(words(GPT2, "I'm  12 é!"), ["I", "'m", " ", " 12", " é", "!"]);
        assert_eq!(words(LLAMA3, "It'S 12345\n\nok"), ["It", "'S", " ", "123", "45", "\n\n", "ok"]);
        assert_eq!(words(QWEN2, "a 123"), ["a", " ", "1", "2", "3"]);
        assert_eq!(words(SMOLLM, "a 12b"), ["a", " ", "1", "2", "b"]);
        assert_eq!(words(TEKKEN, "HelloWorld 12"), ["Hello", "World", " ", "1", "2"]);
        assert_eq!(words(GPT4O, "don't 1234"), ["don't", " ", "123", "4"]);
    }

    #[test]
    fn words_are_the_whole_text() {
        for (_, pattern) in PATTERNS {
            for text in ["", " ", "a\u{300}b 🦀\r\n\t x  ", "日本語 123'lL"] {
                assert_eq!(words(pattern, text).concat(), text, "{pattern}");
            }
        }
    }
}
