//! Choosing the next token.

use std::hash::{BuildHasher as _, RandomState};

use polylogue_core::Params;

/// Chooses tokens by their logits.
#[derive(Debug, Clone)]
pub(crate) struct Sampler {
    temperature: f64,
    top_k: usize,
    top_p: f64,
    /// The state of the random numbers (SplitMix64).
    state: u64,
}

impl Sampler {
    /// With the parameters of a request. Defaults: temperature 0.8, `top_k` 40, `top_p` 0.95, a random seed.
    pub(crate) fn new(params: &Params) -> Self {
        let random = || RandomState::new().hash_one(std::time::Instant::now());
        Self {
            temperature: params.temperature.unwrap_or(0.8).max(0.0),
            top_k: params.top_k.map_or(40, |count| usize::try_from(count).unwrap_or(usize::MAX)),
            top_p: params.top_p.unwrap_or(0.95),
            state: params.seed.map_or_else(random, i64::cast_unsigned),
        }
    }

    /// A token for which `is_allowed`; `None` if there is none.
    pub(crate) fn sample(&mut self, logits: &[f32], is_allowed: impl Fn(u32) -> bool) -> Option<u32> {
        let tokens = (0..).zip(logits.iter().copied());
        // A damaged model can have logits that are no numbers.
        let finite = tokens.map(|(token, logit)| (token, if logit.is_finite() { logit } else { f32::MIN }));
        let mut candidates: Vec<(u32, f32)> = finite.filter(|(token, _)| is_allowed(*token)).collect();
        let likelier = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if self.temperature == 0.0 {
            return candidates.into_iter().min_by(likelier).map(|(token, _)| token);
        }
        if self.top_k > 0 && self.top_k < candidates.len() {
            candidates.select_nth_unstable_by(self.top_k, likelier);
            candidates.truncate(self.top_k);
        }
        candidates.sort_unstable_by(likelier);
        self.draw(&candidates)
    }

    /// One of `candidates`, the likeliest of which is first.
    fn draw(&mut self, candidates: &[(u32, f32)]) -> Option<u32> {
        let (first, most) = *candidates.first()?;
        let weight = |logit: f32| ((f64::from(logit) - f64::from(most)) / self.temperature).exp();
        let weights: Vec<f64> = candidates.iter().map(|(_, logit)| weight(*logit)).collect();
        let nucleus = self.top_p * weights.iter().sum::<f64>();
        let mut total = 0.0;
        let kept = weights.iter().take_while(|weight| {
            let is_kept = total < nucleus || total == 0.0;
            total += **weight;
            is_kept
        });
        let kept = kept.count();
        let mut left = self.random() * weights.iter().take(kept).sum::<f64>();
        let chosen = candidates.iter().zip(&weights).take(kept).find(|(_, weight)| {
            left -= **weight;
            left < 0.0
        });
        Some(chosen.map_or(first, |((token, _), _)| *token))
    }

    /// A random number from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    fn random(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(params: &Params) -> Sampler {
        Sampler::new(&Params { seed: Some(7), ..params.clone() })
    }

    fn counts(params: &Params, logits: &[f32]) -> Vec<u32> {
        let mut sampler = sampler(params);
        let mut counts = vec![0; logits.len()];
        for _ in 0..2000 {
            counts[sampler.sample(logits, |_| true).unwrap() as usize] += 1;
        }
        counts
    }

    #[test]
    fn a_temperature_of_zero_is_the_likeliest_allowed_token() {
        let params = Params { temperature: Some(0.0), ..Params::default() };
        let mut sampler = sampler(&params);
        assert_eq!(sampler.sample(&[0.1, 3.0, 2.0], |_| true), Some(1));
        assert_eq!(sampler.sample(&[0.1, 3.0, 2.0], |token| token != 1), Some(2));
        assert_eq!(sampler.sample(&[f32::NAN, f32::NEG_INFINITY], |_| true), Some(0));
        assert_eq!(sampler.sample(&[1.0], |_| false), None);
    }

    #[test]
    fn tokens_are_drawn_by_their_probability() {
        let params = Params { temperature: Some(1.0), top_p: Some(1.0), top_k: Some(0), ..Params::default() };
        let counts = counts(&params, &[3_f32.ln(), 1_f32.ln()]);
        assert!((1400..1600).contains(&counts[0]), "{counts:?}");
    }

    #[test]
    fn top_k_and_top_p_leave_out_the_unlikely() {
        let logits = [4.0, 3.9, 1.0, 0.9];
        let params = Params { temperature: Some(5.0), top_p: Some(1.0), top_k: Some(2), ..Params::default() };
        let by_k = counts(&params, &logits);
        assert!(by_k[0] > 0 && by_k[1] > 0 && by_k[2..] == [0, 0], "{by_k:?}");
        let params = Params { temperature: Some(1.0), top_p: Some(0.5), top_k: Some(0), ..Params::default() };
        let by_p = counts(&params, &logits);
        assert_eq!(by_p[1..], [0, 0, 0], "{by_p:?}");
    }
}
