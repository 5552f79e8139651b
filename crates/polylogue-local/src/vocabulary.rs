//! The tokens of a model, from the metadata of its file.

use std::collections::HashMap;

use candle_core::quantized::gguf_file::Value;
use polylogue_core::text;

use crate::error::Defect;
use crate::gguf::{GgufFile, unsigned};

/// The tokens that end a turn, by their text, besides those that the file names.
const ENDS: [&str; 9] = [
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|end|>", "<|endoftext|>", "<|end_of_text|>",
    "</s>", "<|eot|>",
];

/// Tokens that belong to the text of a reply although some files have them as control tokens.
pub(crate) const MARKERS: [&str; 5] = ["<think>", "</think>", "<tool_call>", "</tool_call>", "[TOOL_CALLS]"];

/// What SentencePiece writes instead of a space.
pub(crate) const SPACE: &str = "\u{2581}";

/// How texts are split into tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Characters, merged by the scores of tokens; bytes where there is no token.
    SentencePiece,
    /// Bytes, merged by a list.
    BytePair,
}

/// The type of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Byte,
    /// A token of the model's own that texts can contain.
    Added,
    /// A token of the conversation's structure, which no text can contain.
    Control,
    Unused,
}

#[derive(Debug)]
pub(crate) struct Token {
    /// Its bytes in a text.
    pub(crate) bytes: Vec<u8>,
    pub(crate) kind: Kind,
    pub(crate) score: f32,
}

/// The tokens of a model.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    pub(crate) scheme: Scheme,
    pub(crate) tokens: Vec<Token>,
    /// Tokens by their bytes, without control tokens.
    pub(crate) by_bytes: HashMap<Vec<u8>, u32>,
    /// For each byte, its token in SentencePiece.
    pub(crate) of_byte: HashMap<u8, u32>,
    /// The rank of merges, by the two tokens.
    pub(crate) merges: HashMap<(u32, u32), u32>,
    pub(crate) begin: Option<u32>,
    pub(crate) adds_begin: bool,
    pub(crate) adds_space: bool,
    /// The tokens that end a turn; the first is the model's own.
    pub(crate) ends: Vec<u32>,
    pub(crate) unknown: Option<u32>,
}

impl Vocabulary {
    /// Reads the tokens of `file`, of whose output the first `rows` count.
    pub(crate) fn of(file: &GgufFile, rows: usize) -> Result<Self, Defect> {
        let scheme = scheme(file)?;
        let texts = file.list("tokenizer.ggml.tokens").ok_or_else(|| Defect::broken("it has no tokens"))?;
        if texts.len() > rows || texts.is_empty() {
            return Err(Defect::broken(format!("it has {} tokens and {rows} embeddings", texts.len())));
        }
        let types = file.list("tokenizer.ggml.token_type").unwrap_or_default();
        let scores = file.list("tokenizer.ggml.scores").unwrap_or_default();
        let token = |(at, text): (usize, &Value)| token(scheme, text, types.get(at), scores.get(at));
        let tokens: Vec<Token> = texts.iter().enumerate().map(token).collect::<Result<_, _>>()?;
        let named = |key: &str| {
            let id = file.number(&format!("tokenizer.ggml.{key}_token_id"))?;
            u32::try_from(id).ok().filter(|id| (*id as usize) < texts.len())
        };
        let mut vocabulary = Self {
            scheme,
            by_bytes: HashMap::new(),
            of_byte: HashMap::new(),
            merges: HashMap::new(),
            begin: named("bos"),
            adds_begin: file.flag("tokenizer.ggml.add_bos_token").unwrap_or(scheme == Scheme::SentencePiece),
            adds_space: scheme == Scheme::SentencePiece
                && file.flag("tokenizer.ggml.add_space_prefix").unwrap_or(true),
            ends: ["eos", "eot", "eom"].into_iter().filter_map(named).collect(),
            unknown: named("unknown"),
            tokens,
        };
        vocabulary.index();
        vocabulary.merges = vocabulary.read_merges(file)?;
        vocabulary.check()
    }

    fn index(&mut self) {
        for (id, token) in (0..).zip(&self.tokens) {
            match (token.kind, token.bytes.as_slice()) {
                (Kind::Byte, [byte]) => drop(self.of_byte.insert(*byte, id)),
                (Kind::Text | Kind::Added, bytes) => drop(self.by_bytes.entry(bytes.to_vec()).or_insert(id)),
                _ => {}
            }
        }
        let is_end =
            |token: &Token| ENDS.iter().any(|end| end.as_bytes() == token.bytes) && token.kind != Kind::Text;
        let ends = (0..).zip(&self.tokens).filter(|(_, token)| is_end(token)).map(|(id, _)| id);
        let new: Vec<u32> = ends.filter(|id| !self.ends.contains(id)).collect();
        self.ends.extend(new);
    }

