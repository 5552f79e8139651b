//! Commands that are declared as data.

use polylogue_core::Tool;
use polylogue_tools::code::{Limits, Sandbox};
use polylogue_tools::command::{Argument, Command, Declaration, Kind, Words};
use serde_json::{Value, json};

use crate::{Dir, done, failed, sandbox};

fn declared(command: Value, arguments: Value) -> Declaration {
    let value = json!({"name": "test", "description": "Tests.", "command": command, "arguments": arguments});
    serde_json::from_value(value).unwrap()
}

/// A command that prints its words, each in brackets on its own line.
fn words(sandbox: &Sandbox, rest: Value, arguments: Value) -> Command {
    let mut command = vec![json!("printf"), json!("[%s]\\n"), json!("0")];
    command.extend(rest.as_array().unwrap().iter().cloned());
    Command::new(declared(json!(command), arguments), sandbox.clone()).unwrap()
}

fn sorts() -> Value {
    json!({
        "name": {"type": "string", "description": "Who"},
        "count": {"type": "integer", "default": 3, "minimum": 1, "maximum": 9},
        "size": {"type": "number", "optional": true},
        "loud": {"type": "boolean", "optional": true},
        "tone": {"type": "string", "choices": ["warm", "cool"], "default": "warm"},
        "files": {"type": "strings", "optional": true, "description": "Which"},
    })
}

fn all_words() -> Value {
    json!([
        "Dear {name}",
        "--count={count}",
        {"when": "size", "words": ["--size", "{size}"]},
        {"when": "loud", "words": ["--loud"]},
        "{tone}",
        "{{x}}",
        "",
        "{files}",
        "size {size}"
    ])
}

#[tokio::test]
async fn arguments_take_their_places() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let tool = words(&sandbox, all_words(), sorts());
    let out = done(&tool, json!({"name": "Ann"})).await;
    assert_eq!(out, "[0]\n[Dear Ann]\n[--count=3]\n[warm]\n[{x}]\n[]");
    let all =
        json!({"name": "", "count": 9, "size": 1.5, "loud": true, "tone": "cool", "files": ["a b", "c", ""]});
    assert_eq!(
        done(&tool, all).await,
        "[0]\n[Dear ]\n[--count=9]\n[--size]\n[1.5]\n[--loud]\n[cool]\n[{x}]\n[]\n[a b]\n[c]\n[]\n[size 1.5]"
    );
    let out = done(&tool, json!({"name": "Ann", "size": null, "loud": false, "files": []})).await;
    assert_eq!(out, "[0]\n[Dear Ann]\n[--count=3]\n[warm]\n[{x}]\n[]");
}

// Whatever a model writes is a word, and nothing to a shell.
#[tokio::test]
async fn each_argument_is_one_shell_word() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let tool = words(&sandbox, json!(["<{text}>"]), json!({"text": {"type": "string"}}));
    for text in ["; touch x", "$(touch x)", "`touch x`", "a\nb", "'\" \\", "{text}", "%s", "*", "ä 💥", "--"]
    {
        let out = done(&tool, json!({"text": text})).await;
        assert_eq!(out, format!("[0]\n[<{text}>]"));
    }
    assert!(std::fs::read_dir(dir.work()).unwrap().next().is_none(), "nothing was made");
    let out = failed(&tool, json!({"text": "a\0b"})).await;
    assert_eq!(out, "`text` may not have a zero byte in it");
}

#[tokio::test]
async fn a_value_is_no_option_unless_it_may_be_one() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let text = || json!({"a": {"type": "string", "default": ""}, "b": {"type": "strings", "optional": true}});
    let refused = |name: &str| format!("`{name}` may not begin with `-`: it would be taken for an option");
    let tool = words(&sandbox, json!(["{a}", "{b}"]), text());
    assert_eq!(failed(&tool, json!({"a": "--output=x"})).await, refused("a"));
    assert_eq!(failed(&tool, json!({"b": ["x", "-o"]})).await, refused("b"));
    let tool = words(&sandbox, json!(["{a}{n}"]), json!({"a": {"type": "string"}, "n": {"type": "integer"}}));
    assert_eq!(failed(&tool, json!({"a": "", "n": -1})).await, refused("n"));
    assert_eq!(done(&tool, json!({"a": "x", "n": -1})).await, "[0]\n[x-1]");
    let tool = words(&sandbox, json!(["a={a}", "--", "{b}"]), text());
    assert_eq!(done(&tool, json!({"a": "-x", "b": ["-y"]})).await, "[0]\n[a=-x]\n[--]\n[-y]");
    let tool = words(&sandbox, json!(["{a}"]), json!({"a": {"type": "string", "may_be_option": true}}));
    assert_eq!(done(&tool, json!({"a": "-x"})).await, "[0]\n[-x]");
}

