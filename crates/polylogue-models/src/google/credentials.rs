//! Google's credentials, and the cache of their access token.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use polylogue_http::Env;
use serde::Deserialize;
use url::Url;

use super::service_account::ServiceAccount;
use super::user::User;
use super::workload::Workload;
use crate::oauth::{TokenCache, TokenError, token_address};

/// Where tokens are issued, unless the credentials name another address.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";

/// The file of credentials in the folder of gcloud's settings.
const OF_GCLOUD: &str = "application_default_credentials.json";

/// The metadata server of Google's machines.
const METADATA_HOST: &str = "metadata.google.internal";

/// Where it issues tokens of the machine's service account.
const METADATA_TOKEN: &str = "computeMetadata/v1/instance/service-accounts/default/token";

/// Variables that Cloud Run sets for services, and for jobs.
const OF_CLOUD_RUN: [&str; 2] = ["K_SERVICE", "CLOUD_RUN_JOB"];

/// Google's credentials, as in a JSON file: of a service account, of a user as written by `gcloud auth application-default login`, or of
/// a workload whose identity a token in a file proves (workload identity federation); or those of the machine. Cloning shares the access token, which is requested when it is needed.
///
/// ```
/// use polylogue_models::GoogleCredentials;
/// let file = r#"{"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r"}"#;
/// assert_eq!(GoogleCredentials::parse(file)?.project(), None);
/// assert!(GoogleCredentials::parse("{}").is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, derive_more::Debug)]
// Whose they are, and no secret.
#[debug("GoogleCredentials({:?})", self.0.kind)]
pub struct GoogleCredentials(Arc<Inner>);

struct Inner {
    kind: Kind,
    /// Where tokens are issued.
    address: Url,
    tokens: TokenCache,
}

#[derive(Debug)]
enum Kind {
    ServiceAccount(Box<ServiceAccount>),
    User(User),
    Workload(Box<Workload>),
    /// The service account of the machine, which its metadata server knows.
    Machine,
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "type")]
    kind: String,
    token_uri: Option<String>,
}

/// Credentials are equal if they share an access token.
impl PartialEq for GoogleCredentials {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for GoogleCredentials {}

impl GoogleCredentials {
    /// Parses the JSON of a file of credentials.
    ///
    /// # Errors
    /// The reason, without secrets.
    pub fn parse(json: &str) -> Result<Self, String> {
        Self::parsed(json).map_err(|why| why.to_string())
    }

    fn parsed(json: &str) -> Result<Self, TokenError> {
        let file: File = serde_json::from_str(json).map_err(|_| TokenError::File)?;
        let kind = match file.kind.as_str() {
            "service_account" => Kind::ServiceAccount(Box::new(ServiceAccount::parse(json)?)),
            "authorized_user" => Kind::User(User::parse(json)?),
            "external_account" => {
                let (workload, address) = Workload::parse(json)?;
                return Ok(Self::of(Kind::Workload(Box::new(workload)), address));
            }
            _ => return Err(TokenError::Kind(file.kind)),
        };
        let address = token_address(file.token_uri.as_deref().unwrap_or(TOKEN_URI))?;
        Ok(Self::of(kind, address))
    }

    fn of(kind: Kind, address: Url) -> Self {
        Self(Arc::new(Inner { kind, address, tokens: TokenCache::default() }))
    }

    /// Reads the credentials from `env`: the file that `GOOGLE_APPLICATION_CREDENTIALS` names, or else the one that gcloud
    /// wrote, or else the service account of the machine, on Cloud Run or where `GCE_METADATA_HOST` names the metadata server.
    /// `None` if there is none of them.
    ///
    /// # Errors
    /// When a file cannot be read, or has no credentials; with its path and without secrets. When the name of the server is none.
    pub fn of_env(env: &Env) -> Result<Option<Self>, String> {
        let named = env.address("GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from);
        let Some(path) = named.or_else(|| of_gcloud(env)) else { return Self::of_machine(env) };
        let fail = |why: &dyn fmt::Display| format!("`{}` cannot be used: {why}", path.display());
        let json = std::fs::read_to_string(&path).map_err(|why| fail(&why))?;
        Self::parsed(&json).map(Some).map_err(|why| fail(&why))
    }

    fn of_machine(env: &Env) -> Result<Option<Self>, String> {
        let is_cloud_run = || OF_CLOUD_RUN.iter().any(|name| env.get(name).is_some());
        let given = env.address("GCE_METADATA_HOST").map(|host| host.trim().to_owned());
        let Some(host) = given.or_else(|| is_cloud_run().then(|| METADATA_HOST.to_owned())) else {
            return Ok(None);
        };
        let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':');
        let wrong =
            || format!("`GCE_METADATA_HOST` is `{host}`, which is not a host such as `{METADATA_HOST}`");
        if !host.chars().all(is_legal) {
            return Err(wrong());
        }
        let address = Url::parse(&format!("http://{host}/{METADATA_TOKEN}")).map_err(|_| wrong())?;
        Ok(Some(Self::of(Kind::Machine, address)))
    }

