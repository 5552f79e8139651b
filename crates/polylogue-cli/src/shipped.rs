//! Teams and templates that ship with the program: they are in the binary.

use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use include_dir::{Dir, include_dir};
use polylogue_config::suggest;
use rustix::process::geteuid;

use crate::place;

static TEAMS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../teams");
static TEMPLATES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates");

/// What stands before the name of a team that ships: `demo:trading-bot`.
pub(crate) const DEMO: &str = "demo:";

/// A commented team file to begin with.
pub(crate) struct Template {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

impl Template {
    /// All of them, the default first.
    pub(crate) fn all() -> Vec<Self> {
        let named = |file: &'static include_dir::File<'_>| {
            Some(Self { name: file.path().file_stem()?.to_str()?, text: file.contents_utf8()? })
        };
        let mut all: Vec<Self> = TEMPLATES.files().filter_map(named).collect();
        all.sort_by_key(|template| (template.name != Self::DEFAULT, template.name));
        all
    }

    pub(crate) const DEFAULT: &str = "two-agents";

    /// The team file of the demo `name`, such as `demo:council`, if there is one.
    pub(crate) fn of_demo(name: &str) -> Option<Self> {
        let name = teams().into_iter().find(|team| name.strip_prefix(DEMO) == Some(*team))?;
        Some(Self { name, text: TEAMS.get_file(format!("{name}.yaml"))?.contents_utf8()? })
    }

    /// The files of `data` that a demo names, with their paths from its own.
    pub(crate) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let is_named = |path: &Path| {
            let is_below = path.parent().is_some_and(|above| !above.as_os_str().is_empty());
            is_below && path.to_str().is_some_and(|path| self.text.contains(path))
        };
        let mut files = Vec::new();
        every_file(&TEAMS, &mut |path, content| {
            if path.ancestors().any(is_named) {
                files.push((path.to_owned(), content.to_owned()));
            }
        });
        files
    }

    /// Its first line: what it shows.
    pub(crate) fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }
}

/// Names of the teams that ship.
pub(crate) fn teams() -> Vec<&'static str> {
    let is_team = |file: &&include_dir::File<'static>| file.path().extension() == Some(OsStr::new("yaml"));
    let mut names: Vec<_> =
        TEAMS.files().filter(is_team).filter_map(|file| file.path().file_stem()?.to_str()).collect();
    names.sort_unstable();
    names
}

/// Why a demo cannot be used.
#[derive(Debug)]
pub(crate) enum NoDemo {
    /// There is none of this name.
    Unknown(String),
    /// No folder for its files can be written.
    Unwritable(String),
}

impl Error for NoDemo {}

impl fmt::Display for NoDemo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Unknown(why) | Self::Unwritable(why)) = self;
        f.write_str(why)
    }
}

/// Reads the path of a team file, or `demo:NAME`, which stands for a team that ships: it is written to the user's cache
/// folder with the files that it needs, or to a folder for temporary files.
pub(crate) fn team_file() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|given| {
        match given.to_str().and_then(|text| text.strip_prefix(DEMO)) {
            Some(name) => unpacked(name),
            None => Ok(PathBuf::from(given)),
        }
    })
}

fn unpacked(name: &str) -> Result<PathBuf, NoDemo> {
    let name = name.trim_end_matches(".yaml");
    if !teams().contains(&name) {
        let teams = teams();
        let all = teams.join(", ");
        let meant = suggest::closest(name, teams).map(|team| format!("; did you mean `{DEMO}{team}`?"));
        let why = format!("there is no demo `{name}`{}", meant.unwrap_or_default());
        return Err(NoDemo::Unknown(format!("{why}\n  hint: there are {all}")));
    }
    let mut refused = Vec::new();
    for (place, is_temporary) in places() {
        let folder = place.join(version());
        let made = if is_temporary { private(place.parent().unwrap_or(&place)) } else { Ok(()) };
        match made.and_then(|()| written(&folder)) {
            Ok(()) => return Ok(folder.join(name).with_extension("yaml")),
            Err(error) => refused.push(format!("`{}` cannot be written: {error}", place.display())),
        }
    }
    Err(NoDemo::Unwritable(format!("the files of `{DEMO}{name}` have no place: {}", refused.join("; "))))
}

/// Where demos can be, and whether that is a folder for temporary files.
fn places() -> impl Iterator<Item = (PathBuf, bool)> {
    place::of_demos().map(|place| (place, false)).into_iter().chain([(place::of_temporary_demos(), true)])
}

