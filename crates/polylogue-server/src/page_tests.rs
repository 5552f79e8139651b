use std::collections::BTreeSet;
use std::path::Path;

use axum::http::HeaderValue;

use super::*;

/// BLAKE3 digests of the vendored files, as `page/vendor/make` writes them.
const VENDORED: &[(&str, &str)] = &[
    ("vendor/htm-3.1.1.js", "8f0e43838b400d39544a687dd3d865dbd3365e78e95adea372373030cb2f78ab"),
    ("vendor/preact-11.2.0.js", "426712338a1293f7ee52c4c26ea4c2e9e86df658daa198aa17a5f3ffc1caabc7"),
    ("vendor/preact-hooks-11.2.0.js", "a3b1093b2822ab98926b16b1da76cf657d601e688c8af84bea45ac4322cff41f"),
    ("vendor/signals-2.11.4.js", "9ae2f551ecb77fe67c16c83139ce608b0b828287a0e80385db151781bee328d8"),
    ("vendor/signals-core-1.14.5.js", "2d64a83fcde6f1e2734152e3ffdf225162ef4983e0d944ff9979521338ad4a86"),
];

fn text(file: &str) -> &'static str {
    let (.., bytes) = FILES.iter().find(|(_, name, _)| *name == file).unwrap();
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn vendored_files_are_unchanged() {
    let vendored = FILES.iter().filter(|(_, file, _)| file.starts_with("vendor/"));
    let found: Vec<_> =
        vendored.map(|(_, file, bytes)| (*file, blake3::hash(bytes).to_hex().to_string())).collect();
    let expected: Vec<_> = VENDORED.iter().map(|(file, digest)| (*file, (*digest).to_owned())).collect();
    assert_eq!(found, expected);
}

#[test]
fn every_file_is_served_and_every_import_exists() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
    let of = |folder: &Path, prefix: &str| -> BTreeSet<String> {
        let entries =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let is_sent = |name: &String| [".js", ".css", ".svg", ".html"].iter().any(|end| name.ends_with(end));
        entries.filter(is_sent).map(|name| format!("{prefix}{name}")).collect()
    };
    let there: BTreeSet<String> =
        of(&folder, "").into_iter().chain(of(&folder.join("vendor"), "vendor/")).collect();
    let served: BTreeSet<String> = FILES.iter().map(|(_, file, _)| (*file).to_owned()).collect();
    assert_eq!(there, served);
    for (path, file, _) in FILES.iter().filter(|(_, file, _)| file.ends_with(".js")) {
        assert_eq!(*path, format!("/page/{file}"));
        let folder = if file.starts_with("vendor/") { "vendor/" } else { "" };
        for part in text(file).split("from").skip(1) {
            let Some(name) = part.trim_start().strip_prefix(['\'', '"']) else { continue };
            let Some(name) = name.strip_prefix("./") else { continue };
            let name = name.split(['\'', '"']).next().unwrap();
            assert!(served.contains(&format!("{folder}{name}")), "{file} imports {name}");
        }
    }
}

#[test]
fn own_files_are_short_and_make_no_markup_of_texts() {
    for (_, file, _) in FILES.iter().filter(|(_, file, _)| !file.starts_with("vendor/")) {
        let text = text(file);
        assert!(text.lines().count() <= 300, "{file} is long");
        for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://"] {
            assert!(
                !text.contains(word) || (word == "http://" && file.ends_with(".svg")),
                "{file} has `{word}`"
            );
        }
    }
}

#[test]
fn the_first_load_is_small() {
    let sizes = SENT.iter().map(|file| file.gzip.as_ref().unwrap_or(&file.plain).len());
    assert!(sizes.sum::<usize>() < 120_000, "of which 120 kB are allowed");
}

#[test]
fn an_encoding_that_a_client_refuses_is_not_used() {
    let takes = |accepted: &'static str| {
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(accepted))]);
        has_word(&headers, ACCEPT_ENCODING, "gzip")
    };
    for accepted in ["gzip", "br, gzip", "br;q=1.0, gzip;q=0.5", "gzip; q=1"] {
        assert!(takes(accepted), "{accepted}");
    }
    for accepted in ["", "br", "gzip;q=0", "br, gzip; q=0.000", "gzip ; Q=0"] {
        assert!(!takes(accepted), "{accepted}");
    }
}
