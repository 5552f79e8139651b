//! The recipes of docs/tools.md that make a function a tool, run by the program exactly as the page has them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use polylogue_test::skip::mcp_servers;

use crate::home::Home;

/// The `nth` program and the `nth` team in the section.
fn recipe(nth: usize) -> (String, String) {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools.md")).unwrap();
    let section = page.split("\n## ").find(|section| section.starts_with("Your own functions")).unwrap();
    let block = |language: &str| {
        let fence = format!("```{language}\n");
        section.split(&fence).nth(nth).unwrap().split("```").next().unwrap().to_owned()
    };
    (block("python"), block("yaml"))
}

/// Runs the `nth` recipe, in which the model calls `tool` for 80 and 0.25, and then needs 100.
fn run(home: &Home, nth: usize, tool: &str, options: &[&str]) {
    let (program, team) = recipe(nth);
    home.file("vat.py", &program);
    let script = format!(
        "script:\n  - Writer: {{calls: [{{tool: {tool}, args: {{net: 80, rate: 0.25}}}}]}}\n  - Writer: {{say: Done., expect: {{last: \"100.0\"}}}}\n"
    );
    home.file("team.yaml", &format!("{team}{script}"));
    let checked = home.run(&["check", "team.yaml"]).ok();
    assert!(!checked.err.contains("warning"), "{}", checked.err);
    let ran = home.run(&[&["run", "team.yaml"], options].concat()).ok();
    assert!(ran.out.contains("100.0"), "{}\n{}", ran.out, ran.err);
}

#[test]
fn a_program_is_a_tool_in_the_sandbox() {
    if !crate::pictures::can_enclose() {
        return;
    }
    run(&Home::new(), 1, "add_vat", &[]);
}

#[test]
fn a_function_is_a_tool_of_an_mcp_server() {
    let Some(reference) = mcp_servers(env!("CARGO_TARGET_TMPDIR")) else { return };
    let libraries = reference.join("python");
    // A virtual environment in small: `python3` is the first one of the path, and has the library.
    let home = Home::new();
    fs::create_dir(home.path("bin")).unwrap();
    let python = home.command("sh", &["-c", "command -v python3"]).output().unwrap().stdout;
    let python = String::from_utf8(python).unwrap();
    let script = format!("#!/bin/sh\nPYTHONPATH='{}' exec {} \"$@\"\n", libraries.display(), python.trim());
    home.file("bin/python3", &script);
    fs::set_permissions(home.path("bin/python3"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", home.path("bin").display(), std::env::var("PATH").unwrap());
    let home = home.var("PATH", &path);
    run(&home, 2, "vat_add_vat", &["--allow", "mcp"]);
}