#[tokio::test]
async fn wrong_arguments_are_named_in_the_result() {
    let tool = words(&Sandbox::enclosed("never-made"), all_words(), sorts());
    let with = |name: &str, value: Value| {
        let mut args = json!({"name": "Ann"});
        args[name] = value;
        args
    };
    for (args, shown) in [
        (json!({}), "`name` is missing"),
        (with("name", json!(1)), "`name` must be a text, not 1"),
        (with("count", json!("3")), "`count` must be a whole number, not \"3\""),
        (with("count", json!(1.5)), "`count` must be a whole number, not 1.5"),
        (with("count", json!(0)), "`count` must be at least 1"),
        (with("count", json!(10)), "`count` must be at most 9"),
        (with("loud", json!("yes")), "`loud` must be `true` or `false`, not \"yes\""),
        (with("tone", json!("loud")), "`tone` must be one of \"warm\", \"cool\""),
        (with("files", json!("a")), "`files` must be a list of texts, not \"a\""),
        (
            with("file", json!("a")),
            "there is no argument `file`; there is `name`, `count`, `size`, `loud`, `tone`, `files`",
        ),
    ] {
        assert_eq!(failed(&tool, args).await, shown);
    }
}

#[tokio::test]
async fn the_result_of_a_command_is_its_output() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let run = |code: &str, sandbox: &Sandbox| {
        Command::new(declared(json!(["sh", "-c", code]), json!({})), sandbox.clone()).unwrap()
    };
    assert_eq!(done(&run("echo hi; echo ho >&2", &sandbox), json!({})).await, "hi\nho");
    assert_eq!(done(&run("true", &sandbox), json!({})).await, "(no output)");
    assert_eq!(failed(&run("echo no; exit 3", &sandbox), json!({})).await, "no\nExit code 3");
    assert_eq!(failed(&run("kill -9 $$", &sandbox), json!({})).await, "Ended by signal 9");
    let out = done(&run("echo made > a", &sandbox), json!({})).await;
    assert_eq!(out, "(no output)\n\nFiles written: `a` (5 bytes)");
    let limits = Limits { time: std::time::Duration::from_millis(300), ..Limits::default() };
    assert_eq!(failed(&run("sleep 1000", &sandbox.clone().limited(limits)), json!({})).await, "Timeout");
    let tool = Command::new(declared(json!(["no-such-program"]), json!({})), sandbox).unwrap();
    let out = failed(&tool, json!({})).await;
    assert_eq!(out, "there is no program `no-such-program` in /usr/local/bin, /usr/bin, /bin");
}

// It sees only its work directory; on the host, which has to be named, it sees what the user sees.
#[tokio::test]
async fn a_command_runs_in_the_sandbox_unless_the_host_is_allowed() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    dir.write("secret", "mine");
    let path = dir.0.join("secret").display().to_string();
    let reads = |sandbox: Sandbox| Command::new(declared(json!(["cat", path]), json!({})), sandbox).unwrap();
    let out = failed(&reads(sandbox), json!({})).await;
    assert!(out.contains("No such file"), "{out}");
    let host = reads(Sandbox::unsafe_host(dir.work()));
    assert!(host.sandbox().warning().is_some());
    assert_eq!(done(&host, json!({})).await, "mine");
}

