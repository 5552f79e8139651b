use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::Value;

use super::*;

const ADDRESS: &str = "https://tokens.example/token";

fn key_file(change: impl FnOnce(&mut Value)) -> String {
    let key = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let der = AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(&key).unwrap();
    let base64 = STANDARD.encode(der.as_ref());
    let mut file = serde_json::json!({
        "type": "service_account",
        "project_id": "acme",
        "private_key_id": "k1",
        "private_key": format!("-----BEGIN PRIVATE KEY-----\n{base64}\n-----END PRIVATE KEY-----\n"),
        "client_email": "agent@acme.iam.gserviceaccount.com",
    });
    change(&mut file);
    file.to_string()
}

#[test]
fn the_assertion_is_signed_and_has_the_claims_of_the_account() {
    let account = ServiceAccount::parse(&key_file(|_| ())).unwrap();
    assert_eq!(account.project.as_deref(), Some("acme"));
    let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let request = account.request(ADDRESS, now).unwrap();
    let (grant, assertion) = request.split_once("&assertion=").unwrap();
    assert_eq!(grant, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer");
    let parts: Vec<&str> = assertion.split('.').collect();
    let json =
        |part: &str| -> Value { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap() };
    assert_eq!(json(parts[0]), serde_json::json!({"alg": "RS256", "typ": "JWT", "kid": "k1"}));
    assert_eq!(
        json(parts[1]),
        serde_json::json!({
            "iss": "agent@acme.iam.gserviceaccount.com",
            "scope": "https://www.googleapis.com/auth/cloud-platform",
            "aud": ADDRESS,
            "iat": 1_800_000_000,
            "exp": 1_800_003_600,
        })
    );
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, account.key.public_key().as_ref());
    let signed = format!("{}.{}", parts[0], parts[1]);
    let signature = URL_SAFE_NO_PAD.decode(parts[2]).unwrap();
    public.verify(signed.as_bytes(), &signature).unwrap();
    assert!(public.verify(b"another text", &signature).is_err());
}

#[test]
fn unusable_key_files_are_refused_and_no_error_shows_them() {
    let refused = |json: &str| ServiceAccount::parse(json).unwrap_err();
    assert_eq!(refused("{"), TokenError::File);
    assert_eq!(refused(&key_file(|file| file["client_email"] = 7.into())), TokenError::File);
    for key in ["", "secret", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----"] {
        let error = refused(&key_file(|file| file["private_key"] = key.into()));
        assert_eq!(error, TokenError::PrivateKey);
        assert!(!format!("{error} {error:?}").contains("secret"));
    }
    let account = ServiceAccount::parse(&key_file(|_| ())).unwrap();
    assert_eq!(format!("{account:?}"), r#"ServiceAccount("agent@acme.iam.gserviceaccount.com")"#);
}
