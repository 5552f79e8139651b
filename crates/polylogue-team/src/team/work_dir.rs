//! Work directories of teams.

use std::io;
use std::path::{Path, PathBuf};

use polylogue_files::make_private_folder;
use polylogue_sandbox::remove_work_directory;

use super::Team;

impl Team {
    /// Creates the work directory `dir` with the files that the team and those within it bring along, unless it is there
    /// already.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn prepare(&self, dir: &Path) -> io::Result<()> {
        if dir.exists() {
            return Ok(());
        }
        if let Some(around) = dir.parent() {
            make_private_folder(around)?;
        }
        // Half a directory must not be taken for a whole one.
        let mut begun = dir.as_os_str().to_owned();
        begun.push(".new");
        let begun = PathBuf::from(begun);
        if begun.exists() {
            remove_work_directory(&begun)?;
        }
        make_private_folder(&begun)?;
        self.write_files(&begun)?;
        std::fs::rename(&begun, dir)
    }

    fn write_files(&self, dir: &Path) -> io::Result<()> {
        for sub in &self.teams {
            sub.team.write_files(dir)?;
        }
        // Those of the outer team take the place of those within.
        self.files.iter().try_for_each(|file| std::fs::write(dir.join(file.name()), &file.content))
    }
}
