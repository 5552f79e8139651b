//! How requests are authorized.

use polylogue_http::{HeaderName, Key};

use crate::aws::Aws;
use crate::azure::AzureCredentials;
use crate::google::GoogleCredentials;

/// The authorization of requests to an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Auth {
    /// The header `Authorization: Bearer KEY`.
    #[default]
    Bearer,
    /// A header whose value is the key, such as `x-api-key`.
    Header(HeaderName),
    /// Signatures of Amazon's services. There is no key.
    Aws(Aws),
    /// Access tokens of Google's cloud: a key is one, or else they are requested with these credentials.
    Google(Option<GoogleCredentials>),
    /// An API key of Vertex AI (express mode), in the header `x-goog-api-key`. Anthropic's models there take none.
    GoogleKey,
    /// Access tokens of Microsoft Entra, from a file or requested with these credentials. A key is sent as `api-key`
    /// instead.
    Azure(AzureCredentials),
}

/// The header with an API key of Google.
pub(crate) const GOOGLE_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

impl Auth {
    /// Whether requests go to Vertex AI.
    pub(crate) const fn is_vertex(&self) -> bool {
        matches!(self, Self::Google(_) | Self::GoogleKey)
    }

    /// The secrets that are known before a call.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let (aws, google, azure) = match self {
            Self::Aws(aws) => (Some(aws), None, None),
            Self::Google(credentials) => (None, credentials.as_ref(), None),
            Self::Azure(credentials) => (None, None, Some(credentials)),
            Self::Bearer | Self::Header(_) | Self::GoogleKey => (None, None, None),
        };
        let keys = aws.into_iter().flat_map(Aws::secrets).map(Key::reveal);
        keys.chain(google.into_iter().flat_map(GoogleCredentials::secrets))
            .chain(azure.into_iter().flat_map(AzureCredentials::secrets))
    }
}
