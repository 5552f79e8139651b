//! Merging pieces of a text into tokens, best pair first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Merges neighboring `pieces` of a text as long as `rank` has a rank for two of them; the lowest rank first, then
/// the leftmost pair. Takes n log n steps.
pub(crate) fn merge<R: Ord + Copy>(
    pieces: Vec<Range<usize>>,
    rank: impl Fn(&Range<usize>, &Range<usize>) -> Option<R>,
) -> Vec<Range<usize>> {
    let mut list = List::new(pieces);
    let mut queue = BinaryHeap::new();
    for at in 0..list.0.len() {
        queue.extend(list.candidate(at, &rank));
    }
    while let Some(Reverse(candidate)) = queue.pop() {
        if !list.is_current(&candidate) {
            continue;
        }
        let before = list.join(candidate.left, candidate.right);
        queue.extend(before.and_then(|before| list.candidate(before, &rank)));
        queue.extend(list.candidate(candidate.left, &rank));
    }
    list.0.into_iter().filter_map(|piece| piece.range).collect()
}

/// Two neighbors that can be merged, as they were when they were found. Ordered by rank, then by position.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate<R> {
    rank: R,
    left: usize,
    right: usize,
    /// The end of the right one.
    end: usize,
    /// The beginning of the right one.
    middle: usize,
}

struct Piece {
    /// Its place in the text; `None` once it is merged into the one before.
    range: Option<Range<usize>>,
    before: Option<usize>,
    after: Option<usize>,
}

struct List(Vec<Piece>);

impl List {
    fn new(pieces: Vec<Range<usize>>) -> Self {
        let count = pieces.len();
        let piece = |(at, range): (usize, Range<usize>)| Piece {
            range: Some(range),
            before: at.checked_sub(1),
            after: Some(at + 1).filter(|after| *after < count),
        };
        Self(pieces.into_iter().enumerate().map(piece).collect())
    }

    fn range(&self, at: usize) -> Option<&Range<usize>> {
        self.0.get(at)?.range.as_ref()
    }

    /// The piece at `left` and the one after it, if they can be merged.
    fn candidate<R>(
        &self,
        left: usize,
        rank: impl Fn(&Range<usize>, &Range<usize>) -> Option<R>,
    ) -> Option<Reverse<Candidate<R>>> {
        let right = self.0.get(left)?.after?;
        let (first, second) = (self.range(left)?, self.range(right)?);
        let rank = rank(first, second)?;
        Some(Reverse(Candidate { rank, left, right, end: second.end, middle: second.start }))
    }

    fn is_current<R>(&self, candidate: &Candidate<R>) -> bool {
        let middle = self.range(candidate.left).map(|range| range.end);
        let end = self.range(candidate.right).map(|range| range.end);
        middle == Some(candidate.middle) && end == Some(candidate.end)
    }

    /// Merges the piece at `right` into the one at `left`; returns the one before.
    fn join(&mut self, left: usize, right: usize) -> Option<usize> {
        let merged = self.0.get_mut(right)?;
        let (range, after) = (merged.range.take()?, merged.after);
        let first = self.0.get_mut(left)?;
        first.after = after;
        first.range.as_mut()?.end = range.end;
        let before = first.before;
        if let Some(after) = after.and_then(|after| self.0.get_mut(after)) {
            after.before = Some(left);
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(text: &str, ranks: &[(&str, u32)]) -> Vec<String> {
        let pieces = text.char_indices().map(|(at, c)| at..at + c.len_utf8()).collect();
        let rank = |left: &Range<usize>, right: &Range<usize>| {
            let both = &text[left.start..right.end];
            ranks.iter().find(|(token, _)| *token == both).map(|(_, rank)| *rank)
        };
        merge(pieces, rank).into_iter().map(|range| text[range].to_owned()).collect()
    }

    #[test]
    fn the_lowest_rank_is_merged_first_and_the_leftmost_of_equals() {
        assert_eq!(merged("abc", &[("ab", 1), ("bc", 0)]), ["a", "bc"]);
        assert_eq!(merged("aaa", &[("aa", 0)]), ["aa", "a"]);
        assert_eq!(merged("abab", &[("ab", 0), ("abab", 1)]), ["abab"]);
        assert_eq!(merged("élan", &[("él", 0), ("éla", 1)]), ["éla", "n"]);
        assert_eq!(merged("", &[]), Vec::<String>::new());
    }
}
