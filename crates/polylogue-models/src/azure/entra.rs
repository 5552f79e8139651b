//! Authorization by Microsoft Entra: a token in a file, or an application that is exchanged for tokens.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use polylogue_http::{Env, Key};
use url::Url;
use url::form_urlencoded::Serializer;

use crate::oauth::{TokenCache, TokenError, token_address};

/// Variables with the path of a file that has a token.
pub(crate) const TOKEN_FILES: [&str; 2] = [ACCESS_TOKEN, FEDERATED];

/// An access token.
const ACCESS_TOKEN: &str = "AZURE_OPENAI_AD_TOKEN_FILE";

/// A token of a workload, such as a pod of Kubernetes, which is exchanged for access tokens.
const FEDERATED: &str = "AZURE_FEDERATED_TOKEN_FILE";

/// Where tokens are issued, unless `AZURE_AUTHORITY_HOST` names another server.
const AUTHORITY: &str = "https://login.microsoftonline.com";

/// What access tokens are for.
const SCOPE: &str = "https://cognitiveservices.azure.com/.default";

/// The maximum length of a token in a file, in bytes.
const MAX_TOKEN: usize = 64 << 10;

/// Credentials of Microsoft Entra for models at Azure. Files with tokens are read again for each request, so that a token that
/// another program renews is used without a restart. Cloning shares the access token.
///
/// ```
/// use polylogue_models::{AzureCredentials, Env};
/// let env = Env::of([("AZURE_TENANT_ID", "t"), ("AZURE_CLIENT_ID", "c"), ("AZURE_FEDERATED_TOKEN_FILE", "/run/token")]);
/// assert!(AzureCredentials::of_env(&env)?.is_some());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AzureCredentials(pub(crate) EntraSource);

/// Where access tokens come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EntraSource {
    /// A file.
    File(PathBuf),
    /// An application of a tenant.
    Application(Application),
}

/// An application that is authorized by a secret, or by a token of the workload that it runs in.
#[derive(Clone, derive_more::Debug)]
// Whose they are, and no secret.
#[debug("Application({:?})", self.0.client_id)]
pub(crate) struct Application(Arc<Inner>);

struct Inner {
    address: Url,
    client_id: String,
    proof: Proof,
    tokens: TokenCache,
}

enum Proof {
    Secret(Key),
    /// The path of a file with a signed token.
    Assertion(PathBuf),
}

/// Applications are equal if they share an access token.
impl PartialEq for Application {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Application {}

impl AzureCredentials {
    /// Reads the credentials from `env`, by the variables of Azure's own libraries; the first of these that is set counts, and
    /// `None` if none is:
    ///
    /// - `AZURE_OPENAI_AD_TOKEN_FILE`: a file with an access token;
    /// - `AZURE_FEDERATED_TOKEN_FILE`, with `AZURE_TENANT_ID` and `AZURE_CLIENT_ID`: the identity of a workload;
    /// - `AZURE_CLIENT_SECRET`, with the same two: an application.
    ///
    /// # Errors
    /// When one of several variables is missing, or an address cannot be used; without secrets.
    pub fn of_env(env: &Env) -> Result<Option<Self>, String> {
        if let Some(file) = env.address(ACCESS_TOKEN) {
            return Ok(Some(Self(EntraSource::File(file.into()))));
        }
        let secret = || env.get("AZURE_CLIENT_SECRET").and_then(|secret| Key::new(&secret));
        let proof = match env.address(FEDERATED) {
            Some(file) => Some((FEDERATED, Proof::Assertion(file.into()))),
            None => secret().map(|secret| ("AZURE_CLIENT_SECRET", Proof::Secret(secret))),
        };
        let Some((variable, proof)) = proof else { return Ok(None) };
        let named = |name: &str| {
            env.address(name)
                .ok_or_else(|| format!("`{variable}` is set, and `{name}` is not: both are needed"))
        };
        let (tenant, client_id) = (named("AZURE_TENANT_ID")?, named("AZURE_CLIENT_ID")?);
        if !tenant.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.')) {
            return Err(format!("`AZURE_TENANT_ID` is `{tenant}`, which is not the id of a tenant"));
        }
        let host = env.address("AZURE_AUTHORITY_HOST").unwrap_or_else(|| AUTHORITY.to_owned());
        let address = format!("{}/{tenant}/oauth2/v2.0/token", host.trim_end_matches('/'));
        let address = token_address(&address).map_err(|why| format!("`AZURE_AUTHORITY_HOST`: {why}"))?;
        let inner = Inner { address, client_id, proof, tokens: TokenCache::default() };
        Ok(Some(Self(EntraSource::Application(Application(Arc::new(inner))))))
    }

