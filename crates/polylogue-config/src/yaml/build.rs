//! Events of the parser to a tree.

use std::collections::HashMap;

use granit_parser::{Event, ScalarStyle, Tag};

use super::node::{Data, Entry, Node};
use super::scalar;
use crate::codes;
use crate::diagnostic::Report;
use crate::source::Span;

/// How deep lists and mappings may be nested. Everything that walks a tree may recurse.
pub(super) const MAX_DEPTH: usize = 64;
/// How much a tree may weigh, aliases written out: its texts in bytes, and [`NODE_WEIGHT`] for every node.
const MAX_WEIGHT: usize = 16 << 20;
/// What a node weighs besides its text.
const NODE_WEIGHT: usize = 32;

/// How many characters are kept of a key that is no text, for messages. An alias can have any length in the file, whatever it weighs.
const LONGEST_ODD_KEY: usize = 100;

/// The tree cannot be built; the report has the reason.
pub(super) struct Stopped;

/// Builds a tree without recursion.
#[derive(Default)]
pub(super) struct Builder {
    open: Vec<Open>,
    root: Option<Grown>,
    documents: usize,
    anchors: HashMap<usize, Grown>,
    /// What the tree weighs so far.
    weight: usize,
    /// What is kept for aliases weighs.
    kept: usize,
}

/// A list or mapping that is not yet closed.
struct Open {
    start: usize,
    anchor: usize,
    weight_before: usize,
    /// The nesting of what it holds so far.
    height: usize,
    kind: Kind,
}

enum Kind {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, key: Option<(String, Span)> },
}

/// A node, what it weighs and how deep it is nested: what an alias to it costs.
#[derive(Clone)]
struct Grown {
    node: Node,
    weight: usize,
    height: usize,
}

impl Builder {
    pub(super) fn take(
        &mut self,
        event: Event<'_>,
        span: granit_parser::Span,
        report: &mut Report<'_>,
    ) -> Result<(), Stopped> {
        let bytes = |span: &granit_parser::Span| {
            span.start.byte_offset().unwrap_or(0)..span.end.byte_offset().unwrap_or(0)
        };
        let at = bytes(&span);
        let tag_at = span.tag_span().map_or(at.clone(), |tag| bytes(&tag));
        match event {
            Event::DocumentStart(..) => self.begin_document(&at, report),
            Event::Scalar(text, style, anchor, tag) => {
                let text_only = check_tag(tag.as_deref(), &tag_at, report);
                let data = match style {
                    ScalarStyle::Plain if !text_only => scalar::plain(&text),
                    _ => Data::Text(text.into_owned()),
                };
                let weight = NODE_WEIGHT + at.len();
                self.add(Grown { node: Node { span: at, data }, weight, height: 0 }, anchor, report)
            }
            Event::SequenceStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), &tag_at, report);
                self.begin(Kind::List(Vec::new()), at.start, anchor);
                Ok(())
            }
            Event::MappingStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), &tag_at, report);
                self.begin(Kind::Map { entries: Vec::new(), key: None }, at.start, anchor);
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(at.end, report),
            Event::Alias(anchor) => self.alias(anchor, &at, report),
            Event::UnresolvedAlias(name) => {
                let hint = format!("a text that begins with `*` has to be in quotes: \"*{name}\"");
                report.code(codes::SYNTAX).error_with_hint(
                    &at,
                    format!("there is no anchor `&{name}` before this"),
                    hint,
                );
                let node = Node { span: at, data: Data::Null };
                self.add(Grown { node, weight: NODE_WEIGHT, height: 0 }, 0, report)
            }
            _ => Ok(()),
        }
    }

    /// The tree, when it was built to its end.
    pub(super) fn root(self, report: &mut Report<'_>) -> Option<Node> {
        let root = self.root.map(|grown| grown.node).filter(|node| !node.is_null());
        if root.is_none() {
            report.code(codes::SYNTAX).error_with_hint(
                &(0..0),
                "the file is empty",
                "a team has at least `name`, `agents` and `chat`",
            );
        }
        root
    }

    fn begin_document(&mut self, at: &Span, report: &mut Report<'_>) -> Result<(), Stopped> {
        self.documents += 1;
        if self.documents == 1 {
            return Ok(());
        }
        report.code(codes::SYNTAX).error_with_hint(
            at,
            "a second document starts here; only one is allowed",
            "a file holds one team: leave out the `---`",
        );
        Err(Stopped)
    }

    fn begin(&mut self, kind: Kind, start: usize, anchor: usize) {
        self.open.push(Open { start, anchor, weight_before: self.weight, height: 0, kind });
    }

    fn end(&mut self, end: usize, report: &mut Report<'_>) -> Result<(), Stopped> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let data = match open.kind {
            Kind::List(items) => Data::List(items),
            Kind::Map { entries, .. } => Data::Map(merged(entries, report)),
        };
        let node = Node { span: open.start..end.max(open.start), data };
        let weight = self.weight - open.weight_before + NODE_WEIGHT;
        // What it holds has been weighed already.
        self.weight = open.weight_before;
        self.add(Grown { node, weight, height: open.height + 1 }, open.anchor, report)
    }

    fn alias(&mut self, anchor: usize, at: &Span, report: &mut Report<'_>) -> Result<(), Stopped> {
        let Some(target) = self.anchors.get(&anchor) else {
            report.code(codes::SYNTAX).error(at, "this alias refers to a value that contains it");
            return Err(Stopped);
        };
        if self.weight + target.weight > MAX_WEIGHT || self.open.len() + target.height > MAX_DEPTH {
            return too_large(at, report);
        }
        self.add(target.clone(), 0, report)
    }

    /// Puts a finished node where it belongs.
    fn add(&mut self, grown: Grown, anchor: usize, report: &mut Report<'_>) -> Result<(), Stopped> {
        self.weight += grown.weight;
        self.kept += if anchor > 0 { grown.weight } else { 0 };
        if self.weight.max(self.kept) > MAX_WEIGHT {
            return too_large(&grown.node.span, report);
        }
        if anchor > 0 {
            self.anchors.insert(anchor, grown.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(grown);
            return Ok(());
        };
        parent.height = parent.height.max(grown.height);
        match &mut parent.kind {
            Kind::List(items) => items.push(grown.node),
            Kind::Map { entries, key } => match key.take() {
                None => *key = Some(key_of(grown.node, report)),
                Some((key, key_span)) => entries.push(Entry { key, key_span, value: grown.node }),
            },
        }
        Ok(())
    }
}

