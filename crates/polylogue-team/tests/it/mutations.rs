//! Team files and definitions to import that were changed at random: whatever is in them, they are read or refused.
//!
//! `POLYLOGUE_MUTATIONS=20000` tries that many of each; `POLYLOGUE_SEED` begins with another seed.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use polylogue_team::import::import;
use polylogue_team::{Overrides, Rules, parse};

/// How many are tried unless it is said otherwise.
const FEW: u64 = 150;

/// What is put into texts: what means something to a parser, and what no one expects.
const TOKENS: [&str; 28] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "- ",
    "\n",
    "\t",
    "&a ",
    "*a",
    "!!str ",
    "|\n",
    ">-\n",
    "'",
    "\"",
    "{{",
    "}}",
    "null",
    "-1",
    "1e400",
    "18446744073709551616",
    "\u{202e}",
    "\u{0}",
    "é",
    "---\n",
    "<<: ",
    "true",
];

/// Numbers of a sequence, the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }

    /// A place in `text` between two characters.
    fn place(&mut self, text: &str) -> usize {
        let at = self.below(text.len() + 1);
        text.floor_char_boundary(at)
    }
}

fn mutated(text: &str, other: &str, random: &mut Random) -> String {
    let mut text = text.to_owned();
    for _ in 0..=random.below(6) {
        let (a, b) = (random.place(&text), random.place(&text));
        let (start, end) = (a.min(b), a.max(b));
        let end = text.floor_char_boundary(end.min(start + 200));
        match random.below(7) {
            0 => text.replace_range(start..end, ""),
            1 => text.insert_str(start, TOKENS[random.below(TOKENS.len())]),
            2 => text.replace_range(start..end, TOKENS[random.below(TOKENS.len())]),
            3 => {
                let twice = text[start..end].repeat(2);
                text.replace_range(start..end, &twice);
            }
            4 => {
                let (c, d) = (random.place(other), random.place(other));
                let (from, to) = (c.min(d), c.max(d));
                text.insert_str(start, &other[from..other.floor_char_boundary(to.min(from + 200))]);
            }
            5 => text.truncate(start),
            _ => {
                let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
                let (i, j) = (random.below(lines.len()), random.below(lines.len()));
                if !lines.is_empty() {
                    lines.swap(i, j);
                }
                text = lines.concat();
            }
        }
    }
    text
}

fn texts(folder: &str, endings: &[&str]) -> Vec<String> {
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
    let fits = |path: &Path| path.extension().is_some_and(|end| endings.iter().any(|one| end == *one));
    paths.retain(|path| fits(path));
    paths.sort();
    assert!(!paths.is_empty(), "{folder}");
    paths.into_iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Reads mutations of `texts` by `read`, which says whether it took them.
fn survives(texts: &[String], read: impl Fn(&str) -> bool) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (count, first) =
        (number("POLYLOGUE_MUTATIONS").unwrap_or(FEW), number("POLYLOGUE_SEED").unwrap_or(1));
    println!("{count} mutations from the seed {first} on");
    let mut taken = 0;
    for seed in first..first + count {
        let mut random = Random(seed);
        let (one, other) = (random.below(texts.len()), random.below(texts.len()));
        let text = mutated(&texts[one], &texts[other], &mut random);
        match catch_unwind(AssertUnwindSafe(|| read(&text))) {
            Ok(is_taken) => taken += u64::from(is_taken),
            Err(_) => panic!("seed {seed} panics:\n{text}"),
        }
    }
    println!("{taken} were taken, {} refused", count - taken);
}

#[test]
fn changed_team_files_are_read_or_refused() {
    let texts = texts("../../teams", &["yaml"]);
    survives(&texts, |text| {
        parse(text, "t.yaml", &Overrides::default()).is_ok_and(|loaded| {
            let team = loaded.team;
            // What it asks for is put together of any team.
            let _ = (team.wants(), team.memory_scopes());
            true
        })
    });
}

#[test]
fn changed_definitions_are_imported_or_refused() {
    // Those that the tests of importing hold.
    let sources = texts("tests/import", &["rs"]).concat();
    let literals = sources.split("r#\"").skip(1).filter_map(|rest| rest.split_once("\"#"));
    let texts: Vec<String> =
        literals.map(|(text, _)| text.to_owned()).filter(|text| text.len() > 40).collect();
    assert!(texts.len() > 5, "{}", texts.len());
    survives(&texts, |text| import(text, "d.json").is_ok());
}

#[test]
fn changed_rules_are_read_or_refused() {
    let rules = "# Mine\n- deny: {tool: shell, command: '*rm -rf*'}\n- ask: {path: 'secret/*', host: '*.example.org'}\n\
                 - allow: {tool: note, arguments: {text: one, list: [1, 2.5, null]}, team: 3f2a}\n";
    survives(&[rules.to_owned()], |text| Rules::read(text, "approvals.yaml").is_ok());
}
