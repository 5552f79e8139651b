//! Container engines.

use std::path::PathBuf;

use crate::error::Error;
use crate::program::PATH;

/// A container engine and the image that programs run in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    pub(crate) program: PathBuf,
    pub(crate) image: String,
}

impl Engine {
    /// Creates an engine by its name (`docker`, `podman`) or path, with an image that is present: images are never pulled.
    pub fn new(program: impl Into<PathBuf>, image: impl Into<String>) -> Self {
        Self { program: program.into(), image: image.into() }
    }

    /// Returns the engine Docker.
    pub fn docker(image: impl Into<String>) -> Self {
        Self::new("docker", image)
    }

    /// Returns the engine Podman.
    pub fn podman(image: impl Into<String>) -> Self {
        Self::new("podman", image)
    }

    /// Returns whether `text` can be the name of an image. What begins with `-` would be an option of the engine, by which a container
    /// could see the whole machine, and `dir:/path` is the content of a folder.
    ///
    /// ```
    /// use polylogue_sandbox::Engine;
    /// assert!(Engine::is_image("registry.example:5000/tools/python:3.12-slim"));
    /// assert!(!Engine::is_image("--volume=/:/host"));
    /// ```
    pub fn is_image(text: &str) -> bool {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(is_legal)
            && !text.contains(":/")
    }

    /// Returns the path of its program.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn path(&self) -> Result<PathBuf, Error> {
        let own = std::env::var_os("PATH").unwrap_or_default();
        let dirs = std::env::split_paths(&own).chain(PATH.iter().map(PathBuf::from));
        let mut places: Box<dyn Iterator<Item = PathBuf>> = if self.program.components().count() > 1 {
            Box::new(std::iter::once(self.program.clone()))
        } else {
            Box::new(dirs.map(|dir| dir.join(&self.program)))
        };
        places.find(|path| path.is_file()).ok_or_else(|| Error::Refused {
            why: format!("there is no container engine `{}` on this machine", self.program.display()),
        })
    }

    /// Whether it is Podman, by its name.
    pub(crate) fn is_podman(&self) -> bool {
        self.program.file_name().is_some_and(|name| name.to_string_lossy().contains("podman"))
    }
}
