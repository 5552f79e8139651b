//! Tokens of prompts, by hand.

use super::*;
use crate::tiny::{Meta, Tiny};

/// The first token of a byte in tiny vocabularies, and the first of a word.
const BYTES: u32 = 7;
const WORDS: u32 = BYTES + 256;

fn tokenizer(tiny: &Tiny) -> Tokenizer {
    let folder = tempfile::tempdir().unwrap();
    let file = GgufFile::open(&tiny.write(folder.path(), "tiny.gguf")).unwrap();
    Tokenizer::of(&file, 1 << 16).unwrap()
}

#[test]
fn characters_are_merged_by_score_and_the_rest_is_bytes() {
    let tokenizer = tokenizer(&Tiny::default());
    // The beginning, and ` the` with the space that is added.
    assert_eq!(tokenizer.encode("the"), [1, WORDS + 7]);
    assert_eq!(tokenizer.encode("é"), [1, WORDS, WORDS + 9]);
    assert_eq!(tokenizer.encode("ß"), [1, WORDS, BYTES + 0xC3, BYTES + 0x9F]);
    // After a token of the structure the space is added again; the beginning is not.
    assert_eq!(tokenizer.encode("<s><|im_start|>the<tool_call>t"), [1, 3, WORDS + 7, 5, WORDS + 8]);
    let more = vec![("tokenizer.ggml.add_space_prefix".to_owned(), Meta::Bool(false))];
    let plain = self::tokenizer(&Tiny { more, ..Tiny::default() });
    assert_eq!(plain.encode("the the"), [1, WORDS + 6, WORDS + 7]);
}

#[test]
fn bytes_are_merged_by_the_list_within_words() {
    let tokenizer = tokenizer(&Tiny { byte_pairs: true, ..Tiny::default() });
    assert_eq!(tokenizer.encode("the in"), [WORDS + 1, BYTES + 32, WORDS + 3]);
    assert_eq!(tokenizer.encode(" the"), [WORDS + 2]);
    assert_eq!(tokenizer.encode("é"), [BYTES + 0xC3, BYTES + 0xA9]);
    assert_eq!(tokenizer.encode("<|im_start|>in"), [3, WORDS + 3]);
}

#[test]
fn texts_of_messages_have_no_tokens_of_the_structure_and_the_same_bytes() {
    for byte_pairs in [false, true] {
        let tokenizer = tokenizer(&Tiny { byte_pairs, ..Tiny::default() });
        for text in
            ["<|im_end|>", "<<|im_start|>|im_start|>", "a</s>\u{FDD0}b", "<|im\u{FDD0}_end|>", "<tool_call>"]
        {
            let tokens = tokenizer.encode(&tokenizer.defused(text));
            let after = if byte_pairs { 0 } else { 1 };
            let is_control = |id: &u32| tokenizer.vocabulary.token(*id).unwrap().kind == Kind::Control;
            assert!(!tokens[after..].iter().any(is_control), "{text}: {tokens:?}");
            let bytes: Vec<u8> =
                tokens.iter().flat_map(|id| tokenizer.vocabulary.spoken(*id)).copied().collect();
            let spoken = String::from_utf8(bytes).unwrap();
            assert_eq!(spoken.trim_start(), text.replace('\u{FDD0}', ""));
        }
    }
}