/// Whether the tag makes a text of whatever is there. Other tags would make types of texts, which files may not.
fn check_tag(tag: Option<&Tag>, at: &Span, report: &mut Report<'_>) -> bool {
    let Some(tag) = tag else { return false };
    if tag.is_yaml_core_schema() {
        return tag.suffix() == "str";
    }
    report.code(codes::SYNTAX).error_with_hint(
        at,
        format!("the tag `{tag}` is not supported"),
        "leave it out",
    );
    false
}

fn too_large(at: &Span, report: &mut Report<'_>) -> Result<(), Stopped> {
    report.code(codes::SYNTAX).error_with_hint(
        at,
        "the file is too large after its aliases are expanded",
        "16 MiB and a nesting of 64 are the most that a team file can have",
    );
    Err(Stopped)
}

/// A key has to be a text. The mistake behind one that is not is nearly always a variable without quotes.
fn key_of(node: Node, report: &mut Report<'_>) -> (String, Span) {
    let written = report.source.slice(&node.span);
    let before = report.source.slice(&(0..node.span.start));
    if written.starts_with('{') && before.ends_with('{') {
        let at = node.span.start - 1..node.span.end;
        let hint = format!("write \"{{{written}}}\"");
        report.code(codes::SYNTAX).error_with_hint(
            &at,
            "a text that begins with `{{` must be in quotes",
            hint,
        );
    } else if matches!(node.data, Data::List(_) | Data::Map(_)) {
        report.code(codes::SYNTAX).error_with_hint(
            &node.span,
            "a key cannot be a list or mapping",
            "put it in quotes if it is a text",
        );
    }
    let odd = || written.chars().take(LONGEST_ODD_KEY).collect::<String>();
    let key = node.text().map_or_else(odd, str::to_owned);
    (key, node.span)
}

/// Reports keys that are there twice, and puts what `<<` names in the place of `<<`: the mapping's own keys win.
fn merged(entries: Vec<Entry>, report: &mut Report<'_>) -> Vec<Entry> {
    let mut seen: HashMap<String, Span> = HashMap::new();
    let mut own: Vec<Entry> = Vec::with_capacity(entries.len());
    let mut bases: Vec<Node> = Vec::new();
    for entry in entries {
        if entry.key == "<<" {
            bases.extend(entry.value.one_or_many().iter().cloned());
        } else if let Some(first) = seen.get(&entry.key) {
            if report.full() {
                continue;
            }
            let line = report.source.position(first.start).line;
            report
                .code(codes::SYNTAX)
                .error(&entry.key_span, format!("`{}` is set twice; first in line {line}", entry.key));
        } else {
            seen.insert(entry.key.clone(), entry.key_span.clone());
            own.push(entry);
        }
    }
    for base in bases {
        let Data::Map(inherited) = base.data else {
            report.code(codes::SYNTAX).error_with_hint(
                &base.span,
                "`<<` takes a mapping",
                "name one by its anchor: `<<: *anchor`",
            );
            continue;
        };
        for entry in inherited {
            if seen.insert(entry.key.clone(), entry.key_span.clone()).is_none() {
                own.push(entry);
            }
        }
    }
    own
}
