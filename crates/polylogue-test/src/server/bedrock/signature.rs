//! Whether a request is signed (Signature Version 4), worked out apart from the client.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

use super::super::{Answer, Received};

/// How far the time of a signature may be from that of the server.
const MAX_SKEW: u64 = 300;

/// The refusal of a request that is not signed with `secret` at about the time `now`.
pub(in super::super) fn check(received: &Received, secret: &str, now: SystemTime) -> Option<Answer> {
    let refuse = |code: &str, message: &str| {
        let answer = Answer::error(403, message).header("date", httpdate::fmt_http_date(now));
        Some(answer.code(code))
    };
    let Some(given) = received.header("authorization").and_then(parse) else {
        return refuse("MissingAuthenticationTokenException", "Missing Authentication Token");
    };
    let date = received.header("x-amz-date").unwrap_or_default();
    let is_near = time(date).is_some_and(|time| {
        let distance = now.duration_since(time).or_else(|_| time.duration_since(now));
        distance.is_ok_and(|distance| distance.as_secs() <= MAX_SKEW)
    });
    if !is_near {
        return refuse("InvalidSignatureException", &format!("Signature expired: {date} is not now."));
    }
    let needed = ["host", "x-amz-date", "x-amz-security-token"];
    let is_signed = |name: &str| received.header(name).is_none() || given.headers.contains(&name);
    match needed.into_iter().all(is_signed) && signature(received, &given, date, secret) == given.signature {
        true => None,
        false => {
            let canonical = canonical(received, &given);
            refuse(
                "SignatureDoesNotMatch",
                &format!(
                    "The request signature we calculated does not match. The Canonical String should have been\n'{canonical}'"
                ),
            )
        }
    }
}

struct Given<'a> {
    /// `DAY/REGION/SERVICE/aws4_request`.
    scope: &'a str,
    headers: Vec<&'a str>,
    signature: &'a str,
}

fn parse(header: &str) -> Option<Given<'_>> {
    let mut fields = header.strip_prefix("AWS4-HMAC-SHA256 ")?.split(", ");
    let (_, scope) = fields.next()?.strip_prefix("Credential=")?.split_once('/')?;
    let headers = fields.next()?.strip_prefix("SignedHeaders=")?.split(';').collect();
    Some(Given { scope, headers, signature: fields.next()?.strip_prefix("Signature=")? })
}

fn signature(received: &Received, given: &Given<'_>, date: &str, secret: &str) -> String {
    let hash = hex(&Sha256::digest(canonical(received, given)));
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{}\n{hash}", given.scope);
    let parts = given.scope.split('/').chain([text.as_str()]);
    hex(&parts.fold(format!("AWS4{secret}").into_bytes(), |key, part| hmac(&key, part.as_bytes())))
}

fn canonical(received: &Received, given: &Given<'_>) -> String {
    let (path, query) = received.path.split_once('?').unwrap_or((&received.path, ""));
    let mut pairs: Vec<&str> = query.split('&').collect();
    pairs.sort_unstable();
    let value = |name: &&str| format!("{name}:{}\n", received.header(name).unwrap_or_default().trim());
    let headers: String = given.headers.iter().map(value).collect();
    let (names, body) = (given.headers.join(";"), hex(&Sha256::digest(&received.bytes)));
    let (path, query) = (path.replace('%', "%25"), pairs.join("&"));
    format!("{}\n{path}\n{query}\n{headers}\n{names}\n{body}", received.method)
}

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = if key.len() > 64 { Sha256::digest(key).to_vec() } else { key.to_vec() };
    block.resize(64, 0);
    let padded = |pad: u8| block.iter().map(move |byte| byte ^ pad).collect::<Vec<u8>>();
    let inner = Sha256::digest([&padded(0x36), text].concat());
    Sha256::digest([&padded(0x5c)[..], &inner[..]].concat()).to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The time of `20150830T123600Z`.
fn time(text: &str) -> Option<SystemTime> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(9, 11)?, number(11, 13)?, number(13, 15)?);
    // Years that begin in March have the day of a leap year at their end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    let seconds = days.checked_sub(719_469)? * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(UNIX_EPOCH + Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_standards() {
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(&hmac(b"Jefe", b"what do ya want for nothing?")), expected);
        for (text, seconds) in
            [("20150830T123600Z", 1_440_938_160), ("19700101T000000Z", 0), ("20000229T235959Z", 951_868_799)]
        {
            assert_eq!(time(text), Some(UNIX_EPOCH + Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(time("soon"), None);
    }
}
