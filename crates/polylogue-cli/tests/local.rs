//! The program with models in the process: chats of tiny random models, which the tests write.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

#[path = "../../polylogue-local/tests/common/tiny.rs"]
#[allow(dead_code, reason = "other tests use more")]
mod tiny;

use std::path::Path;
use std::process::{Command, Output};

use tiny::Tiny;

const TEAM: &str = "name: pair
task: Say something.
model: local:models/tiny.gguf
agents:
  - {name: Ann, system: You are Ann., parameters: {seed: 1, max_tokens: 12}}
  - {name: Bob, system: You are Bob., parameters: {seed: 2, max_tokens: 60}, output_schema: {type: object, properties: {ok: {type: boolean}}, required: [ok], additionalProperties: false}}
chat: {pattern: round_robin, participants: [Ann, Bob], max_turns: 4}
";

/// The exit code of a conversation that ended at its limit.
const LIMIT: i32 = 3;

fn run(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polylogue"));
    command.args(arguments).current_dir(folder).env_clear().env("HOME", folder).env("PATH", "/usr/bin:/bin");
    command.envs(variables.iter().copied()).output().unwrap()
}

fn texts(output: &Output) -> (String, String) {
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// A folder with a team and its model.
fn team(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("teams/models")).unwrap();
    std::fs::write(folder.path().join("teams/pair.yaml"), text).unwrap();
    Tiny::default().write(&folder.path().join("teams/models"), "tiny.gguf");
    folder
}

#[test]
fn a_chat_of_two_agents_runs_from_a_file_next_to_the_team() {
    let folder = team(TEAM);
    let first = run(folder.path(), &["run", "teams/pair.yaml"], &[]);
    let (out, errors) = texts(&first);
    assert_eq!(first.status.code(), Some(LIMIT), "{out}\n{errors}");
    assert!(out.contains("{\"ok\":true}") || out.contains("{\"ok\":false}"), "{out}");
    // A seed makes the second conversation the same as the first.
    let (again, _) = texts(&run(folder.path(), &["run", "teams/pair.yaml"], &[]));
    // The last lines have the time that the run took, and its id.
    let spoken =
        |text: &str| text.lines().take_while(|line| !line.starts_with("limit:")).map(str::to_owned).collect();
    let (first, second): (Vec<_>, Vec<_>) = (spoken(&out), spoken(&again));
    assert_eq!(first, second);
}

#[test]
fn what_is_wrong_with_a_file_is_an_error_before_the_run() {
    let folder = team(TEAM);
    let model = folder.path().join("teams/models/tiny.gguf");
    let refused = |variables: &[(&str, &str)]| {
        let output = run(folder.path(), &["run", "teams/pair.yaml"], variables);
        let (out, errors) = texts(&output);
        assert!(!output.status.success(), "{out}");
        errors
    };
    let memory = refused(&[("POLYLOGUE_LOCAL_MEMORY", "1")]);
    assert!(memory.contains("1 MiB are available") && memory.contains("POLYLOGUE_LOCAL_WINDOW"), "{memory}");
    for (variable, value, least) in [
        ("POLYLOGUE_LOCAL_WINDOW", "many", "tokens, at least 64"),
        ("POLYLOGUE_LOCAL_WINDOW", "0", "tokens, at least 64"),
        ("POLYLOGUE_LOCAL_WINDOW", "-4096", "tokens, at least 64"),
        ("POLYLOGUE_LOCAL_WINDOW", "99999999999", "tokens, at least 64"),
        ("POLYLOGUE_LOCAL_MEMORY", "0", "MiB, at least 1"),
        ("POLYLOGUE_LOCAL_MEMORY", "1.5", "MiB, at least 1"),
    ] {
        let number = refused(&[(variable, value)]);
        let what = format!("`{variable}` must be a number of {least}, not `{value}`");
        assert!(number.contains(&what) && number.contains("write a whole number"), "{number}");
    }
    std::fs::write(&model, "no model").unwrap();
    let foreign = refused(&[]);
    assert!(foreign.contains("is not a GGUF file") && foreign.contains("are converted first"), "{foreign}");
    std::fs::write(&model, "GGUF").unwrap();
    let broken = refused(&[]);
    assert!(
        broken.contains("is not a whole GGUF file") && broken.contains("download the file again"),
        "{broken}"
    );
    std::fs::remove_file(&model).unwrap();
    let missing = refused(&[]);
    assert!(missing.contains("cannot read") && missing.contains("relative to the team file"), "{missing}");
}

