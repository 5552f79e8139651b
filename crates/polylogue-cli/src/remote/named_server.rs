//! The server that the command line names, and its token: from the environment, or from the user's file of tokens. No option has the token:
//! others see command lines.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use polylogue_client::{Client, ClientError};
use polylogue_http::Key;
use polylogue_models::Env;

use crate::error::CliError;
use crate::place::{self, PlaceOption};

/// The server that the command line or the environment names.
pub(crate) struct Remote {
    pub(super) client: Client,
    /// Where commands that are shown find its conversations.
    pub(super) place: PlaceOption,
}

/// What is said when a request failed, also when it was repeated, and may have had its effect.
pub(super) fn uncertain(error: ClientError, what: &str) -> CliError {
    let hint = error.may_have_effect().then(|| format!("{what}: see `polylogue runs` before you try again"));
    hint.into_iter().fold(error.into(), CliError::hint)
}

/// The environment variable with the token.
const VARIABLE: &str = "POLYLOGUE_TOKEN";

/// The token for the server at `url`.
pub(super) fn find_token(env: &Env, url: &str) -> Result<Key, CliError> {
    if let Some(key) = env.get(VARIABLE).as_deref().and_then(Key::new) {
        return Ok(key);
    }
    let file = place::of_servers();
    if let Some(key) = file.as_deref().map(|file| in_file(file, url)).transpose()?.flatten() {
        return Ok(key);
    }
    let file = file.map(|file| format!(", or write a line `{url}: TOKEN` to `{}`", file.display()));
    Err(CliError::usage(format!("there is no token for the server `{url}`")).hint(format!(
        "set `{VARIABLE}`{}; `polylogue token new` makes one where the server runs",
        file.unwrap_or_default()
    )))
}

/// The token for `url` in the user's file, which no one else may read.
fn in_file(file: &Path, url: &str) -> Result<Option<Key>, CliError> {
    let shown = file.display();
    let unreadable = |error| CliError::usage(format!("`{shown}` cannot be read: {error}"));
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mode = std::fs::metadata(file).map_err(unreadable)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(CliError::usage(format!("others can read the tokens in `{shown}`"))
            .hint(format!("`chmod 600 {shown}`")));
    }
    token(&text, url).map_err(|line| {
        CliError::usage(format!("line {line} of `{shown}` is not an address and a token"))
            .hint("write it as `http://127.0.0.1:8787: TOKEN`")
    })
}

/// The token for `url` in a text with lines `URL: TOKEN`, or the number of a line that is none.
fn token(text: &str, url: &str) -> Result<Option<Key>, usize> {
    let mut found = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (server, token) = line.rsplit_once(": ").ok_or(index + 1)?;
        let [server, token] = [server, token].map(|text| text.trim().trim_matches(['"', '\'']));
        if server.trim_end_matches('/') == url.trim_end_matches('/') {
            found = Some(Key::new(token).ok_or(index + 1)?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_for_its_server_alone() {
        let text = "# tokens\nhttp://127.0.0.1:8787: ply_a\n\n\"https://teams.example/\": 'ply_b'\n";
        let of = |url: &str| token(text, url).map(|key| key.map(|key| key.reveal().to_owned()));
        assert_eq!(of("http://127.0.0.1:8787/"), Ok(Some("ply_a".into())));
        assert_eq!(of("https://teams.example"), Ok(Some("ply_b".into())));
        assert_eq!(of("http://127.0.0.1:8788"), Ok(None));
        assert_eq!(token("http://x: ply_a\nply_secret\n", "http://x"), Err(2));
    }
}
