//! The file of the tokens, which `polylogue token` writes while a server reads it.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use polylogue_core::Timestamp;
use polylogue_files::{make_private_folder, private_options, replace_private};
use tracing::warn;

use crate::request::RequestDigest;
use crate::token::{DAY_MS, DailyLimit, NewToken, Token, TokenError, TokenKind, TokenText};

/// How long a link to the page can be exchanged.
const LINK_MS: u64 = 10 * 60 * 1000;
/// How long a session lasts.
const SESSION_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// The tokens of a server, in a file that only its owner can read. A change by another process counts from the next
/// request on.
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    read: Mutex<Option<Version>>,
    /// On which day the use of tokens was noted last, by their ids.
    noted: Mutex<HashMap<String, u64>>,
}

/// The tokens of a version of the file. One that does not exist has no stamp.
type Version = (Option<Stamp>, Arc<Vec<Token>>);

/// A token that a request has made.
pub(crate) enum Made {
    Now(Token, TokenText),
    /// An earlier request with the same key has.
    Before(Token),
}

/// Tells versions of the file apart: each is a new file.
type Stamp = (Option<SystemTime>, u64, u64);

impl TokenFile {
    /// Opens the tokens in the file at `path`, which need not exist.
    pub fn at(path: PathBuf) -> Self {
        Self { path, read: Mutex::new(None), noted: Mutex::default() }
    }

