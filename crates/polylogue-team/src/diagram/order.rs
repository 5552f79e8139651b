//! Layers of nodes, and the order within each, with few crossings.

use std::collections::HashMap;

use super::place::Slot;

/// How often orders are improved from above and from below.
const SWEEPS: usize = 12;

/// The layer of every node, an even number, and which edges lead back up.
pub(super) fn layers(count: usize, edges: &[(usize, usize)]) -> (Vec<usize>, Vec<bool>) {
    let mut next: Vec<Vec<(usize, usize)>> = vec![Vec::new(); count];
    for (number, &(from, to)) in edges.iter().enumerate().filter(|(_, (from, to))| from != to) {
        if let Some(list) = next.get_mut(from) {
            list.push((to, number));
        }
    }
    let mut search =
        Search { next, state: vec![State::New; count], back: vec![false; edges.len()], done: Vec::new() };
    (0..count).for_each(|node| search.visit(node));
    let Search { back, done, .. } = search;
    // Along the edges, those that lead back turned around, `done` is in reverse order.
    let mut layers = vec![0; count];
    for &node in done.iter().rev() {
        let own = layers.get(node).copied().unwrap_or_default();
        for (number, &(from, to)) in edges.iter().enumerate().filter(|(_, (from, to))| from != to) {
            let is_back = back.get(number).copied().unwrap_or_default();
            let (upper, lower) = if is_back { (to, from) } else { (from, to) };
            if let Some(layer) = layers.get_mut(lower).filter(|_| upper == node) {
                *layer = (*layer).max(own + 2);
            }
        }
    }
    (layers, back)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

/// A depth-first search, which finds the edges that lead back.
struct Search {
    next: Vec<Vec<(usize, usize)>>,
    state: Vec<State>,
    back: Vec<bool>,
    done: Vec<usize>,
}

impl Search {
    fn visit(&mut self, root: usize) {
        if self.state.get(root) != Some(&State::New) {
            return;
        }
        let mut open = vec![(root, 0)];
        self.set(root, State::Open);
        while let Some((node, at)) = open.last_mut() {
            let step = self.next.get(*node).and_then(|list| list.get(*at)).copied();
            *at += 1;
            let Some((to, number)) = step else {
                let node = *node;
                self.set(node, State::Done);
                self.done.push(node);
                open.pop();
                continue;
            };
            match self.state.get(to) {
                Some(State::New) => {
                    self.set(to, State::Open);
                    open.push((to, 0));
                }
                Some(State::Open) => {
                    if let Some(back) = self.back.get_mut(number) {
                        *back = true;
                    }
                }
                _ => {}
            }
        }
    }

    fn set(&mut self, node: usize, state: State) {
        if let Some(slot) = self.state.get_mut(node) {
            *slot = state;
        }
    }
}

/// The slots of each layer from left to right.
pub(super) fn rows(slots: &[Slot], links: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let count = slots.iter().map(|slot| slot.layer + 1).max().unwrap_or_default();
    let mut rows = vec![Vec::new(); count];
    for (at, slot) in slots.iter().enumerate() {
        if let Some(row) = rows.get_mut(slot.layer) {
            row.push(at);
        }
    }
    let (mut above, mut below): (Neighbors, Neighbors) = (HashMap::new(), HashMap::new());
    for &(upper, lower) in links {
        above.entry(lower).or_default().push(upper);
        below.entry(upper).or_default().push(lower);
    }
    let mut best = (crossings(&rows, &below), rows.clone());
    for sweep in 0..SWEEPS {
        let is_down = sweep % 2 == 0;
        let order: Vec<usize> =
            if is_down { (1..count).collect() } else { (0..count.saturating_sub(1)).rev().collect() };
        for layer in order {
            let fixed = if is_down { layer - 1 } else { layer + 1 };
            sort(&mut rows, layer, fixed, if is_down { &above } else { &below });
        }
        let crossed = crossings(&rows, &below);
        if crossed < best.0 {
            best = (crossed, rows.clone());
        }
    }
    best.1
}

type Neighbors = HashMap<usize, Vec<usize>>;

/// Sorts a layer by the mean positions of its neighbors in the `fixed` one; slots without any stay where they are.
fn sort(rows: &mut [Vec<usize>], layer: usize, fixed: usize, neighbors: &Neighbors) {
    let places = rows.get(fixed).map(|row| positions(row)).unwrap_or_default();
    let Some(row) = rows.get_mut(layer) else { return };
    let mut keyed: Vec<(f64, usize)> = Vec::with_capacity(row.len());
    for (at, slot) in row.iter().enumerate() {
        let near: Vec<f64> = neighbors
            .get(slot)
            .into_iter()
            .flatten()
            .filter_map(|one| places.get(one))
            .map(|at| *at as f64)
            .collect();
        let mean = if near.is_empty() { at as f64 } else { near.iter().sum::<f64>() / near.len() as f64 };
        keyed.push((mean, *slot));
    }
    keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
    *row = keyed.into_iter().map(|(_, slot)| slot).collect();
}

fn positions(row: &[usize]) -> HashMap<usize, usize> {
    row.iter().enumerate().map(|(at, slot)| (*slot, at)).collect()
}

/// The number of crossing links.
fn crossings(rows: &[Vec<usize>], below: &Neighbors) -> usize {
    let mut crossed = 0;
    for (upper, lower) in rows.iter().zip(rows.iter().skip(1)) {
        let places = positions(lower);
        let ends = upper.iter().flat_map(|slot| {
            let mut ends: Vec<usize> =
                below.get(slot).into_iter().flatten().filter_map(|to| places.get(to)).copied().collect();
            ends.sort_unstable();
            ends
        });
        let ends: Vec<usize> = ends.collect();
        for (at, one) in ends.iter().enumerate() {
            crossed += ends.iter().skip(at + 1).filter(|other| *other < one).count();
        }
    }
    crossed
}
