//! Splitting prompts into tokens.

use std::cmp::Reverse;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::error::Defect;
use crate::gguf::GgufFile;
use crate::merge::merge;
use crate::pre_tokenizer::PreTokenizer;
use crate::vocabulary::{Kind, SPACE, Scheme, Vocabulary};

/// Splits tokens of the structure that occur in messages, so that no participant's words can begin or end a turn. A
/// character that is none; it is removed before texts are split.
const SPLIT: char = '\u{FDD0}';

/// Splits prompts into tokens.
#[derive(Debug)]
pub(crate) struct Tokenizer {
    pub(crate) vocabulary: Vocabulary,
    words: Option<PreTokenizer>,
    /// Finds tokens of the structure, and added ones.
    specials: AhoCorasick,
    special_ids: Vec<u32>,
}

impl Tokenizer {
    pub(crate) fn of(file: &GgufFile, rows: usize) -> Result<Self, Defect> {
        let vocabulary = Vocabulary::of(file, rows)?;
        let words = match vocabulary.scheme {
            Scheme::BytePair => Some(PreTokenizer::of(file)?),
            Scheme::SentencePiece => None,
        };
        let is_special = |kind| matches!(kind, Kind::Control | Kind::Added);
        let specials = (0..).zip(&vocabulary.tokens);
        let specials = specials.filter(|(_, token)| is_special(token.kind) && !token.bytes.is_empty());
        let (special_ids, patterns): (Vec<u32>, Vec<&[u8]>) =
            specials.map(|(id, token)| (id, token.bytes.as_slice())).unzip();
        let specials = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(patterns)
            .map_err(|error| Defect::broken(error.to_string()))?;
        Ok(Self { vocabulary, words, specials, special_ids })
    }

    /// `text` of a message in a form that contains no token of the structure.
    pub(crate) fn defused(&self, text: &str) -> String {
        let text = text.replace(SPLIT, "");
        let mut defused = String::with_capacity(text.len());
        let mut end = 0;
        for found in self.specials.find_iter(&text) {
            let is_control =
                self.special_ids.get(found.pattern().as_usize()).and_then(|id| self.vocabulary.token(*id));
            if is_control.is_none_or(|token| token.kind != Kind::Control) {
                continue;
            }
            let first =
                text.get(found.start()..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
            defused.push_str(text.get(end..found.start() + first).unwrap_or_default());
            defused.push(SPLIT);
            end = found.start() + first;
        }
        defused.push_str(text.get(end..).unwrap_or_default());
        defused
    }

    /// The number of tokens of `text` of a message.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.encode_parts(&self.defused(text)).len()
    }

    /// The tokens of a prompt, in which tokens of the structure stand by their names.
    pub(crate) fn encode(&self, prompt: &str) -> Vec<u32> {
        let tokens = self.encode_parts(prompt);
        match self.vocabulary.begin.filter(|_| self.vocabulary.adds_begin) {
            Some(begin) if tokens.first() != Some(&begin) => std::iter::once(begin).chain(tokens).collect(),
            _ => tokens,
        }
    }

    /// The same without the token that begins a prompt.
    fn encode_parts(&self, prompt: &str) -> Vec<u32> {
        let mut tokens = Vec::with_capacity(prompt.len() / 3);
        let mut end = 0;
        for found in self.specials.find_iter(prompt) {
            self.encode_text(prompt.get(end..found.start()).unwrap_or_default(), &mut tokens);
            tokens.extend(self.special_ids.get(found.pattern().as_usize()));
            end = found.end();
        }
        self.encode_text(prompt.get(end..).unwrap_or_default(), &mut tokens);
        tokens
    }

    fn encode_text(&self, text: &str, tokens: &mut Vec<u32>) {
        let text = text.replace(SPLIT, "");
        if text.is_empty() {
            return;
        }
        match &self.words {
            Some(words) => {
                words.words(&text).into_iter().for_each(|word| self.encode_word(words, word, tokens))
            }
            None if self.vocabulary.adds_space => self.encode_characters(&format!(" {text}"), tokens),
            None => self.encode_characters(&text, tokens),
        }
    }

    /// The tokens of a word by the list of merges.
    fn encode_word(&self, words: &PreTokenizer, word: &str, tokens: &mut Vec<u32>) {
        let id =
            |range: &Range<usize>| self.vocabulary.by_bytes.get(word.as_bytes().get(range.clone())?).copied();
        if words.takes_whole_words
            && let Some(whole) = id(&(0..word.len()))
        {
            return tokens.push(whole);
        }
        let bytes = (0..word.len()).map(|at| at..at + 1).collect();
        let rank = |left: &Range<usize>, right: &Range<usize>| {
            self.vocabulary.merges.get(&(id(left)?, id(right)?)).copied()
        };
        for piece in merge(bytes, rank) {
            match id(&piece) {
                Some(token) => tokens.push(token),
                // Two tokens whose merge is no token.
                None => tokens.extend(piece.filter_map(|at| id(&(at..at + 1)))),
            }
        }
    }

    /// The tokens of a text by the scores of tokens.
    fn encode_characters(&self, text: &str, tokens: &mut Vec<u32>) {
        let id =
            |range: &Range<usize>| self.vocabulary.by_bytes.get(text.as_bytes().get(range.clone())?).copied();
        let characters = text.char_indices().map(|(at, character)| at..at + character.len_utf8()).collect();
        let rank = |left: &Range<usize>, right: &Range<usize>| {
            let token = self.vocabulary.token(id(&(left.start..right.end))?)?;
            Some(Reverse(Score(token.score)))
        };
        for piece in merge(characters, rank) {
            match id(&piece) {
                Some(token) => tokens.push(token),
                None => {
                    let bytes = text.as_bytes().get(piece).unwrap_or_default();
                    let of_byte =
                        |byte| self.vocabulary.of_byte.get(byte).or(self.vocabulary.unknown.as_ref());
                    tokens.extend(bytes.iter().filter_map(of_byte));
                }
            }
        }
    }

    /// The text that stands for the beginning of a prompt in templates.
    pub(crate) fn name(&self, id: Option<u32>) -> String {
        let token = id.and_then(|id| self.vocabulary.token(id));
        token.map(|token| String::from_utf8_lossy(&token.bytes).replace(SPACE, " ")).unwrap_or_default()
    }
}

/// A score, which is no NaN.
#[derive(Clone, Copy, PartialEq)]
struct Score(f32);

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
#[path = "tokenizer_tests.rs"]
mod tests;
