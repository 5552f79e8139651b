//! Access tokens of a service account: a signed assertion is exchanged for a token that is valid for an hour.
//!
//! <https://developers.google.com/identity/protocols/oauth2/service-account#httprest>

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::Deserialize;
use url::form_urlencoded::Serializer;

use crate::oauth::TokenError;

/// What a token authorizes: the services of Google's cloud.
pub(crate) const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// How long an assertion is valid: the maximum that is accepted.
const VALID: Duration = Duration::from_secs(3600);

const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// A service account with its private key.
#[derive(derive_more::Debug)]
#[debug("ServiceAccount({email:?})")]
pub(super) struct ServiceAccount {
    email: String,
    key_id: Option<String>,
    key: RsaKeyPair,
    /// The project that it belongs to.
    pub(super) project: Option<String>,
}

#[derive(Deserialize)]
struct KeyFile {
    client_email: String,
    private_key_id: Option<String>,
    private_key: String,
    project_id: Option<String>,
}

impl ServiceAccount {
    /// Parses the JSON of a key file.
    pub(super) fn parse(json: &str) -> Result<Self, TokenError> {
        let file: KeyFile = serde_json::from_str(json).map_err(|_| TokenError::File)?;
        let der = pkcs8(&file.private_key).ok_or(TokenError::PrivateKey)?;
        Ok(Self {
            email: file.client_email,
            key_id: file.private_key_id,
            key: RsaKeyPair::from_pkcs8(&der).map_err(|_| TokenError::PrivateKey)?,
            project: file.project_id,
        })
    }

    /// The body of the request for a token to `address`, `application/x-www-form-urlencoded`.
    pub(super) fn request(&self, address: &str, now: SystemTime) -> Result<String, TokenError> {
        let assertion = self.assertion(address, now)?;
        let fields = [("grant_type", GRANT), ("assertion", &assertion)];
        Ok(Serializer::new(String::new()).extend_pairs(fields).finish())
    }

    /// A JSON web token, signed by RS256.
    fn assertion(&self, address: &str, now: SystemTime) -> Result<String, TokenError> {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut header = serde_json::json!({"alg": "RS256", "typ": "JWT"});
        if let (Some(id), Some(header)) = (&self.key_id, header.as_object_mut()) {
            header.insert("kid".into(), id.as_str().into());
        }
        let claims = serde_json::json!({
            "iss": self.email,
            "scope": SCOPE,
            "aud": address,
            "iat": now.as_secs(),
            "exp": (now + VALID).as_secs(),
        });
        let encoded = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encoded(&header), encoded(&claims));
        let mut signature = vec![0; self.key.public_modulus_len()];
        self.key
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .map_err(|_| TokenError::Signing)?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// The bytes of a key in PEM.
fn pkcs8(pem: &str) -> Option<Vec<u8>> {
    let begun = pem.split_once("-----BEGIN PRIVATE KEY-----")?.1;
    let body = begun.split_once("-----END PRIVATE KEY-----")?.0;
    let compact: String = body.split_ascii_whitespace().collect();
    STANDARD.decode(compact).ok()
}

#[cfg(test)]
#[path = "service_account_tests.rs"]
mod tests;
