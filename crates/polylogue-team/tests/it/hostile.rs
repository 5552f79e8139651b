//! Files that mean harm, or nothing: each ends in an error that says what it is, and soon.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;

use polylogue_team::{Diagnostics, Overrides, load, parse};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::common::{self, wrong};

const TEAM: &str = "name: t\nagents: [{name: A}]\nchat: {participants: [A], stop: {max_turns: 1}}\n";

fn load_error(path: &Path) -> Diagnostics {
    load(path, &Overrides::default()).unwrap_err()
}

#[test]
fn aliases_cannot_be_used_to_fill_the_memory() {
    let mut laughs = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for n in 1..20 {
        let ten = vec![format!("*a{}", n - 1); 10].join(", ");
        writeln!(laughs, "a{n}: &a{n} [{ten}]").unwrap();
    }
    assert!(wrong(&laughs).contains("too large after its aliases are expanded"));

    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(1000));
    assert!(wrong(&long).contains("too large after its aliases are expanded"));

    let mut nested = String::from("a0: &a0 [x]\n");
    for n in 1..100 {
        writeln!(nested, "a{n}: &a{n} [*a{}]", n - 1).unwrap();
    }
    assert!(wrong(&nested).contains("too large after its aliases are expanded"));

    let kept = format!("{}x", (0..60).map(|n| format!("&a{n} [")).collect::<String>());
    assert!(wrong(&kept).contains("not valid YAML"));
    assert!(wrong("a: &a [*a]\n").contains("refers to a value that contains it"));
}

#[test]
fn variables_cannot_be_used_to_fill_the_memory() {
    let long = "x".repeat(1 << 20);
    for text in ["system: '", "parameters: {extra: {a: '"] {
        let agent =
            format!("{text}{}'", "{{a}}".repeat(100_000)) + if text.contains("extra") { "}}" } else { "" };
        let team = format!(
            "name: t\nvars: {{a: {long}}}\nagents: [{{name: A, {agent}}}]\nchat: {{participants: [A], stop: {{max_turns: 1}}}}\n"
        );
        assert!(wrong(&team).contains("too large after its variables are inserted"));
    }
}

/// Each of these took minutes when something in the reader was quadratic; the test has no clock, its runner has.
#[test]
fn reading_wide_files_takes_linear_time() {
    let many = |text: &dyn Fn(usize) -> String| (0..20_000).map(text).collect::<Vec<_>>().join(", ");
    let agents = many(&|n| format!("{{name: A{n}}}"));
    let names = many(&|n| format!("A{n}"));
    let steps = many(&|n| format!("{{A{n}: x}}"));
    let team = format!(
        "{{name: t, agents: [{agents}], chat: {{participants: [{names}], stop: {{says: {{text: x, by: [{names}]}}}}}}, script: [{steps}]}}"
    );
    assert_eq!(common::team(&team).agents.len(), 20_000);

    let strangers = many(&|n| format!("B{n}"));
    for (part, other) in [
        (format!("participants: [{names}]"), format!("participants: [{strangers}]")),
        (format!("by: [{names}]"), format!("by: [{strangers}]")),
        (steps.clone(), many(&|n| format!("{{B{n}: x}}"))),
        (agents.clone(), many(&|_| "{name: A}".to_owned())),
        ("name: t,".to_owned(), format!("name: t, {},", many(&|n| format!("key{n}: 1")))),
        ("name: t,".to_owned(), format!("name: t, {},", many(&|_| "key: 1".to_owned()))),
        ("name: t,".to_owned(), format!("name: t, description: '{}',", "{{x}} ".repeat(20_000))),
        ("name: t,".to_owned(), format!("name: t, description: '{}',", many(&|n| format!("{{{{x{n}}}}}")))),
        ("{name: A0}".to_owned(), format!("{{name: A0, tools: [{}]}}", "get_history, ".repeat(20_000))),
    ] {
        assert!(team.contains(&part));
        assert!(wrong(&team.replacen(&part, &other, 1)).contains("error: "));
    }
}

#[test]
fn nesting_is_bounded() {
    for text in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000), "? ".repeat(100_000)] {
        assert!(wrong(&text).contains("error: "), "{}", &text[..10]);
    }
    let conditions = format!("{}{{max_turns: 1}}{}", "{all: [".repeat(100), "]}".repeat(100));
    assert!(wrong(&TEAM.replace("{max_turns: 1}", &conditions)).contains("nested 64 deep"));
}

