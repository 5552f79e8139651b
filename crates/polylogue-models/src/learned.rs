//! Detected capabilities of models, stored in a file for later processes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polylogue_core::{Capabilities, Capability, ModelError, ModelErrorKind, Timestamp};
use serde::{Deserialize, Serialize};

/// Detected capabilities of models, stored in a small file. Cloning shares it.
///
/// A model that refused tools, a schema or JSON mode is not tried again for a day, in any process: the same refusal
/// is returned. [`Config::capabilities`](crate::Config::capabilities) takes precedence.
///
/// It is a cache. If the file does not exist, or cannot be read or written, models are tried again.
///
/// ```
/// use polylogue_models::{Config, LearnedCapabilities};
/// let known = LearnedCapabilities::at(std::env::temp_dir().join("polylogue-example").join("capabilities.json"));
/// let config = Config { known: Some(known.clone()), ..Config::new("http://127.0.0.1:8000/v1") };
/// assert!(known.of("http://127.0.0.1:8000/v1", "small").is_empty());
/// # let _ = config;
/// ```
#[derive(Clone, derive_more::Debug)]
#[debug("LearnedCapabilities({:?})", self.0.place)]
pub struct LearnedCapabilities(Arc<Shared>);

/// Equal if they are stored in the same file.
impl PartialEq for LearnedCapabilities {
    fn eq(&self, other: &Self) -> bool {
        self.0.place == other.0.place
    }
}

impl Eq for LearnedCapabilities {}

struct Shared {
    place: PathBuf,
    /// What the file has, and what this process found since it was read.
    known: Mutex<CapabilityFile>,
}

/// What is known about one capability of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finding {
    /// Whether the model has it.
    pub has: bool,
    /// The refusal of the model or its server, if it does not have it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The time of detection, in milliseconds since 1970.
    pub time_ms: u64,
}

impl Finding {
    /// How far its time is from now: one of a clock that was ahead is not recent for as long as that time is in the future.
    fn age(&self) -> Duration {
        Duration::from_millis(Timestamp::now().0.abs_diff(self.time_ms))
    }

    /// Returns whether it is recent enough to count.
    pub fn is_fresh(&self) -> bool {
        self.age() < LearnedCapabilities::FOR
    }
}

/// Known capabilities of a model.
pub type Findings = BTreeMap<Capability, Finding>;

/// The file: by base URL, then by the model's name there.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct CapabilityFile {
    polylogue_capabilities: u64,
    models: BTreeMap<String, BTreeMap<String, Findings>>,
}

impl CapabilityFile {
    const VERSION: u64 = 1;
    /// The maximum size in bytes, which all findings on the most models do not reach; a larger file is not ours.
    const MAX_BYTES: u64 = 8 << 20;
    /// The maximum number of models.
    const MAX_MODELS: usize = 500;

    /// Reads the file at `place`; empty if it cannot be read.
    fn read(place: &Path) -> Self {
        let small = fs::metadata(place).is_ok_and(|file| file.len() <= Self::MAX_BYTES);
        let bytes = small.then(|| fs::read(place).ok()).flatten();
        let file: Option<Self> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        file.filter(|file| file.polylogue_capabilities == Self::VERSION).unwrap_or_default()
    }

    /// Replaces the file at `place` atomically, so that no reader sees half of it.
    fn write(&self, place: &Path) -> io::Result<()> {
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder)?;
        }
        polylogue_files::replace(place, &serde_json::to_vec_pretty(self)?)
    }

    /// Merges the newer findings of `other`.
    fn add(&mut self, other: &Self) {
        for (base, models) in &other.models {
            for (model, findings) in models {
                let own = self.models.entry(base.clone()).or_default().entry(model.clone()).or_default();
                for (capability, finding) in findings {
                    if own.get(capability).is_none_or(|known| known.time_ms < finding.time_ms) {
                        own.insert(*capability, finding.clone());
                    }
                }
            }
        }
    }

    /// Removes the models with the oldest findings, if there are too many.
    fn bound(&mut self) {
        let count = |file: &Self| file.models.values().map(BTreeMap::len).sum::<usize>();
        while count(self) > Self::MAX_MODELS {
            let last = |findings: &Findings| findings.values().map(|finding| finding.time_ms).max();
            let all = self.models.iter().flat_map(|(base, models)| {
                models.iter().map(move |(model, findings)| (last(findings), base.clone(), model.clone()))
            });
            let Some((_, base, model)) = all.min() else { return };
            if let Some(models) = self.models.get_mut(&base) {
                models.remove(&model);
            }
            self.models.retain(|_, models| !models.is_empty());
        }
    }
}

