//! The schema and the reader agree, and the reference has every key.

use std::sync::OnceLock;

use expect_test::expect;
use polylogue_config::reference::reference;
use polylogue_config::schema::schema;
use polylogue_config::{Config, yaml};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::team::{Memory, Refine, Team, WHOLE, read};

fn whole() -> Value {
    let source = polylogue_config::source::Source::new("whole", WHOLE);
    let mut report = polylogue_config::diagnostic::Report::new(&source);
    yaml::parse(&mut report).unwrap().to_value()
}

/// Paths to every value within `value`.
fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| paths(value, &format!("{at}/{key}"), found)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, value)| paths(value, &format!("{at}/{i}"), found));
        }
        _ => {}
    }
}

/// Values that replace one of a legal file.
fn replacements() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(3.5),
        json!(3.0),
        json!(100_000),
        json!("x"),
        json!(""),
        json!("react"),
        json!("best"),
        json!("direct"),
        json!([]),
        json!(["x"]),
        json!(["x", "x"]),
        json!({}),
        json!({ "x": 1 }),
        json!({ "tool": "x" }),
        json!({ "react": {} }),
        json!({ "best": { "critic": "Ann" } }),
        json!({ "name": "D" }),
        json!({ "name": "D", "human": true }),
        json!({ "name": "D", "human": true, "tools": [] }),
    ]
}

/// Mistakes that a schema cannot express: names that must exist and differ, and durations and variables in texts.
fn is_beyond_schema(found: &str) -> bool {
    ["unknown agent", "duplicate agent", "unknown variable"].iter().any(|what| found.contains(what))
        && found.lines().filter(|line| line.starts_with("error")).all(|line| {
            ["unknown agent", "duplicate agent", "unknown variable"].iter().any(|what| line.contains(what))
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_schema_and_the_reader_agree_on_mutated_files(
        place in any::<prop::sample::Index>(),
        with in any::<prop::sample::Index>(),
    ) {
        let mut file = whole();
        let mut found = Vec::new();
        paths(&file, "", &mut found);
        let path = found[1 + place.index(found.len() - 1)].clone();
        let replacement = replacements()[with.index(replacements().len())].clone();
        *file.pointer_mut(&path).unwrap() = replacement;
        let report = read(&file.to_string()).1;
        let read_well = !report.contains("error") || is_beyond_schema(&report);
        // A word of a choice that is not legal is the same mistake for both; formats are the reader's alone.
        prop_assert_eq!(validator().is_valid(&file), read_well, "{} in {}\n{}", path, file, report);
    }
}

fn validator() -> &'static jsonschema::Validator {
    static VALIDATOR: OnceLock<jsonschema::Validator> = OnceLock::new();
    VALIDATOR.get_or_init(|| jsonschema::validator_for(&schema(Team::ty())).unwrap())
}

#[test]
fn the_whole_file_is_legal_for_both() {
    assert!(validator().is_valid(&whole()), "{:?}", validator().validate(&whole()).err());
}

#[test]
fn the_reference_tells_key_type_example_default_and_meaning() {
    let page = reference(Memory::ty()) + &reference(Refine::ty());
    let first = page.split("## React").next().unwrap();
    expect![[r#"
        ## Memory

        Long-term memory.

        | key | type | default | meaning |
        |---|---|---|---|
        | `auto_recall` | whole number, 0 to 50 | `5` | How many facts are recalled before a turn. |

        ## Refine

        Drafts and critique.

        | key | type | default | meaning |
        |---|---|---|---|
        | `critic` | name such as `Critic` | the agent itself | The critic. |
        | `rounds` | whole number, 0 to 10000 | `3` | Maximum number of rounds. |
        | `inner` | [Reasoning](#reasoning) | it replies at once | How the critic reasons. |

        ## Reasoning

        How an agent reasons.

        | value | meaning |
        |---|---|
        | `react` or `react:` [React](#react) | It calls tools in rounds. |
        | `refine` or `refine:` [Refine](#refine) | It drafts and revises. |
        | `best:` [Best](#best) | It is asked several times. |
        | `direct` | It replies at once. |

    "#]]
    .assert_eq(first);
}

mod first {
    /// An edge of a graph.
    #[derive(polylogue_config::Config)]
    pub(super) struct Edge {
        /// The next participant.
        to: String,
    }
}

mod second {
    /// An edge of a graph.
    #[derive(polylogue_config::Config)]
    pub(super) struct Edge {
        /// The previous participant.
        from: String,
    }
}

/// Two different types that would have the same definition.
#[derive(Config)]
struct Clashing {
    /// Outgoing edges.
    to: Vec<first::Edge>,
    /// More outgoing edges.
    also: Vec<first::Edge>,
    /// Incoming edges.
    from: Vec<second::Edge>,
}

#[test]
fn types_that_share_a_name_are_found() {
    assert_eq!(polylogue_config::schema::clashes(Clashing::ty()).into_iter().collect::<Vec<_>>(), ["Edge"]);
    assert!(polylogue_config::schema::clashes(Team::ty()).is_empty());
}
