//! The files of a conversation.

use serde::{Deserialize, Serialize};

/// The files of a conversation after its last finished call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// The files, in the order of their paths; without folders and links.
    pub files: Vec<File>,
    /// What the conversation has not stored.
    pub left_out: Vec<LeftOut>,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Its path in the work directory, such as `notes/a.txt`.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A file, or something else, that is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its path in the work directory.
    pub path: String,
    /// Why.
    pub why: String,
}
