//! What a reply has next to its parts, so that later requests return it to its provider unchanged.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::warn;

use super::digest::Digest;
use super::part::{Part, ToolCall};
use super::written::written;

/// What a reply has next to its parts, so that later requests return it to its provider unchanged: the arguments of
/// calls as the model wrote them, and seals. In the log of the model call only, never in a message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Verbatim {
    /// The arguments of calls whose text is not the JSON of their value byte for byte.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<RawArguments>,
    /// The seals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seals: Option<Seals>,
    /// The size of seals that were dropped, in bytes of JSON, because they were larger than 1 MiB: the model continues without the
    /// reasoning of this reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped_seals: Option<u64>,
}

/// The arguments of a call as the model wrote them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawArguments {
    /// The index of the call among the parts.
    pub part: usize,
    /// The text.
    pub text: Arc<str>,
}

/// The seals of one reply: signatures, encrypted reasoning and ids that a provider returned with parts, and expects
/// back with them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Seals {
    /// Who wrote them, and alone can read them: `wire:model`.
    pub by: Arc<str>,
    /// Identifies everything that was sent before the reply. Seals are sent again only after the same.
    pub before: Digest,
    /// The index of the endpoint's key that was used: providers bind seals to an account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<usize>,
    /// One for each sealed part, in order.
    pub parts: Vec<Seal>,
}

/// What a provider returned with one part, and expects back with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Seal {
    /// The index of the part.
    pub part: usize,
    /// Identifies the text of the part: a seal does not fit another text.
    of: Digest,
    /// Opaque to everything but its wire.
    pub data: Value,
}

impl Seal {
    /// Creates the seal `data` on `content`, the part at `index`.
    pub fn new(index: usize, content: &Part, data: Value) -> Self {
        Self { part: index, of: fingerprint(content), data }
    }
}

/// Identifies the text of a part. Calls are not compared: their ids and names are made legal after the reply.
fn fingerprint(part: &Part) -> Digest {
    let (kind, text) = match part {
        Part::Text(text) => (b't', &**text),
        Part::Thought(text) => (b'r', &**text),
        Part::ToolCall(_) => (b'c', ""),
        _ => (b'o', ""),
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[kind]).update(text.as_bytes());
    let mut digest = [0; 16];
    hasher.finalize_xof().fill(&mut digest);
    Digest(digest)
}

impl Verbatim {
    /// The maximum size of the seals of one reply, in bytes of JSON. Larger ones are dropped.
    pub const MAX_SEALS: usize = 1 << 20;

    /// Returns the seal of `content`, the part at `index`, unless it is on another text.
    pub fn seal(&self, index: usize, content: &Part) -> Option<&Value> {
        let seals = self.seals.as_ref()?.parts.iter();
        let mut fitting = seals.filter(|seal| seal.part == index && seal.of == fingerprint(content));
        fitting.next().map(|seal| &seal.data)
    }

    /// Returns the arguments of `call`, the part at `index`, as the model wrote them; `None` if the call has others now.
    pub fn arguments(&self, index: usize, call: &ToolCall) -> Option<&str> {
        let raw = self.arguments.iter().find(|raw| raw.part == index)?;
        let is_same = serde_json::from_str::<Value>(&raw.text).is_ok_and(|value| value == call.args);
        is_same.then_some(&*raw.text)
    }

    /// The bytes that later requests can have of it besides `parts`: the seals, and what the arguments of calls are
    /// longer than their values.
    pub(crate) fn bytes_besides(&self, parts: &[Part]) -> u64 {
        let seals = self.seals.iter().flat_map(|seals| &seals.parts).map(|seal| written(&seal.data));
        let longer = self.arguments.iter().map(|raw| match parts.get(raw.part) {
            Some(Part::ToolCall(call)) => (raw.text.len() as u64).saturating_sub(written(&call.args)),
            _ => 0,
        });
        seals.chain(longer).fold(0, u64::saturating_add)
    }

    /// The same for the parts at the indices `kept`, in their order; `None` if nothing is left.
    pub(crate) fn of_kept(&self, kept: &[usize]) -> Option<Self> {
        let place = |part: usize| kept.iter().position(|at| *at == part);
        let arguments = self.arguments.iter().filter_map(|raw| {
            let text = Arc::clone(&raw.text);
            place(raw.part).map(|part| RawArguments { part, text })
        });
        let seals = self.seals.as_ref().map(|seals| {
            let moved = |seal: &Seal| place(seal.part).map(|part| Seal { part, ..seal.clone() });
            Seals { parts: seals.parts.iter().filter_map(moved).collect(), ..seals.clone() }
        });
        Self { arguments: arguments.collect(), seals, dropped_seals: None }.some()
    }

    /// This of the first `parts` parts of a reply, with `rest` of those after them. Seals of the rest count only together
    /// with seals of the first, which say what they came after.
    pub(crate) fn followed_by(self, parts: usize, rest: Self) -> Self {
        let Self { mut arguments, mut seals, dropped_seals } = self;
        let later = rest.arguments.into_iter();
        arguments.extend(later.map(|raw| RawArguments { part: raw.part + parts, ..raw }));
        if let (Some(seals), Some(rest)) = (&mut seals, rest.seals) {
            seals.parts.extend(rest.parts.into_iter().map(|seal| Seal { part: seal.part + parts, ..seal }));
        }
        Self { arguments, seals, dropped_seals: dropped_seals.or(rest.dropped_seals) }
    }

    /// What of this later requests return; `None` if that is nothing.
    pub(crate) fn returned(self: &Arc<Self>) -> Option<Arc<Self>> {
        match self.dropped_seals {
            None => Some(Arc::clone(self)),
            Some(_) => Self { dropped_seals: None, ..Self::clone(self) }.some().map(Arc::new),
        }
    }

