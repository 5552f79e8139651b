//! The server that is named, and what is said when it did not answer.

use polylogue_client::{Client, ClientError};

use crate::error::CliError;

/// The server that the command line or the environment names.
pub(crate) struct Remote {
    pub(super) client: Client,
    /// The option that names it in a command, unless the variable does.
    pub(super) option: Option<String>,
}

/// What is said when a request that is not repeated may have had its effect.
pub(super) fn uncertain(error: ClientError, what: &str) -> CliError {
    let hint = error.may_have_effect().then(|| format!("{what}: see `polylogue runs` before you try again"));
    hint.into_iter().fold(error.into(), CliError::hint)
}