/// Makes a folder that only this user can look into and change. Where it exists, it has to be such a one: others can make folders next
/// to it.
fn private(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let found = fs::symlink_metadata(folder)?;
    let is_private = found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0;
    if is_private { Ok(()) } else { Err(io::Error::other("others can change what is there")) }
}

/// The name of the demo whose file `path` is, such as `demo:council`; `None` for other files, also next to it or below it, and for demos
/// of which a file was changed.
pub(crate) fn demo_at(path: &Path) -> Option<String> {
    places().find_map(|(place, _)| demo_in(&place.join(version()), path))
}

/// The same for the demos in `folder`. What is allowed to a demo is allowed to nothing that only has its name.
fn demo_in(folder: &Path, path: &Path) -> Option<String> {
    let below = path.strip_prefix(folder).ok()?;
    let name = teams().into_iter().find(|team| *below == *Path::new(team).with_extension("yaml"))?;
    let mut is_unchanged = true;
    every_file(&TEAMS, &mut |below, content| {
        is_unchanged &= fs::read(folder.join(below)).is_ok_and(|found| found == content);
    });
    is_unchanged.then(|| format!("{DEMO}{name}"))
}

/// Identifies the teams that ship, so that another version of the program writes its own.
fn version() -> String {
    let mut hash = blake3::Hasher::new();
    every_file(&TEAMS, &mut |path, content| {
        hash.update(path.as_os_str().as_encoded_bytes()).update(&[0]).update(content).update(&[0]);
    });
    hash.finalize().to_hex().chars().take(16).collect()
}

fn every_file(folder: &Dir<'_>, each: &mut impl FnMut(&Path, &[u8])) {
    folder.files().for_each(|file| each(file.path(), file.contents()));
    folder.dirs().for_each(|below| every_file(below, each));
}

/// Writes the files of the teams to `folder` that are missing there or were changed. Each appears whole: several programs may begin at
/// the same time.
fn written(folder: &Path) -> io::Result<()> {
    let mut result = Ok(());
    every_file(&TEAMS, &mut |below, content| {
        let path = folder.join(below);
        if result.is_ok() && !fs::read(&path).is_ok_and(|found| found == content) {
            let made = fs::create_dir_all(path.parent().unwrap_or(&path));
            result = made.and_then(|()| polylogue_files::replace(&path, content));
        }
    });
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_a_team_without_a_warning() {
        let all = Template::all();
        assert!(all.len() >= 14 && all[0].name == Template::DEFAULT);
        for template in all {
            let loaded =
                polylogue_team::parse(template.text, template.name, &polylogue_team::Overrides::default());
            let loaded = loaded.unwrap_or_else(|errors| panic!("{errors}"));
            assert!(loaded.warnings.to_string().is_empty(), "{}: {}", template.name, loaded.warnings);
            assert!(template.text.lines().all(|line| line.len() <= 140), "{}", template.name);
            assert_eq!(&*loaded.team.name.to_string(), template.name);
            assert!(template.about().ends_with('.'), "{}", template.about());
        }
    }

    #[test]
    fn files_of_the_teams_are_written_and_restored_when_they_are_missing_or_changed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("demos").join(version());
        written(&folder).unwrap();
        let files = || walk(&folder);
        let (all, data) = (files(), folder.join("data/prices.csv"));
        let prices = fs::read(&data).unwrap();
        fs::remove_file(folder.join("trading-bot.yaml")).unwrap();
        fs::remove_dir_all(folder.join("data")).unwrap();
        fs::write(folder.join("council.yaml"), "name: other\n").unwrap();
        written(&folder).unwrap();
        assert_eq!((files(), fs::read(&data).unwrap()), (all, prices), "nothing else stays");
        assert_eq!(
            fs::read(folder.join("council.yaml")).unwrap(),
            TEAMS.get_file("council.yaml").unwrap().contents()
        );
    }

    #[test]
    fn only_the_unchanged_file_of_a_demo_is_that_demo() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(version());
        written(&folder).unwrap();
        let is_demo = |path: &str| demo_in(&folder, &folder.join(path)).is_some();
        assert_eq!(demo_in(&folder, &folder.join("council.yaml")).as_deref(), Some("demo:council"));
        // Files of the user's or of others, which have the name of a demo.
        for other in ["council.yml", "council", "data/council.yaml", "../council.yaml", "../x/council.yaml"] {
            assert!(!is_demo(other), "{other}");
        }
        fs::write(folder.join("data/prices.csv"), "changed").unwrap();
        assert!(!is_demo("council.yaml"));
    }

    /// The files below `folder`, sorted.
    fn walk(folder: &Path) -> Vec<PathBuf> {
        let mut all = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { all.extend(walk(&path)) } else { all.push(path) }
        }
        all.sort();
        all
    }
}
