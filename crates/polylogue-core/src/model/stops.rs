//! Stop sequences: cuts replies before them.
//!
//! Most servers end a reply before a stop sequence. Some include it, some ignore it, and so do scripts. So replies of
//! every model are cut here.

use crate::{DeltaRef, DeltaSink, FinishReason, Part, Reply};

/// Passes on pieces up to a stop sequence. Text that may be the beginning of one is buffered until it is clear.
pub(super) struct Stopped<'a> {
    stops: Vec<&'a str>,
    deltas: &'a mut dyn DeltaSink,
    buffer: String,
    is_over: bool,
}

impl<'a> Stopped<'a> {
    pub(super) fn new(stops: &'a [String], deltas: &'a mut dyn DeltaSink) -> Self {
        Self { stops: sequences(stops).collect(), deltas, buffer: String::new(), is_over: false }
    }

    /// Passes on buffered text that turned out to be no stop sequence.
    pub(super) fn finish(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        if !buffer.is_empty() && !self.is_over {
            self.deltas.push(DeltaRef::Text(&buffer));
        }
    }

    fn push_text(&mut self, text: &str) {
        self.buffer.push_str(text);
        let stop = self.stops.iter().filter_map(|stop| self.buffer.find(stop)).min();
        self.is_over = stop.is_some();
        let until = stop.unwrap_or_else(|| unclear_from(&self.buffer, &self.stops));
        let rest = self.buffer.split_off(until);
        let clear = std::mem::replace(&mut self.buffer, rest);
        if !clear.is_empty() {
            self.deltas.push(DeltaRef::Text(&clear));
        }
    }
}

impl DeltaSink for Stopped<'_> {
    fn push(&mut self, delta: DeltaRef<'_>) {
        match delta {
            DeltaRef::Restart => {
                self.buffer.clear();
                self.is_over = false;
                self.deltas.push(delta);
            }
            _ if self.is_over => {}
            DeltaRef::Text(text) => self.push_text(text),
            delta => self.deltas.push(delta),
        }
    }
}

/// `reply` up to the first stop sequence in its texts.
pub(super) fn cut(mut reply: Reply, stops: &[String]) -> Reply {
    let first = |part: &Part| match part {
        Part::Text(text) => sequences(stops).filter_map(|stop| text.find(stop)).min(),
        _ => None,
    };
    let found = reply.parts.iter().enumerate().find_map(|(nth, part)| Some((nth, first(part)?)));
    let Some((nth, at)) = found else { return reply };
    reply.parts.truncate(nth + 1);
    reply.verbatim = None;
    if let Some(Part::Text(text)) = reply.parts.pop() {
        let text = text.get(..at).unwrap_or_default();
        if !text.is_empty() {
            reply.parts.push(Part::text(text));
        }
    }
    Reply { finish: FinishReason::Stop, ..reply }
}

/// The stop sequences that are not empty: an empty one would end every reply before it begins.
fn sequences(stops: &[String]) -> impl Iterator<Item = &str> {
    stops.iter().map(String::as_str).filter(|stop| !stop.is_empty())
}

/// The position from which `text` may be the beginning of a stop sequence.
fn unclear_from(text: &str, stops: &[&str]) -> usize {
    let longest = stops.iter().map(|stop| stop.len()).max().unwrap_or_default();
    let from = text.ceil_char_boundary(text.len().saturating_sub(longest));
    let begins = |at: usize| text.get(at..).is_some_and(|end| stops.iter().any(|stop| stop.starts_with(end)));
    (from..text.len()).find(|at| begins(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Collected(Vec<String>);

    impl DeltaSink for Collected {
        fn push(&mut self, delta: DeltaRef<'_>) {
            self.0.push(match delta {
                DeltaRef::Text(text) => text.to_owned(),
                other => format!("{other:?}"),
            });
        }
    }

    fn pushed(stops: &[&str], pieces: &[DeltaRef<'_>]) -> Vec<String> {
        let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
        let mut pushed = Collected::default();
        let mut stopped = Stopped::new(&stops, &mut pushed);
        pieces.iter().for_each(|piece| stopped.push(*piece));
        stopped.finish();
        pushed.0
    }

    #[test]
    fn pieces_end_before_a_stop_sequence_that_is_split_anywhere() {
        let text = "Let me.\n```python\nprint('é')\n```\nDone.";
        for size in 1..text.len() {
            let pieces: Vec<String> =
                text.chars().collect::<Vec<_>>().chunks(size).map(|piece| piece.iter().collect()).collect();
            let pieces: Vec<DeltaRef<'_>> = pieces.iter().map(|piece| DeltaRef::Text(piece)).collect();
            let text = pushed(&["\n```\n", "<|end|>"], &pieces);
            assert_eq!(text.concat(), "Let me.\n```python\nprint('é')", "{size}");
        }
    }

    #[test]
    fn the_beginning_of_a_stop_sequence_alone_is_passed_on() {
        assert_eq!(pushed(&["END"], &[DeltaRef::Text("the EN"), DeltaRef::Text("D")]), ["the "]);
        assert_eq!(pushed(&["END"], &[DeltaRef::Text("the EN"), DeltaRef::Text("d")]), ["the ", "ENd"]);
        assert_eq!(pushed(&["END"], &[DeltaRef::Text("the EN")]), ["the ", "EN"]);
        assert_eq!(pushed(&[""], &[DeltaRef::Text("all")]), ["all"]);
    }

    #[test]
    fn a_restarted_reply_is_passed_on_again() {
        let pieces = [
            DeltaRef::Text("a END"),
            DeltaRef::Thought("gone"),
            DeltaRef::Restart,
            DeltaRef::Thought("t"),
            DeltaRef::Text("b"),
        ];
        assert_eq!(pushed(&["END"], &pieces), ["a ", "Restart", "Thought(\"t\")", "b"]);
    }

    #[test]
    fn a_reply_ends_before_the_first_stop_sequence() {
        let reply = |parts| Reply { parts, finish: FinishReason::Length, ..Reply::new("") };
        let stops = ["END".to_owned(), "STOP".to_owned(), String::new()];
        let parts = vec![Part::Thought("END".into()), Part::text("a STOP b END"), Part::text("more")];
        let reply_cut = cut(reply(parts), &stops);
        assert_eq!(reply_cut.parts, [Part::Thought("END".into()), Part::text("a ")]);
        assert_eq!(reply_cut.finish, FinishReason::Stop);
        assert_eq!(cut(reply(vec![Part::text("END")]), &stops).parts, []);
        let whole = reply(vec![Part::text("nothing")]);
        assert_eq!(cut(whole.clone(), &stops), whole);
    }
}
