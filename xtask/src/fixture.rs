//! Small repositories for the tests of the checks.

use std::fs;

use crate::finding::Finding;
use crate::repo::Repo;

/// A repository of the given files, `(path, text)`.
pub(crate) fn repo(files: &[(&str, &str)]) -> Repo {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    Repo::open(dir.path()).unwrap()
}

/// The findings as `file:line: flaw`.
pub(crate) fn brief(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|f| format!("{}:{}: {}", f.file, f.line, f.flaw)).collect()
}
