//! The file format of a log, and reading it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use polylogue_core::{Event, Listing, LogId, Meta, Parent, RecoveredEvents, StoreError, Summary, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::head::Head;
use crate::intact::{
    EventCollector, EventError, HeadCheck, changed, next_to_head, parse_event, unknown_type,
};
use crate::io_error::{reading, show};
use polylogue_core::chain::{Chain, Link, seal, unseal};

/// The only supported format.
pub(super) const FORMAT: u64 = 3;

/// The first line: the metadata that is short.
#[derive(Debug, Serialize, Deserialize)]
struct FirstLine {
    polylogue: u64,
    title: String,
    #[serde(rename = "created_ms")]
    created: Timestamp,
    has_team: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<Parent>,
}

/// The second line: what is needed to run the log again.
#[derive(Serialize, Deserialize)]
struct Team {
    team: Value,
}

/// The first line in every format.
#[derive(Deserialize)]
struct VersionLine {
    polylogue: u64,
}

/// The first lines of a new log, and the link before its events.
pub(super) fn header(meta: &Meta) -> io::Result<(Vec<u8>, Link)> {
    let front = FirstLine {
        polylogue: FORMAT,
        title: meta.title.clone(),
        created: meta.created,
        has_team: !meta.team.is_null(),
        parent: meta.parent.clone(),
    };
    let front = serde_json::to_string(&front)?;
    let team = serde_json::to_string(&Team { team: meta.team.clone() })?;
    let first = Link::first(&[front.as_bytes()]);
    let second = first.next(team.as_bytes());
    Ok((format!("{}\n{}\n", seal(&front, first), seal(&team, second)).into_bytes(), second))
}

/// A whole log as the text of its file.
pub(super) fn text(meta: &Meta, events: &[Event]) -> io::Result<Vec<u8>> {
    let (mut text, link) = header(meta)?;
    text.extend(lines(events, link)?);
    Ok(text)
}

/// The log that is the `text` of a file. In contrast to the files of a store, nothing of it may be torn or damaged.
pub(super) fn parse(text: &[u8]) -> Result<(Meta, Vec<Event>), String> {
    let Some(text) = text.strip_suffix(b"\n") else { return Err("its last line is torn".into()) };
    let mut lines = text.split(|byte| *byte == b'\n');
    let next = |line: &[u8], link: Option<Link>| {
        let mut json = line.to_vec();
        let own = unseal(&mut json)?;
        let follows = link.map_or_else(|| Link::first(&[&json]), |link| link.next(&json));
        (own == follows).then_some((json, own))
    };
    let (first, link) =
        next(lines.next().unwrap_or_default(), None).ok_or("its first line is not that of a log")?;
    match serde_json::from_slice(&first) {
        Ok(VersionLine { polylogue: FORMAT }) => {}
        Ok(VersionLine { polylogue }) => {
            return Err(format!("its format is {polylogue}, and only {FORMAT} can be read"));
        }
        Err(_) => return Err("its first line is not that of a log".into()),
    }
    let FirstLine { title, created, parent, .. } =
        serde_json::from_slice(&first).map_err(|error| format!("its first line: {error}"))?;
    let (second, mut link) = next(lines.next().unwrap_or_default(), Some(link))
        .ok_or("its second line is not what was written")?;
    let Team { team } =
        serde_json::from_slice(&second).map_err(|error| format!("its second line: {error}"))?;
    let mut events = Vec::new();
    for (seq, line) in (0..).zip(lines) {
        let (json, own) = next(line, Some(link)).ok_or_else(|| changed(seq))?;
        events.push(parse_event(&json, seq).map_err(|error| error.to_string())?);
        link = own;
    }
    Ok((Meta { title, created, team, parent }, events))
}

/// A file of the store that is being read.
pub(super) struct LogFile<'a> {
    path: &'a Path,
    lines: BufReader<&'a File>,
    line: Vec<u8>,
    chain: Chain,
    link: Option<Link>,
}

