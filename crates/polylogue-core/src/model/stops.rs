//! What stands behind a stop word is no part of a reply.
//!
//! Most servers end a reply before a stop word. Some let it stand, some know none, and neither do scripts: here the reply is
//! cut whoever wrote it.

use super::{DeltaRef, DeltaSink, Reply};
use crate::{Finish, Part};

/// Passes pieces on up to a stop word. What may be the beginning of one is held back until it is clear.
pub(super) struct Stopped<'a> {
    stops: Vec<&'a str>,
    deltas: &'a mut dyn DeltaSink,
    held: String,
    is_over: bool,
}

impl<'a> Stopped<'a> {
    pub(super) fn new(stops: &'a [String], deltas: &'a mut dyn DeltaSink) -> Self {
        Self { stops: words(stops).collect(), deltas, held: String::new(), is_over: false }
    }

    /// Passes on what turned out to be the beginning of nothing.
    pub(super) fn finish(&mut self) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() && !self.is_over {
            self.deltas.push(DeltaRef::Text(&held));
        }
    }

    fn hear(&mut self, text: &str) {
        self.held.push_str(text);
        let stop = self.stops.iter().filter_map(|stop| self.held.find(stop)).min();
        self.is_over = stop.is_some();
        let until = stop.unwrap_or_else(|| unclear_from(&self.held, &self.stops));
        let rest = self.held.split_off(until);
        let clear = std::mem::replace(&mut self.held, rest);
        if !clear.is_empty() {
            self.deltas.push(DeltaRef::Text(&clear));
        }
    }
}

impl DeltaSink for Stopped<'_> {
    fn push(&mut self, delta: DeltaRef<'_>) {
        match delta {
            DeltaRef::Restart => {
                self.held.clear();
                self.is_over = false;
                self.deltas.push(delta);
            }
            _ if self.is_over => {}
            DeltaRef::Text(text) => self.hear(text),
            delta => self.deltas.push(delta),
        }
    }
}

/// `reply` up to the first stop word in its texts, and nothing of what follows.
pub(super) fn cut(mut reply: Reply, stops: &[String]) -> Reply {
    let first = |part: &Part| match part {
        Part::Text(text) => words(stops).filter_map(|stop| text.find(stop)).min(),
        _ => None,
    };
    let found = reply.parts.iter().enumerate().find_map(|(nth, part)| Some((nth, first(part)?)));
    let Some((nth, at)) = found else { return reply };
    reply.parts.truncate(nth + 1);
    if let Some(Part::Text(text)) = reply.parts.pop() {
        let kept = text.get(..at).unwrap_or_default();
        if !kept.is_empty() {
            reply.parts.push(Part::text(kept));
        }
    }
    Reply { finish: Finish::Stop, ..reply }
}

/// An empty one would end every reply before it begins.
fn words(stops: &[String]) -> impl Iterator<Item = &str> {
    stops.iter().map(String::as_str).filter(|stop| !stop.is_empty())
}

/// From where on `text` may be the beginning of a stop word.
fn unclear_from(text: &str, stops: &[&str]) -> usize {
    let longest = stops.iter().map(|stop| stop.len()).max().unwrap_or_default();
    let from = text.ceil_char_boundary(text.len().saturating_sub(longest));
    let begins = |at: usize| text.get(at..).is_some_and(|end| stops.iter().any(|stop| stop.starts_with(end)));
    (from..text.len()).find(|at| begins(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Usage;

    #[derive(Default)]
    struct Heard(Vec<String>);

    impl DeltaSink for Heard {
        fn push(&mut self, delta: DeltaRef<'_>) {
            self.0.push(match delta {
                DeltaRef::Text(text) => text.to_owned(),
                other => format!("{other:?}"),
            });
        }
    }

    fn heard(stops: &[&str], pieces: &[DeltaRef<'_>]) -> Vec<String> {
        let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
        let mut heard = Heard::default();
        let mut stopped = Stopped::new(&stops, &mut heard);
        pieces.iter().for_each(|piece| stopped.push(*piece));
        stopped.finish();
        heard.0
    }

    #[test]
    fn pieces_end_before_a_stop_word_wherever_it_is_torn() {
        let text = "Let me.\n```python\nprint('é')\n```\nDone.";
        for size in 1..text.len() {
            let pieces: Vec<String> =
                text.chars().collect::<Vec<_>>().chunks(size).map(|piece| piece.iter().collect()).collect();
            let pieces: Vec<DeltaRef<'_>> = pieces.iter().map(|piece| DeltaRef::Text(piece)).collect();
            let told = heard(&["\n```\n", "<|end|>"], &pieces);
            assert_eq!(told.concat(), "Let me.\n```python\nprint('é')", "{size}");
        }
    }

    #[test]
    fn what_only_begins_like_a_stop_word_is_told() {
        assert_eq!(heard(&["END"], &[DeltaRef::Text("the EN"), DeltaRef::Text("D")]), ["the "]);
        assert_eq!(heard(&["END"], &[DeltaRef::Text("the EN"), DeltaRef::Text("d")]), ["the ", "ENd"]);
        assert_eq!(heard(&["END"], &[DeltaRef::Text("the EN")]), ["the ", "EN"]);
        assert_eq!(heard(&[""], &[DeltaRef::Text("all")]), ["all"]);
    }

    #[test]
    fn a_reply_that_begins_anew_is_told_anew() {
        let pieces = [
            DeltaRef::Text("a END"),
            DeltaRef::Thought("gone"),
            DeltaRef::Restart,
            DeltaRef::Thought("t"),
            DeltaRef::Text("b"),
        ];
        assert_eq!(heard(&["END"], &pieces), ["a ", "Restart", "Thought(\"t\")", "b"]);
    }

    #[test]
    fn a_reply_ends_before_the_first_stop_word() {
        let reply = |parts| Reply { parts, finish: Finish::Length, usage: Usage::default(), cached: false };
        let stops = ["END".to_owned(), "STOP".to_owned(), String::new()];
        let parts = vec![Part::Thought("END".into()), Part::text("a STOP b END"), Part::text("more")];
        let reply_cut = cut(reply(parts), &stops);
        assert_eq!(reply_cut.parts, [Part::Thought("END".into()), Part::text("a ")]);
        assert_eq!(reply_cut.finish, Finish::Stop);
        assert_eq!(cut(reply(vec![Part::text("END")]), &stops).parts, []);
        let whole = reply(vec![Part::text("nothing")]);
        assert_eq!(cut(whole.clone(), &stops), whole);
    }
}
