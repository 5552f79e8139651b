//! The files of a work directory, as they are stored next to the log.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::blob_id::BlobId;

/// A reference to the files of a work directory after a tool call: the tree of all files, links and folders is stored next to the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFiles {
    /// The blob of the tree.
    pub tree: BlobId,
    /// The number of files in the tree.
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
    /// The entries; a folder stands before its contents.
    pub entries: Vec<FileEntry>,
    /// The entries that were not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<SkippedEntry>,
}

impl FileTree {
    /// Maximum number of files, folders and links of a tree.
    pub const MAX_ENTRIES: usize = 10_000;

    /// Maximum size in bytes of a file that is kept.
    pub const MAX_FILE_BYTES: u64 = 100 << 20;

    /// Maximum number of bytes that a conversation stores for its files, all their versions together.
    pub const MAX_TOTAL_BYTES: u64 = 1 << 30;

    /// Maximum size in bytes of a piece of a file: each piece is a blob.
    pub const PIECE_BYTES: usize = 4 << 20;

    /// Returns the stored form.
    pub fn to_bytes(&self) -> Vec<u8> {
        // A value of plain data has a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Parses the tree that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }

    /// Returns the blobs of its files.
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
    /// The path in the work directory.
    pub path: FilePath,
    /// The kind of entry.
    #[serde(flatten)]
    pub kind: FileKind,
}

/// The kind of an entry, with its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum FileKind {
    /// A folder.
    Folder {
        /// The permissions, such as `0o755`.
        mode: u32,
    },
    /// A file.
    File {
        /// The permissions, such as `0o644`.
        mode: u32,
        /// The size in bytes.
        bytes: u64,
        /// The content, in pieces of [`FileTree::PIECE_BYTES`].
        pieces: Vec<BlobId>,
    },
    /// A symbolic link, which is not followed.
    Link {
        /// The target of the link.
        to: FilePath,
    },
}

/// A path, which need not be text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FilePath {
    /// A path in UTF-8.
    Text(String),
    /// Any other path.
    Bytes(Vec<u8>),
}

impl FilePath {
    /// Creates the path that has these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        std::str::from_utf8(bytes)
            .map_or_else(|_| Self::Bytes(bytes.to_vec()), |text| Self::Text(text.to_owned()))
    }

    /// Returns the bytes of the path.
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
pub struct SkippedEntry {
    /// The path.
    pub path: FilePath,
    /// The reason.
    pub why: SkipReason,
}

/// The reason why an entry of a work directory is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// The file is larger than [`FileTree::MAX_FILE_BYTES`].
    #[error("larger than {} MiB", FileTree::MAX_FILE_BYTES >> 20)]
    TooLarge,
    /// The tree has [`FileTree::MAX_ENTRIES`] entries already.
    #[error("one of more than {} files", FileTree::MAX_ENTRIES)]
    TooMany,
    /// The conversation has stored [`FileTree::MAX_TOTAL_BYTES`] already.
    #[error("the files of a conversation take {} MiB at most, with their earlier versions", FileTree::MAX_TOTAL_BYTES >> 20)]
    NoRoom,
    /// The entry is a socket, a pipe or a device.
    #[error("neither a file nor a folder nor a link")]
    Special,
    /// The entry cannot be read.
    #[error("not readable")]
    Unreadable,
}
