//! Where other processes follow what a process runs.

/// The address at which other processes follow what a process runs, and the secret that they need for it. It is in the
/// database, so that who can read conversations there can follow them, and no one else.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
// Without the secret.
#[debug("LivePoint {{ address: {address:?}, .. }}")]
pub struct LivePoint {
    /// The host, the port, and which of the stores there: `HOST:PORT/KEY`.
    pub address: String,
    /// The secret.
    pub secret: [u8; 32],
}

impl LivePoint {
    /// As columns of a table.
    pub(crate) fn columns(&self) -> (&str, &[u8]) {
        (&self.address, &self.secret)
    }

    /// Of columns; `None` if they are no point.
    pub(crate) fn of_columns(address: Option<String>, secret: Option<Vec<u8>>) -> Option<Self> {
        Some(Self { address: address?, secret: secret?.try_into().ok()? })
    }
}
