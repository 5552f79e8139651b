//! The weights of a model: which tensors its file must have, and reading them.

use std::fs::File;
use std::sync::Arc;

use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{Device, Tensor};

use crate::error::Defect;
use crate::gguf::GgufFile;
use crate::hyperparameters::Hyperparameters;

/// The embeddings of tokens. Where there is no separate output, they are the output, too.
pub(crate) const EMBEDDINGS: &str = "token_embd.weight";
pub(crate) const OUTPUT: &str = "output.weight";
pub(crate) const OUTPUT_NORM: &str = "output_norm.weight";
/// Factors of the frequencies of positions.
pub(crate) const ROPE_FACTORS: [&str; 3] =
    ["rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"];

/// The name of a tensor of a layer.
pub(crate) fn of_layer(layer: usize, name: &str) -> String {
    format!("blk.{layer}.{name}")
}

/// Checks all tensors that the model needs; returns the bytes of memory that they need.
pub(crate) fn check(file: &GgufFile, sizes: &Hyperparameters) -> Result<u64, Defect> {
    let mut bytes = file.check(EMBEDDINGS, &[sizes.vocabulary, sizes.width])?;
    bytes += file.check(OUTPUT_NORM, &[sizes.width])?;
    if file.has_tensor(OUTPUT) {
        bytes += file.check(OUTPUT, &[sizes.vocabulary, sizes.width])?;
    }
    for name in ROPE_FACTORS.iter().filter(|name| file.has_tensor(name)) {
        bytes += file.check(name, &[sizes.rotated / 2])?;
    }
    for layer in 0..sizes.layers {
        for (name, shape) in matrices(sizes).into_iter().chain(vectors(sizes)) {
            bytes += file.check(&of_layer(layer, name), &shape)?;
        }
        for (name, shape) in biases(sizes) {
            let name = of_layer(layer, name);
            bytes += if file.has_tensor(&name) { file.check(&name, &shape)? } else { 0 };
        }
    }
    Ok(bytes)
}

/// The matrices of a layer, with their shapes.
fn matrices(sizes: &Hyperparameters) -> Vec<(&'static str, Vec<usize>)> {
    let (queries, keys) = (sizes.heads * sizes.head, sizes.kv_heads * sizes.head);
    let (width, inner) = (sizes.width, sizes.feed_forward);
    let mut all = vec![("attn_output.weight", vec![width, queries]), ("ffn_down.weight", vec![width, inner])];
    if sizes.architecture.is_fused() {
        all.push(("attn_qkv.weight", vec![queries + 2 * keys, width]));
        all.push(("ffn_up.weight", vec![2 * inner, width]));
    } else {
        all.push(("attn_q.weight", vec![queries, width]));
        all.push(("attn_k.weight", vec![keys, width]));
        all.push(("attn_v.weight", vec![keys, width]));
        all.push(("ffn_gate.weight", vec![inner, width]));
        all.push(("ffn_up.weight", vec![inner, width]));
    }
    all
}

/// The norms of a layer, with their shapes.
fn vectors(sizes: &Hyperparameters) -> Vec<(&'static str, Vec<usize>)> {
    let mut all = vec![("attn_norm.weight", vec![sizes.width]), ("ffn_norm.weight", vec![sizes.width])];
    if sizes.architecture.normalizes_heads() {
        all.extend(["attn_q_norm.weight", "attn_k_norm.weight"].map(|name| (name, vec![sizes.head])));
    }
    if sizes.architecture.is_gemma() {
        all.extend(
            ["post_attention_norm.weight", "post_ffw_norm.weight"].map(|name| (name, vec![sizes.width])),
        );
    }
    all
}

/// The biases that a layer can have, with their shapes.
fn biases(sizes: &Hyperparameters) -> Vec<(&'static str, Vec<usize>)> {
    let (queries, keys) = (sizes.heads * sizes.head, sizes.kv_heads * sizes.head);
    vec![("attn_q.bias", vec![queries]), ("attn_k.bias", vec![keys]), ("attn_v.bias", vec![keys])]
}

/// Reads the tensors of a file.
pub(crate) struct Reader<'a> {
    pub(crate) file: &'a GgufFile,
    pub(crate) open: File,
    pub(crate) device: &'a Device,
}

impl Reader<'_> {
    pub(crate) fn quantized(&mut self, name: &str) -> Result<Arc<QTensor>, Defect> {
        self.file.tensor(&mut self.open, name, self.device).map(Arc::new)
    }

    pub(crate) fn matrix(&mut self, name: &str) -> Result<QMatMul, Defect> {
        Ok(QMatMul::from_arc(self.quantized(name)?)?)
    }

    pub(crate) fn vector(&mut self, name: &str) -> Result<Tensor, Defect> {
        Ok(self.quantized(name)?.dequantize(self.device)?)
    }

    pub(crate) fn vector_if_any(&mut self, name: &str) -> Result<Option<Tensor>, Defect> {
        if self.file.has_tensor(name) { self.vector(name).map(Some) } else { Ok(None) }
    }
}
