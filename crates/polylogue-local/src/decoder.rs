//! The computation of the next token: a transformer that reads tokens and a cache of those before.
//!
//! All architectures are one decoder with a few differences. It is our own because a cache that is cut back, shared
//! and continued is needed, and the loaders of models keep theirs inside.

use std::fs::File;
use std::sync::Arc;

use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{D, Device, Module, Result, Tensor};
use candle_nn::ops::{rms_norm, silu, softmax_last_dim};

use crate::cache::Cache;
use crate::error::Defect;
use crate::gguf::GgufFile;
use crate::hyperparameters::{Hyperparameters, as_f64};
use crate::rope::Rope;
use crate::weights::{EMBEDDINGS, OUTPUT, OUTPUT_NORM, ROPE_FACTORS, Reader, of_layer};

type Loaded<T> = std::result::Result<T, Defect>;

/// A model in memory.
pub(crate) struct Decoder {
    pub(crate) sizes: Hyperparameters,
    pub(crate) device: Device,
    embeddings: Arc<QTensor>,
    layers: Vec<Layer>,
    norm: Norm,
    output: QMatMul,
}

struct Layer {
    attention: Attention,
    attention_norm: Norm,
    after_attention: Option<Norm>,
    feed: FeedForward,
    feed_norm: Norm,
    after_feed: Option<Norm>,
}

struct Attention {
    input: AttentionInput,
    head_norms: Option<(Norm, Norm)>,
    output: QMatMul,
    rope: Arc<Rope>,
    sliding_window: Option<usize>,
    scale: f64,
}

/// The matrices that make queries, keys and values.
enum AttentionInput {
    Separate([(QMatMul, Option<Tensor>); 3]),
    Fused(QMatMul),
}

enum FeedForward {
    Separate { gate: QMatMul, up: QMatMul, down: QMatMul, gelu: bool },
    Fused { up: QMatMul, down: QMatMul },
}

struct Norm {
    weight: Tensor,
    epsilon: f64,
}

impl Norm {
    #[expect(clippy::cast_possible_truncation, reason = "the precision of weights")]
    fn forward(&self, states: &Tensor) -> Result<Tensor> {
        rms_norm(&states.contiguous()?, &self.weight, self.epsilon as f32)
    }
}

impl Decoder {
    /// Reads the weights of `file`, which were checked, for a context window of `window` tokens.
    pub(crate) fn load(
        file: &GgufFile,
        sizes: &Hyperparameters,
        window: usize,
        device: &Device,
    ) -> Loaded<Self> {
        let open = File::open(file.path())?;
        let mut from = Reader { file, open, device };
        let embeddings = from.quantized(EMBEDDINGS)?;
        let output = match file.has_tensor(OUTPUT) {
            true => from.matrix(OUTPUT)?,
            false => QMatMul::from_arc(Arc::clone(&embeddings))?,
        };
        let ropes = ropes(&mut from, sizes, window)?;
        let layer = |layer| Layer::load(&mut from, sizes, layer, &ropes);
        let layers = (0..sizes.layers).map(layer).collect::<Loaded<_>>()?;
        let norm = Norm { weight: from.vector(OUTPUT_NORM)?, epsilon: sizes.epsilon };
        Ok(Self { sizes: sizes.clone(), device: device.clone(), embeddings, layers, norm, output })
    }

    /// Computes `tokens` after those of `cache`, and adds them to it. Returns the logits of the token after them.
    pub(crate) fn forward(&self, tokens: &[u32], cache: &mut Cache) -> Result<Vec<f32>> {
        cache.reserve(tokens.len())?;
        let mut states = self.embeddings.embedding(&Tensor::new(tokens, &self.device)?)?;
        if self.sizes.architecture.is_gemma() {
            states = (states * as_f64(self.sizes.width).sqrt())?;
        }
        for (index, layer) in self.layers.iter().enumerate() {
            states = layer.forward(&states, &self.sizes, (index, cache))?;
        }
        cache.push(tokens);
        let last = states.narrow(0, tokens.len() - 1, 1)?;
        self.output.forward(&self.norm.forward(&last)?)?.flatten_all()?.to_vec1()
    }
}

