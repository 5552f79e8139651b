//! What a person probably means by a team file that does not exist, or that is a file of another program.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use polylogue_models::{Provider, known_provider};
use polylogue_team::{Diagnostic, Diagnostics, Severity};
use serde_json::Value;

use crate::place::shell_word;
use crate::shipped::{DEMO, Template};

/// Modules of other systems, and the page that shows their programs as team files. That of AutoGen is the default.
const PAGES: [(&str, &str); 6] = [
    ("crewai", "docs/from-crewai.md"),
    ("langgraph", "docs/from-langgraph.md"),
    ("yacana", "docs/from-yacana.md"),
    ("lagent", "docs/from-lagent.md"),
    ("lazyllm", "docs/from-lazyllm.md"),
    ("camel", "docs/from-lazyllm.md"),
];

/// Quotation marks that web pages and text editors write, and that no shell reads as such.
const QUOTES: [char; 4] = ['\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}'];

/// Returns `found`, or what is probably meant by it.
pub(super) fn meant(file: &Path, found: Diagnostics) -> Diagnostics {
    let mut meant = Diagnostics::default();
    if let Some((what, hint)) = other_kind(file) {
        let shown = file.display().to_string();
        meant.push(Diagnostic::new(Severity::Error, "invalid-value", &shown, None, what, Some(&hint)));
        return meant;
    }
    let Some(hint) = no_file_hint(file) else { return found };
    for one in found {
        meant.push(Diagnostic { hint: Some(hint.clone()), ..one });
    }
    meant
}

/// What `file` is, if people who come from another system have it and it is no team file, and what to do with it.
fn other_kind(file: &Path) -> Option<(&'static str, String)> {
    /// A larger file is no definition either, in bytes.
    const LARGEST: u64 = 4 << 20;
    if !file.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(file).ok()?.take(LARGEST).read_to_string(&mut text).ok()?;
    if file.extension().is_some_and(|ending| ending == "py") {
        return Some(("this is a Python program, not a team file", shown_in(page_of(&text))));
    }
    match serde_json::from_str(&text) {
        Ok(root) => of_json(file, &root),
        Err(_) => is_crew(&text)
            .then(|| ("this is a definition of CrewAI, not a team file", shown_in("docs/from-crewai.md"))),
    }
}

/// The same for a file of JSON.
fn of_json(file: &Path, root: &Value) -> Option<(&'static str, String)> {
    /// Keys of definitions that no team file has.
    const KEYS: [&str; 4] = ["component_type", "provider", "initiate_chat", "groupchat"];
    let has = |key: &str| root.get(key).is_some();
    if root.get(0).is_some_and(|first| first.get("model").is_some()) {
        let hint = "`--model` names a model, and an environment variable has its key: docs/from-autogen.md";
        return Some(("this is a list of models of AutoGen, not a team file", hint.to_owned()));
    }
    if has("nbformat") {
        return Some(("this is a notebook, not a team file", shown_in("docs/from-autogen.md")));
    }
    if has("chat") {
        return None;
    }
    if has("graphs") {
        let what = "this is a configuration of LangGraph, not a team file";
        return Some((what, shown_in("docs/from-langgraph.md")));
    }
    KEYS.into_iter().any(has).then(|| {
        let hint = format!("`polylogue import {} -o team.yaml` converts it", shell_word(file));
        ("this is a definition of AutoGen, not a team file", hint)
    })
}

fn shown_in(page: &str) -> String {
    format!("{page} shows programs as team files; `polylogue new` writes a team file")
}

/// The page for users of the system that a Python program imports.
fn page_of(program: &str) -> &'static str {
    let mut modules = program.lines().filter_map(|line| {
        let mut words = line.split([' ', '.', ',']);
        words.next().filter(|word| ["import", "from"].contains(word))?;
        words.next()
    });
    let page = |module: &str| PAGES.iter().find(|(known, _)| *known == module).map(|(_, page)| *page);
    modules.find_map(page).unwrap_or("docs/from-autogen.md")
}

/// Whether a text is the agents or the tasks of a crew: those of a team file have other keys, below `agents`.
fn is_crew(text: &str) -> bool {
    let has = |keys: [&str; 2], is_below: bool| {
        text.lines().any(|line| {
            let key = line.trim_start();
            (key.len() < line.len()) == is_below && keys.iter().any(|known| key.starts_with(known))
        })
    };
    has(["backstory:", "expected_output:"], true) && !has(["agents:", "chat:"], false)
}

/// What to do where `file` is none.
fn no_file_hint(file: &Path) -> Option<String> {
    if file.is_dir() {
        return Some("it is a folder: name one of its team files".to_owned());
    }
    let name = file.to_str().filter(|_| !file.exists())?;
    let demo = format!("{DEMO}{name}");
    if Template::of_demo(&demo).is_some() {
        return Some(format!("`{demo}` is the demo of this name"));
    }
    if Template::all().iter().any(|template| template.name == name) {
        return Some(format!("`polylogue new {name}` writes a team file with the template of this name"));
    }
    if let Some(model) = model_of(name) {
        return Some(format!("it is a model: `--model {model}`"));
    }
    let is_text = name.contains(char::is_whitespace) && file.extension().is_none();
    let hint = match name {
        "-" => "a team file is not read from standard input: save it first",
        _ if name.contains("://") => "a team file is a file on this machine: save it first",
        _ if name.contains(QUOTES) => "these quotation marks are part of the name: write `\"`",
        _ if is_text => {
            "it is a text: `polylogue run TEAM \"TASK\"` takes it after the team file, `polylogue chat` from standard input"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The model that `text` names, as `provider:model`.
fn model_of(text: &str) -> Option<String> {
    match text.split_once(':') {
        Some((provider, _)) => Provider::find(provider).map(|_| text.to_owned()),
        None => known_provider(text).map(|provider| format!("{provider}:{text}")),
    }
}
