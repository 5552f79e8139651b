//! What Amazon's services need beyond HTTP: credentials, a region, and signed requests.

mod credentials;
mod sign;
mod signer;
mod signing_key;

use polylogue_core::{ModelError, ModelErrorKind};
use polylogue_http::{Env, Key};

use credentials::{Credentials, CredentialsError, Source};

pub(crate) use credentials::FILES;
pub(crate) use signer::{Signer, Unsigned};

/// A service of Amazon with models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AwsService {
    /// Bedrock's models by Amazon's API.
    Runtime,
    /// Claude by Anthropic's API.
    Mantle,
}

impl AwsService {
    /// Its name in signatures.
    const fn signing_name(self) -> &'static str {
        match self {
            Self::Runtime => "bedrock",
            Self::Mantle => "bedrock-mantle",
        }
    }
}

/// Signs requests to Amazon Bedrock (Signature Version 4), with credentials that are found as the `aws` program finds them:
/// `AWS_ACCESS_KEY_ID` with `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, or the profile that `AWS_PROFILE` names, with keys
/// or a `credential_process`.
///
/// ```
/// use polylogue_models::{Aws, Env};
/// let env = Env::of([("AWS_REGION", "eu-west-1"), ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "secret")]);
/// assert_eq!(Aws::of(&env)?.region(), "eu-west-1");
/// # Ok::<(), polylogue_core::ModelError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Aws {
    service: AwsService,
    region: String,
    /// Where the credentials are found again once a service no longer accepts them.
    env: Env,
    /// Missing credentials are an error of the first call, as a missing key is.
    source: Result<Source, CredentialsError>,
}

/// Equal if the service, the region and the credentials are.
impl PartialEq for Aws {
    fn eq(&self, other: &Self) -> bool {
        (self.service, &self.region, &self.source) == (other.service, &other.region, &other.source)
    }
}

impl Eq for Aws {}

impl Aws {
    /// Reads the region and the credentials from `env`.
    ///
    /// # Errors
    /// When no region is set, or the files of the `aws` program cannot be read.
    pub fn of(env: &Env) -> Result<Self, ModelError> {
        let fail = |message: String, hint: &str| {
            ModelError::new(ModelErrorKind::Config, "bedrock", message).hint(hint.to_owned())
        };
        let region = credentials::region(env).map_err(|error| fail(error.to_string(), error.hint()))?;
        let hint = "set `AWS_REGION`, such as `us-east-1`, or `region` in the profile";
        let region = region.ok_or_else(|| fail("no region is set".to_owned(), hint))?;
        if !is_region(&region) {
            return Err(fail("the region is not the name of one".to_owned(), hint));
        }
        Ok(Self { service: AwsService::Runtime, region, env: env.clone(), source: Source::find(env) })
    }

    /// The same for requests to `service`.
    pub(crate) fn to(self, service: AwsService) -> Self {
        Self { service, ..self }
    }

    /// Returns the region, such as `us-east-1`.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Whether there are credentials to sign with, or a program that prints them.
    pub(crate) const fn has_credentials(&self) -> bool {
        self.source.is_ok()
    }

    /// Why there is nothing to sign with.
    pub(crate) fn missing(&self, provider: &str) -> Option<ModelError> {
        let error = self.source.as_ref().err()?;
        Some(ModelError::new(ModelErrorKind::Config, provider, error.to_string()).hint(error.hint()))
    }

    /// The address of the service in the region.
    pub(crate) fn address(&self) -> String {
        let Self { service, region, .. } = self;
        let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
        match service {
            AwsService::Runtime => format!("https://bedrock-runtime.{region}.amazonaws.com{suffix}"),
            AwsService::Mantle => format!("https://bedrock-mantle.{region}.api.aws/anthropic"),
        }
    }

    /// The secrets that are known before a call.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Key> {
        let known = match &self.source {
            Ok(Source::Known(known)) => Some(known),
            _ => None,
        };
        known.into_iter().flat_map(Credentials::secrets)
    }
}

/// Whether `text` can be a part of a host's name.
fn is_region(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
