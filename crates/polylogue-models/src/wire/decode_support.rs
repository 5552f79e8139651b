//! What the tests of decoders share.

use polylogue_core::{DeltaRef, DeltaSink, EncodeCache, Entry, Name, Origin, Params, Path, Request};

use super::decode::Decoder;
use super::draft::{DecodeError, Decoded};
use super::protocol::Protocol;

/// The pieces of a reply as one readable line.
#[derive(Default)]
struct Heard(String);

impl DeltaSink for Heard {
    fn push(&mut self, delta: DeltaRef<'_>) {
        self.0.push_str(&match delta {
            DeltaRef::Text(text) => format!("[{text}]"),
            DeltaRef::Thought(text) => format!("({text})"),
            DeltaRef::Call { index, tool, args } => format!("<{index} {} {args}>", tool.unwrap_or("-")),
            other => format!("{other:?}"),
        });
    }
}

/// A reply and its pieces.
pub(crate) type Read = (Result<Decoded, DecodeError>, String);

/// Reads a stream that replies to the third request of `who`, with these entries.
pub(crate) fn read_stream<P: Protocol>(
    who: &str,
    entries: &[Entry],
    pieces: impl IntoIterator<Item = impl AsRef<[u8]>>,
) -> Read {
    let (mut heard, mut decoder) = (Heard::default(), Decoder::<P>::default());
    let fed = pieces.into_iter().try_for_each(|piece| decoder.feed(piece.as_ref(), &mut heard));
    let decoded =
        with_request(who, entries, |request| fed.and_then(|()| decoder.finish(request, &mut heard)));
    (decoded, heard.0)
}

/// Reads a whole reply to such a request.
pub(crate) fn read_whole<P: Protocol>(who: &str, entries: &[Entry], body: &[u8]) -> Read {
    let (mut heard, decoder) = (Heard::default(), Decoder::<P>::default());
    let decoded = with_request(who, entries, |request| decoder.whole(body, request, &mut heard));
    (decoded, heard.0)
}

fn with_request<T>(who: &str, entries: &[Entry], run: impl FnOnce(&Request<'_>) -> T) -> T {
    let (at, who) = (Path::root(), Name::new(who).unwrap());
    let (params, encoded) = (&Params::default(), &EncodeCache::default());
    let origin = Origin::new(&at, &who, 3);
    run(&Request { origin, system: None, entries, tools: &[], params, encoded, reserved: None })
}
