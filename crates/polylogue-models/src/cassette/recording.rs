//! Replays the model calls of a cassette.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use polylogue_core::{
    AnyModel, Bound, Capabilities, DeltaSink, Entry, Model, ModelError, ModelErrorKind, Money, Name, Origin,
    Params, Path, Reply, Request, Usage,
};

use super::difference::{RequestParts, first_difference};
use super::error::CassetteError;
use super::line::{Answer, Line};
use super::read::read;
use crate::catalog::KnownModel;
use crate::pages::page_tokens;

/// The recorded calls of a cassette, for replay. Cloning shares them.
///
/// A recording is replayed once: if the same request was made several times, for instance because the first failed,
/// the replies come in the order of the recording, and then the last one again.
#[derive(Clone, derive_more::Debug)]
#[debug("Recording({:?})", self.0.place)]
pub struct Recording(Arc<Calls>);

struct Calls {
    place: PathBuf,
    lines: Vec<Line<'static>>,
    /// For each line, the previous line of the same agent in the same chat.
    before: Vec<Option<usize>>,
    /// The lines of each agent in each chat.
    by_agent: HashMap<(Path, Name), Vec<usize>>,
    played: Mutex<BTreeSet<usize>>,
    is_cut_off: bool,
}

impl Recording {
    /// Reads the cassette in the file `place`. A truncated last line is ignored.
    ///
    /// # Errors
    /// [`CassetteError::Io`], [`CassetteError::NoCassette`], [`CassetteError::Newer`], [`CassetteError::Damaged`].
    pub fn open(place: impl AsRef<FilePath>) -> Result<Self, CassetteError> {
        let place = place.as_ref();
        let bytes = std::fs::read(place).map_err(|error| CassetteError::io(place, "read", &error))?;
        let contents = read(&bytes, place)?;
        let is_cut_off = contents.intact < bytes.len();
        Calls::new(place, contents.lines).map(|calls| Self(Arc::new(Calls { is_cut_off, ..calls })))
    }

    /// Returns whether the last line was truncated, and ignored: the program that recorded it died while writing.
    pub fn is_cut_off(&self) -> bool {
        self.0.is_cut_off
    }

    /// Returns a model that replays the recording of the model `name`, such as `openai:gpt-4o`. Calls of a model that was not
    /// recorded fail.
    pub fn model(&self, name: &str) -> Replayer {
        let parts = name.split_once(':');
        let known = parts.and_then(|(provider, model)| KnownModel::find(provider, model));
        let context_window = known.and_then(|known| known.max_input);
        let page_tokens = parts.map_or(Bound::PAGE_TOKENS, |(provider, model)| page_tokens(provider, model));
        Replayer { name: name.into(), context_window, page_tokens, calls: Arc::clone(&self.0) }
    }

    /// Returns the names of the recorded models.
    pub fn models(&self) -> BTreeSet<&str> {
        self.0.lines.iter().map(|line| &*line.model).collect()
    }

    /// Returns the number of recorded calls.
    pub fn calls(&self) -> usize {
        self.0.lines.len()
    }

    /// Descriptions of the calls that were not replayed so far, in the order of the recording.
    pub fn unplayed(&self) -> Vec<String> {
        let played = self.0.played();
        let lines = self.0.lines.iter().enumerate().filter(|(index, _)| !played.contains(index));
        lines.map(|(_, line)| call_in_words(&line.chat, &line.who, line.nth)).collect()
    }
}

impl Calls {
    fn new(place: &FilePath, lines: Vec<Line<'static>>) -> Result<Self, CassetteError> {
        let mut last: HashMap<(&Path, &Name), (usize, usize)> = HashMap::new();
        let mut before = Vec::with_capacity(lines.len());
        let mut by_agent: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, line) in lines.iter().enumerate() {
            let (previous, entries) = last.get(&(&*line.chat, &*line.who)).copied().unzip();
            if line.kept > entries.unwrap_or(0) {
                let why =
                    format!("it builds on {} entries of an earlier line, which there are not", line.kept);
                // The header is line 1.
                return Err(CassetteError::Damaged {
                    place: place.display().to_string(),
                    line: index + 2,
                    why,
                });
            }
            before.push(previous);
            last.insert((&line.chat, &line.who), (index, line.kept + line.entries.len()));
            let agent = (Path::clone(&line.chat), Name::clone(&line.who));
            by_agent.entry(agent).or_default().push(index);
        }
        Ok(Self {
            place: place.to_owned(),
            before,
            by_agent,
            played: Mutex::default(),
            lines,
            is_cut_off: false,
        })
    }

    fn played(&self) -> std::sync::MutexGuard<'_, BTreeSet<usize>> {
        self.played.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All entries of the request of line `index`: its own, and those shared with the lines before.
    fn entries(&self, index: usize) -> Vec<&Entry> {
        let mut backwards = Vec::new();
        let mut at = Some(index);
        let mut wanted = usize::MAX;
        while let Some(line) = at.and_then(|index| self.lines.get(index)) {
            let own = wanted.saturating_sub(line.kept).min(line.entries.len());
            backwards.extend(line.entries.iter().take(own).rev());
            wanted = wanted.min(line.kept);
            at = at.filter(|_| wanted > 0).and_then(|index| self.before.get(index).copied().flatten());
        }
        backwards.reverse();
        backwards
    }

    /// The request of line `index`.
    fn asked(&self, index: usize) -> Option<RequestParts<'_>> {
        let line = self.lines.get(index)?;
        Some(RequestParts {
            model: &line.model,
            system: line.system.as_deref(),
            tools: &line.tools,
            params: &line.params,
            entries: self.entries(index),
        })
    }

    /// The line with the reply to `now`, or an error that says why there is none.
    fn find(&self, origin: Origin<'_>, now: &RequestParts<'_>) -> Result<&Line<'static>, String> {
        let key = (origin.chat.clone(), origin.who.clone());
        let candidates = self.by_agent.get(&key).map_or(&[][..], Vec::as_slice);
        let (numbered, others): (Vec<usize>, Vec<usize>) = candidates
            .iter()
            .partition(|index| self.lines.get(**index).is_some_and(|line| line.nth == origin.nth));
        let mut difference = None;
        let mut equal = Vec::new();
        for index in numbered {
            match self.asked(index).and_then(|recorded| first_difference(&recorded, now)) {
                None => equal.push(index),
                found => difference = difference.or(found),
            }
        }
        if equal.is_empty() {
            // Calls are counted over all chats. If an agent speaks in two of them in parallel, the order of its calls
            // may differ from the recording, but the requests are the same.
            equal.extend(
                others.into_iter().filter(|index| self.asked(*index).is_some_and(|asked| asked == *now)),
            );
        }
        let found = self.next_of(&equal).and_then(|index| self.lines.get(index));
        found.ok_or_else(|| {
            let call = call_in_words(origin.chat, origin.who, origin.nth);
            match difference {
                Some(difference) => format!("{call} is not the recorded one: {difference}"),
                None => format!("{call} was not recorded"),
            }
        })
    }

    /// The first of `equal` that was not replayed yet, or else the last.
    fn next_of(&self, equal: &[usize]) -> Option<usize> {
        let mut played = self.played();
        let next = equal.iter().find(|index| !played.contains(index)).or(equal.last()).copied();
        played.extend(next);
        next
    }
}