/// Only the templates of some files know `effort`, and none knows other fields than its own.
#[test]
fn parameters_are_checked_by_the_file_of_the_model() {
    let folder = team(TEAM);
    let models = folder.path().join("teams/models");
    let file = folder.path().join("teams/pair.yaml");
    let template = format!("{}{{% if enable_thinking %}}{{% endif %}}", tiny::TEMPLATE);
    Tiny { template: Some(template), ..Tiny::default() }.write(&models, "thinks.gguf");
    let with = |parameters: &str| TEAM.replace("seed: 1,", &format!("seed: 1, {parameters},"));
    let found = |arguments: &[&str], text: &str, variables: &[(&str, &str)]| {
        std::fs::write(&file, text).unwrap();
        let output = run(folder.path(), &[arguments, &["teams/pair.yaml"]].concat(), variables);
        (output.status.code(), texts(&output).1)
    };
    let strict = with("effort: low, strict: true");
    let refused = "error: `local:models/tiny.gguf`, the model of `Ann`, does not take `effort`, and `strict` refuses it\n --> teams/pair.yaml:5:";
    for (command, memory) in [("check", "1"), ("run", "512")] {
        let (code, errors) = found(&[command], &strict, &[("POLYLOGUE_LOCAL_MEMORY", memory)]);
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains(refused), "{errors}");
    }
    let (code, errors) = found(&["check"], &with("effort: low"), &[]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("does not take `effort`: it is left out"), "{errors}");
    let thinks = strict.replace("tiny.gguf", "thinks.gguf");
    assert_eq!(found(&["check", "--strict"], &thinks, &[]), (Some(0), String::new()));
    let own = with("extra: {chat_template_kwargs: {}}");
    assert_eq!(found(&["check", "--strict"], &own, &[]), (Some(0), String::new()));
    let other = with("extra: {num_ctx: 4096}");
    for command in ["check", "run"] {
        let (code, errors) = found(&[command], &other, &[]);
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains("does not know the parameter `num_ctx`"), "{errors}");
    }
    // What a file takes that cannot be read, or may not, is unknown.
    let missing = strict.replace("tiny.gguf", "none.gguf");
    assert_eq!(found(&["check"], &missing, &[]), (Some(0), String::new()));
    let outside = strict.replace("local:models/tiny.gguf", "local:../elsewhere.gguf");
    Tiny::default().write(folder.path(), "elsewhere.gguf");
    let (code, errors) = found(&["check"], &outside, &[]);
    assert_eq!((code, errors.contains("effort")), (Some(0), false), "{errors}");
    assert_eq!(found(&["check", "--allow", "readable"], &outside, &[]).0, Some(2));
}

#[test]
fn tokens_are_counted_by_the_vocabulary_of_the_file() {
    let folder = team(TEAM);
    let count = |text: &str, options: &[&str]| {
        let all = [&["count", "-m", "local:teams/models/tiny.gguf", text], options].concat();
        let output = run(folder.path(), &all, &[("POLYLOGUE_LOCAL_MEMORY", "1")]);
        let (out, errors) = texts(&output);
        assert!(output.status.success(), "{errors}");
        out
    };
    assert_eq!(count("the", &[]), "1 token of local:teams/models/tiny.gguf, free\n");
    let row: serde_json::Value = serde_json::from_str(&count("ß", &["--json"])).unwrap();
    assert_eq!((&row["tokens"], &row["exact"], &row["picodollars"]), (&3.into(), &true.into(), &0.into()));
    let missing = run(folder.path(), &["count", "-m", "local:none.gguf", "the"], &[]);
    let (_, errors) = texts(&missing);
    assert!(!missing.status.success() && errors.contains("relative to the current folder"), "{errors}");
}

