//! Tokens of an authorization server (OAuth 2): this server checks them. It makes none, and passes none on.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use polylogue_http::{HeaderMap, Method, Proxies, Transport, is_loopback, read_all};
use polylogue_wire::Scope;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tracing::warn;
use url::Url;

use crate::problem::Problem;
use crate::token::Token;

/// An authorization server whose tokens are accepted.
#[derive(Debug, Clone)]
pub struct IssuerOptions {
    /// The address, exactly as its tokens have it: `https`, or `http` on this machine.
    pub url: String,
    /// The address of this server as the authorization server knows it, for which tokens must be made. Default: the public one.
    pub audience: Option<String>,
    /// The proxies through which it is reached.
    pub proxies: Proxies,
}

/// How long its keys are used before they are read again.
const FRESH: Duration = Duration::from_secs(3600);

/// How long after its keys were read, or could not be, they are not read again: wrong tokens must not cause requests.
const PAUSE: Duration = Duration::from_secs(30);

/// How long a document of it may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest document of it.
const MAX_BYTES: usize = 1 << 20;

/// How far its clock may be from ours, in seconds.
const LEEWAY: u64 = 60;

/// Below an address: where clients look for the authorization server of a resource.
pub(crate) const RESOURCE_METADATA: &str = "oauth-protected-resource";

/// The authorization server whose tokens are accepted.
pub(crate) struct Issuer {
    /// As tokens have it.
    name: String,
    url: Url,
    /// The address of this server, without a `/` at its end.
    resource: String,
    proxies: Proxies,
    keys: Mutex<Keys>,
    /// Held while they are read.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Keys {
    set: Option<JwkSet>,
    /// When they were read last, or could not be.
    tried: Option<Instant>,
}

impl Keys {
    /// Whether they are read before the key with this id is used, or is unknown.
    fn are_due(&self, id: Option<&str>) -> bool {
        let is_known = self.set.as_ref().is_some_and(|set| find(set, id).is_some());
        let age = self.tried.map(|at| at.elapsed());
        age.is_none_or(|age| age > FRESH || (age > PAUSE && !is_known))
    }
}

/// What is used of a token. Audience, issuer and times are checked before.
#[derive(Deserialize)]
struct Claims {
    sub: String,
    exp: u64,
    #[serde(default)]
    scope: Words,
    /// The name of `scope` at some servers.
    #[serde(default)]
    scp: Words,
}

/// Words with spaces between them, or a list of them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    Text(String),
    List(Vec<String>),
}

impl Default for Words {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Words {
    fn into_words(self) -> Vec<String> {
        match self {
            Self::Text(text) => text.split_ascii_whitespace().map(str::to_owned).collect(),
            Self::List(words) => words,
        }
    }
}

/// The metadata of an authorization server.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

impl Issuer {
    /// The authorization server of `options`, for a server with the public address `public_url`.
    ///
    /// # Errors
    /// What is wrong with the options, as a sentence.
    pub(crate) fn new(options: IssuerOptions, public_url: Option<&str>) -> Result<Self, String> {
        let IssuerOptions { url: name, audience, proxies } = options;
        let url = safe(&name)?;
        let resource = audience.as_deref().or(public_url);
        let resource = resource.ok_or("the address for which tokens must be made is not known")?;
        let resource = resource.trim_end_matches('/').to_owned();
        let (keys, reading) = (Mutex::default(), tokio::sync::Mutex::default());
        Ok(Self { name, url, resource, proxies, keys, reading })
    }

