//! Credentials of a user, as `gcloud auth application-default login` writes them.

use serde::Deserialize;
use url::form_urlencoded::Serializer;

use crate::oauth::TokenError;

/// Credentials of a user: a refresh token, which is exchanged for access tokens.
#[derive(Deserialize, derive_more::Debug)]
#[debug("User({client_id:?})")]
pub(super) struct User {
    client_id: String,
    client_secret: String,
    refresh_token: String,
    /// The project that is billed.
    pub(super) quota_project_id: Option<String>,
}

impl User {
    /// Parses the JSON of a file.
    pub(super) fn parse(json: &str) -> Result<Self, TokenError> {
        serde_json::from_str(json).map_err(|_| TokenError::File)
    }

    /// The body of the request for a token, `application/x-www-form-urlencoded`.
    pub(super) fn request(&self) -> String {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", &self.client_id),
            ("client_secret", &self.client_secret),
            ("refresh_token", &self.refresh_token),
        ];
        Serializer::new(String::new()).extend_pairs(fields).finish()
    }

    pub(super) fn secrets(&self) -> [&str; 2] {
        [&self.client_secret, &self.refresh_token]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refresh_token_is_exchanged_and_never_shown() {
        let file =
            r#"{"type":"authorized_user","client_id":"id","client_secret":"s&1","refresh_token":"r/2"}"#;
        let user = User::parse(file).unwrap();
        assert_eq!(
            user.request(),
            "grant_type=refresh_token&client_id=id&client_secret=s%261&refresh_token=r%2F2"
        );
        assert_eq!(format!("{user:?}"), r#"User("id")"#);
        assert_eq!(User::parse(r#"{"client_id":"id"}"#).unwrap_err(), TokenError::File);
    }
}
