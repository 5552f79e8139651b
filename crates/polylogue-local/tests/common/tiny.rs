//! Writes tiny GGUF files with random weights, by hand: nothing is downloaded, and no code of the engine is used.

use std::path::{Path, PathBuf};

/// The names of the tensors that only some architectures have depend on this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Architecture {
    Llama,
    Qwen2,
    Qwen3,
    Gemma3,
    Phi3,
}

pub(crate) const ARCHITECTURES: [Architecture; 5] =
    [Architecture::Llama, Architecture::Qwen2, Architecture::Qwen3, Architecture::Gemma3, Architecture::Phi3];

impl Architecture {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Gemma3 => "gemma3",
            Self::Phi3 => "phi3",
        }
    }

    /// Gemma's pattern of sliding windows has six.
    fn layers(self) -> usize {
        if self == Self::Gemma3 { 7 } else { 2 }
    }
}

/// A template with turns, tools, calls and results.
pub(crate) const TEMPLATE: &str = "{%- if tools %}<|im_start|>system\nTools: {% for tool in tools %}{{ tool | tojson }}{% endfor %}<tool_call>\n<|im_end|>\n{% endif %}\
{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}\
{%- if message.tool_calls %}{% for call in message.tool_calls %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}{% endif %}<|im_end|>\n{% endfor %}\
{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// A tiny model: 2 layers of 64, 4 heads, and a vocabulary of all bytes, some words and tokens of turns.
#[derive(Debug, Clone)]
pub(crate) struct Tiny {
    pub(crate) architecture: Architecture,
    /// Whether tokens are byte pairs instead of SentencePiece's.
    pub(crate) byte_pairs: bool,
    pub(crate) template: Option<String>,
    pub(crate) window: u32,
    pub(crate) seed: u64,
    /// Metadata that replace others of the same key, or are added.
    pub(crate) more: Vec<(String, Meta)>,
}

impl Default for Tiny {
    fn default() -> Self {
        Self {
            architecture: Architecture::Llama,
            byte_pairs: false,
            template: Some(TEMPLATE.into()),
            window: 2048,
            seed: 1,
            more: Vec::new(),
        }
    }
}

/// A value of metadata.
#[derive(Debug, Clone)]
pub(crate) enum Meta {
    U32(u32),
    F32(f32),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    Floats(Vec<f32>),
    Ints(Vec<i32>),
}

const WIDTH: usize = 64;
const INNER: usize = 128;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const HEAD: usize = 16;