/// Why the first lines cannot be used.
pub(super) enum BadHeader {
    /// Another version wrote it.
    Other(StoreError),
    /// It is damaged, or the file is not a log. Contains a description.
    Damaged(String),
}

impl<'a> LogFile<'a> {
    pub(super) fn new(path: &'a Path, file: &'a File) -> Self {
        Self { path, lines: BufReader::new(file), line: Vec::new(), chain: Chain::from(None), link: None }
    }

    /// A file that may have been read before, from the start.
    pub(super) fn from_start(path: &'a Path, mut file: &'a File) -> Result<Self, StoreError> {
        file.rewind().map_err(|error| reading(path, &error))?;
        Ok(Self::new(path, file))
    }

    fn broken(&self, error: &io::Error) -> StoreError {
        reading(self.path, error)
    }

    /// Reads the next complete line. Returns whether it follows the one before; `None` at the end. A torn last line
    /// is skipped.
    fn next(&mut self) -> Result<Option<bool>, StoreError> {
        self.line.clear();
        self.lines.read_until(b'\n', &mut self.line).map_err(|error| self.broken(&error))?;
        if self.line.pop() != Some(b'\n') {
            return Ok(None);
        }
        self.link = unseal(&mut self.line);
        Ok(Some(self.chain.holds(&self.line, self.link)))
    }

    /// Reads the first line.
    fn front(&mut self) -> Result<Result<FirstLine, BadHeader>, StoreError> {
        let place = show(self.path);
        if self.next()?.is_none() {
            return Ok(Err(BadHeader::Damaged("the first line is missing or torn".into())));
        }
        let Ok(VersionLine { polylogue: found }) = serde_json::from_slice(&self.line) else {
            return Ok(Err(BadHeader::Damaged("the first line is not a header of a log".into())));
        };
        Ok(Err(BadHeader::Other(match found {
            FORMAT => return Ok(self.own_front()),
            newer if newer > FORMAT => StoreError::Newer { place, found, known: FORMAT },
            _ => StoreError::Older { place, found, known: FORMAT },
        })))
    }

    fn own_front(&self) -> Result<FirstLine, BadHeader> {
        let is_whole = self.link == Some(Link::first(&[&self.line]));
        let front = serde_json::from_slice(&self.line).ok().filter(|_| is_whole);
        front.ok_or_else(|| BadHeader::Damaged("the first line is not what was written".into()))
    }

    /// Reads the first two lines.
    pub(super) fn header(&mut self) -> Result<Result<Meta, BadHeader>, StoreError> {
        let FirstLine { title, created, parent, .. } = match self.front()? {
            Ok(front) => front,
            Err(bad) => return Ok(Err(bad)),
        };
        let damaged = |what: &str| Ok(Err(BadHeader::Damaged(format!("the second line {what}"))));
        match self.next()? {
            None => damaged("is missing or torn"),
            Some(false) => damaged("is not what was written"),
            Some(true) => match serde_json::from_slice(&self.line) {
                Ok(Team { team }) => Ok(Ok(Meta { title, created, team, parent })),
                Err(_) => damaged("is not a team"),
            },
        }
    }

    /// The team of a log whose header is damaged: its line is the second, or the first if that is lost. Null if it is not there.
    pub(super) fn recovered_team(&mut self) -> Result<Value, StoreError> {
        for _ in 0..2 {
            if self.next()?.is_some()
                && let Ok(Team { team }) = serde_json::from_slice(&self.line)
            {
                return Ok(team);
            }
        }
        Ok(Value::Null)
    }

    /// The events in `range`, or `None` if one of them or one before them is damaged or lost.
    pub(super) fn events(
        &mut self,
        range: Range<u64>,
        head: Option<&Head>,
    ) -> Result<Option<Vec<Event>>, StoreError> {
        let mut events = Vec::new();
        let mut end = HeadCheck::of(head, 0, self.link);
        while end.events < range.end
            && let Some(holds) = self.next()?
        {
            let seq = end.events;
            if !holds {
                return Ok(None);
            }
            if seq >= range.start {
                match serde_json::from_slice::<Event>(&self.line) {
                    Ok(event) if event.seq == seq => events.push(event),
                    _ => return Ok(None),
                }
            }
            end.pass(seq, self.link);
        }
        // The end of the log was not read.
        let is_part = end.events >= range.end && head.is_some_and(|head| head.events > end.events);
        Ok((is_part || end.damage().is_none()).then_some(events))
    }