    /// The token with this text.
    ///
    /// # Errors
    /// When it is not valid for this server, or the keys of the authorization server cannot be read.
    pub(crate) async fn token(self: &Arc<Self>, text: &str) -> Result<Token, Problem> {
        let wrong = |why: &str| {
            Problem::unauthorized(format!("the token of the authorization server {why}"))
                .hint(format!("get a token from {} for {}", self.name, self.resource))
        };
        let header = decode_header(text).map_err(|_| wrong("is not readable"))?;
        let key = self.key(header.kid.as_deref()).await?;
        let key = key.ok_or_else(|| wrong("is signed with an unknown key"))?;
        let decoding = DecodingKey::from_jwk(&key).map_err(|_| wrong("is signed with an unknown key"))?;
        let claims = decode::<Claims>(text, &decoding, &self.validation(&key)).map_err(|error| {
            wrong(match error.kind() {
                ErrorKind::ExpiredSignature => "has expired",
                ErrorKind::ImmatureSignature => "is not valid yet",
                ErrorKind::InvalidAudience => "is for another server",
                ErrorKind::InvalidIssuer => "is of another authorization server",
                ErrorKind::MissingRequiredClaim(_) => "lacks one of `exp`, `iss`, `aud` and `sub`",
                _ => "is not valid",
            })
        })?;
        Ok(self.token_of(claims.claims))
    }

    fn token_of(&self, claims: Claims) -> Token {
        let Claims { sub, exp, scope, scp } = claims;
        let mut scopes: Vec<Scope> =
            scope.into_words().iter().chain(&scp.into_words()).filter_map(|word| word.parse().ok()).collect();
        // Who may make tokens that last is decided on this machine.
        scopes.retain(|scope| *scope != Scope::Admin);
        let digest = blake3::hash(format!("{}\0{sub}", self.name).as_bytes()).to_hex();
        let id = format!("iss-{}", digest.get(..16).unwrap_or_default());
        let expires_ms = exp.saturating_add(LEEWAY).saturating_mul(1000);
        Token::issued(id, sub.chars().take(100).collect(), scopes, expires_ms)
    }

