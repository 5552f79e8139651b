//! Folders of pages that a team brings along.

use std::path::{Path, PathBuf};

use super::Loader;
use super::file::Unreadable;
use super::work::HIDDEN;
use crate::diagnostic::Report;
use crate::team::Team;
use crate::working::WorkFile;

/// How many pages a team may bring along, how large they may be together, in bytes, and how deep folders may be nested. They are
/// kept with every conversation.
const MOST: usize = 500;
const MOST_BYTES: usize = 4 << 20;
const DEEPEST: usize = 8;

/// What the names of pages end with.
const ENDINGS: [&str; 6] = ["md", "markdown", "txt", "html", "htm", "xhtml"];

impl Loader<'_> {
    /// Reads the pages of the folder that `team` names.
    pub(super) fn read_pages(&self, team: &mut Team, report: &mut Report<'_>) {
        let Some(pages) = team.web.pages.as_mut().filter(|pages| pages.ok) else { return };
        let folder = &pages.value.folder;
        match self.pages_of(folder) {
            Ok(found) if found.is_empty() => {
                let hint = format!("pages end with `.{}`", ENDINGS.join("`, `."));
                report.error_with_hint(&pages.span, format!("there are no pages in `{folder}`"), hint);
            }
            Ok(found) => pages.value.pages = found,
            Err(why) => {
                report.error(&pages.span, format!("the pages in `{folder}` cannot be included: {why}"));
            }
        }
    }

    fn pages_of(&self, named: &str) -> Result<Vec<WorkFile>, String> {
        let (around, folder) = self.below(named)?;
        if self.is_hidden(&around, &folder) {
            return Err(HIDDEN.into());
        }
        let mut found = Vec::new();
        self.gather(&folder, "", DEEPEST, &mut found)?;
        found.sort();
        let mut bytes_left = MOST_BYTES;
        let mut pages = Vec::new();
        for (file, path) in found {
            let bytes = self.read(&path).map_err(|Unreadable { why, .. }| format!("`{file}`: {why}"))?;
            // A link may lead elsewhere.
            if !self.files.identity(&path).starts_with(self.files.identity(&around)) {
                return Err(format!("`{file}` is not below the folder of the team file"));
            }
            if self.is_hidden(&around, &path) {
                return Err(format!("`{file}`: {HIDDEN}"));
            }
            bytes_left = bytes_left
                .checked_sub(bytes.len())
                .ok_or_else(|| format!("they are larger than {} MiB together", MOST_BYTES >> 20))?;
            let content = String::from_utf8(bytes).map_err(|_| format!("`{file}` is not UTF-8 text"))?;
            pages.push(WorkFile { file, content });
        }
        Ok(pages)
    }

    /// The pages in `folder`, by their paths from where it began.
    fn gather(
        &self,
        folder: &Path,
        prefix: &str,
        depth: usize,
        found: &mut Vec<(String, PathBuf)>,
    ) -> Result<(), String> {
        for (name, is_folder) in self.files.list(folder).map_err(|Unreadable { why, .. }| why)? {
            if name.starts_with('.') {
                continue;
            }
            let (path, shown) = (folder.join(&name), format!("{prefix}{name}"));
            if is_folder {
                let deeper = depth.checked_sub(1).ok_or("its folders are nested too deep")?;
                self.gather(&path, &format!("{shown}/"), deeper, found)?;
            } else if is_page(&name) {
                found.push((shown, path));
            }
            if found.len() > MOST {
                return Err(format!("there are more than {MOST}"));
            }
        }
        Ok(())
    }
}

fn is_page(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ENDINGS.iter().any(|page| page.eq_ignore_ascii_case(ending))
}
