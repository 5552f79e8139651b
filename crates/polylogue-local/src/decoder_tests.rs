//! The decoder against itself in pieces, and against the loaders of another crate.

use super::*;
use crate::hyperparameters::Architecture;
use crate::tiny::{ARCHITECTURES, Tiny};

const TOKENS: [u32; 14] = [1, 30, 200, 5, 77, 131, 8, 255, 30, 30, 19, 64, 3, 90];

fn loaded(tiny: &Tiny) -> (tempfile::TempDir, std::path::PathBuf, Decoder) {
    let folder = tempfile::tempdir().unwrap();
    let path = tiny.write(folder.path(), "tiny.gguf");
    let file = GgufFile::open(&path).unwrap();
    let sizes = Hyperparameters::of(&file).unwrap();
    crate::weights::check(&file, &sizes).unwrap();
    let decoder = Decoder::load(&file, &sizes, 64, &Device::Cpu).unwrap();
    (folder, path, decoder)
}

fn fresh(decoder: &Decoder) -> Cache {
    Cache::new(&decoder.sizes, &decoder.device).unwrap()
}

fn assert_close(one: &[f32], other: &[f32], what: &str) {
    assert_within(1e-3, one, other, what);
}

/// Checks that no number differs by more than this part of the range of all.
fn assert_within(part: f32, one: &[f32], other: &[f32], what: &str) {
    assert_eq!(one.len(), other.len(), "{what}");
    let largest = one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let spread = one.iter().copied().fold(f32::MIN, f32::max) - one.iter().copied().fold(f32::MAX, f32::min);
    assert!(largest < spread * part, "{what}: {largest} of {spread}");
}

#[test]
fn a_prompt_in_pieces_and_from_a_shared_beginning_is_the_same_prompt() {
    for architecture in ARCHITECTURES {
        let (_folder, _, decoder) = loaded(&Tiny { architecture, ..Tiny::default() });
        let mut whole = fresh(&decoder);
        let expected = decoder.forward(&TOKENS, &mut whole).unwrap();
        let mut pieces = fresh(&decoder);
        let mut last = Vec::new();
        for piece in TOKENS.chunks(3) {
            last = decoder.forward(piece, &mut pieces).unwrap();
        }
        assert_close(&expected, &last, &format!("{architecture:?} in pieces"));
        let mut shared = whole.copy(5).unwrap();
        let rest = decoder.forward(&TOKENS[5..], &mut shared).unwrap();
        assert_close(&expected, &rest, &format!("{architecture:?} from a copy"));
        whole.truncate(9);
        let rest = decoder.forward(&TOKENS[9..], &mut whole).unwrap();
        assert_close(&expected, &rest, &format!("{architecture:?} cut back"));
        assert_eq!(whole.len(), TOKENS.len());
    }
}

#[test]
fn a_token_depends_on_those_before_it_and_their_order() {
    for architecture in ARCHITECTURES {
        let (_folder, _, decoder) = loaded(&Tiny { architecture, ..Tiny::default() });
        let of = |tokens: &[u32]| decoder.forward(tokens, &mut fresh(&decoder)).unwrap();
        assert_ne!(of(&[1, 30, 200, 5]), of(&[1, 200, 30, 5]), "{architecture:?}");
        assert_ne!(of(&[1, 30, 200, 5]), of(&[2, 30, 200, 5]), "{architecture:?}");
    }
}

#[test]
fn a_sliding_window_ends_what_its_layers_see() {
    let all = mask(1, 9, Some(4), &Device::Cpu).unwrap().unwrap().to_vec2::<f32>().unwrap();
    let seen: Vec<bool> = all[0].iter().map(|score| *score == 0.0).collect();
    assert_eq!(seen, [false, false, false, false, false, false, true, true, true, true]);
    assert!(mask(1, 3, Some(4), &Device::Cpu).unwrap().is_none());
    let (_folder, _, decoder) =
        loaded(&Tiny { architecture: crate::tiny::Architecture::Gemma3, ..Tiny::default() });
    let windows: Vec<bool> =
        decoder.layers.iter().map(|layer| layer.attention.sliding_window.is_some()).collect();
    assert_eq!(windows, [true, true, true, true, true, false, true]);
    assert_eq!(decoder.sizes.architecture, Architecture::Gemma3);
}

/// Compares logits with those of the crate `candle-transformers`. Not for Gemma 3: that crate computes its
/// feed-forward network with another function than the model was trained with.
#[cfg(feature = "reference")]
#[test]
fn logits_are_those_of_candle_transformers() {
    use candle_core::quantized::gguf_file::Content;
    use candle_transformers::models::{quantized_llama, quantized_phi3, quantized_qwen2, quantized_qwen3};

    use crate::tiny::Architecture as A;

    for architecture in [A::Llama, A::Qwen2, A::Qwen3, A::Phi3] {
        let (_folder, path, decoder) = loaded(&Tiny { architecture, ..Tiny::default() });
        let own = decoder.forward(&TOKENS, &mut fresh(&decoder)).unwrap();
        let mut file = File::open(path).unwrap();
        let content = Content::read(&mut file).unwrap();
        let (device, tokens) =
            (Device::Cpu, Tensor::new(&TOKENS, &Device::Cpu).unwrap().unsqueeze(0).unwrap());
        let theirs = match architecture {
            A::Llama => quantized_llama::ModelWeights::from_gguf(content, &mut file, &device)
                .unwrap()
                .forward(&tokens, 0),
            A::Qwen2 => quantized_qwen2::ModelWeights::from_gguf(content, &mut file, &device)
                .unwrap()
                .forward(&tokens, 0),
            A::Qwen3 => quantized_qwen3::ModelWeights::from_gguf(content, &mut file, &device)
                .unwrap()
                .forward(&tokens, 0),
            _ => quantized_phi3::ModelWeights::from_gguf(false, content, &mut file, &device)
                .unwrap()
                .forward(&tokens, 0),
        };
        let theirs: Vec<f32> = theirs.unwrap().flatten_all().unwrap().to_vec1().unwrap();
        // States are rounded to 8 bits before each product: another order of sums rounds some of them the other way.
        assert_within(0.03, &theirs, &own, &format!("{architecture:?}"));
    }
}