    fn read_merges(&self, file: &GgufFile) -> Result<HashMap<(u32, u32), u32>, Defect> {
        if self.scheme == Scheme::SentencePiece {
            return Ok(HashMap::new());
        }
        let merges =
            file.list("tokenizer.ggml.merges").ok_or_else(|| Defect::broken("it has no merges of tokens"))?;
        let id = |text: &str| self.by_bytes.get(&unmapped(text)).copied();
        let pair = |merge: &Value| {
            let (left, right) = text_of(merge)?.split_once(' ')?;
            Some((id(left)?, id(right)?))
        };
        Ok((0..).zip(merges).filter_map(|(rank, merge)| Some((pair(merge)?, rank))).collect())
    }

    fn check(self) -> Result<Self, Defect> {
        if self.ends.is_empty() {
            return Err(Defect::broken("it names no token that ends a text"));
        }
        let is_missing = |byte: u8| match self.scheme {
            Scheme::SentencePiece => !self.of_byte.contains_key(&byte) && self.unknown.is_none(),
            Scheme::BytePair => !self.by_bytes.contains_key([byte].as_slice()),
        };
        match (0..=u8::MAX).find(|byte| is_missing(*byte)) {
            Some(byte) => Err(Defect::broken(format!("it has no token for the byte {byte:#04x}"))),
            None => Ok(self),
        }
    }

    pub(crate) fn token(&self, id: u32) -> Option<&Token> {
        self.tokens.get(id as usize)
    }

    /// The token called `text`, of the structure or added.
    pub(crate) fn special(&self, text: &str) -> Option<u32> {
        let is_it = |token: &Token| {
            token.bytes == text.as_bytes() && matches!(token.kind, Kind::Control | Kind::Added)
        };
        (0..).zip(&self.tokens).find(|(_, token)| is_it(token)).map(|(id, _)| id)
    }

    /// The bytes of a token in a reply: none for a token of the structure.
    pub(crate) fn spoken(&self, id: u32) -> &[u8] {
        match self.token(id) {
            Some(token) if is_spoken(token) => &token.bytes,
            _ => &[],
        }
    }
}

/// Whether a token belongs to the text of replies.
pub(crate) fn is_spoken(token: &Token) -> bool {
    match token.kind {
        Kind::Text | Kind::Byte | Kind::Added => true,
        Kind::Control => MARKERS.iter().any(|marker| marker.as_bytes() == token.bytes),
        Kind::Unused => false,
    }
}

fn scheme(file: &GgufFile) -> Result<Scheme, Defect> {
    match file.text("tokenizer.ggml.model") {
        Some("llama") => Ok(Scheme::SentencePiece),
        Some("gpt2") => Ok(Scheme::BytePair),
        other => {
            let name = text::excerpt(other.unwrap_or("none"), 60);
            let hint = "the supported tokenizers are `llama` (SentencePiece) and `gpt2` (byte pairs)";
            Err(Defect::unsupported(format!("its tokenizer is `{name}`"), hint))
        }
    }
}

fn token(scheme: Scheme, text: &Value, kind: Option<&Value>, score: Option<&Value>) -> Result<Token, Defect> {
    let text = text_of(text).ok_or_else(|| Defect::broken("a token is no text"))?;
    let kind = match kind.and_then(unsigned) {
        Some(3) => Kind::Control,
        Some(4) => Kind::Added,
        Some(2 | 5) => Kind::Unused,
        Some(6) => Kind::Byte,
        _ => Kind::Text,
    };
    let bytes = match (scheme, kind) {
        (Scheme::SentencePiece, Kind::Byte) => vec![byte(text)?],
        (Scheme::SentencePiece, Kind::Text | Kind::Added) => text.replace(SPACE, " ").into_bytes(),
        (Scheme::BytePair, Kind::Text) => unmapped(text),
        _ => text.as_bytes().to_vec(),
    };
    let score = match score {
        Some(Value::F32(score)) if !score.is_nan() => *score,
        _ => 0.0,
    };
    Ok(Token { bytes, kind, score })
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The byte that a token such as `<0x0A>` stands for.
fn byte(text: &str) -> Result<u8, Defect> {
    let digits = text.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
    let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
    byte.ok_or_else(|| Defect::broken("a token of one byte has a wrong name"))
}

/// The bytes of a token of byte pairs, in which a printable character stands for each byte.
fn unmapped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match byte_of(character) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// The byte for which `character` stands: printable bytes stand for themselves, the others are numbered from 256.
fn byte_of(character: char) -> Option<u8> {
    let is_printable = |byte: u8| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let code = u32::from(character);
    match u8::try_from(code) {
        Ok(byte) => is_printable(byte).then_some(byte),
        Err(_) => (0..=u8::MAX).filter(|byte| !is_printable(*byte)).nth(code.checked_sub(256)? as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_byte_pairs_stand_for_bytes() {
        assert_eq!(unmapped("ĠtheĊ"), b" the\n");
        assert_eq!(unmapped("Ã©"), "é".as_bytes());
        let all: std::collections::BTreeSet<u8> =
            (0..600).filter_map(char::from_u32).filter_map(byte_of).collect();
        assert_eq!(all.len(), 256);
    }

    #[test]
    fn a_token_of_one_byte_has_its_number_as_name() {
        assert_eq!(byte("<0x0A>").unwrap(), 10);
        assert!(byte("<0xGG>").is_err() && byte("a").is_err());
    }
}