#[test]
fn doctor_says_what_models_can_use() {
    let folder = team(TEAM);
    let line = |variables: &[(&str, &str)]| {
        let (out, errors) = texts(&run(folder.path(), &["doctor"], variables));
        let line = out.lines().find_map(|line| line.trim().strip_prefix("local "));
        line.unwrap_or_else(|| panic!("{out}{errors}")).trim().to_owned()
    };
    let variables =
        [("RAYON_NUM_THREADS", "3"), ("POLYLOGUE_LOCAL_MEMORY", "512"), ("POLYLOGUE_LOCAL_WINDOW", "1000")];
    let expected = "built in: 3 threads, at most 512 MiB of memory, context windows of at most 1000 tokens";
    assert_eq!(line(&variables), expected);
    assert!(line(&[]).contains("at most 8192 tokens"));
    let much = "`POLYLOGUE_LOCAL_MEMORY` must be a number of MiB, at least 1, not `much`";
    assert!(line(&[("POLYLOGUE_LOCAL_MEMORY", "much")]).contains(much));
    let none = "`POLYLOGUE_LOCAL_WINDOW` must be a number of tokens, at least 64, not `0`";
    assert!(line(&[("POLYLOGUE_LOCAL_WINDOW", "0")]).contains(none));
}

#[test]
fn doctor_and_a_run_say_what_a_model_takes_before_it_is_loaded() {
    let folder = team(TEAM);
    let small = [("POLYLOGUE_LOCAL_MEMORY", "512"), ("POLYLOGUE_LOCAL_WINDOW", "512")];
    let of_model = |arguments: &[&str]| {
        let (out, errors) = texts(&run(folder.path(), arguments, &small));
        let after = out.split_once("\n  local:").unwrap_or_else(|| panic!("{out}{errors}")).1;
        after.lines().skip(1).take(4).map(str::to_owned).collect::<Vec<String>>()
    };
    let by_team = of_model(&["doctor", "teams/pair.yaml"]);
    let [takes, can @ ..] = &*by_team else { panic!("{by_team:?}") };
    let numbers = "4 conversations at a time), context window of 512 tokens";
    assert!(takes.starts_with("    in the process: at most ") && takes.ends_with(numbers), "{takes}");
    assert_eq!(can, ["    tools      yes", "    schema     yes", "    JSON mode  yes"]);
    // Without a team its path is relative to the current folder.
    assert_eq!(of_model(&["doctor", "-m", "local:teams/models/tiny.gguf"]), by_team);
    let (_, errors) = texts(&run(folder.path(), &["run", "teams/pair.yaml"], &small));
    let said = takes.replace("    in the process", "`local:models/tiny.gguf`");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&errors).contains(&words(&said)), "{said}\n{errors}");
    std::fs::write(folder.path().join("teams/models/tiny.gguf"), "no model").unwrap();
    let foreign = of_model(&["doctor", "teams/pair.yaml"]).concat();
    assert!(foreign.contains("cannot be used: ") && foreign.contains("is not a GGUF file"), "{foreign}");
}

#[test]
fn a_file_outside_of_the_folder_of_the_team_must_be_allowed() {
    let folder = team(&TEAM.replace("local:models/tiny.gguf", "local:../elsewhere.gguf"));
    Tiny::default().write(folder.path(), "elsewhere.gguf");
    let refused = run(folder.path(), &["run", "teams/pair.yaml"], &[]);
    let (_, errors) = texts(&refused);
    assert!(!refused.status.success() && errors.contains("--allow readable"), "{errors}");
    let (out, _) = texts(&run(folder.path(), &["doctor", "teams/pair.yaml"], &[]));
    assert!(out.contains("cannot be used: its file is outside of the folder of the team file"), "{out}");
    let allowed = run(folder.path(), &["run", "teams/pair.yaml", "--allow", "readable"], &[]);
    let (out, errors) = texts(&allowed);
    assert_eq!(allowed.status.code(), Some(LIMIT), "{out}\n{errors}");
}
