//! Detection of secrets, so that they are neither stored in a conversation nor shown in an error.

use polylogue_http::begins_like_key;
pub(crate) use polylogue_http::contains_key;
pub use polylogue_http::{is_secret_header, is_secret_name};

/// The shortest text that is taken for a key by its beginning, in bytes.
const SHORTEST: usize = 8;
/// How many letters and digits in a row are no word of any language, but a key.
const RANDOM: usize = 24;

/// Returns whether `text` looks like an API key, or like an address that contains one.
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

/// Whether `text` contains a credential by what is before it: the scheme of an `Authorization` header, the name of a parameter such as
/// `?api_key=`, a user in an address, or curl's option for a user.
pub(crate) fn contains_credential(text: &str) -> bool {
    let is_break = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '?' | '&' | ';' | ',' | '#');
    let mut words = text.split(is_break).filter(|word| !word.is_empty());
    let (mut last, mut has_curl) = ("", false);
    words.any(|word| {
        has_curl |= is_curl(word);
        let before = std::mem::replace(&mut last, word);
        let is_scheme = ["bearer", "basic"].iter().any(|scheme| before.eq_ignore_ascii_case(scheme));
        is_scheme && is_secret_value(word)
            || is_assigned_secret(word)
            || has_password(word)
            || has_curl && is_user_option(before) && is_user_with_password(word)
    })
}

/// Whether `word` gives a value to a name of secrets, such as `--token=...`.
fn is_assigned_secret(word: &str) -> bool {
    let Some((name, value)) = word.split_once('=') else { return false };
    let name = name.rsplit(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-')).next();
    name.is_some_and(is_secret_name) && is_secret_value(value)
}

/// Whether `word` is an address with a password, such as `http://user:password@host`.
fn has_password(word: &str) -> bool {
    let rest = word.split_once("://").map(|(_, rest)| rest).unwrap_or_default();
    let authority = rest.split('/').next().unwrap_or_default();
    let user = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
    user.is_some_and(|(_, password)| {
        let is_example = ["password", "passwd", "pass", "pwd", "secret"].contains(&password);
        !password.is_empty() && !is_example && !password.contains(is_of_placeholder)
    })
}

/// Whether `word` is the program curl, whose option `-u` takes a password. That of other programs takes other things, such as `1000:1000`.
pub(crate) fn is_curl(word: &str) -> bool {
    word == "curl" || word.ends_with("/curl")
}

/// Whether `word` is an option of curl whose value is a user with a password, such as `-su`.
pub(crate) fn is_user_option(word: &str) -> bool {
    let is_short = word.starts_with('-') && !word.starts_with("--") && word.ends_with(['u', 'U']);
    is_short || matches!(word, "--user" | "--proxy-user")
}

/// Whether `word` is a user with a password, neither of which is a placeholder or an example.
pub(crate) fn is_user_with_password(word: &str) -> bool {
    let Some((user, password)) = word.split_once(':') else { return false };
    let is_example = matches!(user, "user" | "username") || matches!(password, "password" | "pass");
    !password.is_empty() && !is_example && !word.contains(is_of_placeholder)
}

/// Whether `word` is an option of a command whose value is a secret, such as `--api-key`.
pub(crate) fn is_secret_option(word: &str) -> bool {
    word.strip_prefix("--").is_some_and(|name| is_secret_name(name) && !name.contains('='))
}

/// Whether `value` may be a secret where one belongs: letters and digits are in a row in it as words and numbers do not have them.
pub(crate) fn is_secret_value(value: &str) -> bool {
    const SHORTEST_RUN: usize = 12;
    let is_part =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~' | '+' | '/' | '=' | '%');
    value.chars().all(is_part) && !value.contains("//") && has_mixed_run(value, SHORTEST_RUN)
}

/// What a variable, a placeholder or an argument of a tool begins with.
const fn is_of_placeholder(c: char) -> bool {
    matches!(c, '{' | '$' | '<' | '*')
}

fn is_key(token: &str) -> bool {
    begins_like_key(token) && token.len() >= SHORTEST || has_mixed_run(token, RANDOM)
}

/// Whether so many letters and digits are in a row, both of them.
fn has_mixed_run(text: &str, shortest: usize) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|run| {
        let has = |is: fn(&u8) -> bool| run.bytes().any(|byte| is(&byte));
        run.len() >= shortest && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
    })
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
    fn credentials_are_found_by_what_is_before_them() {
        for text in [
            "Authorization: Bearer 1234567890abcdef",
            "curl -H 'authorization: basic dXNlcjpwYXNzd29yZDE='",
            "https://search.example/v1?q=x&token=1234567890abcdef",
            "Get https://search.example/v1?api_key=1234567890abcdef, then read it.",
            "--access-token=1234567890abcdef",
            "postgres://me:geheim@host/db",
            "curl -u admin:secret https://host/v1",
            "cat x | /usr/bin/curl -su 'admin:secret' --data @- https://host/v1",
        ] {
            assert!(contains_credential(text), "{text}");
        }
        for text in [
            "Authorization: Bearer {token_of_service_1}",
            "The bearer 2026-11-23 of news",
            "Send `Authorization: Bearer YOUR_TOKEN`.",
            "https://search.example/v1?token={w}&key=${SEARCH_KEY_2026}",
            "https://medium.com/@writer:2026/article",
            "Set max_tokens=123456789012 and key=value.",
            "http://me:{password}@host/v1",
            "postgres://user:password@host/db",
            "primary_key=customer_id_2024",
            "the key: 1234567890abcdef",
            "sorted(words, key=len)",
            "curl -u user:password https://host/v1",
            "curl -u admin https://host/v1",
            "curl --user $NAME:$WORD https://host/v1",
            "docker run -u 1000:1000 image",
        ] {
            assert!(!contains_credential(text), "{text}");
        }
        assert!(is_secret_option("--api-key") && !is_secret_option("--keys") && !is_secret_option("api-key"));
    }

    #[test]
    fn some_headers_are_secret_by_their_names() {
        assert!(["Authorization", "X-API-Key", "cookie", "X-Auth-Token"].into_iter().all(is_secret_header));
        assert!(!["X-Team", "X-Token-Limit", "OpenAI-Organization"].into_iter().any(is_secret_header));
    }
}
