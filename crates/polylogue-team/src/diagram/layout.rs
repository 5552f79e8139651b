//! A layered layout from top to bottom: nodes in layers, edges through the layers between. The label of an edge has a place of
//! its own in a layer, so that no two texts overlap.

use super::order;
use super::place::{self, Slot};

/// What is laid out: sizes of nodes, and edges between them with the sizes of their labels.
pub(super) struct Sketch {
    pub(super) nodes: Vec<(f64, f64)>,
    pub(super) edges: Vec<SketchEdge>,
}

pub(super) struct SketchEdge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label: (f64, f64),
}

/// Where everything is.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) width: f64,
    pub(super) height: f64,
    /// The upper left corners of the nodes.
    pub(super) nodes: Vec<(f64, f64)>,
    pub(super) edges: Vec<Route>,
}

/// The way of an edge.
#[derive(Debug, Default, Clone)]
pub(super) struct Route {
    /// From its source to its target.
    pub(super) points: Vec<(f64, f64)>,
    /// The center of its label.
    pub(super) label: (f64, f64),
}

/// The space between layers, half of it before and half of it after a layer of labels.
const GAP: f64 = 24.0;
/// How far an edge from a node to itself stands out.
pub(super) const LOOP: f64 = 26.0;

/// An edge within the layers, from an upper node to a lower one.
struct Chain {
    /// The number of the edge.
    edge: usize,
    /// The slots from the upper node to the lower one, these included.
    slots: Vec<usize>,
    is_reversed: bool,
}

/// Lays out a sketch.
pub(super) fn of(sketch: &Sketch) -> Layout {
    let count = sketch.nodes.len();
    let pairs: Vec<(usize, usize)> = sketch.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let (layers, reversed) = order::layers(count, &pairs);
    let mut slots: Vec<Slot> = Vec::with_capacity(count);
    for (node, &(width, height)) in sketch.nodes.iter().enumerate() {
        // A label at the side of a node needs the same space at its other side: nodes are centered.
        let side = loop_width(sketch, node);
        let layer = layers.get(node).copied().unwrap_or_default();
        slots.push(Slot::new(width + 2.0 * side, height, layer));
    }
    let chains = chains(sketch, &reversed, &mut slots);
    let links: Vec<(usize, usize)> = chains
        .iter()
        .flat_map(|chain| chain.slots.iter().copied().zip(chain.slots.iter().copied().skip(1)))
        .collect();
    let rows = order::rows(&slots, &links);
    let width = place::across(&mut slots, &rows, &links);
    let height = down(&mut slots, &rows);
    let mut layout = Layout { width, height, nodes: Vec::new(), edges: vec![Route::default(); pairs.len()] };
    for (slot, (width, height)) in slots.iter().zip(&sketch.nodes) {
        layout.nodes.push((slot.x - width / 2.0, slot.y + (slot.row - height) / 2.0));
    }
    routes(sketch, &slots, &chains, &mut layout);
    loops(sketch, &mut layout);
    layout
}

/// The space next to a node for edges to itself.
fn loop_width(sketch: &Sketch, node: usize) -> f64 {
    let own = sketch.edges.iter().filter(|edge| edge.from == node && edge.to == node);
    own.map(|edge| LOOP + 6.0 + edge.label.0).fold(0.0, f64::max)
}

/// The edges between different nodes, each with slots in the layers that it passes; the middle one has its label.
fn chains(sketch: &Sketch, reversed: &[bool], slots: &mut Vec<Slot>) -> Vec<Chain> {
    let mut chains = Vec::new();
    for (number, edge) in sketch.edges.iter().enumerate().filter(|(_, edge)| edge.from != edge.to) {
        let is_reversed = reversed.get(number).copied().unwrap_or_default();
        let (upper, lower) = if is_reversed { (edge.to, edge.from) } else { (edge.from, edge.to) };
        let layer = |at: usize| slots.get(at).map_or(0, |slot| slot.layer);
        let (first, last) = (layer(upper), layer(lower));
        // Layers of nodes have even numbers, those of labels odd ones.
        let middle = first.midpoint(last) | 1;
        let mut path = vec![upper];
        for layer in first + 1..last {
            let (width, height) = if layer == middle { edge.label } else { (0.0, 0.0) };
            path.push(slots.len());
            slots.push(Slot::line(width.max(6.0), height, layer));
        }
        path.push(lower);
        chains.push(Chain { edge: number, slots: path, is_reversed });
    }
    chains
}

