//! The hyperparameters of a model, from the metadata of its file.

use polylogue_core::text;

use crate::error::Defect;
use crate::gguf::GgufFile;

/// The architectures, by `general.architecture`. Mistral's models are `llama`.
const ARCHITECTURES: [(&str, Architecture); 5] = [
    ("llama", Architecture::Llama),
    ("qwen2", Architecture::Qwen2),
    ("qwen3", Architecture::Qwen3),
    ("gemma3", Architecture::Gemma3),
    ("phi3", Architecture::Phi3),
];

/// How a model is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Architecture {
    Llama,
    Qwen2,
    Qwen3,
    Gemma3,
    Phi3,
}

impl Architecture {
    /// Whether rotary positions pair neighbors, instead of the halves of a head.
    pub(crate) const fn rotates_neighbors(self) -> bool {
        matches!(self, Self::Llama)
    }

    /// Whether queries, keys and values are one tensor, and so the two inputs of the feed-forward network.
    pub(crate) const fn is_fused(self) -> bool {
        matches!(self, Self::Phi3)
    }

    /// Whether each head's query and key is normalized.
    pub(crate) const fn normalizes_heads(self) -> bool {
        matches!(self, Self::Qwen3 | Self::Gemma3)
    }

    /// Gemma's differences: scaled embeddings, norms after each block, GELU.
    pub(crate) const fn is_gemma(self) -> bool {
        matches!(self, Self::Gemma3)
    }
}

/// The hyperparameters of a model.
#[derive(Debug, Clone)]
pub(crate) struct Hyperparameters {
    pub(crate) architecture: Architecture,
    /// The number of layers.
    pub(crate) layers: usize,
    /// The size of the state of one token.
    pub(crate) width: usize,
    /// The size of the feed-forward network.
    pub(crate) feed_forward: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    /// The size of one head.
    pub(crate) head: usize,
    /// How much of a head is rotated by the position.
    pub(crate) rotated: usize,
    /// The rows of the output, at least one for each token.
    pub(crate) vocabulary: usize,
    /// The context window for which the model was trained.
    pub(crate) trained_window: usize,
    pub(crate) epsilon: f64,
    pub(crate) rope: RopeParameters,
    /// How far back the layers with a sliding window see, in tokens.
    pub(crate) sliding_window: Option<usize>,
}

/// The parameters of rotary positions.
#[derive(Debug, Clone)]
pub(crate) struct RopeParameters {
    pub(crate) base: f64,
    /// The base of layers with a sliding window.
    pub(crate) local_base: f64,
    /// Positions are divided by this.
    pub(crate) linear: f64,
    /// The window up to which the short factors count, where there are long ones.
    pub(crate) original_window: Option<usize>,
    /// Multiplies sines and cosines.
    pub(crate) magnitude: f64,
}

/// Every sixth layer of Gemma 3 sees the whole window.
const GEMMA_PATTERN: usize = 6;

impl Hyperparameters {
    /// Reads them; each is checked to be in a sensible range.
    pub(crate) fn of(file: &GgufFile) -> Result<Self, Defect> {
        let name = file
            .text("general.architecture")
            .ok_or_else(|| Defect::broken("`general.architecture` is missing"))?;
        let architecture = architecture(name)?;
        let key = |rest: &str| format!("{name}.{rest}");
        if file.number(&key("expert_count")).is_some_and(|count| count > 0) {
            return Err(Defect::unsupported("a mixture of experts", supported()));
        }
        let heads = file.size(&key("attention.head_count"), 1 << 12)?;
        let width = file.size(&key("embedding_length"), 1 << 17)?;
        let kv_heads = optional(file, &key("attention.head_count_kv"), 1 << 12)?.unwrap_or(heads);
        let head = optional(file, &key("attention.key_length"), 1 << 12)?.unwrap_or(width / heads);
        let rotated = optional(file, &key("rope.dimension_count"), 1 << 12)?.unwrap_or(head);
        let values = optional(file, &key("attention.value_length"), 1 << 12)?.unwrap_or(head);
        let is_sound =
            head > 0 && heads.is_multiple_of(kv_heads) && rotated <= head && rotated.is_multiple_of(2);
        if !is_sound || values != head {
            let sizes = format!("{heads} heads, {kv_heads} of keys, size {head}, of which {rotated} rotated");
            return Err(Defect::broken(format!("the sizes of its attention do not fit together: {sizes}")));
        }
        let vocabulary = file.rows("token_embd.weight").filter(|rows| (1..=1 << 24).contains(rows));
        Ok(Self {
            architecture,
            layers: file.size(&key("block_count"), 1 << 10)?,
            width,
            feed_forward: file.size(&key("feed_forward_length"), 1 << 20)?,
            heads,
            kv_heads,
            head,
            rotated,
            vocabulary: vocabulary.ok_or_else(|| Defect::broken("it has no tensor `token_embd.weight`"))?,
            trained_window: file.size(&key("context_length"), 1 << 24)?,
            epsilon: file.fraction(&key("attention.layer_norm_rms_epsilon")).unwrap_or(1e-5),
            rope: RopeParameters::of(file, name, architecture)?,
            sliding_window: match architecture {
                Architecture::Gemma3 => Some(file.size(&key("attention.sliding_window"), 1 << 24)?),
                _ => None,
            },
        })
    }