/// The positions of layers that see everything, and of those with a sliding window.
fn ropes(from: &mut Reader<'_>, sizes: &Hyperparameters, window: usize) -> Loaded<[Arc<Rope>; 2]> {
    let [always, short, long] = ROPE_FACTORS;
    let is_long = sizes.rope.original_window.is_some_and(|original| window > original);
    let name = if from.file.has_tensor(always) {
        always
    } else if is_long {
        long
    } else {
        short
    };
    let factors = from.vector_if_any(name)?.map(|factors| factors.to_vec1::<f32>()).transpose()?;
    let global = (sizes.rope.base, sizes.rope.linear);
    let rope = Arc::new(Rope::new(sizes, window, global, factors.as_deref(), from.device)?);
    let local = match sizes.sliding_window {
        Some(_) => Arc::new(Rope::new(sizes, window, (sizes.rope.local_base, 1.0), None, from.device)?),
        None => Arc::clone(&rope),
    };
    Ok([rope, local])
}

impl Layer {
    fn load(
        from: &mut Reader<'_>,
        sizes: &Hyperparameters,
        index: usize,
        [global, local]: &[Arc<Rope>; 2],
    ) -> Loaded<Self> {
        let name = |rest: &str| of_layer(index, rest);
        let norm = |from: &mut Reader<'_>, rest: &str| {
            Ok::<_, Defect>(Norm { weight: from.vector(&name(rest))?, epsilon: sizes.epsilon })
        };
        let gemma = sizes.architecture.is_gemma();
        let attention_norm = norm(from, "attn_norm.weight")?;
        let feed_norm = norm(from, "ffn_norm.weight")?;
        let after_attention = gemma.then(|| norm(from, "post_attention_norm.weight")).transpose()?;
        let after_feed = gemma.then(|| norm(from, "post_ffw_norm.weight")).transpose()?;
        let head_norms = sizes
            .architecture
            .normalizes_heads()
            .then(|| Ok::<_, Defect>((norm(from, "attn_q_norm.weight")?, norm(from, "attn_k_norm.weight")?)));
        let sliding_window = sizes.sliding_window_of(index);
        let attention = Attention {
            head_norms: head_norms.transpose()?,
            input: AttentionInput::load(from, sizes, index)?,
            output: from.matrix(&name("attn_output.weight"))?,
            rope: Arc::clone(if sliding_window.is_some() { local } else { global }),
            sliding_window,
            scale: sizes.attention_scale(),
        };
        let feed = FeedForward::load(from, sizes, index)?;
        Ok(Self { attention, attention_norm, after_attention, feed, feed_norm, after_feed })
    }

    fn forward(&self, states: &Tensor, sizes: &Hyperparameters, at: (usize, &Cache)) -> Result<Tensor> {
        let after = |norm: Option<&Norm>, change: Tensor| {
            norm.map_or(Ok(change.clone()), |norm| norm.forward(&change))
        };
        let change = self.attention.forward(&self.attention_norm.forward(states)?, sizes, at)?;
        let states = (states + after(self.after_attention.as_ref(), change)?)?;
        let change = self.feed.forward(&self.feed_norm.forward(&states)?)?;
        states + after(self.after_feed.as_ref(), change)?
    }
}

impl AttentionInput {
    fn load(from: &mut Reader<'_>, sizes: &Hyperparameters, index: usize) -> Loaded<Self> {
        if sizes.architecture.is_fused() {
            return from.matrix(&of_layer(index, "attn_qkv.weight")).map(Self::Fused);
        }
        let mut one = |name: &str| {
            let matrix = from.matrix(&of_layer(index, &format!("{name}.weight")))?;
            Ok::<_, Defect>((matrix, from.vector_if_any(&of_layer(index, &format!("{name}.bias")))?))
        };
        Ok(Self::Separate([one("attn_q")?, one("attn_k")?, one("attn_v")?]))
    }

    /// Queries, keys and values of `states`: tokens x (heads x size).
    fn forward(&self, states: &Tensor, queries: usize, keys: usize) -> Result<[Tensor; 3]> {
        match self {
            Self::Separate(all) => {
                let [queries, keys, values] = all.each_ref().map(|(matrix, bias)| {
                    let product = matrix.forward(states)?;
                    bias.as_ref().map_or(Ok(product.clone()), |bias| product.broadcast_add(bias))
                });
                Ok([queries?, keys?, values?])
            }
            Self::Fused(matrix) => {
                let all = matrix.forward(states)?;
                let part = |from, size| all.narrow(D::Minus1, from, size)?.contiguous();
                Ok([part(0, queries)?, part(queries, keys)?, part(queries + keys, keys)?])
            }
        }
    }
}

