//! Detection of secrets, so that they are neither stored in a conversation nor shown in an error.

pub use polylogue_http::is_secret_header;
pub(crate) use polylogue_http::is_secret_name;

/// What the keys of well-known services begin with.
const BEGINNINGS: [&str; 22] = [
    "sk-",
    "sk_",
    "rk_",
    "gsk_",
    "xai-",
    "csk-",
    "hf_",
    "nvapi-",
    "pplx-",
    "fw_",
    "tgp_",
    "r8_",
    "AIza",
    "AKIA",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "eyJ",
];
/// The shortest text that is taken for a key by its beginning, in bytes.
const SHORTEST: usize = 8;
/// How many letters and digits in a row are no word of any language, but a key.
const RANDOM: usize = 24;

/// Whether `text` looks like an API key, or like an address that contains one.
#[must_use]
pub fn looks_like_key(text: &str) -> bool {
    let text = text.trim();
    let schemes = ["bearer ", "basic ", "token "];
    let begins = |scheme: &&&str| text.get(..scheme.len()).is_some_and(|is| is.eq_ignore_ascii_case(scheme));
    let (has_scheme, token) = match schemes.iter().find(begins) {
        Some(scheme) => (true, text.get(scheme.len()..).unwrap_or_default().trim()),
        None => (false, text),
    };
    if token.is_empty() || token.contains(char::is_whitespace) {
        return false;
    }
    match token.split_once("://") {
        Some((_, rest)) => secret_in_address(rest).is_some(),
        None => is_key(token) || has_scheme && token.len() >= SHORTEST,
    }
}

/// Whether a word of `text` is a key of a well-known service.
pub(crate) fn contains_key(text: &str) -> bool {
    const SHORTEST_IN_TEXT: usize = 20;
    let is_in_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_secret = |word: &str| {
        let known = BEGINNINGS.iter().find_map(|beginning| word.strip_prefix(beginning));
        let varied = |rest: &str| {
            rest.bytes().any(|b| b.is_ascii_digit()) && rest.bytes().any(|b| b.is_ascii_alphabetic())
        };
        word.len() >= SHORTEST_IN_TEXT && known.is_some_and(varied)
    };
    text.split(|c| !is_in_key(c)).any(is_secret)
}

fn is_key(token: &str) -> bool {
    let known = BEGINNINGS.iter().any(|beginning| token.starts_with(beginning));
    known && token.len() >= SHORTEST || token.split(|c: char| !c.is_ascii_alphanumeric()).any(is_random)
}

/// Whether letters and digits are in a row as no word has them.
fn is_random(run: &str) -> bool {
    let has = |is: fn(&u8) -> bool| run.bytes().any(|byte| is(&byte));
    run.len() >= RANDOM && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
}

/// What is secret in an address, which is given from behind its `://` on.
pub(crate) fn secret_in_address(rest: &str) -> Option<&'static str> {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Some("a user or a password");
    }
    let query = rest.split_once('?').map(|(_, query)| query.split('#').next().unwrap_or_default());
    let mut fields =
        query.into_iter().flat_map(|query| query.split('&')).filter_map(|one| one.split_once('='));
    let named = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["key", "token", "secret", "password", "sig"].iter().any(|word| name.ends_with(word))
    };
    fields.any(|(name, value)| !value.is_empty() && (named(name) || is_key(value))).then_some("a key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_look_like_keys_and_other_texts_do_not() {
        for key in [
            "sk-proj-abc",
            " sk-ant-api03-x",
            "Bearer abcdefgh",
            "basic dXNlcjpwYXNz",
            "AIzaSyExample",
            "0123456789abcdef0123456789abcdef",
            "team.0123456789abcdef01234567",
            "http://me:pass@host/v1",
            "https://host/v1?api-version=1&api_key=x",
        ] {
            assert!(looks_like_key(key), "{key}");
        }
        for text in [
            "",
            "writers",
            "OPENAI_API_KEY_2",
            "a-very-long-name-of-a-project-2024",
            "internationalisationalisation",
            "550e8400-e29b-41d4-a716-446655440000",
            "sk-",
            "skating",
            "Bearer of the ring",
            "You are a critic. Say sk-something",
            "http://127.0.0.1:8000/v1",
            "https://gateway.example/v1/0123456789abcdef0123456789abcdef/x?api-version=2024-06-01",
        ] {
            assert!(!looks_like_key(text), "{text}");
        }
    }

    #[test]
    fn some_headers_are_secret_by_their_names() {
        assert!(["Authorization", "X-API-Key", "cookie", "X-Auth-Token"].into_iter().all(is_secret_header));
        assert!(!["X-Team", "X-Token-Limit", "OpenAI-Organization"].into_iter().any(is_secret_header));
    }
}
