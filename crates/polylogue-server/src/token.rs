//! Tokens: how clients show who they are. Their texts are known to clients only.

use std::path::PathBuf;

use polylogue_wire::Scope;
use polylogue_wire::token::DailyBudget;
use serde::{Deserialize, Serialize};

use crate::request::RequestDigest;

/// A day, in milliseconds.
pub(crate) const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// What the text of every token begins with, so that scanners of secrets find it.
const PREFIX: &str = "ply_";

/// The text of a token: 256 random bits. It is shown once, and stored nowhere.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("ply_…")]
pub struct TokenText(String);

impl TokenText {
    /// A new text.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub(crate) fn random() -> Result<Self, TokenError> {
        let mut bits = [0_u8; 32];
        getrandom::fill(&mut bits).map_err(|error| TokenError::NoRandomness(error.to_string()))?;
        Ok(Self(bits.iter().fold(PREFIX.to_owned(), |text, byte| format!("{text}{byte:02x}"))))
    }

    /// Returns the text itself, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// The way in which a token is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    /// In a header of requests.
    #[default]
    Key,
    /// In a link to the page, where it is exchanged once for a session.
    Link,
    /// In the cookie of a browser.
    Session,
    /// In a header of requests, issued by an authorization server. It is stored nowhere.
    Issued,
}

impl TokenKind {
    /// Its name on the wire.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Link => "link",
            Self::Session => "session",
            Self::Issued => "issued",
        }
    }

    // By reference, as serde calls it.
    fn is_key(&self) -> bool {
        *self == Self::Key
    }
}

/// The budget of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DailyLimit {
    /// The id of the token.
    pub(crate) token: String,
    pub(crate) per_day: DailyBudget,
}

/// A stored token: with the digest of its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Identifies it in lists and logs.
    pub id: String,
    /// The name: what it is for.
    pub name: String,
    /// The BLAKE3 digest of its text. A slow hash protects guessable texts, and this one is random.
    digest: String,
    /// The tenant whose conversations it can see.
    pub tenant: String,
    /// The scopes: what it may do.
    pub scopes: Vec<Scope>,
    /// The teams that it may see and run. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teams: Option<Vec<String>>,
    /// The budget of a day. Default: no bound.
    #[serde(default, skip_serializing_if = "DailyBudget::is_unlimited")]
    pub per_day: DailyBudget,
    /// The budgets of the token that made it, and of those that made that one: what it spends is spent of them, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) within: Vec<DailyLimit>,
    /// The time of its creation, in milliseconds since 1970.
    pub created_ms: u64,
    /// The time at which it expires, in milliseconds since 1970. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// The day in UTC on which it was used last, in days since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_used_day: Option<u64>,
    /// The way in which it is used. Default: by a header of requests.
    #[serde(default, skip_serializing_if = "TokenKind::is_key")]
    pub kind: TokenKind,
    /// The request with an idempotency key that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<RequestDigest>,
}

impl Token {
    /// The tenant of tokens for which no other one is named.
    pub const LOCAL: &str = "local";

    /// Whether a tenant can have this name: up to 64 letters, digits, `-` and `_`.
    pub fn is_tenant(name: &str) -> bool {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain)
    }

    pub(crate) fn new(id: String, text: &TokenText, new: NewToken, created_ms: u64) -> Self {
        let NewToken { name, tenant, scopes, teams, per_day, expires_ms } = new;
        let digest = blake3::hash(text.0.as_bytes()).to_hex().to_string();
        Self {
            id,
            name,
            digest,
            tenant,
            scopes,
            teams,
            per_day,
            within: Vec::new(),
            created_ms,
            expires_ms,
            last_used_day: None,
            kind: TokenKind::Key,
            request: None,
        }
    }

    /// Whether a request with the same key made it.
    pub(crate) fn has_key_of(&self, request: &RequestDigest) -> bool {
        self.request.as_ref().is_some_and(|made| made.request == request.request)
    }

    /// A token that an authorization server has made.
    pub(crate) fn issued(id: String, name: String, scopes: Vec<Scope>, expires_ms: u64) -> Self {
        Self {
            id,
            name,
            digest: String::new(),
            tenant: Self::LOCAL.into(),
            scopes,
            teams: None,
            per_day: DailyBudget::default(),
            within: Vec::new(),
            created_ms: 0,
            expires_ms: Some(expires_ms),
            last_used_day: None,
            kind: TokenKind::Issued,
            request: None,
        }
    }

    /// Returns the beginning of the day in UTC on which it was used last, in milliseconds since 1970. `None`: never.
    pub fn last_used_ms(&self) -> Option<u64> {
        self.last_used_day.map(|day| day.saturating_mul(DAY_MS))
    }

    /// Whether `text` is its text. Takes the same time for all texts of one length.
    pub(crate) fn is(&self, text: &str) -> bool {
        // Digests are compared in constant time.
        blake3::Hash::from_hex(&self.digest).is_ok_and(|digest| digest == blake3::hash(text.as_bytes()))
    }

    /// The budgets from which its calls are paid: its own, if it has one, and those of the tokens that made it.
    pub(crate) fn daily_limits(&self) -> Vec<DailyLimit> {
        let own = DailyLimit { token: self.id.clone(), per_day: self.per_day };
        let own = (!self.per_day.is_unlimited()).then_some(own);
        own.into_iter().chain(self.within.iter().cloned()).collect()
    }

    pub(crate) fn is_valid_at(&self, now_ms: u64) -> bool {
        self.expires_ms.is_none_or(|end| now_ms < end)
    }

    /// Returns whether it has the scope `scope`.
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Whether it can do no more than `other`, however long each is valid: it is of the same tenant, with no more scopes and teams, and no
    /// larger budget.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        let has_teams = match (&self.teams, &other.teams) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(teams), Some(_)) => teams.iter().all(|team| other.sees(team)),
        };
        let has_scopes = self.scopes.iter().all(|scope| other.has(*scope));
        self.tenant == other.tenant && has_scopes && has_teams && self.per_day.is_within(&other.per_day)
    }

    /// Returns whether it may see and run the team.
    pub fn sees(&self, team: &str) -> bool {
        self.teams.as_ref().is_none_or(|teams| teams.iter().any(|seen| seen == team))
    }
}

