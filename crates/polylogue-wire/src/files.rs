//! The files of a conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The files of a conversation after its last finished call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Files {
    /// The files, in the order of their paths.
    pub files: Vec<File>,
    /// The folders, each before those that it contains.
    pub folders: Vec<Folder>,
    /// The symbolic links, which are not followed.
    pub links: Vec<Link>,
    /// What a client cannot have: the conversation has not stored it, or its name is no text.
    pub left_out: Vec<LeftOut>,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct File {
    /// Its path in the work directory, such as `notes/a.txt`.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its permissions, such as `0o644`.
    pub mode: u32,
}

/// A folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Folder {
    /// Its path in the work directory, such as `notes`.
    pub path: String,
    /// Its permissions, such as `0o755`.
    pub mode: u32,
}

/// A symbolic link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Its path in the work directory.
    pub path: String,
    /// Its target, which can be anything: programs of agents wrote it.
    pub to: String,
}

/// A file, or something else, that a client cannot have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Its path in the work directory.
    pub path: String,
    /// Why.
    pub why: String,
}
