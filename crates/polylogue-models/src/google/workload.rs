//! Workload identity federation: a token that another issuer, such as Kubernetes, has written to a file is exchanged for one of
//! Google's cloud, and that one, if the credentials say so, for one of a service account.
//!
//! <https://google.aip.dev/auth/4117>

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use url::Url;
use url::form_urlencoded::Serializer;

use super::service_account::SCOPE;
use crate::oauth::{TokenError, token_address};

/// How much of the file with the token is read, in bytes: no token is as long.
const MAX_FILE: u64 = 64 << 10;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// Credentials of a workload outside of Google's cloud.
#[derive(derive_more::Debug)]
#[debug("Workload({audience:?})")]
pub(super) struct Workload {
    audience: String,
    subject_token_type: String,
    /// The file with the token of the other issuer, which is written again before that expires.
    file: PathBuf,
    format: Format,
    /// Where a token of a service account is issued.
    pub(super) impersonation: Option<Url>,
    /// The project that is billed.
    pub(super) quota_project_id: Option<String>,
}

#[derive(Deserialize)]
struct Description {
    audience: String,
    subject_token_type: String,
    token_url: String,
    service_account_impersonation_url: Option<String>,
    quota_project_id: Option<String>,
    credential_source: Source,
}

/// Where the token of the other issuer is. Of the sources only files are supported.
#[derive(Deserialize)]
struct Source {
    file: Option<PathBuf>,
    url: Option<IgnoredAny>,
    executable: Option<IgnoredAny>,
    environment_id: Option<IgnoredAny>,
    #[serde(default)]
    format: Format,
}

impl Source {
    /// Which source it is that is no file.
    const fn other(&self) -> &'static str {
        match (&self.environment_id, &self.executable, &self.url) {
            // It has addresses, too.
            (Some(_), ..) => "the metadata of a machine at Amazon (`environment_id`)",
            (_, Some(_), _) => "a program (`executable`)",
            (.., Some(_)) => "an address (`url`)",
            (None, None, None) => "of an unknown kind",
        }
    }
}

/// What the file has.
#[derive(Default, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Format {
    /// The token alone.
    #[default]
    Text,
    /// An object, in which the token is a field.
    Json { subject_token_field_name: String },
}

impl Workload {
    /// Parses the JSON of a file, and the address where tokens are issued.
    pub(super) fn parse(json: &str) -> Result<(Self, Url), TokenError> {
        let file: Description = serde_json::from_str(json).map_err(|_| TokenError::File)?;
        let address = token_address(&file.token_url)?;
        let impersonation =
            file.service_account_impersonation_url.as_deref().map(token_address).transpose()?;
        let other = file.credential_source.other();
        let Source { file: Some(source), format, .. } = file.credential_source else {
            return Err(TokenError::Source(other));
        };
        let workload = Self {
            audience: file.audience,
            subject_token_type: file.subject_token_type,
            file: source,
            format,
            impersonation,
            quota_project_id: file.quota_project_id,
        };
        Ok((workload, address))
    }

    /// The body of the request for a token, `application/x-www-form-urlencoded`.
    pub(super) fn request(&self) -> Result<String, TokenError> {
        let token = self.subject_token()?;
        let fields = [
            ("grant_type", GRANT),
            ("audience", &self.audience),
            ("scope", SCOPE),
            ("requested_token_type", ACCESS_TOKEN),
            ("subject_token_type", &self.subject_token_type),
            ("subject_token", &token),
        ];
        Ok(Serializer::new(String::new()).extend_pairs(fields).finish())
    }

    fn subject_token(&self) -> Result<String, TokenError> {
        let unreadable = |why: String| TokenError::Unreadable(self.file.display().to_string(), why);
        let mut text = String::new();
        let read = File::open(&self.file).and_then(|file| file.take(MAX_FILE).read_to_string(&mut text));
        read.map_err(|why| unreadable(why.to_string()))?;
        let token = match &self.format {
            Format::Text => Some(text),
            Format::Json { subject_token_field_name: name } => serde_json::from_str::<Value>(&text)
                .ok()
                .and_then(|object| object.get(name)?.as_str().map(str::to_owned)),
        };
        let token = token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
        token.ok_or_else(|| unreadable("it has no token".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(source: &Value) -> Result<(Workload, Url), TokenError> {
        let file = serde_json::json!({
            "type": "external_account", "audience": "//iam.googleapis.com/pools/p",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": "https://sts.googleapis.com/v1/token", "credential_source": source,
        });
        Workload::parse(&file.to_string())
    }

    #[test]
    fn the_token_is_read_again_for_each_request() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, json) = (folder.path().join("token"), folder.path().join("token.json"));
        let format = serde_json::json!({"type": "json", "subject_token_field_name": "value"});
        let (workload, address) = parsed(&serde_json::json!({"file": plain})).unwrap();
        assert_eq!(address.as_str(), "https://sts.googleapis.com/v1/token");
        for token in ["one", "two"] {
            std::fs::write(&plain, format!("{token}\n")).unwrap();
            assert!(workload.request().unwrap().ends_with(&format!("&subject_token={token}")));
        }
        std::fs::write(&json, r#"{"value": "three"}"#).unwrap();
        let (workload, _) = parsed(&serde_json::json!({"file": json, "format": format})).unwrap();
        assert!(workload.request().unwrap().ends_with("&subject_token=three"));
        for nothing in ["{}", "<html>", r#"{"value": " "}"#, r#"{"value": 3}"#] {
            std::fs::write(&json, nothing).unwrap();
            let error = workload.request().unwrap_err().to_string();
            assert!(error.contains("token.json` cannot be read: it has no token"), "{error}");
        }
    }

    #[test]
    fn sources_other_than_files_are_refused() {
        for (source, named) in [
            (serde_json::json!({"url": "http://169.254.169.254/token", "headers": {"a": "b"}}), "`url`"),
            (serde_json::json!({"executable": {"command": "curl evil.example"}}), "`executable`"),
            (
                serde_json::json!({"environment_id": "aws1", "url": "http://169.254.169.254"}),
                "`environment_id`",
            ),
            (serde_json::json!({"certificate": {}}), "of an unknown kind"),
        ] {
            let error = parsed(&source).unwrap_err().to_string();
            assert!(error.contains(named) && error.ends_with("name that as `file`"), "{error}");
        }
    }
}
