//! What the user trusts, in a file of the user's state directory.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use polylogue_core::Timestamp;
use polylogue_files::{make_private_folder, private_options, replace_private};
use polylogue_runtime::RequestedPermission;
use serde::{Deserialize, Serialize};

use super::pin::Pin;
use crate::error::CliError;
use crate::place;

/// The version of the file.
const FORMAT: u32 = 1;
/// The largest file that is read.
const LARGEST: u64 = 16 << 20;
/// How many entries are kept; the oldest go first.
const MOST: usize = 2_000;

/// A content that is trusted, and what it is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Identifies the content.
    pub(crate) digest: String,
    /// What it is called.
    pub(crate) name: String,
    /// Where it was when it was trusted.
    pub(crate) file: String,
    pub(crate) allowed: BTreeSet<RequestedPermission>,
    pub(crate) time_ms: u64,
}

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct TrustFile {
    format: u32,
    /// Seals what is kept with conversations, so that a store from elsewhere allows nothing; in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default)]
    pub(crate) trusted: Vec<Entry>,
    /// What MCP servers said of their tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) servers: Vec<Pin>,
}

impl TrustFile {
    /// What the file says; nothing when there is none.
    pub(crate) fn read() -> Result<Self, CliError> {
        match place::of_trust() {
            Some(path) => Self::read_from(&path),
            None => Ok(Self::default()),
        }
    }

    fn read_from(path: &Path) -> Result<Self, CliError> {
        let wrong = |why: String| {
            CliError::usage(format!("trusted teams cannot be read from `{}`: {why}", path.display()))
                .hint("repair or remove the file; without it, no team file is trusted")
        };
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(wrong(error.to_string())),
            Ok(_) if bytes.len() as u64 > LARGEST => return Err(wrong("it is too large".into())),
            Ok(_) => {}
        }
        let book: Self = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        match book.format {
            FORMAT => Ok(book),
            other => Err(wrong(format!("it has the format {other}, and this program knows {FORMAT}"))),
        }
    }

    /// What the content `digest` is allowed.
    pub(crate) fn allowed(&self, digest: &str) -> BTreeSet<RequestedPermission> {
        let entries = self.trusted.iter().filter(|entry| entry.digest == digest);
        entries.flat_map(|entry| entry.allowed.iter().cloned()).collect()
    }

    /// Allows `entry` what it names, besides what it was allowed before.
    pub(crate) fn trust(mut entry: Entry) -> Result<(), CliError> {
        entry.time_ms = Timestamp::now().0;
        Self::change(|book| {
            let before = book.allowed(&entry.digest);
            entry.allowed.extend(before);
            book.trusted.retain(|other| other.digest != entry.digest);
            book.trusted.push(entry);
            let surplus = book.trusted.len().saturating_sub(MOST);
            book.trusted.drain(..surplus);
            true
        })
        .map(drop)
    }

    /// Keeps what servers say of their tools, instead of what they said before.
    pub(crate) fn pin(pins: Vec<Pin>) -> Result<(), CliError> {
        Self::change(|book| {
            for pin in pins {
                book.servers.retain(|other| other.server != pin.server);
                book.servers.push(Pin { time_ms: Timestamp::now().0, ..pin });
            }
            let surplus = book.servers.len().saturating_sub(MOST);
            book.servers.drain(..surplus);
            true
        })
        .map(drop)
    }

    /// Forgets the entries that `goes` is true of; how many they were.
    pub(crate) fn forget(goes: impl Fn(&Entry) -> bool) -> Result<usize, CliError> {
        let mut gone = 0;
        Self::change(|book| {
            let before = book.trusted.len();
            book.trusted.retain(|entry| !goes(entry));
            gone = before - book.trusted.len();
            gone > 0
        })?;
        Ok(gone)
    }

    /// Changes the file while no other process does, if `change` says that it did.
    fn change(change: impl FnOnce(&mut Self) -> bool) -> Result<Self, CliError> {
        let path = place::of_trust().ok_or_else(|| {
            CliError::usage("no home directory was found for trusted teams")
                .hint("set `HOME` or `XDG_STATE_HOME`, or grant permissions with `--allow`")
        })?;
        let wrong = |error: io::Error| {
            CliError::failed(format!("trusted teams cannot be saved to `{}`: {error}", path.display()))
                .hint("grant permissions with `--allow`, for this run only")
        };
        let folder = path.parent().unwrap_or(Path::new("."));
        make_private_folder(folder).map_err(wrong)?;
        let lock =
            private_options().write(true).create(true).truncate(false).open(path.with_extension("lock"));
        let lock = lock.map_err(wrong)?;
        lock.lock().map_err(wrong)?;
        let mut book = Self::read_from(&path)?;
        book.format = FORMAT;
        if change(&mut book) {
            let text = serde_json::to_vec_pretty(&book).map_err(|error| wrong(error.into()))?;
            replace_private(&path, &text).map_err(wrong)?;
        }
        Ok(book)
    }

    /// The seal of `content`; nothing when no key can be kept.
    pub(crate) fn seal(content: &[u8]) -> Option<String> {
        let known = Self::read().ok()?.key;
        let key = match known {
            Some(key) => key,
            None => Self::change(Self::make_key).ok()?.key?,
        };
        Some(keyed(&key, content)?.to_hex().to_string())
    }

    /// Whether `seal` is the seal of `content`.
    pub(crate) fn is_sealed(&self, content: &[u8], seal: &str) -> bool {
        let own = self.key.as_deref().and_then(|key| keyed(key, content));
        // The comparison of hashes takes the same time wherever they differ.
        own.zip(blake3::Hash::from_hex(seal).ok()).is_some_and(|(own, seal)| own == seal)
    }

    fn make_key(&mut self) -> bool {
        let mut key = [0_u8; 32];
        let is_missing = self.key.is_none() && getrandom::fill(&mut key).is_ok();
        if is_missing {
            self.key = Some(blake3::Hash::from_bytes(key).to_hex().to_string());
        }
        is_missing
    }
}

fn keyed(key: &str, content: &[u8]) -> Option<blake3::Hash> {
    let key = blake3::Hash::from_hex(key).ok()?;
    Some(blake3::keyed_hash(key.as_bytes(), content))
}
