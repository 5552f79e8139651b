//! The layout of team files.

use expect_test::expect;
use polylogue_team::{Overrides, format, parse};

use crate::corpus::{files, folder};

/// All texts of team files in the repository.
fn texts() -> Vec<(String, String)> {
    let below = |path: &str| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let folders =
        [below("../../teams"), below("../polylogue-cli/templates"), folder("good"), folder("broken")];
    let files = folders.iter().flat_map(|folder| files(folder));
    files.map(|path| (path.display().to_string(), std::fs::read_to_string(path).unwrap())).collect()
}

/// Another layout with the same values, as people write it.
fn untidy(text: &str) -> String {
    let lines = text.lines().map(|line| match line.strip_suffix('}') {
        Some(rest) if rest.trim_start().starts_with("- {") => {
            format!("{}  }}   \n", rest.replacen("- {", "-   {  ", 1))
        }
        _ if line.is_empty() => "\n\n\n".to_owned(),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

#[test]
fn shipped_teams_have_the_layout() {
    let unformatted = texts().into_iter().filter(|(name, text)| {
        !name.contains("/corpus/") && format(text, name).map_or(true, |formatted| formatted != *text)
    });
    assert_eq!(unformatted.map(|(name, _)| name).collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn a_formatted_team_means_the_same() {
    let mut changed = 0;
    for (name, text) in texts().into_iter().filter(|(name, _)| !name.contains("/corpus/")) {
        let untidy = untidy(&text);
        let formatted = format(&untidy, &name).unwrap_or_else(|found| panic!("{name}: {found}\n{untidy}"));
        changed += usize::from(formatted != untidy);
        let team = |text: &str| parse(text, "t.yaml", &Overrides::default()).map(|loaded| loaded.team);
        if let Ok(before) = team(&untidy) {
            let after = team(&formatted).unwrap();
            assert_eq!((before.agents, before.chat), (after.agents, after.chat), "{name}");
        }
    }
    assert!(changed > 40, "{changed}");
}

const UNTIDY: &str = "# head

name:    t   # the name
vars: {a: 'x',   b: \"it's\"}


agents:
- name: Ann
  system: >
     folded text

     next
  # inside
- {name: Bob,system: 'plain'}    #tail
-   name: Cid
    # fmt: skip
    tools:   [a,b]
    system: |2
        two more
      less
chat: &x
    participants: [Ann,Bob,
     Cid]
# end
";

#[test]
fn comments_and_line_breaks_stay() {
    expect![[r##"
        # head

        name: t # the name
        vars: {a: "x", b: "it's"}

        agents:
          - name: Ann
            system: >
              folded text

              next
            # inside
          - {name: Bob, system: "plain"} #tail
          - name: Cid
            # fmt: skip
            tools:   [a,b]
            system: |2
                two more
              less
        chat: &x
          participants: [Ann, Bob, Cid]
        # end
    "##]]
    .assert_eq(&format(UNTIDY, "t.yaml").unwrap());
}

#[test]
fn line_breaks_of_windows_stay() {
    let formatted = format(&UNTIDY.replace('\n', "\r\n"), "t.yaml").unwrap();
    assert_eq!(formatted, format(UNTIDY, "t.yaml").unwrap().replace('\n', "\r\n"));
    assert_eq!(format(&formatted, "t.yaml").unwrap(), formatted, "again");
}

/// Files, and their layout: the key or item below the comment is moved, and nothing in it changes.
const SKIPPED: [(&str, &str); 12] = [
    (
        "agents:\n# fmt: skip\n- {name:   A,   system: x}\n- {name:   B}\n",
        "agents:\n  # fmt: skip\n  - {name:   A,   system: x}\n  - {name: B}\n",
    ),
    (
        "agents:\n- a\n# fmt: skip (a table)\n- name:   A\n  system: |\n     deep\n       er\n\n  tools:   [a,\n b]\n- {b:   c}\n",
        "agents:\n  - a\n  # fmt: skip (a table)\n  - name:   A\n    system: |\n       deep\n         er\n\n    tools:   [a,\n   b]\n  - {b: c}\n",
    ),
    (
        "chat:\n    # fmt: skip\n    participants:   [A,\n      B]\n    stop:   {max_turns: 2}\n",
        "chat:\n  # fmt: skip\n  participants:   [A,\n    B]\n  stop: {max_turns: 2}\n",
    ),
    (
        "# fmt: skip\n\n# of a list\nlist:\n-   a\n- {b:   c}\nname:   t\n",
        "# fmt: skip\n\n# of a list\nlist:\n-   a\n- {b:   c}\nname: t\n",
    ),
    ("# fmt: skip\nlist: [\n  a,b\n]\nname:   t\n", "# fmt: skip\nlist: [\n  a,b\n]\nname: t\n"),
    ("list:\n   # fmt: skip\n   [a,   b]\nname:   t\n", "list:\n  # fmt: skip\n  [a,   b]\nname: t\n"),
    // With comments further left within it.
    (
        "agents:\n- a\n# fmt: skip\n- name:   A\n# left\n\n  system:   x\n- {b:   c}\n",
        "agents:\n  - a\n  # fmt: skip\n  - name:   A\n  # left\n\n    system:   x\n  - {b: c}\n",
    ),
    (
        "chat:\n    # fmt: skip\n    stop:\n  # left\n        max_turns:   2\n    task:   x\n",
        "chat:\n  # fmt: skip\n  stop:\n# left\n      max_turns:   2\n  task: x\n",
    ),
    (
        "# fmt: skip\nlist:\n-   a\n# left\n-   b\nname:   t\n",
        "# fmt: skip\nlist:\n-   a\n# left\n-   b\nname: t\n",
    ),
    // Not within brackets, within a text, or after a value.
    ("list: [\n  # fmt: skip\n  {a:   b},\n]\n", "list: [\n  # fmt: skip\n  {a: b},\n]\n"),
    ("text: |\n  # fmt: skip\n  a:   b\nname:   t\n", "text: |\n  # fmt: skip\n  a:   b\nname: t\n"),
    ("list: # fmt: skip\n- {a:   b}\n", "list: # fmt: skip\n  - {a: b}\n"),
];

#[test]
fn the_key_or_item_below_a_comment_keeps_its_layout() {
    for (text, expected) in SKIPPED {
        assert_eq!(format(text, "t.yaml").unwrap(), expected, "{text}");
        assert_eq!(format(expected, "t.yaml").unwrap(), expected, "again");
    }
}

#[test]
fn what_cannot_be_formatted_is_refused_with_its_line() {
    let deep: String = (0..35).map(|depth| format!("{}a:\n", "  ".repeat(depth))).collect();
    for text in [&deep, "a: 1\n\tb: 2\n", "a: 1\na: 2\n", ""] {
        let found = format(text, "t.yaml").unwrap_err();
        assert_eq!(found.errors(), 1, "{found}");
    }
    let found = format(&deep, "t.yaml").unwrap_err().to_string();
    assert!(found.starts_with("error: a line is indented by more than 60 columns"), "{found}");
    assert!(found.contains("--> t.yaml:32:1\n"), "{found}");
    assert!(found.ends_with("hint: indent by 2 columns\n"), "{found}");
}

#[test]
fn json_stays_json() {
    let text = "{\"name\": \"t\",\n \"agents\": []}\n";
    assert_eq!(format(text, "t.json").unwrap(), text);
}
