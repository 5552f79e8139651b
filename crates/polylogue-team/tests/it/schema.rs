//! The schema, the reader and the documentation say the same.

use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use polylogue_team::{Overrides, load, names_of, parse, reference, schema};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Map, Value, json};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn validator() -> Validator {
    jsonschema::draft202012::new(schema()).unwrap()
}

/// The value of a YAML text as another reader of YAML sees it.
fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

#[test]
fn the_published_schema_is_the_one_of_the_types() {
    let path = repository().join("docs/team.schema.json");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, format!("{:#}\n", sorted(schema()))).unwrap();
    }
    let published: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert!(
        published == *schema(),
        "docs/team.schema.json is out of date; regenerate it with `UPDATE=1 cargo test -p polylogue-team schema`"
    );
}

#[test]
fn the_published_reference_is_the_one_of_the_types() {
    let path = repository().join("docs/reference/team-file.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, reference()).unwrap();
    }
    let published = fs::read_to_string(path).unwrap();
    assert!(
        published == reference(),
        "docs/reference/team-file.md is out of date; regenerate it with `UPDATE=1 cargo test -p polylogue-team schema`"
    );
}

/// A page marks each table with the system: `<!-- names of AutoGen -->`, and its end with `<!-- end of names -->`.
#[test]
fn the_published_tables_of_names_are_those_of_the_checker() {
    const END: &str = "<!-- end of names -->";
    let mut systems = Vec::new();
    for page in
        ["reference/names.md", "from-autogen.md", "from-yacana.md", "from-lagent.md", "from-lazyllm.md"]
    {
        let path = repository().join("docs").join(page);
        let text = fs::read_to_string(&path).unwrap();
        let mut parts = text.split("<!-- names of");
        let mut current = parts.next().unwrap().to_owned();
        for part in parts {
            let (system, rest) = part.split_once("-->\n").unwrap();
            let (_, after) = rest.split_once(END).unwrap();
            current += &format!("<!-- names of{system}-->\n\n{}\n{END}{after}", names_of(system.trim()));
            systems.push(system.trim().to_owned());
        }
        if std::env::var_os("UPDATE").is_some() {
            fs::write(path, &current).unwrap();
        } else {
            assert!(
                text == current,
                "docs/{page} is out of date; run `UPDATE=1 cargo test -p polylogue-team schema`"
            );
        }
    }
    for system in ["AutoGen", "CAMEL", "CrewAI", "Lagent", "LangGraph", "LazyLLM", "OpenAI", "Yacana", ""] {
        assert!(names_of(system).lines().count() > 2, "{system}");
        assert!(systems.iter().any(|known| known == system), "no page has the names of {system}");
    }
}

#[test]
fn no_two_types_share_a_definition_of_the_schema() {
    use polylogue_config::Config as _;
    assert!(polylogue_config::schema::clashes(polylogue_team::Team::ty()).is_empty());
}

#[test]
fn the_default_of_a_key_is_within_its_range() {
    let mut all = Vec::new();
    places(schema(), "", &mut all);
    let mut checked = 0;
    for at in all {
        let key = schema().pointer(&at).unwrap();
        let number = |name: &str| key.get(name).and_then(Value::as_f64);
        let Some(default) = number("default") else { continue };
        let (least, most) = (number("minimum"), number("maximum"));
        let is_within = least.is_none_or(|least| least <= default) && most.is_none_or(|most| default <= most);
        assert!(is_within, "{at}: {default} is not in {least:?} to {most:?}");
        checked += usize::from(least.is_some() && most.is_some());
    }
    assert!(checked > 20, "{checked} defaults with a range");
}

/// The same with keys in order, whatever order the maps of this build keep.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> =
                object.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        value => value.clone(),
    }
}

#[test]
fn the_teams_that_ship_satisfy_the_schema() {
    let validator = validator();
    for team in shipped() {
        let errors: Vec<String> = validator.iter_errors(&team).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new());
    }
}

fn shipped() -> Vec<Value> {
    let files = fs::read_dir(repository().join("teams")).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let teams: Vec<Value> = files.map(|path| yaml(&fs::read_to_string(path).unwrap())).collect();
    assert!(teams.len() >= 3);
    teams
}

