//! Errors of model files.

use std::path::{Path, PathBuf};

use polylogue_core::{ModelError, ModelErrorKind};

/// The reason why a model file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read `{}`: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// The file is no GGUF file: it begins with something else.
    #[error("`{}` is not a GGUF file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is cut off or damaged.
    #[error("`{}` is not a whole GGUF file: {reason}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong in the file.
        reason: String,
    },
    /// The file is a GGUF file that needs something that is not supported: an architecture, a tokenizer, a chat
    /// template.
    #[error("`{}` is not supported: {reason}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What the file needs.
        reason: String,
        /// What is supported.
        hint: String,
    },
    /// The model needs more memory than there is, or than is allowed.
    #[error("`{}` needs {needed} MiB of memory, and {limit} MiB are available", path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// The memory in MiB that it needs with one conversation.
        needed: u64,
        /// The memory in MiB that it may use.
        limit: u64,
    },
}

impl LoadError {
    /// Returns how to fix it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unreadable { .. } => "write `local:` and the path of a GGUF file, relative to the team file".into(),
            Self::Foreign { .. } => {
                "name a GGUF file; models in other formats are converted first, such as with `convert_hf_to_gguf.py` of llama.cpp".into()
            }
            Self::Broken { .. } => "download the file again, and compare its size with the original".into(),
            Self::Unsupported { hint, .. } => hint.clone(),
            Self::Memory { .. } => {
                "choose a smaller context window (`POLYLOGUE_LOCAL_WINDOW`), or a file with a stronger quantization".into()
            }
        }
    }

    /// The error as one of the model `name`.
    pub(crate) fn of_model(&self, name: &str) -> ModelError {
        ModelError::new(ModelErrorKind::Config, name, self.to_string()).hint(self.hint())
    }
}

/// What is wrong in a file, before its path is known.
#[derive(Debug, Clone)]
pub(crate) enum Defect {
    /// The system cannot read it: nothing is known of its content.
    Unreadable(String),
    Broken(String),
    Unsupported {
        reason: String,
        hint: String,
    },
}

impl Defect {
    pub(crate) fn broken(reason: impl Into<String>) -> Self {
        Self::Broken(reason.into())
    }

    pub(crate) fn unsupported(reason: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Unsupported { reason: reason.into(), hint: hint.into() }
    }

    pub(crate) fn at(self, path: &Path) -> LoadError {
        let path = path.to_owned();
        match self {
            Self::Unreadable(reason) => LoadError::Unreadable { path, reason },
            Self::Broken(reason) => LoadError::Broken { path, reason },
            Self::Unsupported { reason, hint } => LoadError::Unsupported { path, reason, hint },
        }
    }
}

impl From<std::io::Error> for Defect {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Self::Broken(error.to_string()),
            _ => Self::Unreadable(error.to_string()),
        }
    }
}

impl From<candle_core::Error> for Defect {
    fn from(error: candle_core::Error) -> Self {
        let error = match error {
            candle_core::Error::Io(error) => return error.into(),
            error => error,
        };
        // The display of an error can have a backtrace after its first line.
        Self::Broken(error.to_string().lines().next().unwrap_or_default().to_owned())
    }
}