impl LearnedCapabilities {
    /// Time for which a finding counts: a server may be restarted with more capabilities.
    pub const FOR: Duration = Duration::from_secs(24 * 60 * 60);

    /// The maximum length of a stored refusal, in characters.
    const MAX_WHY: usize = 300;

    /// Opens the findings in the file at `place`. A file that does not exist, or is not of this kind, counts as empty, and is
    /// replaced when there is something to store.
    pub fn at(place: impl Into<PathBuf>) -> Self {
        let place = place.into();
        let known = Mutex::new(CapabilityFile::read(&place));
        Self(Arc::new(Shared { place, known }))
    }

    /// Returns the file.
    pub fn place(&self) -> &Path {
        &self.0.place
    }

    /// Returns the findings on `model` at `base_url`, including expired ones.
    pub fn of(&self, base_url: &str, model: &str) -> Findings {
        let known = self.known();
        known.models.get(base_url).and_then(|models| models.get(model)).cloned().unwrap_or_default()
    }

    /// Returns all findings: base URL, model, findings.
    pub fn all(&self) -> Vec<(String, String, Findings)> {
        let known = self.known();
        let of = |(base, models): (&String, &BTreeMap<String, Findings>)| {
            models
                .iter()
                .map(|(model, findings)| (base.clone(), model.clone(), findings.clone()))
                .collect::<Vec<_>>()
        };
        known.models.iter().flat_map(of).collect()
    }

    fn known(&self) -> MutexGuard<'_, CapabilityFile> {
        // A panic elsewhere leaves nothing half done.
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores that a model has a capability, or why not. A recent finding is not written again.
    pub(crate) fn learn(&self, base_url: &str, model: &str, capability: Capability, lacks: Option<&str>) {
        let why: String = lacks.unwrap_or_default().chars().take(Self::MAX_WHY).collect();
        let finding = Finding { has: lacks.is_none(), why, time_ms: Timestamp::now().0 };
        let mut known = self.known();
        let before = known.models.get(base_url).and_then(|models| models.get(model)?.get(&capability));
        if before.is_some_and(|before| before.has == finding.has && before.age() < Self::FOR / 2) {
            return;
        }
        // Other processes may have added findings.
        let mut now = CapabilityFile {
            polylogue_capabilities: CapabilityFile::VERSION,
            ..CapabilityFile::read(&self.0.place)
        };
        now.add(&known);
        let models = now.models.entry(base_url.to_owned()).or_default();
        models.entry(model.to_owned()).or_default().insert(capability, finding);
        now.bound();
        // If it cannot be written, this process still knows it.
        let _ = now.write(&self.0.place);
        *known = now;
    }

    /// The capability among `wanted` that a model is known to lack, and why.
    pub(crate) fn refusal(&self, asked: &ModelKey<'_>, wanted: &[Capability]) -> Option<ModelError> {
        let findings = self.of(asked.base_url, asked.model);
        let lacks = wanted.iter().copied().find_map(|capability| {
            let finding = findings.get(&capability).filter(|finding| !finding.has && finding.is_fresh())?;
            // Configured capabilities take precedence.
            (asked.capabilities.has(capability) != Some(true)).then_some((capability, finding))
        });
        let (capability, finding) = lacks?;
        let why = format!("as it was found before: {}", finding.why);
        Some(ModelError::new(ModelErrorKind::Unsupported(capability), asked.name, why))
    }
}

/// The model to be called.
pub(crate) struct ModelKey<'a> {
    pub(crate) base_url: &'a str,
    pub(crate) model: &'a str,
    /// `provider:model`.
    pub(crate) name: &'a str,
    /// Its configured capabilities.
    pub(crate) capabilities: Capabilities,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_of_a_wrong_clock_does_not_count_for_years() {
        let day = u64::try_from(LearnedCapabilities::FOR.as_millis()).unwrap();
        let now = Timestamp::now().0;
        let is_fresh = |time_ms| Finding { has: false, why: String::new(), time_ms }.is_fresh();
        assert_eq!(
            [now - 2 * day, now, now + day / 2, now + 2 * day].map(is_fresh),
            [false, true, true, false]
        );
    }
}