    /// Returns all tokens, oldest first: the same allocation until the file changes.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn all(&self) -> Result<Arc<Vec<Token>>, TokenError> {
        let stamp = self.stamp()?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tokens)) = read.as_ref().filter(|(earlier, _)| *earlier == stamp) {
            return Ok(Arc::clone(tokens));
        }
        let tokens = Arc::new(if stamp.is_some() { self.parse()? } else { Vec::new() });
        *read = Some((stamp, Arc::clone(&tokens)));
        Ok(tokens)
    }

    /// Returns the valid token with this text. Sessions and links are none: see [`find_as`](Self::find_as).
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn find(&self, text: &str) -> Result<Option<Token>, TokenError> {
        self.find_as(TokenKind::Key, text)
    }

    /// Returns the valid token of this kind with this text.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn find_as(&self, kind: TokenKind, text: &str) -> Result<Option<Token>, TokenError> {
        let (tokens, now) = (self.all()?, now_ms());
        // Looks at all of them, so that the time does not say which one fits.
        let fitting = tokens.iter().filter(|token| token.is(text));
        let found = fitting.fold(None, |found, token| found.or(Some(token)));
        Ok(found.filter(|token| token.is_valid_at(now) && token.kind == kind).cloned())
    }

    /// Returns whether the token `id` exists and is valid.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn is_valid(&self, id: &str) -> Result<bool, TokenError> {
        let now = now_ms();
        Ok(self.all()?.iter().any(|token| token.id == id && token.is_valid_at(now)))
    }

    /// Creates a token. Its text is returned here, and never again.
    ///
    /// # Errors
    /// When `new` is not legal, or the file cannot be written.
    pub fn create(&self, new: NewToken) -> Result<(Token, TokenText), TokenError> {
        new.check()?;
        self.change(|tokens| add(tokens, TokenKind::Key, new, Vec::new()))
    }

    /// Makes a token for `maker`, whose budget is that of the new one, too, once for each key of `request`.
    ///
    /// # Errors
    /// When `new` is not legal, or the file cannot be written.
    pub(crate) fn create_for(
        &self,
        maker: &Token,
        new: NewToken,
        request: Option<&RequestDigest>,
    ) -> Result<Made, TokenError> {
        new.check()?;
        self.change(|tokens| {
            let same = |token: &&Token| request.is_some_and(|request| token.has_key_of(request));
            if let Some(before) = tokens.iter().find(same) {
                return Ok(Made::Before(before.clone()));
            }
            let (mut token, text) = add(tokens, TokenKind::Key, new, maker.daily_limits())?;
            token.request = request.cloned();
            if let Some(last) = tokens.last_mut() {
                *last = token.clone();
            }
            Ok(Made::Now(token, text))
        })
    }

    /// Creates a link to the page: its text can be exchanged once, within ten minutes, for a session with the rights of `new`.
    ///
    /// # Errors
    /// When `new` is not legal, or the file cannot be written.
    pub fn create_link(&self, new: NewToken) -> Result<TokenText, TokenError> {
        new.check()?;
        let new = NewToken { expires_ms: Some(now_ms().saturating_add(LINK_MS)), ..new };
        self.change(|tokens| Ok(add(tokens, TokenKind::Link, new, Vec::new())?.1))
    }

    /// Exchanges the text of a link for a session, which ends after 30 days. `None`: it was exchanged before, or has expired.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn exchange(&self, link: &str) -> Result<Option<(Token, TokenText)>, TokenError> {
        let Some(found) = self.find_as(TokenKind::Link, link)? else { return Ok(None) };
        self.change(|tokens| {
            let now = now_ms();
            // Another request may have exchanged it since.
            let Some(at) = tokens.iter().position(|token| token.id == found.id && token.is_valid_at(now))
            else {
                return Ok(None);
            };
            tokens.remove(at);
            let Token { name, tenant, scopes, teams, per_day, within, .. } = found;
            let expires_ms = Some(now.saturating_add(SESSION_MS));
            let new = NewToken { name, tenant, scopes, teams, per_day, expires_ms };
            add(tokens, TokenKind::Session, new, within).map(Some)
        })
    }

    /// Notes that a token is used today, once a day: the day is all that is known of it.
    pub(crate) fn note_use(&self, token: &Token) {
        let today = today();
        if token.kind == TokenKind::Issued || token.last_used_day == Some(today) {
            return;
        }
        {
            let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            noted.retain(|_, day| *day == today);
            // Requests come at the same time, and one that cannot be noted is not tried at each of them.
            if noted.insert(token.id.clone(), today).is_some() {
                return;
            }
        }
        let written = self.change(|tokens| {
            let own = tokens.iter_mut().filter(|other| other.id == token.id);
            own.for_each(|token| token.last_used_day = Some(today));
            Ok(())
        });
        if let Err(error) = written {
            warn!(token = token.id, %error, "the list of tokens does not say that this one is used");
        }
    }

    /// Removes the token `id` if `of` says so. Returns whether there was one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn revoke(&self, id: &str, of: impl Fn(&Token) -> bool) -> Result<bool, TokenError> {
        self.change(|tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.id != id || !of(token));
            Ok(tokens.len() < before)
        })
    }

    fn stamp(&self) -> Result<Option<Stamp>, TokenError> {
        match fs::metadata(&self.path) {
            Ok(data) => Ok(Some((data.modified().ok(), data.len(), inode(&data)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.error("read", &error)),
        }
    }

    fn parse(&self) -> Result<Vec<Token>, TokenError> {
        let text = fs::read_to_string(&self.path).map_err(|error| self.error("read", &error))?;
        serde_json::from_str(&text).map_err(|error| self.error("read", &error))
    }

    /// Changes the file under a lock: the new version replaces the old one as a whole.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Token>) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let written = |error: io::Error| self.error("written", &error);
        if let Some(folder) = self.path.parent() {
            make_private_folder(folder).map_err(written)?;
        }
        let lock = self.path.with_extension("lock");
        let lock = private_options().write(true).create(true).truncate(false).open(lock).map_err(written)?;
        lock.lock().map_err(written)?;
        let mut tokens = if self.path.exists() { self.parse()? } else { Vec::new() };
        let now = now_ms();
        // Expired tokens that a person made stay in the list, and say why they are refused.
        tokens.retain(|token| token.kind == TokenKind::Key || token.is_valid_at(now));
        let result = change(&mut tokens)?;
        let text = serde_json::to_vec_pretty(&tokens).map_err(|error| self.error("written", &error))?;
        replace_private(&self.path, &text).map_err(written)?;
        Ok(result)
    }

    fn error(&self, what: &'static str, why: &dyn std::fmt::Display) -> TokenError {
        TokenError::File { path: self.path.clone(), what, why: why.to_string() }
    }
}

/// Adds a new token.
fn add(
    tokens: &mut Vec<Token>,
    kind: TokenKind,
    new: NewToken,
    within: Vec<DailyLimit>,
) -> Result<(Token, TokenText), TokenError> {
    let text = TokenText::random()?;
    let id = unused_id(tokens)?;
    let mut token = Token::new(id, &text, new, now_ms());
    (token.kind, token.within) = (kind, within);
    tokens.push(token.clone());
    Ok((token, text))
}

