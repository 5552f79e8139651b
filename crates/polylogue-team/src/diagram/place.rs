//! Horizontal positions: near to the neighbors above and below, in order, without overlap.

/// A node, or a place that an edge passes, in its layer.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) layer: usize,
    /// Whether it is a place of an edge.
    is_line: bool,
    /// The center.
    pub(super) x: f64,
    /// The upper edge of its layer.
    pub(super) y: f64,
    /// The height of its layer.
    pub(super) row: f64,
}

impl Slot {
    pub(super) const fn new(width: f64, height: f64, layer: usize) -> Self {
        Self { width, height, layer, is_line: false, x: 0.0, y: 0.0, row: 0.0 }
    }

    pub(super) const fn line(width: f64, height: f64, layer: usize) -> Self {
        Self { is_line: true, ..Self::new(width, height, layer) }
    }
}

/// The space between slots of a layer.
const GAP: f64 = 22.0;
/// How often positions are improved.
const SWEEPS: usize = 24;

/// Sets the horizontal positions, and returns the width.
pub(super) fn across(slots: &mut [Slot], rows: &[Vec<usize>], links: &[(usize, usize)]) -> f64 {
    for row in rows {
        let mut left = 0.0;
        for at in row {
            if let Some(slot) = slots.get_mut(*at) {
                slot.x = left + slot.width / 2.0;
                left += slot.width + GAP;
            }
        }
    }
    let near = neighbors(slots.len(), links);
    for sweep in 0..SWEEPS {
        let is_last = sweep + 2 >= SWEEPS;
        let downwards = sweep % 2 == 0;
        let order: Vec<&Vec<usize>> =
            if downwards { rows.iter().collect() } else { rows.iter().rev().collect() };
        for row in order {
            let wanted: Vec<f64> =
                row.iter().map(|at| wanted(*at, slots, &near, (!is_last).then_some(downwards))).collect();
            settle(row, &wanted, slots);
        }
    }
    let left = slots.iter().map(|slot| slot.x - slot.width / 2.0).fold(f64::INFINITY, f64::min);
    let right = slots.iter().map(|slot| slot.x + slot.width / 2.0).fold(f64::NEG_INFINITY, f64::max);
    slots.iter_mut().for_each(|slot| slot.x -= left);
    (right - left).max(0.0)
}

/// The neighbors of every slot, each with whether it is above.
fn neighbors(count: usize, links: &[(usize, usize)]) -> Vec<Vec<(usize, bool)>> {
    let mut near = vec![Vec::new(); count];
    for &(upper, lower) in links {
        for (at, other, is_above) in [(lower, upper, true), (upper, lower, false)] {
            if let Some(list) = near.get_mut(at) {
                list.push((other, is_above));
            }
        }
    }
    near
}

/// Where a slot wants to be: at the mean of its neighbors above, below or on both sides.
fn wanted(at: usize, slots: &[Slot], near: &[Vec<(usize, bool)>], above: Option<bool>) -> f64 {
    let (mut sum, mut weight) = (0.0, 0.0);
    let there = near.get(at).into_iter().flatten();
    for &(other, _) in there.filter(|(_, is_above)| above.is_none_or(|above| above == *is_above)) {
        if let Some(other) = slots.get(other) {
            // Edges through several layers are to be straight.
            let heavy = if other.is_line { 2.0 } else { 1.0 };
            sum += heavy * other.x;
            weight += heavy;
        }
    }
    let own = slots.get(at).map_or(0.0, |slot| slot.x);
    if weight > 0.0 { sum / weight } else { own }
}

/// The positions nearest to the wanted ones, by squares, in order and without overlap: an isotonic regression of what is left of
/// them without the widths.
fn settle(row: &[usize], wanted: &[f64], slots: &mut [Slot]) {
    let mut offsets = Vec::with_capacity(row.len());
    let mut offset = 0.0;
    let mut before: Option<f64> = None;
    for at in row {
        let half = slots.get(*at).map_or(0.0, |slot| slot.width / 2.0);
        offset += before.map_or(0.0, |before| before + half + GAP);
        before = Some(half);
        offsets.push(offset);
    }
    // Blocks of slots that touch: the sum of what they want, and how many they are.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (wanted, offset) in wanted.iter().zip(&offsets) {
        let mut block = (wanted - offset, 1);
        while let Some(last) = blocks.pop_if(|last| last.0 / last.1 as f64 >= block.0 / block.1 as f64) {
            block = (last.0 + block.0, last.1 + block.1);
        }
        blocks.push(block);
    }
    let means = blocks.into_iter().flat_map(|(sum, count)| std::iter::repeat_n(sum / count as f64, count));
    for ((at, offset), mean) in row.iter().zip(&offsets).zip(means) {
        if let Some(slot) = slots.get_mut(*at) {
            slot.x = mean + offset;
        }
    }
}
