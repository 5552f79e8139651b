//! Merges two rankings of facts.

use std::collections::BTreeMap;

/// How many places of a ranking are used.
pub(super) const DEPTH: usize = 100;

/// The constant of reciprocal rank fusion, as in Cormack, Clarke, Büttcher 2009.
const K: usize = 60;

/// The best `limit` facts of several rankings, best first: each ranking gives a fact 1 / (60 + its place, counted from 1). Ties are
/// sorted by time, newest first.
pub(super) fn fused(orders: &[Vec<u64>], limit: usize) -> Vec<u64> {
    let mut scores: BTreeMap<u64, f64> = BTreeMap::new();
    for order in orders {
        for (place, id) in order.iter().enumerate() {
            *scores.entry(*id).or_default() += 1.0 / as_f64(K + place + 1);
        }
    }
    let mut best: Vec<(u64, f64)> = scores.into_iter().collect();
    best.sort_by(|(one, first), (other, second)| second.total_cmp(first).then(other.cmp(one)));
    best.into_iter().take(limit).map(|(id, _)| id).collect()
}

/// Exact, because places are small.
fn as_f64(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// The cosine of the angle between two vectors of the same length; 0 when one of them is 0.
pub(super) fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let (mut dot, mut a, mut b) = (0.0_f64, 0.0_f64, 0.0_f64);
    for (x, y) in one.iter().zip(other) {
        let (x, y) = (f64::from(*x), f64::from(*y));
        dot += x * y;
        a += x * x;
        b += y * y;
    }
    let length = (a * b).sqrt();
    if length > 0.0 { dot / length } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_that_rank_high_in_both_orders_come_first() {
        // 3 is second twice: 2/62 is more than 1/61 + 1/64 of 1, and that more than 1/61 of 2.
        assert_eq!(fused(&[vec![1, 3], vec![2, 3, 9, 1]], 10), [3, 1, 2, 9]);
        assert_eq!(fused(&[vec![4, 5], Vec::new()], 1), [4]);
        // As good as each other: the newest first.
        assert_eq!(fused(&[vec![7], vec![8]], 10), [8, 7]);
        assert!(fused(&[], 5).is_empty());
    }

    #[test]
    fn angles_count_and_lengths_do_not() {
        assert!((cosine(&[1.0, 0.0], &[7.0, 0.0]) - 1.0).abs() < 1e-12);
        assert!(cosine(&[1.0, 0.0], &[0.0, 2.0]).abs() < 1e-12);
        assert!((cosine(&[1.0, 1.0], &[-1.0, -1.0]) + 1.0).abs() < 1e-12);
        assert!(cosine(&[0.0, 0.0], &[1.0, 1.0]).abs() < 1e-12);
        // Squares that no 32-bit float can hold.
        assert!((cosine(&[f32::MAX, 0.0], &[f32::MAX, 0.0]) - 1.0).abs() < 1e-12);
    }
}
