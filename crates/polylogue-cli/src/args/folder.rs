//! The folder in which agents work.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::CliError;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Folder {
    /// Let agents work in this folder instead of in a new work directory; you are asked before they run programs or change files
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

impl Folder {
    /// Whether there is one.
    pub(crate) const fn is_given(&self) -> bool {
        self.dir.is_some()
    }

    /// Its whole path. A folder that holds everything of the user is refused.
    pub(crate) fn path(&self) -> Result<Option<PathBuf>, CliError> {
        let Some(given) = &self.dir else { return Ok(None) };
        let shown = given.display();
        let path = std::fs::canonicalize(given).map_err(|error| {
            CliError::usage(match error.kind() {
                std::io::ErrorKind::NotFound => format!("the folder `{shown}` does not exist"),
                _ => format!("the folder `{shown}` cannot be used: {error}"),
            })
        })?;
        if !path.is_dir() {
            return Err(CliError::usage(format!("`{shown}` is not a folder")));
        }
        let home = std::env::home_dir().and_then(|home| std::fs::canonicalize(home).ok());
        if path == Path::new("/") || home.is_some_and(|home| home.starts_with(&path)) {
            let what = format!("agents do not work in `{shown}`: it holds your home folder");
            return Err(CliError::usage(what).hint("name the folder of one project"));
        }
        Ok(Some(path))
    }
}