    /// Every readable event.
    pub(super) fn intact(&mut self, head: Option<&Head>) -> Result<RecoveredEvents, StoreError> {
        let mut collector = EventCollector::default();
        let mut number = 2;
        match self.header()? {
            Ok(_) => {}
            Err(BadHeader::Other(error)) => return Err(error),
            Err(BadHeader::Damaged(why)) => {
                collector.note(why);
                // If a line of the header is missing, events begin earlier.
                self.lines.rewind().map_err(|error| self.broken(&error))?;
                (number, self.chain) = (0, Chain::from(None));
            }
        }
        let mut end = HeadCheck::of(head, 0, self.link);
        loop {
            // Nothing proves a first event after a lost header.
            let is_known = self.chain.is_known() || collector.next_seq() > 0;
            let Some(holds) = self.next()? else { break };
            number += 1;
            let event = self.event(number, holds && is_known, collector.next_seq());
            if event.is_err() && number <= 2 {
                self.chain = Chain::from(self.link);
                continue;
            }
            if let Ok(event) = &event {
                end.pass(event.seq, self.link);
            }
            collector.take(event);
        }
        if let Some(damage) = end.damage().filter(|_| collector.is_whole()) {
            collector.note(damage);
        }
        Ok(collector.finish(show(self.path)))
    }

    /// The event on the line that was read last, where event number `next` is expected.
    fn event(&mut self, number: u64, holds: bool, next: u64) -> Result<Event, EventError> {
        let event = serde_json::from_slice::<Event>(&self.line).map_err(|error| {
            self.chain.break_off();
            if let Some(kind) = unknown_type(&self.line, next).filter(|_| holds) {
                return EventError::Unknown(kind);
            }
            let why = error.to_string().replace(" at line 1 column ", " at column ");
            EventError::Damaged(format!("line {number} is not an event: {why}"))
        })?;
        // After a missing event, there is no link to compare with.
        if holds || event.seq > next { Ok(event) } else { Err(changed(event.seq).into()) }
    }
}

/// Why a log could not be read: [`StoreError::Damaged`] with the details of a complete reading.
pub(super) fn damage(path: &Path, file: &mut File, head: Option<&Head>) -> StoreError {
    let whole = LogFile::from_start(path, file).and_then(|mut log| log.intact(head));
    match whole.map(|intact| intact.damage) {
        Ok(Some(damage)) => damage,
        // It was written while it was read, and is now intact: reading again will succeed.
        Ok(None) => StoreError::Io { place: show(path), why: "it changed while it was read".into() },
        Err(error) => error,
    }
}

/// Whether the first line begins as that of a log of this version.
pub(super) fn has_header(mut file: &File) -> bool {
    let begin = format!("{{\"polylogue\":{FORMAT},");
    let mut found = vec![0; begin.len()];
    file.read_exact(&mut found).is_ok() && found == begin.as_bytes()
}

/// What lists show of a log that has no entry of its own, by reading all of it. `None` for another version's format.
pub(super) fn listing(id: &LogId, path: &Path, file: &File, head: Option<&Head>) -> Option<Listing> {
    let front = LogFile::from_start(path, file).ok()?.front().ok()?;
    let RecoveredEvents { mut events, damage } = LogFile::from_start(path, file).ok()?.intact(head).ok()?;
    if let Some(StoreError::Damaged { intact, .. }) = damage {
        events.truncate(usize::try_from(intact).unwrap_or(usize::MAX));
    }
    let has_team = front.as_ref().is_ok_and(|front| front.has_team);
    let listing = Listing {
        summary: Summary::of(&events, has_team),
        is_damaged: damage.is_some(),
        ..Listing::damaged(id.clone())
    };
    Some(match front {
        Ok(FirstLine { title, created, parent, .. }) => {
            Listing { title, created, has_team, parent, ..listing }
        }
        Err(_) => listing,
    })
}

