//! What a client sends back with answers: where its call stands. It comes from an untrusted party, so it is authenticated, and bound to
//! the token, the call and a time.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::OnceLock;

use polylogue_core::LogId;
use polylogue_files::{Draft, make_private_folder};

/// How long a client has for its answers.
const LASTS_MS: u64 = 24 * 60 * 60 * 1000;

/// The key of a server, in a file that only its owner can read. It is made when it is needed first, and survives restarts.
#[derive(Debug)]
pub(crate) struct StateKey {
    file: PathBuf,
    key: OnceLock<[u8; 32]>,
}

/// Where a call stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallState {
    pub(crate) conversation: LogId,
    /// The first event of the call.
    pub(crate) from: u64,
    /// The first event that was not reported.
    pub(crate) shown: u64,
}

impl StateKey {
    pub(crate) const fn at(file: PathBuf) -> Self {
        Self { file, key: OnceLock::new() }
    }

    fn key(&self) -> io::Result<&[u8; 32]> {
        match self.key.get() {
            Some(key) => Ok(key),
            None => {
                let key = self.read().or_else(|_| self.make())?;
                Ok(self.key.get_or_init(|| key))
            }
        }
    }

    fn read(&self) -> io::Result<[u8; 32]> {
        let mut key = [0; 32];
        fs::File::open(&self.file)?.read_exact(&mut key)?;
        Ok(key)
    }

    /// Makes the key, unless another process has just made it. The file has its name when it is complete.
    fn make(&self) -> io::Result<[u8; 32]> {
        let mut key = [0_u8; 32];
        getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
        if let Some(folder) = self.file.parent() {
            make_private_folder(folder)?;
        }
        let mut draft = Draft::private(&self.file)?;
        draft.write_all(&key)?;
        // A machine that lost power leaves a file without its content.
        let is_torn = fs::metadata(&self.file).is_ok_and(|file| file.len() < key.len() as u64);
        let put = if is_torn { draft.put_durably() } else { draft.put_new() };
        match put {
            Ok(()) => Ok(key),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.read(),
            Err(error) => Err(error),
        }
    }

    /// The text that a client receives. `bound` is who it is for, and for which call.
    pub(crate) fn seal(&self, state: &CallState, bound: &[&str], now_ms: u64) -> io::Result<String> {
        let CallState { conversation, from, shown } = state;
        let content = format!("{conversation}.{from}.{shown}.{}", now_ms.saturating_add(LASTS_MS));
        Ok(format!("{content}.{}", self.tag(&content, bound)?.to_hex()))
    }

    /// What a client sends back. `None`: it was changed, is for another token or call, or has expired.
    pub(crate) fn open(&self, text: &str, bound: &[&str], now_ms: u64) -> io::Result<Option<CallState>> {
        let Some((content, tag)) = text.rsplit_once('.') else { return Ok(None) };
        let Ok(tag) = blake3::Hash::from_hex(tag) else { return Ok(None) };
        // Digests are compared in constant time.
        if self.tag(content, bound)? != tag {
            return Ok(None);
        }
        let mut parts = content.rsplitn(4, '.');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let numbers = (number(), number(), number());
        let (Some(until), Some(shown), Some(from)) = numbers else { return Ok(None) };
        let conversation = parts.next().and_then(|id| LogId::new(id).ok());
        Ok(conversation.filter(|_| until > now_ms).map(|conversation| CallState {
            conversation,
            from,
            shown,
        }))
    }

    fn tag(&self, content: &str, bound: &[&str]) -> io::Result<blake3::Hash> {
        let mut hasher = blake3::Hasher::new_keyed(self.key()?);
        for part in bound.iter().chain([&content]) {
            hasher.update(&part.len().to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Ok(hasher.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_again_when_its_file_is_torn() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("server/state.key");
        let key = || *StateKey::at(file.clone()).key().unwrap();
        let first = key();
        assert_eq!(StateKey::at(file.clone()).make().unwrap(), first, "another process was first");
        fs::write(&file, &first[..7]).unwrap();
        let second = key();
        assert_ne!(second, first);
        assert_eq!(key(), second);
        let left: Vec<_> =
            fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["state.key"]);
    }

    #[test]
    fn s76_a_changed_expired_or_foreign_state_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let key = || StateKey::at(dir.path().join("new/state.key"));
        let state = CallState { conversation: LogId::new("log-1").unwrap(), from: 3, shown: 40 };
        let bound = ["tenant", "token", "call"];
        let text = key().seal(&state, &bound, 1000).unwrap();
        let open = |text: &str, bound: &[&str], now| key().open(text, bound, now).unwrap();
        assert_eq!(open(&text, &bound, 2000), Some(state.clone()), "also after a restart");
        assert_eq!(open(&text, &bound, 1000 + LASTS_MS), None, "expired");
        for bound in [
            ["tenant2", "token", "call"],
            ["tenant", "token2", "call"],
            ["tenant", "token", "call2"],
            ["tenantt", "oken", "call"],
        ] {
            assert_eq!(open(&text, &bound, 2000), None, "{bound:?}");
        }
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(open(&String::from_utf8(changed).unwrap(), &bound, 2000), None, "{at}");
        }
        for text in ["", ".", "....", "a.b.c.d.e", &text[..text.len() - 1], &format!("{text}0")] {
            assert_eq!(open(text, &bound, 2000), None, "{text}");
        }
        let other = StateKey::at(dir.path().join("other.key"));
        assert_eq!(other.open(&text, &bound, 2000).unwrap(), None, "of another server");
    }
}