/// A token that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// The name: what it is for.
    pub name: String,
    /// The tenant whose conversations it can see: letters, digits, `-` and `_`.
    pub tenant: String,
    /// The scopes: what it may do.
    pub scopes: Vec<Scope>,
    /// The teams that it may see and run. Default: all.
    pub teams: Option<Vec<String>>,
    /// The budget of a day. Default: no bound.
    pub per_day: DailyBudget,
    /// The time at which it expires, in milliseconds since 1970. Default: never.
    pub expires_ms: Option<u64>,
}

impl NewToken {
    /// Creates a token of the tenant [`Token::LOCAL`] with all scopes.
    pub fn local(name: &str) -> Self {
        let (name, tenant) = (name.to_owned(), Token::LOCAL.to_owned());
        let per_day = DailyBudget::default();
        Self { name, tenant, scopes: Scope::ALL.to_vec(), teams: None, per_day, expires_ms: None }
    }

    /// Refuses what could not be stored, would be a path or more than a line of a list, or could do nothing.
    pub(crate) fn check(&self) -> Result<(), TokenError> {
        if !Token::is_tenant(&self.tenant) {
            return Err(TokenError::BadTenant(self.tenant.chars().take(64).collect()));
        }
        let is_break = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
        if self.name.trim().is_empty() || self.name.contains(is_break) {
            return Err(TokenError::BadName);
        }
        if self.scopes.is_empty() {
            return Err(TokenError::NoScope);
        }
        if self.teams.as_ref().is_some_and(Vec::is_empty) {
            return Err(TokenError::NoTeam);
        }
        Ok(())
    }
}

/// The reason why tokens cannot be read or made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("the tokens in `{path}` cannot be {what}: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// The failed operation.
        what: &'static str,
        /// The error of the system, or the place of a mistake in the file.
        why: String,
    },
    /// The name of a tenant is empty, too long, or has other characters than letters, digits, `-` and `_`.
    #[error("`{0}` is not a tenant: up to 64 letters, digits, `-` and `_`")]
    BadTenant(String),
    /// The name is empty, or has line breaks or other control characters.
    #[error("the name of a token must be one line of text")]
    BadName,
    /// A token that sees no team could do nothing.
    #[error("a token needs at least one team, unless it is for all")]
    NoTeam,
    /// A token without a scope could do nothing.
    #[error("a token needs at least one scope")]
    NoScope,
    /// The system has no randomness.
    #[error("the system gives no random bits: {0}")]
    NoRandomness(String),
}

impl TokenError {
    /// Returns whether the request is not legal: the file and the system are not the cause.
    ///
    /// ```
    /// use polylogue_server::TokenError;
    /// assert!(TokenError::NoScope.is_usage());
    /// ```
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::BadTenant(_) | Self::BadName | Self::NoTeam | Self::NoScope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_text_is_that_of_a_token() {
        let (text, other) = (TokenText::random().unwrap(), TokenText::random().unwrap());
        assert_eq!(text.reveal().len(), 4 + 64);
        assert_eq!(format!("{text:?}"), "ply_…");
        let token = Token::new("t1".into(), &text, NewToken::local("test"), 0);
        assert!(token.is(text.reveal()));
        assert!(!token.is(other.reveal()) && !token.is("") && !token.is(&token.digest));
        assert!(!serde_json::to_string(&token).unwrap().contains(text.reveal()));
    }

    #[test]
    fn a_name_is_one_line_and_teams_are_some_or_all() {
        for name in ["", " ", "a\nb", "a\rb", "a\u{1b}[2J", "a\u{2028}b"] {
            assert!(matches!(NewToken::local(name).check(), Err(TokenError::BadName)), "{name:?}");
        }
        let of = |teams| NewToken { teams, ..NewToken::local("for the shop: ä") }.check();
        assert!(matches!(of(Some(Vec::new())), Err(TokenError::NoTeam)));
        assert!(of(None).is_ok() && of(Some(vec!["talk".into()])).is_ok());
    }

    #[test]
    fn a_tenant_is_no_path() {
        for tenant in ["", "..", "a/b", "a b", "ä"] {
            let new = NewToken { tenant: tenant.into(), ..NewToken::local("x") };
            assert!(matches!(new.check(), Err(TokenError::BadTenant(_))), "{tenant}");
        }
        assert!(NewToken::local("x").check().is_ok());
    }
}
