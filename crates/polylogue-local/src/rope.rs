//! Rotary positions.

use candle_core::{D, Device, Result, Tensor};
use candle_nn::rotary_emb;

use crate::hyperparameters::{Hyperparameters, as_f64};

/// The sines and cosines of all positions of a window.
pub(crate) struct Rope {
    cosines: Tensor,
    sines: Tensor,
    rotated: usize,
    neighbors: bool,
}

impl Rope {
    /// For `window` positions with the frequencies of `base`, divided by `factors` and by `linear`.
    pub(crate) fn new(
        sizes: &Hyperparameters,
        window: usize,
        (base, linear): (f64, f64),
        factors: Option<&[f32]>,
        device: &Device,
    ) -> Result<Self> {
        let half = sizes.rotated / 2;
        let frequency = |at: usize| {
            let factor = factors.and_then(|factors| factors.get(at)).map_or(1.0, |factor| f64::from(*factor));
            base.powf(-as_f64(2 * at) / as_f64(sizes.rotated)) / (factor * linear)
        };
        let frequencies: Vec<f64> = (0..half).map(frequency).collect();
        let angles = |position: usize| frequencies.iter().map(move |frequency| as_f64(position) * frequency);
        let table = |of: fn(f64) -> f64| {
            #[expect(clippy::cast_possible_truncation, reason = "weights have the precision of f32")]
            let values: Vec<f32> =
                (0..window).flat_map(angles).map(|angle| (of(angle) * sizes.rope.magnitude) as f32).collect();
            Tensor::from_vec(values, (window, half), device)
        };
        Ok(Self {
            cosines: table(f64::cos)?,
            sines: table(f64::sin)?,
            rotated: sizes.rotated,
            neighbors: sizes.architecture.rotates_neighbors(),
        })
    }

    /// Rotates `heads`, of the shape heads x tokens x size, whose first token is at `position`.
    pub(crate) fn rotate(&self, heads: &Tensor, position: usize) -> Result<Tensor> {
        let (_, tokens, size) = heads.dims3()?;
        let cosines = self.cosines.narrow(0, position, tokens)?;
        let sines = self.sines.narrow(0, position, tokens)?;
        let turned = heads.narrow(D::Minus1, 0, self.rotated)?.contiguous()?.unsqueeze(0)?;
        let turned = if self.neighbors {
            rotary_emb::rope_i(&turned, &cosines, &sines)?
        } else {
            rotary_emb::rope(&turned, &cosines, &sines)?
        };
        let turned = turned.squeeze(0)?;
        if size == self.rotated {
            return Ok(turned);
        }
        let rest = heads.narrow(D::Minus1, self.rotated, size - self.rotated)?;
        Tensor::cat(&[&turned, &rest.contiguous()?], D::Minus1)
    }
}