/// Every example of the documentation is a team, or a part of one that is right when it is in one.
#[test]
fn the_examples_of_the_documentation_are_right() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("editors.yaml"), BASE.replace("name: base", "name: editors")).unwrap();
    fs::write(folder.path().join("vat.py"), "").unwrap();
    // What makes a folder a virtual environment.
    #[cfg(unix)]
    {
        fs::create_dir_all(folder.path().join(".venv/bin")).unwrap();
        fs::write(folder.path().join(".venv/pyvenv.cfg"), "home = /usr/bin\n").unwrap();
        std::os::unix::fs::symlink("/bin/sh", folder.path().join(".venv/bin/python3")).unwrap();
    }
    let pages = folder.path().join("data/reading-room");
    fs::create_dir_all(&pages).unwrap();
    fs::write(pages.join("bees.md"), "# Bees\n").unwrap();
    let path = folder.path().join("example.yaml");
    let examples = documented();
    let mut wrong = Vec::new();
    for (page, block) in &examples {
        let whole = completed(block);
        fs::write(&path, &whole).unwrap();
        let problems = match load(&path, &Overrides::default()) {
            Ok(loaded) => loaded.warnings.to_string(),
            Err(errors) => errors.to_string(),
        };
        if !problems.is_empty() {
            wrong.push(format!("{page}\n{whole}\n{problems}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(examples.len() >= 60, "{}", examples.len());
}

/// An example with agents and a chat looks whole, and is: it can be copied into a file and run.
#[test]
fn examples_of_the_documentation_that_look_whole_have_a_name() {
    let has = |block: &str, key: &str| block.lines().any(|line| line.starts_with(key));
    let nameless = documented()
        .into_iter()
        .filter(|(_, block)| has(block, "agents:") && has(block, "chat:") && !has(block, "name:"));
    assert_eq!(nameless.collect::<Vec<_>>(), []);
}

/// A page for users of another system begins with a program of theirs next to the team file that does the same, which
/// [the test of all examples](the_examples_of_the_documentation_are_right) loads.
#[test]
fn the_pages_for_users_of_other_systems_show_a_program_next_to_a_team_file() {
    let examples = documented();
    let pages = [
        "from-autogen.md", "from-crewai.md", "from-langgraph.md", "from-yacana.md", "from-lagent.md",
        "from-lazyllm.md",
    ];
    for page in pages {
        let text = fs::read_to_string(repository().join("docs").join(page)).unwrap();
        let (_, table) = text.split_once("<table><tr><th>").unwrap_or_else(|| panic!("no table in {page}"));
        let (table, _) = table.split_once("</table>").unwrap();
        let block = |language: &str| {
            let (_, rest) = table.split_once(&format!("```{language}\n")).unwrap_or_else(|| panic!("{page}"));
            rest.split_once("```").unwrap().0.to_owned()
        };
        let (program, team) = (block("python"), block("yaml"));
        assert!(program.lines().count() > 5 && table.find(&program) < table.find(&team), "{page}");
        assert!(team.starts_with("name:"), "the team file of {page} is not a whole one");
        assert!(examples.iter().any(|(of, example)| of.ends_with(page) && *example == team), "{page}");
    }
}

/// All YAML examples of the documentation, except the rows of `batch.md` and the rules of `security.md`, which are not
/// parts of teams, and the mistakes of `check.md`.
fn documented() -> Vec<(String, String)> {
    let mut pages = vec![repository().join("README.md")];
    let docs = fs::read_dir(repository().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    pages.retain(|path| !["batch.md", "check.md", "security.md"].iter().any(|name| path.ends_with(name)));
    pages.sort();
    let blocks = |page: &PathBuf| {
        let text = fs::read_to_string(page).unwrap();
        let blocks = text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
        blocks.map(|block| (page.display().to_string(), block)).collect::<Vec<_>>()
    };
    pages.iter().flat_map(blocks).collect()
}

const BASE: &str = "name: base\nagents: [{name: Writer}, {name: Critic}, {name: Editor}]\nchat: {participants: [Writer, Critic, Editor], stop: {max_turns: 9}}\n";

/// The example if it is a whole team, otherwise a team with the keys of the example instead of its own.
fn completed(block: &str) -> String {
    if block.lines().any(|line| line.starts_with("name:")) {
        return block.to_owned();
    }
    let mut team = yaml(BASE);
    let part = yaml(block);
    if let Some(agents) = part["agents"].as_array() {
        let names = agents.iter().map(|agent| agent["name"].clone());
        let known = ["Writer", "Critic", "Editor"];
        let (of_base, others): (Vec<_>, Vec<_>) =
            names.partition(|name| known.iter().any(|known| name == known));
        team["chat"]["participants"] = if of_base.is_empty() { others } else { of_base }.into();
    }
    for (key, value) in part.as_object().unwrap() {
        match (team.get_mut(key), value) {
            (Some(Value::Object(own)), Value::Object(given)) => own.extend(given.clone()),
            _ => {
                team.as_object_mut().unwrap().insert(key.clone(), value.clone());
            }
        }
    }
    team.to_string()
}

/// All places in a value, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| {
            places(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
        }),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| places(item, &format!("{at}/{n}"), found))
        }
        _ => {}
    }
}

