//! Virtual environments of Python: their interpreter, and their packages.

mod packages;

use std::path::{Component, Path, PathBuf};
use std::{fs, io};

pub use self::packages::Package;
use crate::error::Error;
use crate::visible::{check_visible, is_of_system};

/// Maximum size of `pyvenv.cfg` in bytes.
const MAX_CONFIG_BYTES: u64 = 64 << 10;
/// Maximum number of links to the interpreter.
const MAX_LINKS: usize = 40;
/// Maximum length of the list of packages for models, in characters.
const MAX_LIST_CHARS: usize = 1500;

/// A virtual environment of Python, as made by `python3 -m venv`, `virtualenv` or `uv venv`.
///
/// It is only read: nothing in it is executed. It needs an interpreter, which may be outside of it: an installation of the system, of
/// uv, pyenv or Conda. [`Sandbox::venv`](crate::Sandbox::venv) gives both to programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Venv {
    path: PathBuf,
    /// The version of Python, if `pyvenv.cfg` has it.
    version: Option<String>,
    packages: Vec<Package>,
    pub(crate) base: Base,
}

/// The parts of an interpreter that are neither in the environment nor in the system's directories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Base {
    /// The interpreter and its library directories, by their canonical paths.
    pub(crate) paths: Vec<PathBuf>,
    /// Other paths by which they are found: from, to.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
}

impl Venv {
    /// Reads the virtual environment at `path`.
    ///
    /// # Errors
    /// When it does not exist, is not a virtual environment, or has no interpreter that could run.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let wrong = |why: String| Error::Config(format!("`{}` {why}", path.display()));
        let found = path.canonicalize().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => wrong("does not exist".into()),
            _ => wrong(format!("cannot be opened: {error}")),
        })?;
        let config = config(&found).map_err(|why| wrong(format!("is not a virtual environment: {why}")))?;
        let value = |name: &str| entry(&config, name);
        let home = value("home").map(Path::new).filter(|home| home.is_absolute());
        let home = home.ok_or_else(|| {
            wrong("is not a virtual environment: its `pyvenv.cfg` names no `home` of an interpreter".into())
        })?;
        let base = Base::of(&found, home).map_err(|why| wrong(format!("has no interpreter: {why}")))?;
        for shown in [&found].into_iter().chain(&base.paths).chain(base.links.iter().map(|(from, _)| from)) {
            check_visible(shown)?;
        }
        let version = value("version").or_else(|| value("version_info"));
        let version = version.filter(|version| packages::is_version(version)).map(str::to_owned);
        let packages = packages::of(&found);
        Ok(Self { path: found, version, packages, base })
    }

    /// Returns its canonical path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its path, and those of its interpreter outside of it and of the system.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.path).chain(&self.base.paths).map(PathBuf::as_path)
    }

    /// The directory of its programs.
    pub(crate) fn programs(&self) -> PathBuf {
        self.path.join("bin")
    }

    /// Returns the paths that programs read of it outside of `folder` and of the system's directories: those that a user should
    /// be asked about when `folder` is what they trust.
    pub fn outside(&self, folder: &Path) -> Vec<&Path> {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        self.paths().filter(|path| !path.starts_with(&folder) && !is_of_system(path)).collect()
    }

    /// Returns its packages, by name; at most 1,000. Packages whose name or version is not valid are left out, as are `pip`,
    /// which cannot install anything in a sandbox, and packages in editable mode, whose files are elsewhere.
    pub fn packages(&self) -> &[Package] {
        &self.packages
    }

    /// Describes its version of Python and its packages for a model: a sentence of bounded length.
    pub fn describe(&self) -> String {
        let python = self.version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
        let mut list = String::new();
        let mut rest = self.packages.iter();
        while let Some(Package { name, version }) = rest.as_slice().first() {
            let next = format!("{}{name} {version}", if list.is_empty() { "" } else { ", " });
            if list.len() + next.len() > MAX_LIST_CHARS {
                break;
            }
            list.push_str(&next);
            rest.next();
        }
        let list = match (list.is_empty(), rest.len()) {
            (true, _) => "no packages".to_owned(),
            (false, 0) => format!("these packages: {list}"),
            (false, more) => format!("these packages: {list} and {more} more"),
        };
        format!("Python{python} has the standard library and {list}. Packages cannot be installed.")
    }
}

/// The text of `pyvenv.cfg`.
fn config(venv: &Path) -> Result<String, String> {
    let path = venv.join("pyvenv.cfg");
    let about = fs::symlink_metadata(&path).map_err(|_| "it has no `pyvenv.cfg`".to_owned())?;
    if !about.is_file() || about.len() > MAX_CONFIG_BYTES {
        return Err("its `pyvenv.cfg` is not a file, or too large".into());
    }
    fs::read_to_string(path).map_err(|error| format!("its `pyvenv.cfg` cannot be read: {error}"))
}

/// The value of a line `name = value`.
fn entry<'c>(config: &'c str, name: &str) -> Option<&'c str> {
    let entries = config.lines().filter_map(|line| line.split_once('='));
    let mut values = entries.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name));
    values.next().map(|(_, value)| value.trim())
}

impl Base {
    /// The interpreter of `venv`, and the libraries of the installation whose programs are in `home`.
    fn of(venv: &Path, home: &Path) -> Result<Self, String> {
        let named = venv.join("bin/python3");
        let interpreter = named.canonicalize().map_err(|_| "`bin/python3` leads to no file".to_owned())?;
        if !is_executable(&interpreter) {
            return Err("`bin/python3` leads to no program".into());
        }
        let mut base = Self::default();
        base.add(venv, &interpreter, &interpreter);
        for link in links(&named)? {
            base.add(venv, &link, &interpreter);
        }
        for prefix in [home.parent(), interpreter.parent().and_then(Path::parent)].into_iter().flatten() {
            for name in ["lib", "lib64"] {
                let libraries = prefix.join(name);
                if let Ok(real) = libraries.canonicalize()
                    && real.is_dir()
                {
                    base.add(venv, &libraries, &real);
                }
            }
        }
        base.paths.sort();
        base.paths.dedup_by(|path, before| path.starts_with(before));
        let Self { paths, links } = &mut base;
        links.retain(|(from, _)| !paths.iter().any(|path| from.starts_with(path)));
        links.sort();
        links.dedup();
        Ok(base)
    }

    /// Adds the file or folder `real`, to which `path` leads.
    fn add(&mut self, venv: &Path, path: &Path, real: &Path) {
        let is_there = |path: &Path| path.starts_with(venv) || is_of_system(path);
        if !is_there(real) {
            self.paths.push(real.to_owned());
        }
        if path != real && !is_there(path) {
            self.links.push((path.to_owned(), real.to_owned()));
        }
    }
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// The paths that a link leads to, one after the other.
fn links(path: &Path) -> Result<Vec<PathBuf>, String> {
    let mut all = Vec::new();
    let mut at = path.to_owned();
    while let Ok(target) = fs::read_link(&at) {
        at = normalized(&at.parent().unwrap_or(Path::new("/")).join(target));
        all.push(at.clone());
        if all.len() > MAX_LINKS {
            return Err("`bin/python3` leads over too many links".into());
        }
    }
    Ok(all)
}

/// An absolute path without `.` and `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}
