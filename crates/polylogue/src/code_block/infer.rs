//! Infers the language of a block without a tag.
//!
//! A wrong guess runs prose or output as code, so only what clearly reads like a program counts.

/// `python` or `sh`, if `code` reads like that.
pub(super) fn language(code: &str) -> Option<&'static str> {
    if is_command(code) {
        Some("sh")
    } else if is_python(code) {
        Some("python")
    } else {
        None
    }
}

fn is_command(code: &str) -> bool {
    let code = code.trim_start();
    let first = code.split_whitespace().next().unwrap_or_default();
    let has_more = code.len() > first.len();
    let is_shebang = first.starts_with("#!") && code.lines().next().is_some_and(|line| line.ends_with("sh"));
    is_shebang || matches!(first, "pip" | "pip3" | "python" | "python3") && has_more
}

/// Whether every statement looks like Python.
fn is_python(code: &str) -> bool {
    let Some(statements) = statements(code) else { return false };
    !statements.is_empty() && statements.iter().all(|statement| is_statement(statement))
}

/// The logical lines of `code`, without comments, with strings as `""`, joined across brackets and backslashes. `None`
/// when a bracket or a string stays open.
fn statements(code: &str) -> Option<Vec<String>> {
    let (mut found, mut line, mut depth) = (Vec::new(), String::new(), 0_usize);
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..)?;
        match c {
            '#' => rest = rest.get(rest.find('\n').unwrap_or(rest.len())..)?,
            '"' | '\'' => {
                rest = after_string(c, rest)?;
                line.push_str("\"\"");
            }
            '\\' if rest.starts_with('\n') => rest = rest.get(1..)?,
            '\n' if depth == 0 => found.push(std::mem::take(&mut line)),
            '\n' => line.push(' '),
            '(' | '[' | '{' => {
                depth += 1;
                line.push(c);
            }
            ')' | ']' | '}' => {
                depth = depth.checked_sub(1)?;
                line.push(c);
            }
            c => line.push(c),
        }
    }
    found.push(line);
    found.retain(|line| !line.trim().is_empty());
    (depth == 0).then_some(found)
}

/// The text after a string that started with `quote`.
fn after_string(quote: char, rest: &str) -> Option<&str> {
    let triple: String = std::iter::repeat_n(quote, 3).collect();
    let (end, rest) = match rest.strip_prefix(triple.get(1..)?) {
        Some(rest) => (triple.as_str(), rest),
        None => (triple.get(..1)?, rest),
    };
    let mut at = 0;
    loop {
        let tail = rest.get(at..)?;
        if tail.starts_with(end) {
            return tail.get(end.len()..);
        }
        let c = tail.chars().next()?;
        if c == '\n' && end.len() == 1 {
            return None;
        }
        at += c.len_utf8();
        if c == '\\' {
            at += rest.get(at..)?.chars().next()?.len_utf8();
        }
    }
}

fn is_statement(line: &str) -> bool {
    let line = line.trim();
    let (word, rest) = line.split_at(line.find(|c: char| !is_word(c)).unwrap_or(line.len()));
    let rest = rest.trim();
    match word {
        "def" | "class" | "if" | "elif" | "for" | "while" | "with" | "except" | "async" | "match"
        | "case" => line.contains(':') && line.len() > word.len() + 1,
        "else" | "try" | "finally" => rest.starts_with(':'),
        "import" => !rest.is_empty() && rest.split(',').all(|name| is_import(name.trim())),
        "from" => {
            rest.split_once(" import ").is_some_and(|(module, _)| is_path(module.trim_start_matches('.')))
        }
        "pass" | "break" | "continue" => rest.is_empty(),
        "return" | "raise" | "yield" => rest.is_empty() || !rest.contains(' ') || is_expression(rest),
        "del" | "global" | "nonlocal" => rest.split(',').all(|name| is_path(name.trim())),
        "assert" | "await" | "lambda" => is_expression(rest),
        _ => line.starts_with('@') || is_assignment(line) || is_call(line),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_path(text: &str) -> bool {
    text.is_empty()
        || text
            .split('.')
            .all(|name| name.chars().all(is_word) && name.chars().next().is_some_and(|c| !c.is_numeric()))
}

fn is_import(name: &str) -> bool {
    !name.is_empty()
        && name.split_once(" as ").map_or_else(|| is_path(name), |(a, b)| is_path(a) && is_path(b))
}

/// `a = 1`, `a.b[0] += f(x)`, `a, b = b, a`, `a: int = 1`.
fn is_assignment(line: &str) -> bool {
    let Some((target, value)) = line.split_once('=') else { return false };
    let target = target.trim_end_matches(['+', '-', '*', '/', '%', '|', '&', '^', '@', '<', '>', ':']).trim();
    let target = target.split_once(':').map_or(target, |(name, _)| name).trim();
    let names = target.trim_matches(['(', ')', '[', ']']).split(',').map(str::trim);
    let is_target = |name: &str| {
        let name = name.trim_start_matches('*');
        let name = name.split(['[', '(']).next().unwrap_or_default();
        !name.is_empty() && is_path(name)
    };
    !value.starts_with('=') && !target.is_empty() && !value.trim().is_empty() && names.clone().all(is_target)
}

/// `f(x)`, `a.b(x).c`, `"".join(x)`.
fn is_call(line: &str) -> bool {
    let Some((callee, _)) = line.split_once('(') else { return line == "\"\"" };
    let callee = callee.split('[').next().unwrap_or_default();
    let callee = callee.strip_prefix("\"\".").unwrap_or(callee);
    let is_closed = line.ends_with([')', ']']) || line.trim_end_matches(is_word).ends_with('.');
    !callee.is_empty() && is_path(callee) && is_closed
}

/// An operator, a call, or a single name: what can follow `return`.
fn is_expression(text: &str) -> bool {
    is_path(text) || text.contains(['(', '[', '{', '+', '-', '*', '/', '<', '>', '=', '"', ','])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_code_is_inferred_as_python() {
        for code in [
            "print(1)",
            "import os, sys\nfrom math import pi as p\nprint(pi)",
            "x = 1\ny: int = x + 2\nx, y = y, x\na.b['c'] += 1",
            "# only\nfor i in range(3):\n    print(i)\nelse:\n    pass",
            "@cache\ndef f(a,\n      b):\n    '''What\n    it does.'''\n    return a + b\n\nf(1, 2)",
            "text = \"\"\"\nAny prose, in a string.\n\"\"\"\nprint(text)",
            "with open('a') as f:\n    data = f.read()",
            "if a == b: print(a)",
            "\"-\".join(['a'])",
            "class A(B):\n    x = 1",
        ] {
            assert_eq!(language(code), Some("python"), "{code}");
        }
    }

    #[test]
    fn command_lines_are_shell() {
        for code in [
            "pip install numpy",
            "python3 main.py",
            "python main.py --all",
            "#!/bin/sh\nls",
            "#!/usr/bin/env bash\nls",
        ] {
            assert_eq!(language(code), Some("sh"), "{code}");
        }
    }

    #[test]
    fn prose_output_and_other_languages_are_nothing() {
        for code in [
            "Hello, world.",
            "42",
            "total 12\ndrwxr-xr-x 2 a b",
            "pip",
            "The result (see above) is fine",
            "let x = 1;",
            "fn main() { println!(\"hi\"); }",
            "{\"a\": 1}",
            "SELECT * FROM t WHERE a = 1",
            "function f() { return 1; }",
            "print('open",
            "f(1))",
            "#include <stdio.h>",
            "",
        ] {
            assert_eq!(language(code), None, "{code}");
        }
    }
}