fn strange_values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(20.0),
        json!(1e300),
        json!(""),
        json!("x"),
        json!("off"),
        json!("free"),
        json!("last"),
        json!("a b"),
        json!([]),
        json!(["x"]),
        json!([{}]),
        json!({}),
        json!({"x": 1}),
        json!({"text": "x"}),
        json!({"messages": 3}),
        json!({"reflect": {}}),
        json!(18_446_744_073_709_551_615_u64),
    ]
}

/// One of the teams, changed in a few places.
fn changed() -> impl Strategy<Value = Value> {
    let teams = shipped().into_iter().map(|mut team| {
        // Its prose is long and teaches nothing here.
        team["script"] =
            json!([{"A": {"say": "x", "calls": [{"tool": "t", "args": {"a": 1}}], "usage": {"input": 1}}}]);
        team
    });
    let full = yaml(include_str!("full.yaml"));
    let team = proptest::sample::select(teams.chain([full]).collect::<Vec<_>>());
    let change = (any::<prop::sample::Index>(), proptest::sample::select(strange_values()), 0..4_u8);
    (team, prop::collection::vec(change, 1..4)).prop_map(|(mut team, changes)| {
        for (index, value, how) in changes {
            let mut all = Vec::new();
            places(&team, "", &mut all);
            let at: &String = index.get(&all);
            change_at(&mut team, at, value, how);
        }
        team
    })
}

fn change_at(team: &mut Value, at: &str, value: Value, how: u8) {
    let Some(place) = team.pointer_mut(at) else { return };
    match (how, place) {
        (0, Value::Object(object)) => {
            object.insert("strange".to_owned(), value);
        }
        (1, Value::Object(object)) => {
            let key = object.keys().next().cloned();
            key.and_then(|key| object.shift_remove(&key));
        }
        (2, Value::Array(items)) => items.push(value),
        (_, place) => *place = value,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::with_cases(1500) })]

    /// Whatever the reader takes, an editor with the schema takes, and whatever an editor takes has no wrong shape.
    #[test]
    fn the_reader_and_the_schema_agree(team in changed()) {
        let valid = validator_of_this_thread(|validator| validator.is_valid(&team));
        let said = match parse(&team.to_string(), "t.json", &Overrides::default()) {
            Ok(_) => None,
            Err(errors) => Some(errors.to_string()),
        };
        match said {
            None => prop_assert!(valid, "only the reader takes {team}"),
            Some(errors) => {

                let shape = ["unknown key", "must be", "needs the key", " is empty", "cannot be `", "one key only"];
                let wrong_shape = shape.iter().any(|words| errors.contains(words));
                prop_assert!(!valid || !wrong_shape, "only the schema takes {team}\n{errors}");
            }
        }
    }
}

fn validator_of_this_thread<T>(f: impl FnOnce(&Validator) -> T) -> T {
    thread_local!(static VALIDATOR: Validator = validator());
    VALIDATOR.with(f)
}

#[test]
fn the_reference_names_every_key() {
    let text = fs::read_to_string(repository().join("docs/reference/team-file.md")).unwrap();
    let mut all = Map::new();
    collect_properties(schema(), &mut all);
    let missing: Vec<_> = all
        .keys()
        .filter(|key| !text.contains(&format!("| `{key}` |")) && !text.contains(&format!("`{key}:`")))
        .collect();
    assert_eq!(missing, Vec::<&String>::new());
}

fn collect_properties(schema: &Value, all: &mut Map<String, Value>) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object {
                if key == "properties" {
                    all.extend(value.as_object().unwrap().clone());
                }
                collect_properties(value, all);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_properties(item, all)),
        _ => {}
    }
}
