//! Files that a team brings along for its programs, and documents of services.

use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use polylogue_tools::openapi::Document;

use super::Loader;
use super::file::{MISSING, Unreadable};
use crate::diagnostic::Report;
use crate::team::Team;

/// How many files a team may bring along, and how many documents of services it may name.
const MOST: usize = 64;

/// What to do about a file that does not exist.
const ABSENT: &str = "create it, or correct its path, which begins at the folder of this team file";

/// Why a hidden file is refused.
pub(super) const HIDDEN: &str = "it is hidden, and hidden files, such as `.env`, belong to no team";

impl Loader<'_> {
    /// Reads the operations of the services of `team`.
    pub(super) fn read_documents(&self, team: &mut Team, report: &mut Report<'_>) {
        for (count, service) in team.openapi.values_mut().filter(|service| service.file.ok).enumerate() {
            if report.full() {
                return;
            }
            if count >= MOST {
                return report.error(&service.file.span, format!("a team has at most {MOST} services"));
            }
            let include: Vec<&str> = service.include.iter().map(String::as_str).collect();
            let read = self.work_file(&service.file).and_then(|text| Document::read(&text));
            match read.and_then(|document| document.choose(&include, service.base_url.as_deref())) {
                Ok(chosen) => {
                    service.value.operations = chosen.operations;
                    service.value.left_out = chosen.left_out;
                }
                Err(why) => {
                    let message = format!("`{}` cannot be used: {why}", service.file);
                    report.error(&service.file.span, message);
                }
            }
        }
    }

    /// Reads the files that `team` brings along. They are texts below the folder of the team file, and not hidden there, so that a team
    /// from elsewhere cannot read other files of the user.
    pub(super) fn read_work_files(&self, team: &mut Team, report: &mut Report<'_>) {
        let mut names = HashSet::new();
        for (count, file) in team.files.iter_mut().enumerate().filter(|(_, file)| file.ok) {
            if report.full() {
                break;
            }
            if count >= MOST {
                report.error(&file.span, format!("a team includes at most {MOST} files"));
                break;
            }
            match self.own_file(&file.file) {
                Ok(content) => file.value.content = content,
                Err(why) => {
                    let message = format!("the file `{}` cannot be included: {why}", file.file);
                    match why == MISSING {
                        true => report.error_with_hint(&file.span, message, ABSENT),
                        false => report.error(&file.span, message),
                    }
                    continue;
                }
            }
            if !names.insert(file.name().to_owned()) {
                let message = format!("there is a file `{}` in the work directory already", file.name());
                report.error(&file.span, message);
            }
        }
    }

    /// Reports a cache of replies that is not below the folder of the team file, so that a team from elsewhere writes no
    /// other files of the user.
    pub(super) fn check_cache(&self, team: &Team, report: &mut Report<'_>) {
        let Some((cache, path)) = team.cache.as_ref().and_then(|cache| Some((cache, cache.sound()?))) else {
            return;
        };
        let leads_out = match self.below(path) {
            Ok((folder, file)) => {
                // A link may lead elsewhere, also to a file that does not exist yet and would be created there.
                let mut below = file.ancestors().take_while(|path| *path != folder);
                below.find(|path| fs::symlink_metadata(path).is_ok()).is_some_and(|existing| {
                    let is_dangling = !existing.exists();
                    is_dangling || !self.files.identity(existing).starts_with(self.files.identity(&folder))
                })
            }
            Err(_) => true,
        };
        if leads_out {
            let message = format!("the cache of replies `{path}` is not below the folder of the team file");
            report.error_with_hint(&cache.span, message, "name a file below it, such as `replies.jsonl`");
        }
    }

    /// Reads the virtual environment of Python that `team` names.
    pub(super) fn read_venv(&self, team: &mut Team, report: &mut Report<'_>) {
        let Some(folder) = self.folder() else { return };
        let Some(python) = team.sandbox.python.as_mut().filter(|python| python.ok) else { return };
        let folder = Path::new(&folder);
        let path: PathBuf = folder.join(&python.path).components().collect();
        let found = self.files.venv(&path);
        python.value.resolve(folder, found);
        if let (Some(why), false) = (python.error(), self.files.is_stored()) {
            // Never advise to write into a folder that has other files, or outside of the team's folder.
            let is_new = path.starts_with(folder) && self.below(&python.path).is_ok() && !path.exists();
            let known = why.split_once("\nhint: ");
            let hint = match known {
                Some((_, hint)) => hint.to_owned(),
                None if is_new => {
                    format!("`python3 -m venv {}` in the folder of the team file makes one", python.path)
                }
                None => "name a folder that `python3 -m venv` or `uv venv` made, such as `.venv`".to_owned(),
            };
            let why = known.map_or(why, |(why, _)| why);
            report.error_with_hint(&python.span, format!("no virtual environment can be used: {why}"), hint);
        }
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

    /// Whether what is at `path` is hidden below `folder`, by its name or where links lead: `.env`, `.ssh` and the like are there for the user's
    /// programs, and the author of a team from elsewhere knows where they are.
    pub(super) fn is_hidden(&self, folder: &Path, path: &Path) -> bool {
        let hides = |path: &Path, folder: &Path| {
            path.strip_prefix(folder).is_ok_and(|below| below.components().any(has_dot))
        };
        hides(path, folder) || hides(&self.files.identity(path), &self.files.identity(folder))
    }

    /// A file that is part of the team, and not one of the user's own.
    fn own_file(&self, named: &str) -> Result<String, String> {
        let (folder, path) = self.below(named)?;
        if self.is_hidden(&folder, &path) {
            return Err(HIDDEN.into());
        }
        self.work_file(named)
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
        String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".into())
    }
}

/// Whether a part of a path is a name that begins with a dot.
fn has_dot(part: Component<'_>) -> bool {
    matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b"."))
}