impl Attention {
    fn forward(
        &self,
        states: &Tensor,
        sizes: &Hyperparameters,
        (index, cache): (usize, &Cache),
    ) -> Result<Tensor> {
        let (tokens, before) = (states.dim(0)?, cache.len());
        let [queries, keys, values] =
            self.input.forward(states, sizes.heads * sizes.head, sizes.kv_heads * sizes.head)?;
        let by_head = |all: Tensor, heads: usize, norm: Option<&Norm>| {
            let all = all.reshape((tokens, heads, sizes.head))?;
            let all = norm.map_or(Ok(all.clone()), |norm| norm.forward(&all))?;
            all.transpose(0, 1)?.contiguous()
        };
        let norms = self.head_norms.as_ref();
        let queries = by_head(queries, sizes.heads, norms.map(|(queries, _)| queries))?;
        let keys = by_head(keys, sizes.kv_heads, norms.map(|(_, keys)| keys))?;
        let queries = self.rope.rotate(&queries, before)?;
        let keys = self.rope.rotate(&keys, before)?;
        let (keys, values) = cache.extend(index, &keys, &by_head(values, sizes.kv_heads, None)?)?;
        let mixed = self.mix(&queries, &keys, &values, before)?;
        let mixed = mixed.reshape((sizes.heads, tokens, sizes.head))?.transpose(0, 1)?;
        self.output.forward(&mixed.contiguous()?.reshape((tokens, sizes.heads * sizes.head))?)
    }

    /// The values of all tokens, weighted for each query. The heads that share keys are computed as one.
    fn mix(&self, queries: &Tensor, keys: &Tensor, values: &Tensor, before: usize) -> Result<Tensor> {
        let ((heads, tokens, size), (kv_heads, all, _)) = (queries.dims3()?, keys.dims3()?);
        let shared = heads / kv_heads;
        let queries = (queries.contiguous()?.reshape((kv_heads, shared * tokens, size))? * self.scale)?;
        let mut scores = queries.matmul(&keys.transpose(1, 2)?)?;
        if let Some(mask) = mask(tokens, before, self.sliding_window, queries.device())? {
            scores = scores.reshape((kv_heads, shared, tokens, all))?.broadcast_add(&mask)?;
            scores = scores.reshape((kv_heads, shared * tokens, all))?;
        }
        softmax_last_dim(&scores)?.matmul(values)
    }
}

/// What is added to scores so that no token sees later ones, or those before its window; `None` if there are none.
fn mask(tokens: usize, before: usize, window: Option<usize>, device: &Device) -> Result<Option<Tensor>> {
    let all = before + tokens;
    if tokens == 1 && window.is_none_or(|window| all <= window) {
        return Ok(None);
    }
    let is_seen = |from: usize, to: usize| to <= from && window.is_none_or(|window| from - to < window);
    let row =
        |from: usize| (0..all).map(move |to| if is_seen(from, to) { 0.0_f32 } else { f32::NEG_INFINITY });
    let values: Vec<f32> = (before..all).flat_map(row).collect();
    Tensor::from_vec(values, (tokens, all), device).map(Some)
}

impl FeedForward {
    fn load(from: &mut Reader<'_>, sizes: &Hyperparameters, index: usize) -> Loaded<Self> {
        let up = from.matrix(&of_layer(index, "ffn_up.weight"))?;
        let down = from.matrix(&of_layer(index, "ffn_down.weight"))?;
        if sizes.architecture.is_fused() {
            return Ok(Self::Fused { up, down });
        }
        let gate = from.matrix(&of_layer(index, "ffn_gate.weight"))?;
        Ok(Self::Separate { gate, up, down, gelu: sizes.architecture.is_gemma() })
    }

    fn forward(&self, states: &Tensor) -> Result<Tensor> {
        let (gate, up, down, gelu) = match self {
            Self::Separate { gate, up, down, gelu } => {
                (gate.forward(states)?, up.forward(states)?, down, *gelu)
            }
            Self::Fused { up, down } => {
                let both = up.forward(states)?;
                let half = both.dim(D::Minus1)? / 2;
                (
                    both.narrow(D::Minus1, 0, half)?.contiguous()?,
                    both.narrow(D::Minus1, half, half)?,
                    down,
                    false,
                )
            }
        };
        let gate = if gelu { gate.gelu()? } else { silu(&gate)? };
        down.forward(&(gate * up)?)
    }
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
