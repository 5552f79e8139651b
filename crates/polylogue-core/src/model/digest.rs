//! The digest of a request.

use super::Request;
use crate::Digest;
use crate::view::Chain;

impl Request<'_> {
    /// Identifies this request to the model named `model`, with the digest that the log has for its reply. Reads all
    /// entries.
    #[must_use]
    pub fn digest(&self, model: &str) -> Digest {
        let chain = self.entries.iter().fold(Chain::default(), |chain, entry| chain.link(entry));
        chain.digest(model, self.system, self.tools, self.params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EncodeCache, Message, Name, Opening, Origin, Params, Path, Transcript, View, ViewOptions};

    #[test]
    fn a_request_is_identified_as_the_view_it_is_made_of() {
        let me = Name::new("A").unwrap();
        let messages = vec![Message::text(Name::user(), "one"), Message::text(Name::user(), "two")];
        let opening = Opening { participants: vec![me.clone()], messages, ..Opening::default() };
        let body = crate::Body::Opened(opening);
        let event = crate::Event {
            seq: 0,
            at: Path::root(),
            time: crate::Timestamp(0),
            ran_ms: 0,
            inbox: None,
            body,
        };
        let transcript = Transcript::of(&Path::root(), &[std::sync::Arc::new(event)]).unwrap();
        let view = View::of(&transcript, &me, ViewOptions::default());
        let (params, encoded, at) = (&Params::default(), &EncodeCache::default(), &Path::root());
        let origin = Origin::new(at, &me, 0);
        let request = Request {
            origin,
            system: Some("s"),
            entries: view.entries(),
            tools: &[],
            params,
            encoded,
            reserved: None,
        };
        assert_eq!(view.entries().len(), 2);
        assert_eq!(request.digest("m"), view.digest("m", Some("s"), &[], params));
    }
}