    /// This without its seals; `None` if nothing is left.
    pub(crate) fn unsealed(&self) -> Option<Self> {
        Self { arguments: self.arguments.clone(), ..Self::default() }.some()
    }

    /// This, if it has anything; without its seals, if they are too large, which it [says](Self::dropped_seals): the model continues
    /// without the reasoning of this reply. It is also a warning in the log of the program.
    #[must_use]
    pub fn some(mut self) -> Option<Self> {
        self.seals = self.seals.filter(|seals| !seals.parts.is_empty());
        if let Some(seals) = self.seals.take_if(|seals| written(&*seals) > Self::MAX_SEALS as u64) {
            let (model, bytes, most) = (&seals.by, written(&seals), Self::MAX_SEALS);
            warn!(%model, bytes, most, "seals of a reply are too large and dropped: the model continues without its reasoning");
            self.dropped_seals = Some(bytes);
        }
        let has_any = !self.arguments.is_empty() || self.seals.is_some() || self.dropped_seals.is_some();
        has_any.then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seals(parts: Vec<Seal>) -> Option<Seals> {
        Some(Seals { by: "w:m".into(), before: Digest([0; 16]), key: None, parts })
    }

    #[test]
    fn a_seal_fits_only_the_text_that_it_was_put_on() {
        let thought = Part::Thought("hm".into());
        let verbatim =
            Verbatim { seals: seals(vec![Seal::new(1, &thought, json!("s"))]), ..Verbatim::default() };
        assert_eq!(verbatim.seal(1, &thought), Some(&json!("s")));
        assert_eq!(verbatim.seal(0, &thought), None);
        assert_eq!(verbatim.seal(1, &Part::Thought("hm!".into())), None);
        assert_eq!(verbatim.seal(1, &Part::text("hm")), None);
    }

    #[test]
    fn raw_arguments_count_as_long_as_the_call_has_the_same() {
        let text = r#"{"b": 1.0, "a":"\u00e9", "b": 2}"#;
        let raw = RawArguments { part: 0, text: text.into() };
        let verbatim = Verbatim { arguments: vec![raw], ..Verbatim::default() };
        let mut call = ToolCall { id: "c".into(), tool: "t".into(), args: json!({"a": "é", "b": 2}) };
        assert_eq!(verbatim.arguments(0, &call), Some(text));
        assert_eq!(verbatim.arguments(1, &call), None);
        call.args = json!({"a": "e", "b": 2});
        assert_eq!(verbatim.arguments(0, &call), None);
    }

    #[test]
    fn parts_that_are_dropped_take_their_seals_along() {
        let parts = [Part::text("a"), Part::Thought("b".into()), Part::text("c")];
        let on = |index: usize| Seal::new(index, &parts[index], json!(index));
        let verbatim = Verbatim { seals: seals(vec![on(0), on(2)]), ..Verbatim::default() };
        let kept = verbatim.of_kept(&[1, 2]).unwrap();
        assert_eq!((kept.seal(0, &parts[0]), kept.seal(1, &parts[2])), (None, Some(&json!(2))));
        assert_eq!(verbatim.of_kept(&[1]), None);
    }

    /// Keeps what is logged.
    #[derive(Clone, Default)]
    struct Logged(Arc<std::sync::Mutex<Vec<String>>>);

    impl tracing::Subscriber for Logged {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, event: &tracing::Event<'_>) {
            struct Fields(String);
            impl tracing::field::Visit for Fields {
                fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                    self.0.push_str(&format!("{field}={value:?} "));
                }
            }
            let mut fields = Fields(format!("{} ", event.metadata().level()));
            event.record(&mut fields);
            self.0.lock().unwrap().push(fields.0);
        }
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }

    #[test]
    fn seals_beyond_their_bound_are_dropped_with_a_note_and_a_warning() {
        let sealed = |size| {
            let seals = seals(vec![Seal::new(0, &Part::text("a"), json!("x".repeat(size)))]);
            Verbatim { seals, ..Verbatim::default() }.some()
        };
        let logged = Logged::default();
        tracing::subscriber::with_default(logged.clone(), || {
            assert_eq!(sealed(1_000).unwrap().dropped_seals, None);
            let Some(Verbatim { seals: None, dropped_seals: Some(bytes), .. }) = sealed(Verbatim::MAX_SEALS)
            else {
                panic!("they are kept, or nothing says that they are not");
            };
            assert!(bytes > Verbatim::MAX_SEALS as u64);
        });
        let logged = logged.0.lock().unwrap().clone();
        assert_eq!(logged.len(), 1, "{logged:?}");
        assert!(
            logged[0].starts_with("WARN ") && logged[0].contains("w:m") && logged[0].contains("1048"),
            "{logged:?}"
        );
    }

    #[test]
    fn no_later_request_has_that_seals_were_dropped() {
        let dropped = Verbatim { dropped_seals: Some(2_000_000), ..Verbatim::default() };
        assert_eq!(Arc::new(dropped.clone()).returned(), None);
        let raw = RawArguments { part: 0, text: "{ }".into() };
        let other = Verbatim { arguments: vec![raw.clone()], ..Verbatim::default() };
        let both = dropped.followed_by(1, other.clone());
        assert_eq!(both.dropped_seals, Some(2_000_000));
        let moved = RawArguments { part: 1, ..raw };
        let rest = Verbatim { arguments: vec![moved], ..Verbatim::default() };
        assert_eq!(Arc::new(both).returned(), Some(Arc::new(rest)));
        let kept = Arc::new(other);
        assert_eq!(kept.returned(), Some(Arc::clone(&kept)));
    }
}