    /// How far back the layer `index` sees, if not to the beginning.
    pub(crate) fn sliding_window_of(&self, index: usize) -> Option<usize> {
        self.sliding_window.filter(|_| !(index + 1).is_multiple_of(GEMMA_PATTERN))
    }

    /// The factor of attention scores.
    pub(crate) fn attention_scale(&self) -> f64 {
        // The largest Gemma 3, which has 62 layers, is trained with another scale.
        let size = if self.architecture.is_gemma() && self.layers == 62 {
            self.width / self.heads
        } else {
            self.head
        };
        as_f64(size).sqrt().recip()
    }
}

impl RopeParameters {
    fn of(file: &GgufFile, name: &str, architecture: Architecture) -> Result<Self, Defect> {
        let key = |rest: &str| format!("{name}.rope.{rest}");
        let scaling = file.text(&key("scaling.type")).unwrap_or("none");
        if !matches!(scaling, "none" | "linear" | "longrope" | "llama3") {
            let hint = "the positions of its window can be scaled as `linear`, `longrope` or `llama3`";
            return Err(Defect::unsupported(format!("positions scaled as `{scaling}`"), hint));
        }
        let positive = |key: &str| file.fraction(key).filter(|number| *number > 0.0);
        let usual = if architecture.is_gemma() { 1e6 } else { 1e4 };
        let factor = positive(&key("scaling.factor")).or_else(|| positive(&key("scale_linear")));
        Ok(Self {
            base: positive(&key("freq_base")).unwrap_or(usual),
            local_base: positive(&key("local_freq_base"))
                .or_else(|| positive(&key("freq_base_swa")))
                .unwrap_or(1e4),
            linear: factor.filter(|_| matches!(scaling, "linear" | "none")).unwrap_or(1.0),
            original_window: optional(file, &key("scaling.original_context_length"), 1 << 24)?,
            magnitude: positive(&key("scaling.attn_factor")).unwrap_or(1.0),
        })
    }
}

fn architecture(name: &str) -> Result<Architecture, Defect> {
    let found = ARCHITECTURES.iter().find(|(other, _)| *other == name);
    found.map(|(_, architecture)| *architecture).ok_or_else(|| {
        Defect::unsupported(format!("its architecture is `{}`", text::excerpt(name, 60)), supported())
    })
}

fn supported() -> String {
    let names: Vec<&str> = ARCHITECTURES.iter().map(|(name, _)| *name).collect();
    format!(
        "the supported architectures are {}; other models run in Ollama or another server",
        names.join(", ")
    )
}

/// A number that may be missing, but not be wrong.
fn optional(file: &GgufFile, key: &str, most: u64) -> Result<Option<usize>, Defect> {
    if file.number(key).is_none() { Ok(None) } else { file.size(key, most).map(Some) }
}

#[expect(clippy::cast_precision_loss, reason = "sizes are checked to be small")]
pub(crate) const fn as_f64(size: usize) -> f64 {
    size as f64
}
