use std::time::{Duration, UNIX_EPOCH};

use polylogue_http::Key;
use serde::Deserialize;

use super::*;

/// 30 August 2015, 12:36:00 UTC: the time of all published vectors.
const TIME: Duration = Duration::from_secs(1_440_938_160);

/// A case of the test suite in <https://github.com/awslabs/aws-c-auth>, `tests/aws-signing-test-suite/v4`.
#[derive(Deserialize)]
struct Vector {
    case: String,
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: String,
    token: Option<String>,
    signature: String,
}

fn credentials(token: Option<&str>) -> Credentials {
    Credentials {
        access_key_id: "AKIDEXAMPLE".into(),
        secret_access_key: Key::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY").unwrap(),
        session_token: token.and_then(Key::new),
    }
}

fn header<'a>(signed: &'a [(&'static str, String)], name: &str) -> &'a str {
    &signed.iter().find(|(found, _)| *found == name).unwrap().1
}

#[test]
fn signatures_equal_the_published_ones() {
    let vectors = include_str!("../../tests/data/sigv4.jsonl").lines();
    let vectors: Vec<Vector> = vectors.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(vectors.len(), 31);
    // All are of one day, so that the key is derived once.
    let key = SigningKey::new("us-east-1", "service");
    for vector in vectors {
        let query: Vec<_> = vector.query.split('&').filter_map(|pair| pair.split_once('=')).collect();
        // Requests have names in lower case.
        let lower = |(name, value): &(String, String)| (name.to_ascii_lowercase(), value.clone());
        let headers: Vec<(String, String)> = vector.headers.iter().map(lower).collect();
        let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let request = Signable {
            method: &vector.method,
            path: &vector.path,
            query: &query,
            headers: &headers,
            body: vector.body.as_bytes(),
        };
        let credentials = credentials(vector.token.as_deref());
        let signed = sign(&request, &credentials, UNIX_EPOCH + TIME, &key);
        let expected = format!(", Signature={}", vector.signature);
        let found = header(&signed, "authorization");
        assert!(found.ends_with(&expected), "{}: {found}", vector.case);
        assert_eq!(header(&signed, "x-amz-date"), "20150830T123600Z");
    }
}

#[test]
fn percent_signs_of_the_path_are_encoded_again_and_the_session_token_is_signed() {
    let path = "/model/anthropic.claude-sonnet-4-5%3A0/converse";
    assert_eq!(encoded(path).to_string(), "/model/anthropic.claude-sonnet-4-5%253A0/converse");
    let request = Signable { method: "POST", path, query: &[], headers: &[("host", "h")], body: b"{}" };
    let key = SigningKey::new("eu-west-1", "bedrock");
    let signed = sign(&request, &credentials(Some("token")), UNIX_EPOCH + TIME, &key);
    let found = header(&signed, "authorization");
    let begin = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/eu-west-1/bedrock/aws4_request, \
                 SignedHeaders=host;x-amz-date;x-amz-security-token, Signature=";
    assert!(found.starts_with(begin), "{found}");
    assert_eq!(header(&signed, "x-amz-security-token"), "token");
}

#[test]
fn times_are_written_in_the_basic_format() {
    let at = |seconds| timestamp(UNIX_EPOCH + Duration::from_secs(seconds));
    assert_eq!(at(0), "19700101T000000Z");
    assert_eq!(at(951_782_399), "20000228T235959Z");
    assert_eq!(at(951_782_400), "20000229T000000Z");
    assert_eq!(at(1_798_761_599), "20261231T235959Z");
}