    /// What a token must be whose signature is of `key`. The kind of the key says which algorithms may have signed it, and not the token.
    fn validation(&self, key: &Jwk) -> Validation {
        let mut validation = Validation::new(Algorithm::RS256);
        validation.algorithms = algorithms(key);
        validation.leeway = LEEWAY;
        validation.validate_nbf = true;
        let Self { resource, .. } = self;
        validation.set_audience(&[resource.clone(), format!("{resource}/"), format!("{resource}/mcp")]);
        validation.set_issuer(&[&self.name]);
        validation.required_spec_claims = HashSet::from(["exp", "iss", "aud", "sub"].map(str::to_owned));
        validation
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key with this id; the only one, for tokens that name none.
    async fn key(self: &Arc<Self>, id: Option<&str>) -> Result<Option<Jwk>, Problem> {
        if self.keys().are_due(id) {
            let (issuer, id) = (Arc::clone(self), id.map(str::to_owned));
            // In a task of its own: a client that goes away must not have the next one read them once more.
            let _ = tokio::spawn(async move { issuer.update_keys(id.as_deref()).await }).await;
        }
        let keys = self.keys();
        let Some(set) = &keys.set else { return Err(self.unreadable()) };
        Ok(find(set, id).cloned())
    }

    /// Reads the keys, unless another request has done it meanwhile. Tokens with a known key do not wait for it.
    async fn update_keys(&self, id: Option<&str>) {
        let _one = self.reading.lock().await;
        if !self.keys().are_due(id) {
            return;
        }
        let read = self.read_keys().await;
        let mut keys = self.keys();
        keys.tried = Some(Instant::now());
        match read {
            Ok(set) => keys.set = Some(set),
            Err(error) => {
                warn!(issuer = self.name, error, "the keys of the authorization server cannot be read")
            }
        }
    }

    fn unreadable(&self) -> Problem {
        Problem::unavailable(format!("the keys of the authorization server {} cannot be read", self.name))
            .hint("the log of the server says why")
            .retry_after(PAUSE)
    }

    async fn read_keys(&self) -> Result<JwkSet, String> {
        let mut last = "it has no metadata".to_owned();
        for place in self.metadata_places() {
            match self.read::<Metadata>(&place).await {
                // Otherwise another server could speak for this one.
                Ok(metadata) if metadata.issuer != self.name => {
                    return Err(format!("{place} is of the issuer `{}`", metadata.issuer));
                }
                Ok(metadata) => return self.read(&safe(&metadata.jwks_uri)?).await,
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Where its metadata may be: of OAuth 2 (RFC 8414), or of OpenID Connect.
    fn metadata_places(&self) -> Vec<Url> {
        let path = self.url.path().trim_end_matches('/');
        let paths = [
            format!("/.well-known/oauth-authorization-server{path}"),
            format!("{path}/.well-known/openid-configuration"),
        ];
        let at = |path: String| {
            let mut place = self.url.clone();
            place.set_path(&path);
            place
        };
        paths.map(at).to_vec()
    }

    async fn read<T: DeserializeOwned>(&self, url: &Url) -> Result<T, String> {
        let read = async {
            let transport = Transport::new(url, HeaderMap::new(), PATIENCE, &self.proxies)?;
            let response = transport.ask(Method::GET, None, HeaderMap::new(), Bytes::new());
            let mut response = response.await.map_err(|error| error.to_string())?;
            if response.status() != 200 {
                return Err(format!("status {}", response.status()));
            }
            let body = read_all(&mut response, MAX_BYTES).await.map_err(|error| error.to_string())?;
            serde_json::from_slice(&body).map_err(|error| error.to_string())
        };
        let read = timeout(PATIENCE, read).await.unwrap_or_else(|_| Err("no answer in time".into()));
        read.map_err(|why| format!("{url}: {why}"))
    }

    /// The document that names the authorization server to clients that look `below` its well-known path, such as `/mcp`.
    pub(crate) fn document(&self, below: &str) -> Option<Value> {
        let part = match below.strip_prefix(RESOURCE_METADATA)? {
            "" | "/" => "",
            path if path == "/mcp" || path.starts_with("/mcp/") => "/mcp",
            _ => return None,
        };
        let scopes: Vec<&str> =
            Scope::ALL.into_iter().filter(|scope| *scope != Scope::Admin).map(Scope::word).collect();
        Some(json!({
            "resource": format!("{}{part}", self.resource),
            "authorization_servers": [self.name],
            "scopes_supported": scopes,
            "bearer_methods_supported": ["header"],
            "resource_name": "Polylogue",
        }))
    }

    /// The value of `WWW-Authenticate` of a refusal at `path`, where a token needs `scope`.
    pub(crate) fn challenge(&self, path: &str, scope: Option<Scope>, error: Option<&str>) -> String {
        let part = if path == "/mcp" || path.starts_with("/mcp/") { "/mcp" } else { "" };
        let mut challenge =
            format!("Bearer resource_metadata=\"{}/.well-known/{RESOURCE_METADATA}{part}\"", self.resource);
        for (name, value) in [("error", error), ("scope", scope.map(Scope::word))] {
            if let Some(value) = value {
                challenge.push_str(&format!(", {name}=\"{value}\""));
            }
        }
        challenge
    }
}

/// Whether a text has the form of these tokens. Those of the server itself have no dots.
pub(crate) fn is_form_of(text: &str) -> bool {
    text.split('.').count() == 3 && text.split('.').all(|part| !part.is_empty())
}

/// The address, if what comes from there can be believed.
fn safe(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|_| format!("`{text}` is not a URL"))?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        _ => Err(format!("`{text}` must begin with `https://`")),
    }
}

fn find<'k>(set: &'k JwkSet, id: Option<&str>) -> Option<&'k Jwk> {
    match (id, set.keys.as_slice()) {
        (Some(id), _) => set.find(id),
        (None, [only]) => Some(only),
        (None, _) => None,
    }
}

/// With which algorithms `key` may sign. Secrets are no keys here: all who can check a signature could also make one.
fn algorithms(key: &Jwk) -> Vec<Algorithm> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    if key.common.public_key_use.as_ref().is_some_and(|of| *of != PublicKeyUse::Signature) {
        return Vec::new();
    }
    let possible = match &key.algorithm {
        AlgorithmParameters::RSA(_) => vec![RS256, RS384, RS512, PS256, PS384, PS512],
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => vec![ES256],
            EllipticCurve::P384 => vec![ES384],
            _ => Vec::new(),
        },
        AlgorithmParameters::OctetKeyPair(_) => vec![EdDSA],
        _ => Vec::new(),
    };
    let named = key.common.key_algorithm;
    possible.into_iter().filter(|one| named.is_none_or(|named| named == KeyAlgorithm::from(*one))).collect()
}
