//! Pictures, documents, sounds and what no provider reads, as messages and results have them.

use polylogue::Function;
use polylogue_core::{Act, AnyTool, Entry, Media, Part, Request, ToolResult, ToolSpec, ToolStatus};
use polylogue_test::tool::tool_of;
use serde_json::json;

use super::Chance;

/// Types and addresses. Some APIs have no form for some of them, and the last ones are nothing that a provider reads.
const MEDIA: [(&str, &str); 18] = [
    ("image/png", "data:image/png;base64,iVBORw0KGgo="),
    ("image/jpeg", "data:image/jpeg;base64,/9j/4AAQ"),
    ("image/gif", "data:image/gif;base64,R0lGODlh"),
    ("image/webp", "data:image/webp;base64,UklGRgAA"),
    ("image/png", "https://example.org/a.png"),
    ("application/pdf", "data:application/pdf;base64,JVBERi0="),
    ("application/pdf", "https://example.org/a.pdf"),
    ("audio/wav", "data:audio/wav;base64,UklGRgAA"),
    ("audio/mpeg", "data:audio/mpeg;base64,SUQz"),
    ("audio/mpeg", "https://example.org/a.mp3"),
    ("audio/ogg", "data:audio/ogg;base64,T2dnUw=="),
    ("text/csv", "data:text/csv;base64,YSxi"),
    ("video/mp4", "data:video/mp4;base64,AAAA"),
    ("image/svg+xml", "data:image/svg+xml;base64,PHN2Zz4="),
    ("image/png", "data:image/svg+xml;base64,PHN2Zz4="),
    ("image/png", "data:image/png;base64,no base64"),
    ("image/png", "data:image/png;base64,"),
    ("image/png", "file:///etc/passwd"),
];

/// One to three media, or many.
pub(super) fn some(chance: &mut Chance) -> Vec<Part> {
    let count = if chance.one_in(12) { 24 } else { 1 + chance.below(3) };
    let one = |(kind, url): (&str, &str)| Part::Media(Media { media_type: kind.into(), url: url.into() });
    (0..count).map(|_| one(MEDIA[chance.below(MEDIA.len())])).collect()
}

/// Media after a text, or alone.
pub(super) fn with_text(text: &str, chance: &mut Chance) -> Vec<Part> {
    let text = (!chance.one_in(4)).then(|| Part::text(text));
    text.into_iter().chain(some(chance)).collect()
}

/// A tool that shows media.
pub(super) fn shows(name: &str, parts: Vec<Part>) -> AnyTool {
    let schema = json!({"type": "object", "properties": {}});
    let spec = ToolSpec::new(name, "Shows something.", schema).repeatable();
    tool_of(spec, move |_| Ok(ToolResult::new(ToolStatus::Done, parts.clone())))
}

/// A participant that shows other media in each of its turns.
pub(super) fn painter(name: &str, seed: u64) -> Function {
    Function::new(name, move |turn| {
        let mut chance = Chance::of(seed ^ turn.transcript().turns());
        Ok(Act::Say(with_text("Look at this.", &mut chance)))
    })
    .unwrap()
}

/// How many entries of others, of the agent itself, and with results have media.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Seen {
    pub(super) others: usize,
    pub(super) own: usize,
    pub(super) results: usize,
}

impl Seen {
    pub(super) fn add_all(&mut self, more: Self) {
        self.others += more.others;
        self.own += more.own;
        self.results += more.results;
    }

    pub(super) fn add(&mut self, request: &Request<'_>) {
        for entry in request.entries {
            if !entry.parts().iter().any(|part| matches!(part, Part::Media(_))) {
                continue;
            }
            match entry {
                Entry::Assistant { .. } => self.own += 1,
                Entry::Tool { .. } => self.results += 1,
                _ => self.others += 1,
            }
        }
    }
}
