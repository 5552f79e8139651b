//! Files that a team brings along for its programs.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use super::Loader;
use super::file::Unreadable;
use crate::diagnostic::Report;
use crate::working::{WorkFile, base_name};
use crate::yaml::Node;

/// How many files a team may bring along.
const MOST: usize = 64;

impl Loader<'_> {
    /// The files that `root` names, with what is in them. They are texts below the folder of the team file, so that a
    /// team from elsewhere cannot read other files of the user.
    pub(super) fn work_files(&self, root: &Node, report: &mut Report<'_>) -> Vec<WorkFile> {
        let mut names = HashSet::new();
        let mut files = Vec::new();
        for node in root.get("files").items() {
            let Some(named) = node.text().filter(|named| !named.is_empty()) else { continue };
            if report.full() {
                break;
            }
            if files.len() >= MOST {
                report.error(&node.span, format!("a team brings along at most {MOST} files"));
                break;
            }
            match self.work_file(named) {
                Ok(content) if names.insert(base_name(named)) => {
                    files.push(WorkFile { file: named.to_owned(), content });
                }
                Ok(_) => {
                    let name = base_name(named);
                    report
                        .error(&node.span, format!("there is a file `{name}` in the work directory already"));
                }
                Err(why) => {
                    report.error(&node.span, format!("the file `{named}` cannot be brought along: {why}"));
                }
            }
        }
        files
    }

    /// The folder of the team file, and the path of what is called `named` below it.
    pub(super) fn below(&self, named: &str) -> Result<(PathBuf, PathBuf), String> {
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(named).components().all(is_plain) {
            return Err("it is not below the folder of the team file".into());
        }
        let (_, shown) = self.around.last().ok_or("there is no team file")?;
        let folder = match Path::new(shown).parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let path = folder.join(named);
        Ok((folder, path))
    }

    pub(super) fn work_file(&self, named: &str) -> Result<String, String> {
        if named.ends_with(['/', '\\']) {
            return Err("it is not below the folder of the team file".into());
        }
        let (folder, path) = self.below(named)?;
        let bytes = self.read(&path).map_err(|Unreadable { why, .. }| why)?;
        // A link may lead elsewhere.
        if !self.files.identity(&path).starts_with(self.files.identity(&folder)) {
            return Err("it is not below the folder of the team file".into());
        }
        String::from_utf8(bytes).map_err(|_| "it is no text in UTF-8".into())
    }
}
