//! The conversations that this server runs, as files that the next process reads: after a crash or a restart it continues these, and none
//! that a person or another program has interrupted.

use std::fs;
use std::io;
use std::path::PathBuf;

use polylogue_core::LogId;

/// The conversations that are to run until they close, wait or are stopped: one file for each, by tenant, with the token that pays.
#[derive(Debug)]
pub(crate) struct Promised {
    folder: PathBuf,
}

impl Promised {
    pub(crate) const fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Notes that it is to run, paid by `token`. A process that is killed later leaves the note.
    pub(crate) fn note(&self, tenant: &str, id: &LogId, token: Option<&str>) -> io::Result<()> {
        let folder = self.folder.join(tenant);
        let (file, token) = (folder.join(id.as_str()), token.unwrap_or_default());
        match fs::write(&file, token) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(&folder)?;
                fs::write(&file, token)
            }
            made => made,
        }
    }

    /// The token that pays for it, if it is known.
    pub(crate) fn payer(&self, tenant: &str, id: &LogId) -> Option<String> {
        let token = fs::read_to_string(self.folder.join(tenant).join(id.as_str())).ok()?;
        Some(token).filter(|token| !token.is_empty())
    }

    /// Notes that it need not run any more.
    pub(crate) fn clear(&self, tenant: &str, id: &LogId) -> io::Result<()> {
        match fs::remove_file(self.folder.join(tenant).join(id.as_str())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            cleared => cleared,
        }
    }

    /// What an earlier process has noted: tenants and ids.
    pub(crate) fn all(&self) -> io::Result<Vec<(String, LogId)>> {
        let mut all = Vec::new();
        for tenant in self.names("")? {
            let ids = self.names(&tenant)?;
            let ids = ids.iter().filter_map(|name| LogId::new(name).ok());
            all.extend(ids.map(|id| (tenant.clone(), id)));
        }
        Ok(all)
    }

    /// The names in one of its folders, sorted.
    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.folder.join(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_there_until_it_is_cleared() {
        let dir = tempfile::tempdir().unwrap();
        let promised = || Promised::at(dir.path().join("running"));
        let id = |text: &str| LogId::new(text).unwrap();
        assert_eq!(promised().all().unwrap(), []);
        promised().clear("local", &id("a")).unwrap();
        for (tenant, of) in [("local", "b"), ("local", "a"), ("other", "a"), ("local", "a")] {
            promised().note(tenant, &id(of), Some("tok-1")).unwrap();
        }
        assert_eq!(promised().payer("local", &id("a")).as_deref(), Some("tok-1"));
        promised().note("local", &id("a"), None).unwrap();
        assert_eq!(promised().payer("local", &id("a")), None);
        promised().clear("local", &id("b")).unwrap();
        assert_eq!(promised().all().unwrap(), [("local".into(), id("a")), ("other".into(), id("a"))]);
    }
}
