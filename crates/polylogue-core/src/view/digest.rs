//! A hash over the entries of a view.

use super::entry::Entry;
use crate::{Digest, Params, Part, ToolSpec, ToolStatus};

/// A hash over the entries of a view in order: adding an entry costs its own length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Chain([u8; 32]);

impl Chain {
    /// The chain with one more entry.
    pub(crate) fn link(self, entry: &Entry) -> Self {
        // Hashed in one go: hashing many small pieces takes three times as long.
        let mut bytes = Vec::with_capacity(512);
        bytes.extend_from_slice(&self.0);
        match entry {
            Entry::System { .. } => bytes.push(b's'),
            Entry::User { .. } => bytes.push(b'u'),
            Entry::Assistant { verbatim: None, .. } => bytes.push(b'a'),
            Entry::Assistant { verbatim: Some(verbatim), .. } => {
                bytes.push(b'v');
                let start = bytes.len();
                json(&mut bytes, verbatim);
                let length = (bytes.len() - start) as u64;
                bytes.extend_from_slice(&length.to_le_bytes());
            }
            Entry::Tool { id, tool, result: outcome } => {
                bytes.push(match outcome.status {
                    ToolStatus::Done => b'd',
                    ToolStatus::Failed => b'f',
                    ToolStatus::Unknown => b'?',
                });
                text(&mut bytes, id);
                text(&mut bytes, tool);
            }
        }
        entry.parts().iter().for_each(|each| part(&mut bytes, each));
        Self(blake3::hash(&bytes).into())
    }

    /// Identifies the request of these entries with these parameters to `model`.
    pub(crate) fn digest(
        self,
        model: &str,
        system: Option<&str>,
        tools: &[ToolSpec],
        params: &Params,
    ) -> Digest {
        let mut bytes = Vec::with_capacity(512);
        bytes.extend_from_slice(&self.0);
        text(&mut bytes, model);
        text(&mut bytes, system.unwrap_or_default());
        json(&mut bytes, &(system.is_some(), tools, params));
        digest_of(&bytes)
    }

    /// Identifies these entries after a system message and tools: what was sent before a reply.
    pub(crate) fn after(self, start: &Digest) -> Digest {
        digest_of(&[&start.0[..], &self.0].concat())
    }
}

/// Identifies the beginning of a request: its system message and its tools.
pub(crate) fn start(system: Option<&str>, tools: &[ToolSpec]) -> Digest {
    fn declared(tool: &ToolSpec) -> (&str, &str, &serde_json::Value) {
        (&tool.name, &tool.description, &tool.parameters)
    }
    let mut bytes = Vec::new();
    json(&mut bytes, &(system, tools.iter().map(declared).collect::<Vec<_>>()));
    digest_of(&bytes)
}

fn digest_of(bytes: &[u8]) -> Digest {
    let mut digest = [0; 16];
    digest.iter_mut().zip(blake3::hash(bytes).as_bytes()).for_each(|(to, from)| *to = *from);
    Digest(digest)
}

fn part(bytes: &mut Vec<u8>, part: &Part) {
    match part {
        Part::Text(text_part) => {
            bytes.push(b't');
            text(bytes, text_part);
        }
        other => {
            bytes.push(b'j');
            json(bytes, other);
        }
    }
}

/// Prefixed with its length, so that no two sequences of texts have the same bytes.
fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

fn json(bytes: &mut Vec<u8>, value: &impl serde::Serialize) {
    // A value of our types always serializes.
    let _ = serde_json::to_writer(bytes, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_differ_have_different_digests() {
        let chain = Chain::default();
        let chains = [
            chain,
            chain.link(&Entry::user("ab")),
            chain.link(&Entry::assistant("ab")),
            chain.link(&Entry::user("a")).link(&Entry::user("b")),
            chain.link(&Entry::User { parts: vec![Part::text("a"), Part::text("b")] }),
            chain.link(&Entry::User { parts: vec![Part::Data("ab".into())] }),
        ];
        let params = Params::default();
        let hot = Params { temperature: Some(1.0), ..Params::default() };
        let tool = ToolSpec::new("t", "d", serde_json::json!({}));
        let mut digests: Vec<String> =
            chains.iter().map(|chain| chain.digest("m", None, &[], &params).to_string()).collect();
        digests.extend([
            chain.digest("n", None, &[], &params).to_string(),
            chain.digest("m", Some(""), &[], &params).to_string(),
            chain.digest("m", Some("s"), &[], &params).to_string(),
            chain.digest("m", None, &[tool], &params).to_string(),
            chain.digest("m", None, &[], &hot).to_string(),
        ]);
        let count = digests.len();
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), count);
        assert_eq!(chain.link(&Entry::user("ab")), chain.link(&Entry::user("ab")));
    }
}
