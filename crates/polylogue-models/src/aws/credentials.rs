//! Credentials for Amazon's services: from the environment, from the files of the `aws` program, or from the program that
//! they name.
//!
//! <https://docs.aws.amazon.com/sdkref/latest/guide/creds-config-files.html>

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::DateTime;
use polylogue_http::{Env, Key};
use serde::Deserialize;

/// What a request is signed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) access_key_id: Arc<str>,
    pub(crate) secret_access_key: Key,
    /// Sent with requests that temporary credentials sign.
    pub(crate) session_token: Option<Key>,
}

impl Credentials {
    /// What must not be shown.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.secret_access_key).chain(&self.session_token)
    }
}

/// Where credentials come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Known(Credentials),
    /// A command whose output is credentials: it is run when they are needed, and again once they have expired.
    Process(String),
}

/// Why there are no credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CredentialsError {
    #[error("there are no credentials: `AWS_ACCESS_KEY_ID` is not set, and there is no profile `{profile}`")]
    Missing { profile: String },
    #[error("`AWS_ACCESS_KEY_ID` is set, but `AWS_SECRET_ACCESS_KEY` is not")]
    NoSecret,
    #[error("the profile `{profile}` uses `{key}`, which is not supported")]
    Unsupported { profile: String, key: &'static str },
    #[error("the profile `{profile}` has an `aws_access_key_id`, but no `aws_secret_access_key`")]
    NoProfileSecret { profile: String },
    #[error("`{file}` cannot be read: {why}")]
    Unreadable { file: String, why: String },
    #[error("the `credential_process` of the profile failed: {0}")]
    Process(String),
    #[error("the output of `credential_process` is not credentials: {0}")]
    Output(String),
}

impl CredentialsError {
    /// What to do about it.
    pub(crate) const fn hint(&self) -> &'static str {
        match self {
            Self::Missing { .. } | Self::NoSecret => {
                "set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
            }
            Self::Unsupported { .. } => {
                "add `credential_process = aws configure export-credentials --profile NAME` to the profile"
            }
            Self::NoProfileSecret { .. } => "add `aws_secret_access_key` to the profile",
            Self::Unreadable { .. } => "make the file readable, or name another one by AWS_CONFIG_FILE",
            Self::Process(_) => "run the command in a shell: an expired login is a common cause",
            Self::Output(_) => "the command must print what `aws configure export-credentials` prints",
        }
    }
}

/// Keys of profiles that fetch credentials in ways that are not supported.
const UNSUPPORTED: [&str; 4] = ["sso_session", "sso_start_url", "role_arn", "credential_source"];

impl Source {
    /// The first source there is: variables, then the profile that `AWS_PROFILE` names, or `default`.
    pub(crate) fn find(env: &Env) -> Result<Self, CredentialsError> {
        if let Some(access_key_id) = env.get("AWS_ACCESS_KEY_ID") {
            let secret = env.get("AWS_SECRET_ACCESS_KEY").and_then(|secret| Key::new(&secret));
            return Ok(Self::Known(Credentials {
                access_key_id: access_key_id.into(),
                secret_access_key: secret.ok_or(CredentialsError::NoSecret)?,
                session_token: env.get("AWS_SESSION_TOKEN").and_then(|token| Key::new(&token)),
            }));
        }
        let profile = env.get("AWS_PROFILE").unwrap_or_else(|| "default".into());
        Self::of_profile(&values(env, &profile)?, profile)
    }

    fn of_profile(values: &Values, profile: String) -> Result<Self, CredentialsError> {
        if let Some(id) = values.get("aws_access_key_id") {
            let secret = values.get("aws_secret_access_key").and_then(|secret| Key::new(secret));
            return Ok(Self::Known(Credentials {
                access_key_id: id.as_str().into(),
                secret_access_key: secret.ok_or(CredentialsError::NoProfileSecret { profile })?,
                session_token: values.get("aws_session_token").and_then(|token| Key::new(token)),
            }));
        }
        if let Some(command) = values.get("credential_process") {
            return Ok(Self::Process(command.clone()));
        }
        match UNSUPPORTED.into_iter().find(|key| values.contains_key(*key)) {
            Some(key) => Err(CredentialsError::Unsupported { profile, key }),
            None => Err(CredentialsError::Missing { profile }),
        }
    }
}

