//! Only the command-line program prints.

use proc_macro2::{Delimiter, TokenTree};

use crate::finding::Finding;
use crate::repo::Repo;
use crate::source::Source;

const MACROS: [&str; 5] = ["print", "println", "eprint", "eprintln", "dbg"];
const HANDLES: [&str; 4] = ["stdout", "stderr", "Stdout", "Stderr"];

/// Programs may print: the product's, the repository's own, and build scripts, which talk to cargo that way. Tests say when
/// they do not run.
const MAY_PRINT: [&str; 3] = ["crates/polylogue-cli/", "crates/polylogue-test/src/skip.rs", "xtask/"];
const MAY_PRINT_BELOW: [&str; 2] = ["examples", "benches"];

pub(super) fn check(repo: &Repo) -> Vec<Finding> {
    repo.sources.iter().filter(|source| !may_print(&source.file)).flat_map(of_one_file).collect()
}

fn may_print(file: &str) -> bool {
    let mut folders: Vec<&str> = file.split('/').collect();
    let name = folders.pop().unwrap_or_default();
    name == "build.rs"
        || MAY_PRINT.iter().any(|start| file.starts_with(start))
        || MAY_PRINT_BELOW.iter().any(|folder| folders.contains(folder))
}

fn of_one_file(source: &Source) -> Vec<Finding> {
    let tokens = source.tokens();
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        if let Some(what) = print_at(token, tokens.get(index + 1..).unwrap_or_default()) {
            found.push(Finding::new(
                &source.file,
                token.span().start().line,
                format!("`{what}` outside the command-line program"),
                "return it, or report it through an event or the log",
            ));
        }
    }
    found
}

/// What prints at `token`: a macro, or a handle that is named through `io`.
///
/// Goes by tokens and not by the syntax tree, because code inside macro calls has only tokens.
fn print_at(token: &TokenTree, rest: &[TokenTree]) -> Option<String> {
    let TokenTree::Ident(ident) = token else { return None };
    let name = ident.to_string();
    if MACROS.contains(&name.as_str()) {
        let called =
            matches!(rest, [TokenTree::Punct(bang), TokenTree::Group(_), ..] if bang.as_char() == '!');
        return called.then(|| format!("{name}!"));
    }
    let [TokenTree::Punct(first), TokenTree::Punct(second), what, ..] = rest else { return None };
    if name != "io" || first.as_char() != ':' || second.as_char() != ':' {
        return None;
    }
    handle(what).map(|handle| format!("io::{handle}"))
}

fn handle(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Ident(ident) => Some(ident.to_string()).filter(|name| HANDLES.contains(&name.as_str())),
        // `use std::io::{stdout, Write}`
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            group.stream().into_iter().find_map(|token| handle(&token))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{brief, repo};

    fn found(file: &str, text: &str) -> Vec<String> {
        brief(&check(&repo(&[(file, text)])))
    }

    #[test]
    fn printing_macros_are_found() {
        for (text, what) in [
            ("fn f() {\n print!(\"a\"); }", "print!"),
            ("fn f() {\n println!(); }", "println!"),
            ("fn f() {\n std::eprint!(\"a\"); }", "eprint!"),
            ("fn f() {\n eprintln!(\"a\") }", "eprintln!"),
            ("fn f() {\n dbg!(a); }", "dbg!"),
            ("fn f() {\n select! { a => println!(\"a\") } }", "println!"),
            ("macro_rules! a { () => {\n println!() } }", "println!"),
            ("fn f() {\n std::io::stdout().lock(); }", "io::stdout"),
            ("fn f() {\n tokio::io::stderr(); }", "io::stderr"),
            ("use\n std::io::{Write, stdout};", "io::stdout"),
            ("struct A(\n io::Stderr);", "io::Stderr"),
        ] {
            let flaw = format!("c/src/lib.rs:2: `{what}` outside the command-line program");
            assert_eq!(found("c/src/lib.rs", text), [flaw], "{text}");
        }
    }

    #[test]
    fn files_without_printing_macros_pass() {
        for text in [
            "/// `println!(\"a\")`\nfn f() { format!(\"a\") }",
            "fn f() { child.stdout(Stdio::piped()); let stderr = child.stderr; print != 1 }",
            "#[test] fn f() { println!() }",
            "use std::io::{Read, Write};",
        ] {
            assert!(found("c/src/lib.rs", text).is_empty(), "{:?}", found("c/src/lib.rs", text));
        }
    }

    #[test]
    fn programs_may_print() {
        for file in ["crates/polylogue-cli/src/main.rs", "xtask/src/main.rs", "c/examples/a.rs", "c/build.rs"]
        {
            assert!(found(file, "fn f() { println!() }").is_empty(), "{file}");
        }
        assert_eq!(found("crates/polylogue-client/src/lib.rs", "fn f() { println!() }").len(), 1);
    }
}
