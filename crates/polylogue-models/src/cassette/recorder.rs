//! Writes model calls to a cassette.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use polylogue_core::chain::{Link, seal};
use polylogue_core::{
    AnyModel, CallCost, DeltaRef, DeltaSink, Entry, Model, ModelError, ModelErrorKind, ModelWrapper, Name,
    Path, Reply, Request, Usage,
};
use polylogue_files::private_options;

use super::error::CassetteError;
use super::line::{Answer, Header, Line, RecordedDelta};
use super::read::{Contents, read};

/// A cassette that is being recorded. Cloning shares it; any number of models and conversations can record to it.
#[derive(Clone, derive_more::Debug)]
#[debug("Cassette({:?})", self.0.place)]
pub struct Cassette(Arc<Shared>);

struct Shared {
    place: PathBuf,
    file: Mutex<RecordingFile>,
}

impl Cassette {
    /// Creates a cassette in the new file `place`.
    ///
    /// # Errors
    /// [`CassetteError::Exists`] when the file exists, [`CassetteError::Io`].
    pub fn create(place: impl AsRef<FilePath>) -> Result<Self, CassetteError> {
        let place = place.as_ref();
        let opened = private_options().read(true).write(true).create_new(true).open(place);
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => CassetteError::Exists { place: place.display().to_string() },
            _ => CassetteError::io(place, "written", &error),
        })?;
        Self::record_to(place, file)
    }

    /// Appends to the cassette in the file `place`, or creates it. A truncated last line is removed.
    ///
    /// # Errors
    /// [`CassetteError::Busy`] when another program records to it, [`CassetteError::NoCassette`],
    /// [`CassetteError::Newer`], [`CassetteError::Damaged`], [`CassetteError::Io`].
    pub fn append(place: impl AsRef<FilePath>) -> Result<Self, CassetteError> {
        let place = place.as_ref();
        let opened = private_options().read(true).write(true).create(true).truncate(false).open(place);
        Self::record_to(place, opened.map_err(|error| CassetteError::io(place, "written", &error))?)
    }

    fn record_to(place: &FilePath, file: File) -> Result<Self, CassetteError> {
        let unwritable = |error: io::Error| CassetteError::io(place, "written", &error);
        // Two programs that record to one file would mix their lines. Where files cannot be locked, the user must
        // prevent it.
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(CassetteError::Busy { place: place.display().to_string() });
            }
            Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => {
                return Err(unwritable(error));
            }
            _ => {}
        }
        let mut bytes = Vec::new();
        (&file).read_to_end(&mut bytes).map_err(|error| CassetteError::io(place, "read", &error))?;
        let mut file = RecordingFile { file, end: 0, link: Header::link(), last: HashMap::new() };
        if bytes.is_empty() {
            file.append(&Header).map_err(unwritable)?;
        } else {
            file.continue_after(read(&bytes, place)?).map_err(unwritable)?;
        }
        Ok(Self(Arc::new(Shared { place: place.to_owned(), file: Mutex::new(file) })))
    }

    /// Returns the file of the cassette.
    pub fn place(&self) -> &FilePath {
        &self.0.place
    }

    fn record(&self, request: &Request<'_>, recorded: &Recorded<'_>) -> Result<(), CassetteError> {
        // A panic elsewhere leaves no call half recorded, so a poisoned lock is fine.
        let mut file = self.0.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.record(request, recorded).map_err(|error| CassetteError::io(&self.0.place, "written", &error))
    }
}

/// The result of a call.
struct Recorded<'a> {
    model: &'a str,
    pieces: &'a [RecordedDelta],
    result: &'a Result<Reply, ModelError>,
    cost: Option<CallCost>,
}

/// The file, and its write position.
struct RecordingFile {
    file: File,
    /// Its length up to the end of the last complete line.
    end: u64,
    /// The link of the last line.
    link: Link,
    /// The entries of the last call of each agent in each chat.
    last: HashMap<(Path, Name), Vec<Entry>>,
}

impl RecordingFile {
    /// Removes what follows `contents`, the readable lines of the file, and continues after them.
    fn continue_after(&mut self, contents: Contents) -> io::Result<()> {
        self.end = u64::try_from(contents.intact).map_err(io::Error::other)?;
        self.link = contents.link;
        self.cut()?;
        if !contents.ended {
            self.file.write_all(b"\n")?;
            self.end += 1;
        }
        for line in contents.lines {
            let entries = self.last.entry((line.chat.into_owned(), line.who.into_owned())).or_default();
            entries.truncate(line.kept);
            entries.extend(line.entries.into_owned());
        }
        Ok(())
    }

    fn record(&mut self, request: &Request<'_>, recorded: &Recorded<'_>) -> io::Result<()> {
        let key = (request.origin.chat.clone(), request.origin.who.clone());
        let mut last = self.last.remove(&key).unwrap_or_default();
        let kept = last.iter().zip(request.entries).take_while(|(before, now)| before == now).count();
        let new = request.entries.get(kept..).unwrap_or_default();
        let written = self.append(&line(request, recorded, kept, new));
        if written.is_ok() {
            last.truncate(kept);
            last.extend_from_slice(new);
        }
        self.last.insert(key, last);
        written
    }