/// An id that no token has.
fn unused_id(tokens: &[Token]) -> Result<String, TokenError> {
    loop {
        let mut bits = [0_u8; 4];
        getrandom::fill(&mut bits).map_err(|error| TokenError::NoRandomness(error.to_string()))?;
        let id = format!("tok-{:08x}", u32::from_le_bytes(bits));
        if tokens.iter().all(|token| token.id != id) {
            return Ok(id);
        }
    }
}

#[cfg(unix)]
fn inode(data: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(data)
}

#[cfg(not(unix))]
const fn inode(_: &fs::Metadata) -> u64 {
    0
}

/// The time of day in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    Timestamp::now().0
}

/// The day in UTC, in days since 1970.
pub(crate) fn today() -> u64 {
    now_ms() / DAY_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_of_the_last_use_is_written_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.json");
        let (server, command) = (TokenFile::at(path.clone()), TokenFile::at(path));
        let (used, _) = command.create(NewToken::local("used")).unwrap();
        let (other, _) = command.create(NewToken::local("other")).unwrap();
        let before = today();
        server.note_use(&used);
        let stamp = server.stamp().unwrap();
        // A copy from before.
        server.note_use(&used);
        assert_eq!(server.stamp().unwrap(), stamp);
        let all = command.all().unwrap();
        let days: Vec<_> = all.iter().map(|token| token.last_used_day).collect();
        assert!([before, today()].map(Some).contains(&days[0]), "{days:?}");
        assert_eq!((days[1], other.last_used_ms()), (None, None));
        assert_eq!(all[0].last_used_ms(), days[0].map(|day| day * DAY_MS));
        // Revoked meanwhile.
        command.revoke(&other.id, |_| true).unwrap();
        server.note_use(&other);
        assert_eq!(command.all().unwrap().len(), 1);
    }

    #[test]
    fn another_process_makes_and_revokes_tokens() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server/tokens.json");
        let (server, command) = (TokenFile::at(path.clone()), TokenFile::at(path.clone()));
        assert!(server.all().unwrap().is_empty());
        let (token, text) = command.create(NewToken::local("a")).unwrap();
        let (other, _) = command.create(NewToken::local("b")).unwrap();
        assert_eq!(server.find(text.reveal()).unwrap(), Some(token.clone()));
        assert_eq!(server.find("ply_").unwrap(), None);
        assert!(!command.revoke(&token.id, |_| false).unwrap());
        assert!(command.revoke(&token.id, |_| true).unwrap());
        assert_eq!(server.find(text.reveal()).unwrap(), None);
        assert!(!server.is_valid(&token.id).unwrap());
        assert_eq!(server.all().unwrap().as_slice(), [other]);
        let stored: String = fs::read_dir(path.parent().unwrap())
            .unwrap()
            .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
            .collect();
        assert!(!stored.contains("ply_"), "no text is stored");
    }

    #[test]
    fn an_expired_token_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = TokenFile::at(dir.path().join("tokens.json"));
        let (_, text) = file.create(NewToken { expires_ms: Some(1), ..NewToken::local("old") }).unwrap();
        assert_eq!(file.find(text.reveal()).unwrap(), None);
    }

    #[test]
    fn a_link_is_exchanged_once_for_a_session() {
        let dir = tempfile::tempdir().unwrap();
        let file = TokenFile::at(dir.path().join("tokens.json"));
        let link = file.create_link(NewToken::local("page")).unwrap();
        assert_eq!(file.find(link.reveal()).unwrap(), None, "a link is no key");
        let (session, text) = file.exchange(link.reveal()).unwrap().unwrap();
        assert_eq!(file.find_as(TokenKind::Session, text.reveal()).unwrap(), Some(session.clone()));
        assert_eq!(file.find(text.reveal()).unwrap(), None, "a session is no key");
        assert!(file.is_valid(&session.id).unwrap() && session.expires_ms.is_some());
        for text in [&link, &text] {
            assert_eq!(file.exchange(text.reveal()).unwrap(), None);
        }
        assert_eq!(file.all().unwrap().as_slice(), [session]);
    }

    #[test]
    fn a_damaged_file_is_an_error_and_no_empty_list() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.json");
        fs::write(&path, "[{]").unwrap();
        assert!(matches!(TokenFile::at(path).all(), Err(TokenError::File { what: "read", .. })));
    }
}