/// A team of 400 chats within each other overflowed the stack when it was built, and 30 pairs were a billion chats.
#[test]
fn nesting_of_chats_is_bounded() {
    let team = |outermost: &str, chats: String| {
        let text = format!(
            "name: t\nagents: [{{name: A}}, {{name: B}}]\nchat: {{participants: [{outermost}], stop: {{max_turns: 1}}}}\nchats: [{chats}]\n"
        );
        parse(&text, "t.yaml", &Overrides::default())
            .map_or_else(|found| found.to_string(), |_| String::new())
    };
    let chat = |name: String, within: String| {
        format!("{{name: {name}, participants: [{within}], stop: {{max_turns: 1}}}}, ")
    };
    let chain = |levels: usize| {
        let within = |n: usize| if n < levels { format!("C{}", n + 1) } else { "A, B".to_owned() };
        team("C1", (1..=levels).map(|n| chat(format!("C{n}"), within(n))).collect())
    };
    assert_eq!(chain(64), "");
    assert!(chain(65).contains("error: `C65` is more than 64 levels of chats and agents deep"));
    assert!(chain(5_000).contains("more than 64 levels"));

    let pairs = |levels: usize| {
        let within = |n: usize| {
            if n < levels { format!("C{}, D{}", n + 1, n + 1) } else { "A, B".to_owned() }
        };
        let pair = |n| chat(format!("C{n}"), within(n)) + &chat(format!("D{n}"), within(n));
        team("C1, D1", (1..=levels).map(pair).collect())
    };
    assert_eq!(pairs(10), "");
    assert!(pairs(30).contains("error: more than 10000 ways lead to the chats of this team"));
}

#[test]
fn a_file_of_mistakes_is_reported_in_part() {
    let text = format!("{TEAM}{}", (0..20_000).map(|n| format!("key{n}: 1\n")).collect::<String>());
    let said = wrong(&text);
    assert!(said.contains("unknown key `key99`") && !said.contains("unknown key `key100`"), "{said}");
    assert!(said.ends_with("error: there may be more: the first 100 are shown\n --> t.yaml\n"));
}

#[test]
fn a_team_with_many_warnings_is_a_team_and_an_error_behind_them_is_found() {
    let vars: String = (0..150).map(|n| format!("v{n}: x, ")).collect();
    let text = format!("{TEAM}vars: {{{vars}}}\n");
    let loaded = parse(&text, "t.yaml", &Overrides::default()).unwrap();
    assert_eq!(loaded.warnings.iter().count(), 101);
    let last = "error: there may be more";
    assert!(!loaded.warnings.to_string().contains(last), "{}", loaded.warnings);

    let silent: String = (0..150).map(|n| format!("{{name: S{n}, model: none}}, ")).collect();
    let text = text.replace("agents: [", &format!("agents: [{silent}"));
    let text = format!("{text}commands: [{{name: c, description: C., command: ['']}}]\n");
    assert!(wrong(&text).contains("error: the command `c`: its first word must be the program"));
}

/// Each file may have 64 levels, and eight files of them were 512.
#[test]
fn nesting_is_counted_over_all_files_of_a_team() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    // A chain of so many chats, in the innermost of which the team `next` takes part.
    let write = |file: &str, levels: usize, next: Option<&str>| {
        let innermost = if next.is_some() { "A, next" } else { "A" };
        let chat = |n: usize| {
            let within = if n < levels { format!("C{}", n + 1) } else { innermost.to_owned() };
            format!("{{name: C{n}, participants: [{within}], stop: {{max_turns: 1}}}}")
        };
        let chats = (1..=levels).map(chat).collect::<Vec<_>>().join(", ");
        let teams = next.map_or(String::new(), |file| format!("teams: [{{name: next, file: {file}}}]\n"));
        let text = format!(
            "name: t\nagents: [{{name: A}}]\nchat: {{participants: [C1], stop: {{max_turns: 1}}}}\nchats: [{chats}]\n{teams}"
        );
        fs::write(folder.path().join(file), text).unwrap();
    };
    write("one.yaml", 30, Some("sub/two.yaml"));
    write("sub/two.yaml", 30, Some("three.yaml"));
    write("sub/three.yaml", 2, None);
    // Each outermost chat of a team within a team is a level, too.
    load(folder.path().join("one.yaml"), &Overrides::default()).unwrap();
    write("sub/three.yaml", 3, None);
    let said = load_error(&folder.path().join("one.yaml")).to_string();
    let deep = "`next` is more than 64 levels of chats and agents deep, through the team files sub/two.yaml > three.yaml\n";
    assert!(said.contains(deep) && said.contains("one.yaml:4:"), "{said}");
    load(folder.path().join("sub/two.yaml"), &Overrides::default()).unwrap();
}