    /// Writes a line, all of it or nothing.
    fn append(&mut self, line: &impl serde::Serialize) -> io::Result<()> {
        let json = serde_json::to_string(line)?;
        let link = self.link.next(json.as_bytes());
        let bytes = format!("{}\n", seal(&json, link)).into_bytes();
        // No buffer is between this and the system: when it returns, the end of the process cannot lose the line.
        let written = self.file.write_all(&bytes);
        match written {
            Ok(()) => (self.end, self.link) = (self.end + bytes.len() as u64, link),
            // Best effort: if even this fails, a reader treats the rest as a truncated line.
            Err(_) => drop(self.cut()),
        }
        written
    }

    /// Removes everything after the last complete line.
    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.end)?;
        self.file.seek(SeekFrom::Start(self.end)).map(drop)
    }
}

fn line<'a>(request: &Request<'a>, recorded: &Recorded<'a>, kept: usize, new: &'a [Entry]) -> Line<'a> {
    Line {
        chat: Cow::Borrowed(request.origin.chat),
        who: Cow::Borrowed(request.origin.who),
        nth: request.origin.nth,
        model: Cow::Borrowed(recorded.model),
        system: request.system.map(Cow::Borrowed),
        tools: Cow::Borrowed(request.tools),
        params: Cow::Borrowed(request.params),
        kept,
        entries: Cow::Borrowed(new),
        pieces: Cow::Borrowed(recorded.pieces),
        result: match recorded.result {
            Ok(reply) => Answer::Reply(Cow::Borrowed(reply)),
            Err(error) => Answer::Error(error.into()),
        },
        cost: recorded.cost.map(|cost| cost.cost),
        uncached: recorded.cost.and_then(|cost| cost.uncached),
    }
}

/// A model whose calls are recorded. Otherwise like the model that it wraps.
///
/// A call is recorded when it finishes, with a reply or an error; a cancelled call is not.
#[derive(Debug, Clone)]
pub struct Recorder<M = AnyModel> {
    model: M,
    cassette: Cassette,
}

impl<M: Model> Recorder<M> {
    /// Records the calls of `model` to `cassette`.
    pub fn new(model: M, cassette: &Cassette) -> Self {
        Self { model, cassette: cassette.clone() }
    }

    /// What a call with `usage` costs.
    fn cost_of(&self, usage: &Usage) -> Option<CallCost> {
        let without = usage.used_prompt_cache().then(|| usage.without_prompt_cache());
        let uncached = without.and_then(|usage| self.model.cost(&usage));
        Some(CallCost { cost: self.model.cost(usage)?, uncached })
    }

    fn lost(&self, error: &CassetteError) -> ModelError {
        let message = format!("the call was answered, but could not be recorded: {error}");
        let hint = "make room for the recording and resume, or run without recording";
        ModelError::new(ModelErrorKind::Config, self.model.name(), message).hint(hint)
    }
}

impl<M: Model> ModelWrapper for Recorder<M> {
    type Inner = M;

    fn inner(&self) -> &Self::Inner {
        &self.model
    }

    /// # Errors
    /// Those of the wrapped model, and when the call cannot be recorded: a recording with gaps cannot be replayed.
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let mut recorder = DeltaRecorder { deltas, pieces: Vec::new() };
        let result = self.model.complete(request, &mut recorder).await;
        let cost = result.as_ref().ok().and_then(|reply| match &reply.answered_by {
            Some(by) => by.cost,
            None => self.cost_of(&reply.usage),
        });
        let recorded = Recorded { model: self.model.name(), pieces: &recorder.pieces, result: &result, cost };
        self.cassette.record(request, &recorded).map_err(|error| self.lost(&error))?;
        result
    }
}

/// Forwards and records the deltas.
struct DeltaRecorder<'a> {
    deltas: &'a mut dyn DeltaSink,
    pieces: Vec<RecordedDelta>,
}

impl DeltaSink for DeltaRecorder<'_> {
    fn push(&mut self, delta: DeltaRef<'_>) {
        self.pieces.extend(RecordedDelta::of(delta));
        self.deltas.push(delta);
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::{EncodeCache, Origin, Params};

    use super::*;
    use crate::{Script, ScriptStep};

    #[tokio::test]
    async fn a_call_that_cannot_be_recorded_fails_and_says_that_it_was_answered() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("c.jsonl");
        drop(Cassette::create(&place).unwrap());
        let (file, end) = (File::open(&place).unwrap(), std::fs::read(&place).unwrap().len());
        let file = RecordingFile { file, end: end as u64, link: Header::link(), last: HashMap::new() };
        let cassette = Cassette(Arc::new(Shared { place: place.clone(), file: Mutex::new(file) }));
        let (at, who) = (&Path::root(), &Name::new("A").unwrap());
        let model = Recorder::new(Script::new([ScriptStep::say(who.clone(), "x")]).model("s"), &cassette);
        let (origin, entries) = (Origin::new(at, who, 0), &[Entry::user("go")]);
        let (params, encoded) = (&Params::default(), &EncodeCache::default());
        let request = Request { origin, system: None, entries, tools: &[], params, encoded, reserved: None };
        let error = Model::complete(&model, &request, &mut ()).await.unwrap_err();
        assert!(error.message.starts_with("the call was answered, but could not be recorded: "), "{error}");
        assert_eq!(std::fs::read(&place).unwrap().len(), end, "the header alone");
    }
}