/// The region that variables or the profile name.
pub(crate) fn region(env: &Env) -> Result<Option<String>, CredentialsError> {
    if let Some(region) = env.get("AWS_REGION").or_else(|| env.get("AWS_DEFAULT_REGION")) {
        return Ok(Some(region));
    }
    let profile = env.get("AWS_PROFILE").unwrap_or_else(|| "default".into());
    Ok(values(env, &profile)?.remove("region"))
}

type Values = BTreeMap<String, String>;

/// Variables with the paths of these files.
pub(crate) const FILES: [&str; 2] = ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"];

/// The values of `profile` in both files; those of the credentials file count first. A profile can name a program that is run, so that a
/// `.env` file names neither of them.
fn values(env: &Env, profile: &str) -> Result<Values, CredentialsError> {
    let named = |variable: &str, name: &str| {
        let file = env.address(variable).map(PathBuf::from);
        file.or_else(|| Some(Path::new(&env.address("HOME")?).join(".aws").join(name)))
    };
    let mut values = Values::new();
    let config_section = if profile == "default" { profile.to_owned() } else { format!("profile {profile}") };
    let [config, credentials] = FILES;
    for (file, section) in
        [(named(config, "config"), &*config_section), (named(credentials, "credentials"), profile)]
    {
        let Some(file) = file else { continue };
        values.extend(section_of(&read(&file)?, section));
    }
    Ok(values)
}

fn read(file: &Path) -> Result<String, CredentialsError> {
    match std::fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|error| CredentialsError::Unreadable {
            file: file.display().to_string(),
            why: error.to_string(),
        }),
    }
}

/// The values of `[section]` in an INI file. Indented lines belong to nested settings, which are skipped.
fn section_of(text: &str, section: &str) -> Values {
    let mut values = Values::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        let header = line.trim().strip_prefix('[').and_then(|rest| rest.split(']').next());
        if let Some(header) = header {
            inside = header.split_whitespace().eq(section.split_whitespace());
        } else if let Some((key, value)) = line.split_once('=')
            && inside
        {
            let value = value.split(" #").next().unwrap_or_default().trim();
            values.insert(key.trim().to_ascii_lowercase(), value.to_owned());
        }
    }
    values
}

/// What a credential process prints.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Printed {
    version: u32,
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    expiration: Option<String>,
}

/// The credentials that a process printed, and when they expire.
pub(crate) fn printed(output: &[u8]) -> Result<(Credentials, Option<SystemTime>), CredentialsError> {
    // Errors of the parser would show parts of the secret.
    let broken = |why: &str| CredentialsError::Output(why.to_owned());
    let printed: Printed =
        serde_json::from_slice(output).map_err(|_| broken("it is not the expected JSON"))?;
    if printed.version != 1 {
        return Err(broken("its version is not 1"));
    }
    let secret = Key::new(&printed.secret_access_key).ok_or_else(|| broken("the secret is empty"))?;
    let credentials = Credentials {
        access_key_id: printed.access_key_id.into(),
        secret_access_key: secret,
        session_token: printed.session_token.as_deref().and_then(Key::new),
    };
    let expires =
        printed.expiration.map(|text| time(&text).ok_or_else(|| broken("its expiration is no time")));
    Ok((credentials, expires.transpose()?))
}

/// A time such as `2026-11-23T06:00:00Z`.
fn time(text: &str) -> Option<SystemTime> {
    let time = DateTime::parse_from_rfc3339(text.trim()).ok()?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(time.timestamp().try_into().ok()?))
}

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;