impl Tiny {
    /// Writes the file `name` in `folder`.
    pub(crate) fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, self.bytes()).unwrap();
        path
    }

    /// The bytes of the file, in version 3 of the format.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let (metadata, tensors) = (self.metadata(), self.tensors());
        let mut out = b"GGUF".to_vec();
        out.extend(3_u32.to_le_bytes());
        out.extend((tensors.len() as u64).to_le_bytes());
        out.extend((metadata.len() as u64).to_le_bytes());
        for (key, value) in &metadata {
            text(&mut out, key);
            meta(&mut out, value);
        }
        let mut random = Random(self.seed);
        let mut data = Vec::new();
        for (name, shape) in &tensors {
            text(&mut out, name);
            out.extend((shape.len() as u32).to_le_bytes());
            // The format has the fastest dimension first.
            shape.iter().rev().for_each(|size| out.extend((*size as u64).to_le_bytes()));
            let is_matrix = shape.len() == 2;
            out.extend((if is_matrix { 8_u32 } else { 0 }).to_le_bytes());
            out.extend((data.len() as u64).to_le_bytes());
            let count = shape.iter().product();
            if is_matrix {
                blocks(&mut data, count, &mut random)
            } else {
                norm(&mut data, count, &mut random)
            }
            data.resize(data.len().next_multiple_of(32), 0);
        }
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(data);
        out
    }

    fn metadata(&self) -> Vec<(String, Meta)> {
        let name = self.architecture.name();
        let own = |rest: &str| format!("{name}.{rest}");
        let (tokens, kinds) = if self.byte_pairs { byte_pairs() } else { pieces() };
        let scores = (0..tokens.len()).map(|at| -(at as f32)).collect();
        let id = |text: &str| tokens.iter().position(|token| token == text).unwrap() as u32;
        let mut all = vec![
            ("general.architecture".to_owned(), Meta::Text(name.into())),
            (own("block_count"), Meta::U32(self.architecture.layers() as u32)),
            (own("embedding_length"), Meta::U32(WIDTH as u32)),
            (own("feed_forward_length"), Meta::U32(INNER as u32)),
            (own("attention.head_count"), Meta::U32(HEADS as u32)),
            (own("attention.head_count_kv"), Meta::U32(KV_HEADS as u32)),
            (own("attention.key_length"), Meta::U32(HEAD as u32)),
            (own("attention.value_length"), Meta::U32(HEAD as u32)),
            (own("attention.layer_norm_rms_epsilon"), Meta::F32(1e-5)),
            (own("attention.sliding_window"), Meta::U32(8)),
            (own("rope.dimension_count"), Meta::U32(HEAD as u32)),
            (own("rope.freq_base"), Meta::F32(10_000.0)),
            (own("context_length"), Meta::U32(self.window)),
            (
                "tokenizer.ggml.model".into(),
                Meta::Text(if self.byte_pairs { "gpt2" } else { "llama" }.into()),
            ),
            ("tokenizer.ggml.pre".into(), Meta::Text("qwen2".into())),
            ("tokenizer.ggml.bos_token_id".into(), Meta::U32(id("<s>"))),
            ("tokenizer.ggml.eos_token_id".into(), Meta::U32(id("<|im_end|>"))),
            ("tokenizer.ggml.unknown_token_id".into(), Meta::U32(id("<unk>"))),
            ("tokenizer.ggml.add_bos_token".into(), Meta::Bool(!self.byte_pairs)),
            ("tokenizer.ggml.tokens".into(), Meta::Texts(tokens)),
            ("tokenizer.ggml.scores".into(), Meta::Floats(scores)),
            ("tokenizer.ggml.token_type".into(), Meta::Ints(kinds)),
        ];
        if self.byte_pairs {
            let merges = ["t h", "th e", "Ġ the", "i n"].map(str::to_owned).to_vec();
            all.push(("tokenizer.ggml.merges".into(), Meta::Texts(merges)));
        }
        all.extend(
            self.template.clone().map(|source| ("tokenizer.chat_template".into(), Meta::Text(source))),
        );
        for (key, value) in self.more.iter().cloned() {
            all.retain(|(other, _)| *other != key);
            all.push((key, value));
        }
        all
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let vocabulary = if self.byte_pairs { byte_pairs() } else { pieces() }.0.len();
        let (queries, keys) = (HEADS * HEAD, KV_HEADS * HEAD);
        let mut all = vec![
            ("token_embd.weight".to_owned(), vec![vocabulary, WIDTH]),
            ("output_norm.weight".to_owned(), vec![WIDTH]),
            ("output.weight".to_owned(), vec![vocabulary, WIDTH]),
        ];
        for layer in 0..self.architecture.layers() {
            let mut add =
                |name: &str, shape: &[usize]| all.push((format!("blk.{layer}.{name}"), shape.to_vec()));
            add("attn_norm.weight", &[WIDTH]);
            add("ffn_norm.weight", &[WIDTH]);
            add("attn_output.weight", &[WIDTH, queries]);
            add("ffn_down.weight", &[WIDTH, INNER]);
            if self.architecture == Architecture::Phi3 {
                add("attn_qkv.weight", &[queries + 2 * keys, WIDTH]);
                add("ffn_up.weight", &[2 * INNER, WIDTH]);
                continue;
            }
            for (name, rows) in [("attn_q", queries), ("attn_k", keys), ("attn_v", keys)] {
                add(&format!("{name}.weight"), &[rows, WIDTH]);
                if self.architecture == Architecture::Qwen2 {
                    add(&format!("{name}.bias"), &[rows]);
                }
            }
            add("ffn_gate.weight", &[INNER, WIDTH]);
            add("ffn_up.weight", &[INNER, WIDTH]);
            if matches!(self.architecture, Architecture::Qwen3 | Architecture::Gemma3) {
                add("attn_q_norm.weight", &[HEAD]);
                add("attn_k_norm.weight", &[HEAD]);
            }
            if self.architecture == Architecture::Gemma3 {
                add("post_attention_norm.weight", &[WIDTH]);
                add("post_ffw_norm.weight", &[WIDTH]);
            }
        }
        all
    }
}