    /// Returns the project that they belong to, or that is billed, if they name one.
    pub fn project(&self) -> Option<&str> {
        match &self.0.kind {
            Kind::ServiceAccount(account) => account.project.as_deref(),
            Kind::User(user) => user.quota_project_id.as_deref(),
            Kind::Workload(workload) => workload.quota_project_id.as_deref(),
            Kind::Machine => None,
        }
    }

    /// Where tokens are issued.
    pub(crate) fn address(&self) -> &Url {
        &self.0.address
    }

    /// What must not be shown.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let secrets = match &self.0.kind {
            Kind::ServiceAccount(_) | Kind::Workload(_) | Kind::Machine => None,
            Kind::User(user) => Some(user.secrets()),
        };
        secrets.into_iter().flatten()
    }

    /// The body of the request for a token; `None` where it has none, which is a request to the metadata server.
    pub(crate) fn request(&self, now: SystemTime) -> Result<Option<String>, TokenError> {
        match &self.0.kind {
            Kind::ServiceAccount(account) => account.request(self.0.address.as_str(), now).map(Some),
            Kind::User(user) => Ok(Some(user.request())),
            Kind::Workload(workload) => workload.request().map(Some),
            Kind::Machine => Ok(None),
        }
    }

    /// Where the token is exchanged for one of a service account; `None` if it is used itself.
    pub(crate) fn impersonation(&self) -> Option<&Url> {
        match &self.0.kind {
            Kind::Workload(workload) => workload.impersonation.as_ref(),
            _ => None,
        }
    }

    /// Whether they are those of a workload, by a token in a file.
    pub(crate) fn are_of_workload(&self) -> bool {
        matches!(self.0.kind, Kind::Workload(_))
    }

    /// Whether they are those of the machine.
    pub(crate) fn are_of_machine(&self) -> bool {
        matches!(self.0.kind, Kind::Machine)
    }

    /// The tokens that were requested with them.
    pub(crate) fn tokens(&self) -> &TokenCache {
        &self.0.tokens
    }
}

/// The file that gcloud writes, if it is there.
fn of_gcloud(env: &Env) -> Option<PathBuf> {
    let folder = env.address("CLOUDSDK_CONFIG").map(PathBuf::from);
    let home = || env.address("HOME").map(|home| Path::new(&home).join(".config/gcloud"));
    let windows = || env.address("APPDATA").map(|data| Path::new(&data).join("gcloud"));
    let path = folder.or_else(home).or_else(windows)?.join(OF_GCLOUD);
    path.is_file().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: &str = r#"{"type":"authorized_user","client_id":"id","client_secret":"secret-1",
        "refresh_token":"secret-2","quota_project_id":"acme"}"#;

    #[test]
    fn credentials_are_found_where_gcloud_writes_them() {
        let home = tempfile::tempdir().unwrap();
        let env = Env::of([("HOME", home.path().to_str().unwrap())]);
        assert_eq!(GoogleCredentials::of_env(&env), Ok(None));
        let folder = home.path().join(".config/gcloud");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(OF_GCLOUD), USER).unwrap();
        let found = GoogleCredentials::of_env(&env).unwrap().unwrap();
        assert_eq!(found.project(), Some("acme"));
        assert_eq!(found.address().as_str(), TOKEN_URI);
        assert!(!format!("{found:?}").contains("secret"));
    }

    #[test]
    fn the_machine_has_credentials_where_its_metadata_server_is_known() {
        let address = |variables: &[(&str, &str)]| {
            let found = GoogleCredentials::of_env(&Env::of(variables.iter().copied()));
            found.map(|found| found.map(|credentials| credentials.address().to_string()))
        };
        let token = |host: &str| Ok(Some(format!("http://{host}/{METADATA_TOKEN}")));
        assert_eq!(address(&[("GCE_METADATA_HOST", "169.254.169.254")]), token("169.254.169.254"));
        assert_eq!(address(&[("K_SERVICE", "mine")]), token(METADATA_HOST));
        assert_eq!(address(&[("CLOUD_RUN_JOB", "mine"), ("GCE_METADATA_HOST", "h:1")]), token("h:1"));
        assert_eq!(address(&[]), Ok(None));
        for host in ["evil.example/x", "a@b", "", " "] {
            let found = address(&[("GCE_METADATA_HOST", host)]);
            assert!(found.is_err() || found == Ok(None), "{host}: {found:?}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.json");
        let env = Env::of([("GOOGLE_APPLICATION_CREDENTIALS", path.to_str().unwrap())]);
        let error = || GoogleCredentials::of_env(&env).unwrap_err();
        assert!(error().contains("key.json"), "{}", error());
        for (content, why) in [
            ("<html>", "not the JSON"),
            (r#"{"type":"external_account_authorized_user"}"#, "`external_account_authorized_user`"),
            (r#"{"type":"external_account"}"#, "not the JSON"),
            (r#"{"type":"service_account","client_email":"a","private_key":"b"}"#, "private key"),
            (
                &USER.replace("\"client_id\"", "\"token_uri\":\"http://example.com\",\"client_id\""),
                "https://",
            ),
        ] {
            std::fs::write(&path, content).unwrap();
            assert!(error().contains(why) && error().contains("key.json"), "{}", error());
        }
    }
}
