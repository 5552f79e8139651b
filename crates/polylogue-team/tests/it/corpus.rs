//! Team files with the findings that are expected in them: broken ones, each found at its line with its advice, and good
//! ones, in which nothing is found.
//!
//! A broken file ends with comments such as `# expect: no-stop 4:7 give it a stop`: code, line, column and advice. `UPDATE=1`
//! writes them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use polylogue_models::{Env, Models};
use polylogue_team::{Diagnostics, Loaded, Overrides, finding_kinds, load};

const EXPECT: &str = "# expect: ";

pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name)
}

/// The team files of a folder, in the order of their names.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "yaml")).collect();
    files.sort();
    files
}

/// A file without its expectations, and these.
pub(crate) fn split(text: &str) -> (String, Vec<String>) {
    let (expected, team): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with(EXPECT));
    let expected = expected.into_iter().map(|line| line.trim_start_matches(EXPECT).to_owned());
    (team.join("\n") + "\n", expected.collect())
}

/// What is found in a file, as `polylogue check` finds it: it has no models of its own.
fn findings(path: &Path) -> Diagnostics {
    match load(path, &Overrides::default()) {
        Ok(mut loaded) => {
            loaded.warnings.merge(loaded.team.unknown_models());
            with_parameters(loaded)
        }
        Err(found) => found,
    }
}

/// What is found in a team that was read, with what depends on what its models take.
pub(crate) fn with_parameters(Loaded { team, mut warnings, .. }: Loaded) -> Diagnostics {
    warnings.merge(team.check_parameters(None, &Models::new(Env::default()), &|_| None));
    warnings
}

fn described(found: &Diagnostics) -> Vec<String> {
    let describe = |one: &polylogue_team::Diagnostic| {
        let place = one.place.as_ref().map(|at| format!("{}:{}", at.line, at.column)).unwrap_or_default();
        let advice = one.hint.as_deref().unwrap_or(&one.message);
        format!("{} {place} {advice}", one.code)
    };
    found.iter().map(describe).collect()
}

#[test]
fn every_mistake_is_found_at_its_line_with_its_advice() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut wrong = Vec::new();
    let mut codes = BTreeSet::new();
    let files = files(&folder("broken"));
    for path in &files {
        let text = fs::read_to_string(path).unwrap();
        let (team, expected) = split(&text);
        let found = described(&findings(path));
        codes.extend(expected.iter().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())));
        if update {
            let lines: String = found.iter().map(|line| format!("{EXPECT}{line}\n")).collect();
            fs::write(path, team + &lines).unwrap();
        } else if found != expected || found.is_empty() {
            let name = path.file_name().unwrap().display();
            wrong.push(format!("{name}:\n  expected {expected:#?}\n  found {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(files.len() >= 60, "{} broken files", files.len());
    let kinds: BTreeSet<String> = finding_kinds().iter().map(|kind| kind.code.to_owned()).collect();
    assert!(
        update || codes == kinds,
        "kinds without a file, or unknown: {:?}",
        kinds.symmetric_difference(&codes)
    );
}

#[test]
fn nothing_is_found_in_good_files() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../teams");
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../polylogue-cli/templates");
    let files: Vec<_> =
        [shipped, templates, folder("good")].iter().flat_map(|folder| files(folder)).collect();
    let with_findings = files.iter().filter_map(|path| {
        let found = findings(path);
        found.iter().next().is_some().then(|| format!("{}:\n{found}", path.display()))
    });
    let with_findings: Vec<_> = with_findings.collect();
    assert!(with_findings.is_empty(), "{}", with_findings.join("\n"));
    assert!(files.len() >= 60, "{} good files", files.len());
}
