//! Diagrams as SVG.

use std::fmt::Write as _;

use super::graph::{Edge, EdgeKind, Group, Node, NodeKind};
use super::layout::{self, LOOP, Layout, Route, Sketch, SketchEdge};
use super::text::{shortened, width, xml};

/// Sizes of fonts in pixels: names, details, labels.
const NAME: f64 = 14.0;
const DETAIL: f64 = 11.0;
const LABEL: f64 = 11.0;
const LINE: f64 = 15.0;
/// The space around the contents of a group, and around the diagram.
pub(super) const PADDING: f64 = 18.0;
/// The height of a group's title with its pattern, and of a line of what ends it.
const HEADER: f64 = 48.0;
/// The longest lines of a group, in characters.
const LONGEST: usize = 90;

const STYLE: &str = "\
.d{--p:#fff;--g:#f6f8fa;--gl:#d0d7de;--t:#1f2328;--m:#59636e;--e:#6e7781;--n:#fff;--mo:#0969da;--pe:#bc4c00;--pr:#1a7f37;--ch:#8250df;--se:#9a6700}\
@media (prefers-color-scheme:dark){.d{--p:#0d1117;--g:#151b23;--gl:#3d444d;--t:#f0f6fc;--m:#9198a1;--e:#8b949e;--n:#0d1117;--mo:#4493f8;--pe:#f0883e;--pr:#3fb950;--ch:#ab7df8;--se:#d29922}}\
.d text{font-family:Helvetica,Arial,\"Liberation Sans\",sans-serif;fill:var(--t)}\
.d .p{fill:var(--p)}.d .g{fill:var(--g);stroke:var(--gl)}.d .h{font-size:15px;font-weight:600}.d .s{font-size:11px;fill:var(--m)}\
.d .n{fill:var(--n);stroke-width:1.5}.d .nn{font-size:14px;font-weight:600}.d .l{font-size:11px;fill:var(--m);text-anchor:middle}\
.d .e{fill:none;stroke:var(--e);stroke-width:1.4}.d .u{stroke-dasharray:5 4}.d .a{fill:var(--e)}.d .lb{fill:var(--g)}\
.d .mo{stroke:var(--mo)}.d .pe{stroke:var(--pe)}.d .pr{stroke:var(--pr)}.d .se{stroke:var(--se)}.d .ch{stroke:var(--ch)}\
.d .b.mo{fill:var(--mo)}.d .b.pe{fill:var(--pe)}.d .b.pr{fill:var(--pr)}.d .b.ch{fill:var(--ch)}.d .o{fill:var(--t)}.d .c{text-anchor:middle}";

/// The whole document.
pub(super) fn document(outermost: &Group) -> String {
    let drawn = drawn(outermost);
    let (wide, high) = (drawn.width + 2.0 * PADDING, drawn.height + 2.0 * PADDING);
    let name = xml(&outermost.name);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"d\" role=\"img\" width=\"{wide:.0}\" height=\"{high:.0}\" viewBox=\"0 0 {wide:.0} {high:.0}\">\n\
         <title>{name}</title>\n<desc>{}</desc>\n<style>{STYLE}</style>\n\
         <defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto-start-reverse\">\
         <path class=\"a\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n\
         <rect class=\"p\" width=\"100%\" height=\"100%\"/>\n",
        xml(&format!("The team {}: {}", outermost.name, outermost.pattern)),
    );
    group(outermost, &drawn, PADDING, PADDING, &mut svg);
    svg.push_str("</svg>\n");
    svg
}

/// A group with its size and the places of its contents.
pub(super) struct Drawn {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) layout: Layout,
    /// The groups among its nodes, by the number of the node.
    pub(super) inner: Vec<Option<Drawn>>,
    pub(super) ends: Vec<String>,
    pub(super) pattern: String,
}

impl Drawn {
    /// Where the contents begin: they are centered below the title.
    pub(super) fn origin(&self) -> (f64, f64) {
        ((self.width - self.layout.width) / 2.0, HEADER)
    }
}

pub(super) fn drawn(group: &Group) -> Drawn {
    let inner: Vec<Option<Drawn>> =
        group.nodes.iter().map(|node| node.group.as_ref().map(|inner| drawn(inner))).collect();
    let nodes = group.nodes.iter().zip(&inner).map(|(node, inner)| match inner {
        Some(inner) => (inner.width, inner.height),
        None => size(node),
    });
    let edges = group.edges.iter().map(|edge| SketchEdge {
        from: edge.from,
        to: edge.to,
        label: label_size(&edge.label),
    });
    let layout = layout::of(&Sketch { nodes: nodes.collect(), edges: edges.collect() });
    let ends: Vec<String> = group.ends.iter().map(|end| shortened(end, LONGEST)).collect();
    let pattern = shortened(&group.pattern, LONGEST);
    let footer = ends.iter().map(|end| width(end, DETAIL) + 40.0);
    let header = [width(&group.name, 16.0), width(&pattern, DETAIL)];
    let widest = header.into_iter().chain(footer).fold(layout.width, f64::max);
    let height = HEADER + layout.height + PADDING + LINE * ends.len() as f64 + 8.0;
    Drawn { width: widest + 2.0 * PADDING, height, layout, inner, ends, pattern }
}

/// The size of a node that is no group.
pub(super) fn size(node: &Node) -> (f64, f64) {
    match node.kind {
        NodeKind::Start | NodeKind::End => (18.0, 18.0),
        NodeKind::Selector => (width(&node.name, 12.0) + 36.0, 34.0),
        _ => {
            let name = width(&node.name, NAME) + 14.0 + width(node.kind.noun(), DETAIL);
            let details = node.details.iter().map(|detail| width(detail, DETAIL));
            let widest = details.fold(name, f64::max);
            (widest.max(70.0) + 28.0, 32.0 + LINE * node.details.len() as f64)
        }
    }
}