    /// What must not be shown.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let secret = match &self.0 {
            EntraSource::Application(Application(inner)) => match &inner.proof {
                Proof::Secret(secret) => Some(secret.reveal()),
                Proof::Assertion(_) => None,
            },
            EntraSource::File(_) => None,
        };
        secret.into_iter()
    }
}

impl Application {
    /// Where tokens are issued.
    pub(crate) fn address(&self) -> &Url {
        &self.0.address
    }

    /// The tokens that were requested for it.
    pub(crate) fn tokens(&self) -> &TokenCache {
        &self.0.tokens
    }

    /// The body of the request for a token, `application/x-www-form-urlencoded`.
    pub(crate) fn request(&self) -> Result<String, TokenError> {
        let Inner { client_id, proof, .. } = &*self.0;
        let mut body = Serializer::new(String::new());
        body.extend_pairs([("grant_type", "client_credentials"), ("client_id", client_id), ("scope", SCOPE)]);
        match proof {
            Proof::Secret(secret) => body.append_pair("client_secret", secret.reveal()),
            Proof::Assertion(file) => body
                .append_pair(
                    "client_assertion_type",
                    "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                )
                .append_pair("client_assertion", read_token(file)?.reveal()),
        };
        Ok(body.finish())
    }
}

/// The token in `file`.
pub(crate) fn read_token(file: &Path) -> Result<Key, TokenError> {
    let fail = |why: String| TokenError::Unreadable(file.display().to_string(), why);
    let text = std::fs::read_to_string(file).map_err(|error| fail(error.to_string()))?;
    let token = Key::new(&text).filter(|_| text.len() <= MAX_TOKEN);
    token.ok_or_else(|| fail("it has no token".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(vars: &[(&str, &str)]) -> Result<Option<AzureCredentials>, String> {
        AzureCredentials::of_env(&Env::of(vars.iter().copied()))
    }

    #[test]
    fn a_workload_and_an_application_ask_for_tokens_of_their_tenant() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "first\n").unwrap();
        let own = [("AZURE_TENANT_ID", "t-1"), ("AZURE_CLIENT_ID", "c 1")];
        let request = |proof: (&str, &str)| match of(&[own[0], own[1], proof]).unwrap().unwrap().0 {
            EntraSource::Application(application) => (application.clone(), application.request()),
            EntraSource::File(_) => panic!("it is an application"),
        };
        let (workload, body) = request(("AZURE_FEDERATED_TOKEN_FILE", file.to_str().unwrap()));
        assert_eq!(workload.address().as_str(), "https://login.microsoftonline.com/t-1/oauth2/v2.0/token");
        let expected = "grant_type=client_credentials&client_id=c+1&scope=https%3A%2F%2Fcognitiveservices.azure.com%2F.default\
            &client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion=first";
        assert_eq!(body.unwrap(), expected);
        std::fs::write(&file, "second").unwrap();
        assert!(workload.request().unwrap().ends_with("client_assertion=second"), "it is read again");
        std::fs::remove_file(&file).unwrap();
        assert!(workload.request().unwrap_err().to_string().contains("cannot be read"));
        let (application, body) = request(("AZURE_CLIENT_SECRET", "s3cret"));
        assert!(body.unwrap().ends_with("&client_secret=s3cret"));
        assert!(!format!("{application:?}").contains("s3cret"));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&[("AZURE_TENANT_ID", "t")]), Ok(None), "other programs use it, too");
        let (tenant, secret) = (("AZURE_TENANT_ID", "t"), ("AZURE_CLIENT_SECRET", "s"));
        assert!(of(&[tenant, secret]).unwrap_err().contains("`AZURE_CLIENT_ID` is not"));
        let client = ("AZURE_CLIENT_ID", "c");
        assert!(
            of(&[("AZURE_TENANT_ID", "a/b"), secret, client]).unwrap_err().contains("not the id of a tenant")
        );
        let host = ("AZURE_AUTHORITY_HOST", "http://example.com");
        assert!(of(&[tenant, secret, client, host]).unwrap_err().contains("https://"));
    }
}
