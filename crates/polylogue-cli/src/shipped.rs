//! Teams and templates that ship with the program: they are in the binary.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use include_dir::{Dir, include_dir};
use polylogue_config::suggest;

use crate::place;

static TEAMS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../teams");
static TEMPLATES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates");

/// What stands before the name of a team that ships: `demo:trading-bot`.
const DEMO: &str = "demo:";

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

/// Reads the path of a team file, or `demo:NAME`, which stands for a team that ships: it is written to the user's cache
/// folder with the files that it needs.
pub(crate) fn team_file() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|given| {
        match given.to_str().and_then(|text| text.strip_prefix(DEMO)) {
            Some(name) => unpacked(name),
            None => Ok(PathBuf::from(given)),
        }
    })
}

fn unpacked(name: &str) -> Result<PathBuf, String> {
    let name = name.trim_end_matches(".yaml");
    if !teams().contains(&name) {
        let teams = teams();
        let all = teams.join(", ");
        let meant = suggest::closest(name, teams).map(|team| format!("; did you mean `{DEMO}{team}`?"));
        return Err(format!(
            "there is no demo `{name}`{}\n  hint: there are {all}",
            meant.unwrap_or_default()
        ));
    }
    let folder = place::of_demos().ok_or("no home directory was found for demos; set `XDG_CACHE_HOME`")?;
    let folder = folder.join(version());
    written(&folder).map_err(|error| format!("`{}` cannot be written: {error}", folder.display()))?;
    Ok(folder.join(name).with_extension("yaml"))
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

/// Writes the teams to `folder`, whole or not at all: several programs may begin at the same time.
fn written(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    let staging = folder.with_extension(format!("{}.new", std::process::id()));
    fs::create_dir_all(&staging)?;
    let done = TEAMS.extract(&staging).and_then(|()| match fs::rename(&staging, folder) {
        Err(_) if folder.exists() => Ok(()),
        result => result,
    });
    if staging.exists() {
        // Of no use any more, whether that works or not.
        let _ = fs::remove_dir_all(&staging);
    }
    done
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
    fn the_teams_are_written_once_with_their_data() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("demos").join(version());
        written(&folder).unwrap();
        written(&folder).unwrap();
        assert!(folder.join("trading-bot.yaml").is_file() && folder.join("data/prices.csv").is_file());
        assert_eq!(fs::read_dir(dir.path().join("demos")).unwrap().count(), 1, "nothing else stays");
    }
}
