//! Team files and rules that were changed at random: whatever is in them, they are read or refused.

use std::fs;
use std::path::{Path, PathBuf};

use polylogue_team::{Overrides, Rules, format, parse};
use polylogue_test::mutations::survives;
use serde_json::Value;

/// The team files below `folder`.
fn texts(folder: &str) -> Vec<String> {
    let mut folders = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => paths.push(path),
            }
        }
    }
    let fits = |path: &Path| path.extension().is_some_and(|end| end == "yaml");
    paths.retain(|path| fits(path));
    paths.sort();
    assert!(!paths.is_empty(), "{folder}");
    paths.into_iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

fn values(texts: &[String]) -> Vec<Value> {
    texts.iter().filter_map(|text| serde_saphyr::from_str(text).ok()).collect()
}

#[test]
fn changed_team_files_are_read_or_refused() {
    let texts = texts("../../teams");
    survives(&texts, &values(&texts), |text| {
        parse(text, "t.yaml", &Overrides::default()).is_ok_and(|loaded| {
            let team = loaded.team;
            // What it asks for is put together of any team.
            let _ = (team.wants(), team.memory_scopes());
            true
        })
    });
}

#[test]
fn changed_team_files_are_formatted_or_refused() {
    let texts = texts("../../teams");
    survives(&texts, &values(&texts), |text| {
        let Ok(formatted) = format(text, "t.yaml") else { return false };
        assert_eq!(format(&formatted, "t.yaml").as_deref(), Ok(formatted.as_str()));
        true
    });
}

#[test]
fn changed_rules_are_read_or_refused() {
    let rules = "# Mine\n- deny: {tool: shell, command: '*rm -rf*'}\n- ask: {path: 'secret/*', host: '*.example.org'}\n\
                 - allow: {tool: note, arguments: {text: one, list: [1, 2.5, null]}, team: 3f2a}\n";
    let texts = [rules.to_owned()];
    survives(&texts, &values(&texts), |text| Rules::read(text, "approvals.yaml").is_ok());
}