/// Such as "call 2 of `critic` in `/review.1`".
fn call_in_words(at: &Path, who: &Name, nth: u64) -> String {
    let call = format!("call {} of `{who}`", nth.saturating_add(1));
    if at.is_root() { call } else { format!("{call} in `{at}`") }
}

/// A model that replays the recorded calls of a model.
///
/// The recorded call is found by chat, agent, number of the call and request, so the order of parallel calls does not
/// matter. The reply has the recorded deltas and cost, but arrives at once.
#[derive(Clone, derive_more::Debug)]
#[debug("Replayer({name:?})")]
pub struct Replayer {
    name: Arc<str>,
    /// Looked up once: the bound of a team asks for it thousands of times.
    context_window: Option<u64>,
    page_tokens: u64,
    calls: Arc<Calls>,
}

impl Replayer {
    /// The first recorded call of this model with a usage that `is_meant`.
    fn call_with(&self, is_meant: impl Fn(&Usage) -> bool) -> Option<&Line<'static>> {
        let mut own = self.calls.lines.iter().filter(|line| line.model == *self.name);
        own.find(|line| matches!(&line.result, Answer::Reply(reply) if is_meant(&reply.usage)))
    }

    fn error(&self, message: String) -> ModelError {
        let hint = format!("record it again; replayed was `{}`", self.calls.place.display());
        ModelError::new(ModelErrorKind::Script, &*self.name, message).hint(hint)
    }
}

impl From<Replayer> for AnyModel {
    fn from(model: Replayer) -> Self {
        Self::new(model)
    }
}

impl Model for Replayer {
    fn name(&self) -> &str {
        &self.name
    }

    /// # Errors
    /// [`ModelErrorKind::Script`] when the call was not recorded, or differs: names the first difference. The
    /// recorded error, if the call failed.
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let now = RequestParts::of(request, &self.name);
        let line = self.calls.find(request.origin, &now).map_err(|message| self.error(message))?;
        for piece in &*line.pieces {
            deltas.push(piece.delta());
        }
        match &line.result {
            Answer::Reply(reply) => Ok(Reply::clone(reply)),
            Answer::Error(error) => Err(error.into()),
        }
    }

    /// Capabilities that no recorded request used count as missing: the agents knew or found out that they are.
    fn capabilities(&self) -> Capabilities {
        let was_asked = |asks: fn(&Line<'_>) -> bool| {
            let mut lines = self.calls.lines.iter().filter(|line| line.model == *self.name);
            (!lines.any(asks)).then_some(false)
        };
        Capabilities {
            tools: was_asked(|line| !line.tools.is_empty()),
            schema: was_asked(|line| line.params.schema.is_some()),
            json: was_asked(|line| line.params.json),
            // It only changes what is sent, and a replay sends nothing.
            vision: None,
            ..Capabilities::default()
        }
    }

    /// Whether any reply was recorded with some.
    fn returns_seals(&self, _: &Params) -> bool {
        self.calls.lines.iter().filter(|line| line.model == *self.name).any(|line| match &line.result {
            Answer::Reply(reply) => reply.verbatim.as_ref().is_some_and(|verbatim| verbatim.seals.is_some()),
            Answer::Error(_) => false,
        })
    }

    /// As the table of models says, so that histories are compacted as they were when it was recorded.
    fn context_window(&self) -> Option<u64> {
        self.context_window
    }

    fn page_tokens(&self) -> u64 {
        self.page_tokens
    }

    /// The cost of a recorded call of this model with this `usage`, or with as many tokens that used a prompt cache: then without that.
    fn cost(&self, usage: &Usage) -> Option<Money> {
        if let Some(line) = self.call_with(|used| used == usage) {
            return line.cost;
        }
        self.call_with(|used| used.used_prompt_cache() && used.without_prompt_cache() == *usage)?.uncached
    }
}
