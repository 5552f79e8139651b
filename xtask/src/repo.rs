//! The files of the repository.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use crate::finding::Finding;
use crate::manifest::Manifest;
use crate::source::Source;

/// Folders that hold no files of ours, wherever they are.
const NOT_OURS: [&str; 7] = [".git", "target", "node_modules", ".polylogue", ".venv", "corpus", "artifacts"];

/// What the checks read ends with one of these; of other files they want only the name.
const READ: [&str; 7] = [".yaml", ".rs", ".md", ".toml", ".js", ".html", ".ci/run"];

/// Everything the checks look at, read once.
pub(crate) struct Repo {
    /// Every file, relative to the root, with `/`; and its text, if a check may want it and it is UTF-8.
    pub(crate) files: BTreeMap<String, Option<String>>,
    /// The crates of the workspace, by path.
    pub(crate) crates: Vec<Manifest>,
    /// The Rust files that are no tests.
    pub(crate) sources: Vec<Source>,
    /// Files that could not be understood.
    pub(crate) unread: Vec<Finding>,
}

impl Repo {
    /// Reads the repository at `root`.
    ///
    /// # Errors
    /// When a folder cannot be listed. Files that cannot be understood are findings.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        list(root, "", &mut files)?;
        let mut repo = Self { files, crates: Vec::new(), sources: Vec::new(), unread: Vec::new() };
        repo.read_manifests();
        repo.read_sources();
        Ok(repo)
    }

    /// The text of `file`, or `None` when it is missing or not UTF-8.
    pub(crate) fn text(&self, file: &str) -> Option<&str> {
        self.files.get(file)?.as_deref()
    }

    /// The files that can be read and whose name ends with `end`, with their texts.
    pub(crate) fn texts(&self, end: &str) -> impl Iterator<Item = (&str, &str)> {
        let read = self.files.iter().filter_map(|(file, text)| Some((file.as_str(), text.as_deref()?)));
        read.filter(move |(file, _)| file.ends_with(end))
    }

    /// Whether there is such a file or folder.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.keys().any(|file| file.starts_with(&folder))
    }

    fn read_manifests(&mut self) {
        let read: Vec<_> =
            self.texts("/Cargo.toml").map(|(file, text)| Manifest::parse(file, text)).collect();
        for manifest in read {
            match manifest {
                Ok(manifest) => self.crates.push(manifest),
                Err(finding) => self.unread.push(finding),
            }
        }
    }

    fn read_sources(&mut self) {
        let no_tests = self.texts(".rs").filter(|(file, _)| !is_test_file(file));
        let read: Vec<_> = no_tests.map(|(file, text)| Source::parse(file, text)).collect();
        let mut sources = Vec::new();
        for source in read {
            match source {
                Ok(source) => sources.push(source),
                Err(finding) => self.unread.push(finding),
            }
        }
        // A file that only `#[cfg(test)] mod name;` pulls in is a test, whatever it is called.
        let only_tests: Vec<String> = sources.iter().flat_map(|source| source.test_files.clone()).collect();
        sources.retain(|source| !only_tests.iter().any(|test| source.is_or_is_below(test)));
        self.sources = sources;
    }
}

/// Whether `file` is a test by its name or place.
pub(crate) fn is_test_file(file: &str) -> bool {
    let mut folders: Vec<&str> = file.split('/').collect();
    let name = folders.pop().unwrap_or_default();
    folders.contains(&"tests") || name == "tests.rs" || name.ends_with("_tests.rs")
}

fn list(root: &Path, folder: &str, files: &mut BTreeMap<String, Option<String>>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && !NOT_OURS.contains(&name.as_str()) {
            list(root, &path, files)?;
        } else if kind.is_file() {
            let text =
                READ.iter().any(|end| path.ends_with(end)).then(|| fs::read(entry.path())).transpose()?;
            files.insert(path, text.and_then(|bytes| String::from_utf8(bytes).ok()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::fixture::repo;

    #[test]
    fn files_are_listed_with_folders_that_are_not_ours_left_out() {
        let repo = repo(&[("a/b.md", ""), ("target/c.md", ""), (".ci/run", ""), ("a/target/d.md", "")]);
        assert_eq!(repo.files.keys().collect::<Vec<_>>(), [".ci/run", "a/b.md"]);
        assert!(repo.has("a") && repo.has("a/b.md") && repo.has("") && !repo.has("a/b"));
    }

    #[test]
    fn tests_are_no_sources() {
        let repo = repo(&[
            (
                "c/src/lib.rs",
                "mod a;\n#[cfg(test)]\nmod helper;\n#[cfg(test)]\n#[path = \"odd.rs\"]\nmod other;",
            ),
            ("c/src/a.rs", "#[cfg(test)]\nmod inner;"),
            ("c/src/a/inner.rs", ""),
            ("c/src/a/inner/deep.rs", ""),
            ("c/src/helper.rs", ""),
            ("c/src/odd.rs", ""),
            ("c/src/a_tests.rs", ""),
            ("c/tests/x.rs", ""),
        ]);
        let sources: Vec<_> = repo.sources.iter().map(|source| source.file.as_str()).collect();
        assert_eq!(sources, ["c/src/a.rs", "c/src/lib.rs"]);
    }

    #[test]
    fn files_that_cannot_be_parsed_are_found() {
        let repo = repo(&[("c/src/lib.rs", "fn (\n"), ("c/Cargo.toml", "[package\n")]);
        let found: Vec<_> = repo.unread.iter().map(|f| (f.file.as_str(), f.line)).collect();
        assert_eq!(found, [("c/Cargo.toml", 1), ("c/src/lib.rs", 1)]);
    }
}