fn label_size(label: &str) -> (f64, f64) {
    if label.is_empty() { (0.0, 0.0) } else { (width(label, LABEL) + 8.0, 18.0) }
}

fn group(group: &Group, drawn: &Drawn, left: f64, top: f64, svg: &mut String) {
    let Drawn { width: wide, height: high, layout, .. } = drawn;
    let _ = writeln!(
        svg,
        "<g transform=\"translate({left:.1} {top:.1})\"><rect class=\"g\" width=\"{wide:.1}\" height=\"{high:.1}\" rx=\"12\"/>\
         <text class=\"h\" x=\"{PADDING}\" y=\"24\">{}</text><text class=\"s\" x=\"{PADDING}\" y=\"40\">{}</text>",
        xml(&group.name),
        xml(&drawn.pattern)
    );
    let (x, y) = drawn.origin();
    let _ = writeln!(svg, "<g transform=\"translate({x:.1} {y:.1})\">");
    for (edge, route) in group.edges.iter().zip(&layout.edges) {
        line(edge, route, svg);
    }
    for ((node, inner), (x, y)) in group.nodes.iter().zip(&drawn.inner).zip(&layout.nodes) {
        match (&node.group, inner) {
            (Some(of), Some(inner)) => self::group(of, inner, *x, *y, svg),
            _ => self::node(node, *x, *y, svg),
        }
    }
    for (edge, route) in group.edges.iter().zip(&layout.edges).filter(|(edge, _)| !edge.label.is_empty()) {
        label(edge, route, svg);
    }
    svg.push_str("</g>\n");
    for (at, end) in drawn.ends.iter().enumerate() {
        let y = HEADER + layout.height + PADDING + LINE * (at as f64 + 0.5);
        let what = if at == 0 { "ends: " } else { "or: " };
        let _ = writeln!(svg, "<text class=\"s\" x=\"{PADDING}\" y=\"{y:.1}\">{what}{}</text>", xml(end));
    }
    svg.push_str("</g>\n");
}

fn node(node: &Node, x: f64, y: f64, svg: &mut String) {
    let (wide, high) = size(node);
    let class = match node.kind {
        NodeKind::Start => {
            let _ =
                writeln!(svg, "<circle class=\"o\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"7\"/>", x + 9.0, y + 9.0);
            return;
        }
        NodeKind::End => {
            let (x, y) = (x + 9.0, y + 9.0);
            let _ = writeln!(
                svg,
                "<circle class=\"e\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"8\"/><circle class=\"o\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"/>"
            );
            return;
        }
        NodeKind::Selector => {
            let _ = writeln!(
                svg,
                "<rect class=\"n se\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\" rx=\"17\"/>\
                 <text class=\"s c\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + wide / 2.0,
                y + 21.0,
                xml(&node.name)
            );
            return;
        }
        NodeKind::Model => "mo",
        NodeKind::Person => "pe",
        NodeKind::Program => "pr",
        NodeKind::Chat => "ch",
    };
    let radius = if node.kind == NodeKind::Person { 15.0 } else { 6.0 };
    let _ = writeln!(
        svg,
        "<rect class=\"n {class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\" rx=\"{radius}\"/>\
         <circle class=\"b {class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\"/><text class=\"nn\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
         <text class=\"s\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        x + 13.0,
        y + 16.0,
        x + 22.0,
        y + 21.0,
        xml(&node.name),
        x + wide - 9.0,
        y + 20.0,
        node.kind.noun()
    );
    for (at, detail) in node.details.iter().enumerate() {
        let y = y + 36.0 + LINE * at as f64;
        let _ = writeln!(svg, "<text class=\"s\" x=\"{:.1}\" y=\"{y:.1}\">{}</text>", x + 13.0, xml(detail));
    }
}

fn line(edge: &Edge, route: &Route, svg: &mut String) {
    let mut path = String::new();
    let mut before: Option<(f64, f64)> = None;
    for &(x, y) in &route.points {
        match before {
            None => path += &format!("M{x:.1} {y:.1}"),
            Some((_, from)) if edge.from == edge.to => {
                let right = x + LOOP * 1.2;
                path += &format!("C{right:.1} {from:.1} {right:.1} {y:.1} {x:.1} {y:.1}");
            }
            Some((left, _)) if (left - x).abs() < 0.05 => path += &format!("L{x:.1} {y:.1}"),
            Some((left, from)) => {
                let middle = from.midpoint(y);
                path += &format!("C{left:.1} {middle:.1} {x:.1} {middle:.1} {x:.1} {y:.1}");
            }
        }
        before = Some((x, y));
    }
    let (class, both) = match edge.kind {
        EdgeKind::Next => ("e", ""),
        EdgeKind::Both => ("e", " marker-start=\"url(#a)\""),
        EdgeKind::Uses => ("e u", ""),
    };
    let _ = writeln!(svg, "<path class=\"{class}\" d=\"{path}\" marker-end=\"url(#a)\"{both}/>");
}

fn label(edge: &Edge, route: &Route, svg: &mut String) {
    let ((wide, high), (x, y)) = (label_size(&edge.label), route.label);
    // In full where it is drawn shortened.
    let is_shortened = !edge.when.is_empty() && edge.when != edge.label;
    let title = if is_shortened { format!("<title>{}</title>", xml(&edge.when)) } else { String::new() };
    let _ = writeln!(
        svg,
        "<rect class=\"lb\" x=\"{:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\" rx=\"3\"/>\
         <text class=\"l\" x=\"{x:.1}\" y=\"{:.1}\">{}{title}</text>",
        x - wide / 2.0,
        y - high / 2.0,
        y + 4.0,
        xml(&edge.label)
    );
}