/// A file of 2,046 chats is read six times.
#[test]
fn ways_to_chats_are_counted_over_all_files_of_a_team() {
    let folder = tempfile::tempdir().unwrap();
    let chat = |name: char, n: usize| {
        let within = if n < 10 { format!("C{}, D{}", n + 1, n + 1) } else { "A".to_owned() };
        format!("{{name: {name}{n}, participants: [{within}], stop: {{max_turns: 1}}}}")
    };
    let chats = (1..=10).flat_map(|n| [chat('C', n), chat('D', n)]).collect::<Vec<_>>().join(", ");
    let within = format!(
        "name: t\nagents: [{{name: A}}]\nchat: {{participants: [C1, D1], stop: {{max_turns: 2}}}}\nchats: [{chats}]\n"
    );
    fs::write(folder.path().join("within.yaml"), within).unwrap();
    let load = |count: usize| {
        let names: Vec<String> = (1..=count).map(|n| format!("T{n}")).collect();
        let teams: Vec<String> =
            names.iter().map(|name| format!("{{name: {name}, file: within.yaml}}")).collect();
        let (names, teams) = (names.join(", "), teams.join(", "));
        let text =
            format!("name: t\nchat: {{participants: [{names}], stop: {{max_turns: 6}}}}\nteams: [{teams}]\n");
        fs::write(folder.path().join("t.yaml"), text).unwrap();
        load(folder.path().join("t.yaml"), &Overrides::default())
    };
    load(4).unwrap();
    let said = load(6).unwrap_err().to_string();
    assert!(
        said.contains("more than 10000 ways lead to the chats of this team and the teams within it"),
        "{said}"
    );
}

#[test]
fn what_a_file_says_cannot_reach_the_terminal_as_control_characters() {
    let said = wrong(&format!("{TEAM}\"\\e[2J\\u202e\": 1\nmodel: \"\\e]0;x\\a\"\n"));
    assert!(!said.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{said:?}");
    assert!(said.contains("unknown key `\u{fffd}[2J"), "{said}");
}

#[test]
fn team_files_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);

    assert!(load_error(&path("")).to_string().contains("it is not a file"));
    fs::write(path("team.yaml"), TEAM).unwrap();
    let said = load_error(&path("taem.yaml")).to_string();
    assert!(said.contains("the team file cannot be read: the file does not exist"), "{said}");
    assert!(said.contains(&format!("did you mean `{}`?", path("team.yaml").display())), "{said}");
    assert!(load_error(&path("team.yml")).to_string().contains("team.yaml"));
    let said = load_error(&path("boat.yaml")).to_string();
    assert!(!said.contains("did you mean"), "only the extension is the same: {said}");

    File::create(path("large.yaml")).unwrap().set_len(100 << 20).unwrap();
    assert!(load_error(&path("large.yaml")).to_string().contains("larger than 4 MiB"));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.yaml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    assert!(load_error(&pipe).to_string().contains("it is not a file"));
    assert!(load_error(Path::new("/dev/zero")).to_string().contains("it is not a file"));
}

#[test]
fn files_that_are_no_utf8_are_refused_where_they_stop_being_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");

    fs::write(&path, b"name: t\ndescription: K\xf6chin\nagents: []\n").unwrap();
    let errors = load_error(&path);
    let place = errors.iter().next().unwrap().place.clone().unwrap();
    assert_eq!((place.line, place.column, &*place.text), (2, 15, "description: K\u{fffd}chin"));

    let utf16: Vec<u8> = [0xfeff].into_iter().chain(TEAM.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    fs::write(&path, utf16).unwrap();
    assert!(load_error(&path).to_string().contains("it looks like UTF-16"));

    fs::write(&path, format!("\u{feff}{TEAM}")).unwrap();
    assert_eq!(load(&path, &Overrides::default()).unwrap().team.name.as_str(), "t");
}

/// Pieces that YAML and team files are made of, so that what is put together of them gets far.
fn piece() -> impl Strategy<Value = String> {
    const KNOWN: &[&str] = &[
        "name: ", "agents:\n", "  - ", "- ", "chat: ", "{", "}", "[", "]", ", ", ": ", "\n", "  ",
        "participants: ", "A", "stop: ", "says: ", "max_turns: 1", "{{task}}", "{{", "}}", "vars: ", "&a ",
        "*a", "<<: ", "!!str ", "!x ", "|\n", ">-\n", "\"", "'", "#", "\\u0041", "\t", "---\n", "null",
        "true", "1.5", "-1", "0x1", "summary: ", "reflect: ", "teams: ", "file: ", "script: ", "chats: ",
        "? ", "\u{feff}", "ü", "\r\n", "opening: ", "to: ", "by: ", "%",
    ];
    prop_oneof![8 => proptest::sample::select(KNOWN).prop_map(str::to_owned), 1 => ".{0,4}"]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn no_text_makes_it_panic(pieces in prop::collection::vec(piece(), 0..40), tail in any::<bool>()) {
        let text = pieces.concat();
        let text = if tail { format!("{TEAM}{text}") } else { text };
        match parse(&text, "t.yaml", &Overrides::default()) {
            Ok(loaded) => prop_assert_eq!(loaded.warnings.errors(), 0),
            Err(errors) => {
                prop_assert!(errors.errors() > 0);
                prop_assert!(!errors.to_string().contains("this is not a team:"), "{}", errors);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::with_cases(200) })]

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &bytes).unwrap();
        prop_assert!(load_error(file.path()).errors() > 0);
    }
}
