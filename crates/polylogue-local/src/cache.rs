//! Computed keys and values of sequences of tokens, which later requests with the same beginning reuse.

use candle_core::{DType, Device, Result, Tensor};

use crate::hyperparameters::Hyperparameters;

/// How many tokens a cache grows at once.
const GROWTH: usize = 256;

/// The computed keys and values of one sequence of tokens.
#[derive(Debug)]
pub(crate) struct Cache {
    tokens: Vec<u32>,
    /// Keys and values of each layer: heads x capacity x size.
    layers: Vec<(Tensor, Tensor)>,
    capacity: usize,
}

impl Cache {
    pub(crate) fn new(sizes: &Hyperparameters, device: &Device) -> Result<Self> {
        let empty = || Tensor::zeros((sizes.kv_heads, GROWTH, sizes.head), DType::F32, device);
        let layers = (0..sizes.layers).map(|_| Ok((empty()?, empty()?))).collect::<Result<_>>()?;
        Ok(Self { tokens: Vec::new(), layers, capacity: GROWTH })
    }

    /// The bytes that one token needs.
    pub(crate) fn bytes_per_token(sizes: &Hyperparameters) -> u64 {
        // A key and a value in f32, in each layer.
        (2 * size_of::<f32>() * sizes.layers * sizes.kv_heads * sizes.head) as u64
    }

    /// The bytes that a window of tokens needs.
    pub(crate) fn bytes(sizes: &Hyperparameters, window: usize) -> u64 {
        Self::bytes_per_token(sizes).saturating_mul(window.next_multiple_of(GROWTH) as u64)
    }

    /// The number of computed tokens.
    pub(crate) const fn len(&self) -> usize {
        self.tokens.len()
    }

    /// How many tokens at the beginning of `prompt` are computed here.
    pub(crate) fn common(&self, prompt: &[u32]) -> usize {
        self.tokens.iter().zip(prompt).take_while(|(own, other)| own == other).count()
    }

    /// Forgets all but the first `length` tokens.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
    }

    /// A cache of its own with the first `length` tokens.
    pub(crate) fn copy(&self, length: usize) -> Result<Self> {
        let length = length.min(self.len());
        self.resized(length, length.max(1))
    }

    /// Makes room for `count` tokens more.
    pub(crate) fn reserve(&mut self, count: usize) -> Result<()> {
        let needed = self.len() + count;
        if needed > self.capacity {
            *self = self.resized(self.len(), needed)?;
        }
        Ok(())
    }

    /// The first `length` tokens, with room for at least `capacity`.
    fn resized(&self, length: usize, capacity: usize) -> Result<Self> {
        let capacity = capacity.next_multiple_of(GROWTH);
        let resize = |tensor: &Tensor| -> Result<Tensor> {
            let (heads, _, size) = tensor.dims3()?;
            let resized = Tensor::zeros((heads, capacity, size), tensor.dtype(), tensor.device())?;
            if length > 0 {
                resized.slice_set(&tensor.narrow(1, 0, length)?.contiguous()?, 1, 0)?;
            }
            Ok(resized)
        };
        let layers = self.layers.iter().map(|(keys, values)| Ok((resize(keys)?, resize(values)?)));
        let tokens = self.tokens.get(..length).unwrap_or_default().to_vec();
        Ok(Self { tokens, layers: layers.collect::<Result<_>>()?, capacity })
    }

    /// Sets the keys and values of the next tokens in `layer`; returns those of all tokens, the next included.
    pub(crate) fn extend(&self, layer: usize, keys: &Tensor, values: &Tensor) -> Result<(Tensor, Tensor)> {
        let Some((all_keys, all_values)) = self.layers.get(layer) else {
            candle_core::bail!("no layer {layer}")
        };
        let count = keys.dim(1)?;
        all_keys.slice_set(&keys.contiguous()?, 1, self.len())?;
        all_values.slice_set(&values.contiguous()?, 1, self.len())?;
        let end = self.len() + count;
        Ok((all_keys.narrow(1, 0, end)?, all_values.narrow(1, 0, end)?))
    }

    /// Takes note that `tokens` are computed in all layers.
    pub(crate) fn push(&mut self, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
    }
}

/// The caches of sequences that are not being computed: the least recently used first.
#[derive(Debug, Default)]
pub(crate) struct Caches(Vec<Cache>);

impl Caches {
    /// A cache for `prompt`, with as much of it computed as any cache has; the last token is never taken as computed,
    /// because its logits are needed. At most `free` caches are kept besides it.
    pub(crate) fn acquire(
        &mut self,
        prompt: &[u32],
        free: usize,
        sizes: &Hyperparameters,
        device: &Device,
    ) -> Result<Cache> {
        let beginning = prompt.get(..prompt.len().saturating_sub(1)).unwrap_or_default();
        let common = |cache: &Cache| cache.common(beginning);
        let best = self.0.iter().enumerate().map(|(at, cache)| (common(cache), at)).max();
        let Some((length, at)) = best.filter(|(length, _)| *length > 0) else {
            self.shrink(free);
            return Cache::new(sizes, device);
        };
        let mut best = self.0.remove(at);
        if best.len() == length || free == 0 {
            best.truncate(length);
            self.shrink(free);
            return Ok(best);
        }
        // The sequence that begins alike is kept, as the one used last: another conversation may continue it. Others give way before
        // there is a copy, which would need memory besides theirs.
        self.shrink(free - 1);
        let copy = best.copy(length);
        self.0.push(best);
        copy
    }

    fn shrink(&mut self, most: usize) {
        let excess = self.0.len().saturating_sub(most);
        self.0.drain(..excess);
    }

    /// Keeps a cache whose sequence has ended.
    pub(crate) fn release(&mut self, cache: Cache) {
        self.0.push(cache);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf::GgufFile;
    use crate::tiny::Tiny;

    #[test]
    fn a_sequence_whose_beginning_is_shared_stays_and_others_give_way() {
        let folder = tempfile::tempdir().unwrap();
        let file = GgufFile::open(&Tiny::default().write(folder.path(), "tiny.gguf")).unwrap();
        let (sizes, device) = (Hyperparameters::of(&file).unwrap(), Device::Cpu);
        let mut caches = Caches::default();
        for tokens in [[1, 2, 3], [7, 8, 9]] {
            let mut cache = Cache::new(&sizes, &device).unwrap();
            cache.push(&tokens);
            caches.release(cache);
        }
        let cache = caches.acquire(&[1, 2, 5, 6], 1, &sizes, &device).unwrap();
        assert_eq!(cache.tokens, [1, 2]);
        let kept: Vec<&[u32]> = caches.0.iter().map(|cache| cache.tokens.as_slice()).collect();
        assert_eq!(kept, [[1, 2, 3]]);
        // Without room for another one, it is the one itself that is used.
        let cache = caches.acquire(&[1, 2, 5, 6], 0, &sizes, &device).unwrap();
        assert_eq!((cache.tokens, caches.0.len()), (vec![1, 2], 0));
    }
}