#[test]
fn the_tool_specification_has_what_is_declared() {
    let mut declaration =
        declared(json!(["x", "{name}", "{count}", "{size}", "{loud}", "{tone}", "{files}"]), sorts());
    declaration.repeatable = true;
    let tool = Command::new(declaration.clone(), Sandbox::enclosed("work")).unwrap();
    let spec = tool.spec();
    assert_eq!((&*spec.name, &*spec.description, spec.repeatable), ("test", "Tests.", true));
    let expected = json!({
        "type": "object",
        "properties": {
            "count": {"type": "integer", "default": 3, "minimum": 1, "maximum": 9},
            "files": {"type": "array", "items": {"type": "string"}, "description": "Which"},
            "loud": {"type": "boolean"},
            "name": {"type": "string", "description": "Who"},
            "size": {"type": "number"},
            "tone": {"type": "string", "enum": ["warm", "cool"], "default": "warm"},
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    assert_eq!(spec.parameters, expected);
    // It is written as it was read.
    let written = serde_json::to_value(&declaration).unwrap();
    assert_eq!(serde_json::from_value::<Declaration>(written).unwrap(), declaration);
}

#[test]
fn declarations_that_contradict_themselves_are_refused() {
    let a = |more: Value| {
        let mut argument = json!({"type": "string"});
        argument.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"a": argument})
    };
    let plain = || a(json!({}));
    for (command, arguments, shown) in [
        (json!([]), json!({}), "its first word must be the program"),
        (json!([""]), json!({}), "its first word must be the program"),
        (json!([{"when": "a", "words": ["x"]}]), plain(), "its first word must be the program"),
        (json!(["{a}"]), plain(), "the program cannot come from an argument"),
        (json!(["x", "{b}"]), plain(), "there is no argument `b`; there is `a`"),
        (json!(["x", "{b}"]), json!({}), "there is no argument `b`; declare it in `arguments`"),
        (json!(["x", {"when": "b", "words": []}, "{a}"]), plain(), "there is no argument `b`; there is `a`"),
        (json!(["x"]), plain(), "the argument `a` is not used"),
        (
            json!(["x", "a}"]),
            json!({}),
            "`a}` has a brace that is no `{argument}`; write `{{` and `}}` for braces",
        ),
        (
            json!(["x", "{a b}"]),
            plain(),
            "`{a b}` has a brace that is no `{argument}`; write `{{` and `}}` for braces",
        ),
        (json!(["x", "y{a}"]), a(json!({"type": "strings"})), "`a` is a list, and needs its own word"),
        (json!(["x", "{a}"]), a(json!({"default": 1})), "the default of `a` must be a text, not 1"),
        (
            json!(["x", "{a}"]),
            a(json!({"default": "z", "choices": ["y"]})),
            "the default of `a` must be one of \"y\"",
        ),
        (json!(["x", "{a}"]), a(json!({"choices": [1]})), "`a` is a text, and the choice 1 is not"),
        (json!(["x", "{a}"]), a(json!({"minimum": 1})), "`a` is not a number, and has no minimum or maximum"),
    ] {
        let error = Command::new(declared(command, arguments), Sandbox::enclosed("work")).unwrap_err();
        assert_eq!(error.to_string(), format!("the command `test`: {shown}"));
    }
    // In Rust a declaration is a value as any other.
    let declaration = Declaration {
        name: "a b".into(),
        description: String::new(),
        command: vec![Words::One("x".into()), Words::One("{n}".into())],
        arguments: [("n".to_owned(), Argument::new(Kind::Integer, "How many"))].into(),
        repeatable: false,
        max_cost: None,
    };
    let error = Command::new(declaration, Sandbox::enclosed("work")).unwrap_err();
    assert!(error.to_string().ends_with("a name is 1 to 64 ASCII letters, digits, `_` and `-`"));
    let unknown = json!({"name": "x", "description": "", "command": ["x"], "shell": true});
    assert!(serde_json::from_value::<Declaration>(unknown).is_err(), "an unknown key is an error");
}

#[tokio::test]
async fn arguments_that_stand_in_many_places_are_refused_before_they_are_put_there() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let tool = words(&sandbox, json!(["{text}".repeat(50_000)]), json!({"text": {"type": "string"}}));
    // 5 GB otherwise.
    let out = failed(&tool, json!({"text": "x".repeat(100_000)})).await;
    assert_eq!(out, "the arguments are too long: at most 1048576 bytes are possible");
}