/// Sets the vertical positions, and returns the height.
fn down(slots: &mut [Slot], rows: &[Vec<usize>]) -> f64 {
    let mut top = 0.0;
    for (number, row) in rows.iter().enumerate() {
        let height = row.iter().filter_map(|at| slots.get(*at)).map(|slot| slot.height).fold(0.0, f64::max);
        for at in row {
            if let Some(slot) = slots.get_mut(*at) {
                (slot.y, slot.row) = (top, height);
            }
        }
        top += height + if number + 1 < rows.len() { GAP } else { 0.0 };
    }
    top
}

fn routes(sketch: &Sketch, slots: &[Slot], chains: &[Chain], layout: &mut Layout) {
    let x = |chain: &Chain, at: usize| {
        chain.slots.get(at).and_then(|at| slots.get(*at)).map_or(0.0, |slot| slot.x)
    };
    for (number, chain) in chains.iter().enumerate() {
        let ports = |node: usize, is_lower: bool| {
            // The edges at this side of the node, from left to right.
            let mut there: Vec<(f64, usize)> = Vec::new();
            for (other, chain) in chains.iter().enumerate() {
                let (end, next) = match is_lower {
                    true => (chain.slots.last(), chain.slots.len().saturating_sub(2)),
                    false => (chain.slots.first(), 1),
                };
                if end == Some(&node) {
                    there.push((x(chain, next), other));
                }
            }
            there.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
            let place = there.iter().position(|(_, other)| *other == number).unwrap_or_default();
            let width = sketch.nodes.get(node).map_or(0.0, |size| size.0);
            let step = (width * 0.8 / there.len().max(1) as f64).min(28.0);
            step * (place as f64 - (there.len().saturating_sub(1)) as f64 / 2.0)
        };
        let mut points = Vec::new();
        let end = chain.slots.len() - 1;
        for (at, slot) in chain.slots.iter().enumerate() {
            let Some(place) = slots.get(*slot) else { continue };
            let height = sketch.nodes.get(*slot).map_or(0.0, |size| size.1);
            let (above, below) = ((place.row - height) / 2.0, place.row.midpoint(height));
            match at {
                // Next to a taller node of the layer, straight down.
                0 => {
                    let x = place.x + ports(*slot, false);
                    points.extend([(x, place.y + below), (x, place.y + place.row)]);
                }
                at if at == end => {
                    let x = place.x + ports(*slot, true);
                    points.extend([(x, place.y), (x, place.y + above)]);
                }
                // Between layers of nodes without a label, the shortest curve.
                _ if place.row == 0.0 => {}
                _ => points.extend([(place.x, place.y), (place.x, place.y + place.row)]),
            }
        }
        let layer_of = |at: usize| slots.get(at).map_or(0, |slot| slot.layer);
        let ends = (chain.slots.first().copied(), chain.slots.last().copied());
        let middle = ends.0.map_or(0, layer_of).midpoint(ends.1.map_or(0, layer_of)) | 1;
        let label = chain.slots.iter().filter_map(|at| slots.get(*at)).find(|slot| slot.layer == middle);
        points.dedup();
        if chain.is_reversed {
            points.reverse();
        }
        if let Some(route) = layout.edges.get_mut(chain.edge) {
            route.points = points;
            route.label = label.map_or((0.0, 0.0), |slot| (slot.x, slot.y + slot.row / 2.0));
        }
    }
}

/// Edges from nodes to themselves, at their right sides.
fn loops(sketch: &Sketch, layout: &mut Layout) {
    for (number, edge) in sketch.edges.iter().enumerate().filter(|(_, edge)| edge.from == edge.to) {
        let (Some((x, y)), Some((width, height))) =
            (layout.nodes.get(edge.from), sketch.nodes.get(edge.from))
        else {
            continue;
        };
        let (right, middle) = (x + width, y + height / 2.0);
        let reach = (height / 2.0 - 4.0).min(12.0);
        if let Some(route) = layout.edges.get_mut(number) {
            route.points = vec![(right, middle - reach), (right, middle + reach)];
            route.label = (right + LOOP + edge.label.0 / 2.0, middle);
        }
    }
}
