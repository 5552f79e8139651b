//! The file with the heads of a store's logs: one line of fixed length per log, which is overwritten as the log grows.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use polylogue_core::LogId;

use crate::head::Head;
use crate::locked_file::LockedFile;

/// Maximum number of released logs in the file. Earlier ones are in the database by then.
const RELEASED: usize = 1024;

/// The file and its content.
#[derive(Debug)]
pub(super) struct Heads {
    file: LockedFile,
    lines: Vec<Head>,
    at: HashMap<LogId, usize>,
    /// The lines of released logs, each of them once, in the order of their last release.
    released: VecDeque<usize>,
}

impl Heads {
    pub(super) fn new(file: LockedFile) -> Self {
        Self { file, lines: Vec::new(), at: HashMap::new(), released: VecDeque::new() }
    }

    /// The last heads of all logs in it.
    pub(super) fn all(&self) -> impl Iterator<Item = &Head> {
        self.lines.iter()
    }

    /// The last head of a log.
    pub(super) fn of(&self, id: &LogId) -> Option<&Head> {
        self.lines.get(*self.at.get(id)?)
    }

    /// Writes the head of a log. It is not synced: it is never ahead of the database, and may be behind after a loss of power.
    pub(super) fn write(&mut self, head: Head) {
        let at = match self.at.get(&head.id) {
            Some(at) => *at,
            None => self.free_line(),
        };
        let start = (at * Head::BYTES) as u64;
        // Where it cannot be written, less is known of a loss, and the lease is not renewed: the database has what counts.
        let _ = self.file.seek(SeekFrom::Start(start)).and_then(|_| self.file.write_all(&head.line()));
        if self.lines.get(at).is_some_and(Head::is_released) {
            self.released.retain(|line| *line != at);
        }
        if head.is_released() {
            self.released.push_back(at);
        }
        self.at.insert(head.id.clone(), at);
        match self.lines.get_mut(at) {
            Some(line) => *line = head,
            None => self.lines.push(head),
        }
    }

    /// A line that can be reused, or a new one.
    fn free_line(&mut self) -> usize {
        if self.released.len() <= RELEASED {
            return self.lines.len();
        }
        let Some(at) = self.released.pop_front() else { return self.lines.len() };
        if let Some(head) = self.lines.get(at) {
            self.at.remove(&head.id);
        }
        at
    }
}

/// All complete lines of such a file.
pub(super) fn read(path: &Path) -> Vec<Head> {
    lines_of(&fs::read(path).unwrap_or_default(), |_| true).collect()
}

/// The head of the log `id` in such a file.
pub(super) fn find(path: &Path, id: &LogId) -> Option<Head> {
    lines_of(&fs::read(path).unwrap_or_default(), |line| Head::is_of(line, id)).max_by_key(Head::age)
}

fn lines_of(bytes: &[u8], is_wanted: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = Head> {
    bytes.chunks_exact(Head::BYTES).filter(move |line| is_wanted(line)).filter_map(Head::read)
}

/// Keeps the last head of each log.
pub(super) fn keep_latest(all: &mut HashMap<LogId, Head>, head: Head) {
    if all.get(&head.id).is_none_or(|known| known.age() <= head.age()) {
        all.insert(head.id.clone(), head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polylogue_core::chain::Link;

    fn head(nth: usize, lease_ms: u64) -> Head {
        let id = LogId::new(&format!("log-{nth}")).unwrap();
        Head { id, fence: nth as u64, events: 1, link: Link::first(&[]), lease_ms }
    }

    #[test]
    fn what_is_written_is_read_and_the_file_does_not_grow_without_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("heads");
        let mut heads = Heads::new(LockedFile::wait(fs::File::create(&path).unwrap()).unwrap());
        heads.write(head(0, 7));
        for nth in 1..2 * RELEASED {
            heads.write(head(nth, 7));
            heads.write(head(nth, 0));
        }
        let lines = read(&path);
        let released = head(2 * RELEASED - 1, 0);
        assert_eq!(find(&path, &released.id).as_ref(), Some(&released));
        assert_eq!(heads.of(&released.id), Some(&released));
        let gone = head(1, 0).id;
        assert_eq!((find(&path, &gone), heads.of(&gone)), (None, None), "its line was taken by another one");
        assert_eq!(find(&path, &LogId::new("log-").unwrap()), None, "no beginning of an id is one");
        assert!(lines.contains(&head(0, 7)), "a claimed log keeps its line");
        assert!(lines.contains(&head(2 * RELEASED - 1, 0)));
        assert!((RELEASED..RELEASED + 8).contains(&lines.len()), "{}", lines.len());
    }

    #[test]
    fn a_log_that_is_claimed_and_released_many_times_is_one_released_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("heads");
        let mut heads = Heads::new(LockedFile::wait(fs::File::create(&path).unwrap()).unwrap());
        for _ in 0..2 * RELEASED {
            heads.write(head(0, 7));
            heads.write(head(0, 0));
        }
        assert_eq!(heads.released, [0]);
        heads.write(head(0, 7));
        assert!(heads.released.is_empty(), "{:?}", heads.released);
        for nth in 1..=RELEASED + 2 {
            heads.write(head(nth, 0));
        }
        assert_eq!(heads.of(&head(0, 7).id), Some(&head(0, 7)), "it is claimed, and keeps its line");
    }
}
