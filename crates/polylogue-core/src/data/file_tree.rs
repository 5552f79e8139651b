//! The files of a work directory, as they are stored next to the log.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::blob_id::BlobId;

/// A reference to the files of a work directory after a tool call: the tree of all files, links and folders is stored next to the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFiles {
    /// The blob of the tree.
    pub tree: BlobId,
    /// The number of files in it.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The bytes of all blobs of files that the conversation has stored until then, those of earlier trees included.
    pub total_bytes: u64,
    /// The number of files that are not kept; the tree says why.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The files, folders and links of a work directory, in the order of their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTree {
    /// What is in it; a folder stands before what it contains.
    pub entries: Vec<FileEntry>,
    /// What was not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

impl FileTree {
    /// The most files, folders and links of a tree.
    pub const MAX_ENTRIES: usize = 10_000;

    /// The most bytes of a file that is kept.
    pub const MAX_FILE_BYTES: u64 = 100 << 20;

    /// The most bytes that a conversation stores for its files, all their versions together.
    pub const MAX_TOTAL_BYTES: u64 = 1 << 30;

    /// The most bytes of a piece of a file: each piece is a blob.
    pub const PIECE_BYTES: usize = 4 << 20;

    /// Its stored form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // A value of plain data has a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The tree that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }

    /// The blobs of its files.
    pub fn pieces(&self) -> impl Iterator<Item = &BlobId> {
        self.entries.iter().flat_map(|entry| match &entry.kind {
            FileKind::File { pieces, .. } => pieces.as_slice(),
            FileKind::Folder { .. } | FileKind::Link { .. } => &[],
        })
    }
}

/// A file, folder or link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its path in the work directory.
    pub path: FilePath,
    /// What it is.
    #[serde(flatten)]
    pub kind: FileKind,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum FileKind {
    /// A folder.
    Folder {
        /// Its permissions, such as `0o755`.
        mode: u32,
    },
    /// A file.
    File {
        /// Its permissions, such as `0o644`.
        mode: u32,
        /// Its size in bytes.
        bytes: u64,
        /// Its content, in pieces of [`FileTree::PIECE_BYTES`].
        pieces: Vec<BlobId>,
    },
    /// A symbolic link, which is not followed.
    Link {
        /// Where it leads.
        to: FilePath,
    },
}

/// A path, which need not be text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FilePath {
    /// A path in UTF-8.
    Text(String),
    /// Any other one.
    Bytes(Vec<u8>),
}

impl FilePath {
    /// The path that has these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        std::str::from_utf8(bytes)
            .map_or_else(|_| Self::Bytes(bytes.to_vec()), |text| Self::Text(text.to_owned()))
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl fmt::Debug for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.as_bytes()))
    }
}

/// An entry of a work directory that is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its path.
    pub path: FilePath,
    /// Why.
    pub why: WhyLeftOut,
}

/// Why an entry of a work directory is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum WhyLeftOut {
    /// It is larger than [`FileTree::MAX_FILE_BYTES`].
    #[error("larger than {} MiB", FileTree::MAX_FILE_BYTES >> 20)]
    TooLarge,
    /// There are [`FileTree::MAX_ENTRIES`] others.
    #[error("one of more than {} files", FileTree::MAX_ENTRIES)]
    TooMany,
    /// The conversation has stored [`FileTree::MAX_TOTAL_BYTES`].
    #[error("the files of a conversation take {} MiB at most, with their earlier versions", FileTree::MAX_TOTAL_BYTES >> 20)]
    NoRoom,
    /// It is a socket, a pipe or a device.
    #[error("neither a file nor a folder nor a link")]
    Special,
    /// It cannot be read.
    #[error("not readable")]
    Unreadable,
}