/// The lines of events after `link`.
pub(super) fn lines(events: &[Event], mut link: Link) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for event in events {
        let json = serde_json::to_string(event)?;
        link = link.next(json.as_bytes());
        lines.extend_from_slice(seal(&json, link).as_bytes());
        lines.push(b'\n');
    }
    Ok(lines)
}

/// The end of a log.
pub(super) struct End {
    /// The last event.
    pub(super) last: Option<Event>,
    /// Its link, or that of the header.
    pub(super) link: Link,
    /// Where its line ends, in bytes; the rest is torn.
    pub(super) bytes: u64,
}

impl End {
    /// The number of events.
    pub(super) fn kept(&self) -> u64 {
        self.last.as_ref().map_or(0, |event| event.seq.saturating_add(1))
    }
}

/// Reads the last event, independent of the log's length, and checks the first line. The error is that of a damaged log.
pub(super) fn end(path: &Path, file: &mut File, head: Option<&Head>) -> Result<End, StoreError> {
    let mut log = LogFile::from_start(path, file)?;
    match log.front()? {
        Ok(_) => {}
        Err(BadHeader::Other(error)) => return Err(error),
        Err(BadHeader::Damaged(_)) => return Err(damage(path, file, head)),
    }
    let begin = log.lines.stream_position().map_err(|error| reading(path, &error))?;
    let tail = last_lines(file, begin).map_err(|error| reading(path, &error))?;
    match tail.end().filter(|end| head_mismatch(head, end).is_none()) {
        Some(end) => Ok(end),
        None => Err(damage(path, file, head)),
    }
}

/// The damage at the end of a log, as far as the end shows it.
fn head_mismatch(head: Option<&Head>, end: &End) -> Option<String> {
    let head = head.filter(|head| head.events >= end.kept())?;
    next_to_head(head, end.kept(), Some(end.link))
}

/// The last two complete lines, and where they end.
struct Tail {
    before: Option<Vec<u8>>,
    last: Vec<u8>,
    bytes: u64,
}

impl Tail {
    /// `None` if it is damaged. The first of all these lines is the team's.
    fn end(mut self) -> Option<End> {
        let link = unseal(&mut self.last)?;
        let Some(mut before) = self.before else {
            let is_team = serde_json::from_slice::<Team>(&self.last).is_ok();
            return is_team.then_some(End { last: None, link, bytes: self.bytes });
        };
        let follows = unseal(&mut before)?.next(&self.last) == link;
        let last = Some(serde_json::from_slice(&self.last).ok()?);
        follows.then_some(End { last, link, bytes: self.bytes })
    }
}

/// The last two complete lines after the first `begin` bytes.
fn last_lines(file: &mut File, begin: u64) -> io::Result<Tail> {
    /// Most pairs of events are shorter.
    const FIRST_LOOK: u64 = 8192;
    let len = file.seek(SeekFrom::End(0))?;
    let mut look = FIRST_LOOK;
    loop {
        let start = len.saturating_sub(look).max(begin);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(len.saturating_sub(start)).read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        let mut lines = bytes.get(..whole).unwrap_or_default().rsplit(|byte| *byte == b'\n');
        let (last, before, earlier) = (lines.next(), lines.next(), lines.next());
        if start == begin || earlier.is_some() {
            return Ok(Tail {
                last: last.unwrap_or_default().to_vec(),
                before: before.map(<[u8]>::to_vec),
                bytes: start + whole as u64 + 1,
            });
        }
        look = look.saturating_mul(4);
    }
}

/// The error for a log that does not exist, or cannot be read.
pub(super) fn opening(path: &Path, id: &LogId, error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::NotFound => StoreError::NotFound { id: id.clone() },
        _ => reading(path, error),
    }
}