/// Control tokens and added ones, with their types.
const SPECIALS: [(&str, i32); 7] = [
    ("<unk>", 2),
    ("<s>", 3),
    ("</s>", 3),
    ("<|im_start|>", 3),
    ("<|im_end|>", 3),
    ("<tool_call>", 4),
    ("</tool_call>", 4),
];

/// The tokens of SentencePiece, and their types.
fn pieces() -> (Vec<String>, Vec<i32>) {
    let bytes = (0..=255).map(|byte| (format!("<0x{byte:02X}>"), 6));
    let words = ["\u{2581}", "t", "h", "e", "th", "he", "the", "\u{2581}the", "\u{2581}t", "é"];
    let words = words.into_iter().map(|word| (word.to_owned(), 1));
    specials().chain(bytes).chain(words).unzip()
}

/// The tokens of byte pairs, and their types.
fn byte_pairs() -> (Vec<String>, Vec<i32>) {
    let printable = |byte: u32| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let others: Vec<u32> = (0..256).filter(|byte| !printable(*byte)).collect();
    let character = |byte: u32| match others.iter().position(|other| *other == byte) {
        Some(at) => char::from_u32(256 + at as u32).unwrap(),
        None => char::from_u32(byte).unwrap(),
    };
    let bytes = (0..256).map(|byte| (character(byte).to_string(), 1));
    let words = ["th", "the", "Ġthe", "in"].into_iter().map(|word| (word.to_owned(), 1));
    specials().chain(bytes).chain(words).unzip()
}

fn specials() -> impl Iterator<Item = (String, i32)> {
    SPECIALS.into_iter().map(|(text, kind)| (text.to_owned(), kind))
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn meta(out: &mut Vec<u8>, value: &Meta) {
    let list = |out: &mut Vec<u8>, kind: u32, count: usize| {
        out.extend(9_u32.to_le_bytes());
        out.extend(kind.to_le_bytes());
        out.extend((count as u64).to_le_bytes());
    };
    match value {
        Meta::U32(value) => {
            out.extend(4_u32.to_le_bytes());
            out.extend(value.to_le_bytes());
        }
        Meta::F32(value) => {
            out.extend(6_u32.to_le_bytes());
            out.extend(value.to_le_bytes());
        }
        Meta::Bool(value) => {
            out.extend(7_u32.to_le_bytes());
            out.push(u8::from(*value));
        }
        Meta::Text(value) => {
            out.extend(8_u32.to_le_bytes());
            text(out, value);
        }
        Meta::Texts(all) => {
            list(out, 8, all.len());
            all.iter().for_each(|value| text(out, value));
        }
        Meta::Floats(all) => {
            list(out, 6, all.len());
            all.iter().for_each(|value| out.extend(value.to_le_bytes()));
        }
        Meta::Ints(all) => {
            list(out, 5, all.len());
            all.iter().for_each(|value| out.extend(value.to_le_bytes()));
        }
    }
}

/// Random weights in blocks of the type `Q8_0`: a scale of 1/512 in half precision, and 32 small numbers.
fn blocks(out: &mut Vec<u8>, count: usize, random: &mut Random) {
    for _ in 0..count / 32 {
        out.extend(0x1800_u16.to_le_bytes());
        out.extend((0..32).map(|_| (random.next() % 255) as u8));
    }
}

/// Random weights near 1, as norms have.
fn norm(out: &mut Vec<u8>, count: usize, random: &mut Random) {
    for _ in 0..count {
        let weight = 0.5 + (random.next() % 1000) as f32 / 1000.0;
        out.extend(weight.to_le_bytes());
    }
}

/// SplitMix64.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
