//! The time in which at least one of several runs was under way.

/// Times of the day in milliseconds, merged where they overlap.
#[derive(Debug, Clone, Default)]
pub(crate) struct BusyTime {
    /// From and to, in order and apart.
    spans: Vec<(u64, u64)>,
}

impl BusyTime {
    /// Adds the time from `from` to `to`.
    pub(crate) fn add(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        let first = self.spans.partition_point(|(_, end)| *end < from);
        let after = self.spans.partition_point(|(begin, _)| *begin <= to);
        let merged = self.spans.get(first..after).unwrap_or_default();
        let begin = merged.first().map_or(from, |(begin, _)| from.min(*begin));
        let end = merged.last().map_or(to, |(_, end)| to.max(*end));
        self.spans.splice(first..after.max(first), [(begin, end)]);
    }

    /// The sum in milliseconds.
    pub(crate) fn total_ms(&self) -> u64 {
        self.spans.iter().map(|(from, to)| to - from).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_overlap_count_once() {
        let mut busy = BusyTime::default();
        for (from, to, total) in [
            (10, 20, 10),
            (30, 40, 20),
            (15, 18, 20),
            (18, 32, 30),
            (40, 45, 35),
            (5, 5, 35),
            (0, 50, 50),
            (60, 61, 51),
        ] {
            busy.add(from, to);
            assert_eq!(busy.total_ms(), total, "after {from} to {to}");
        }
        assert_eq!(busy.spans, [(0, 50), (60, 61)]);
    }
}
