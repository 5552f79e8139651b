//! How long files, functions and modules of tests are.

use std::fmt;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, Signature};

use crate::finding::Finding;
use crate::repo::Repo;
use crate::source::Source;

const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 70;
const TEST_MODULE_LINES: usize = 200;
/// Functions should mostly be no longer than this.
const SHORT_LINES: usize = 20;

/// How long functions are that are no tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Functions {
    all: usize,
    long: usize,
}

impl fmt::Display for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { all, long } = *self;
        let per_mille = (long * 1000).checked_div(all).unwrap_or_default();
        let (percent, tenth) = (per_mille / 10, per_mille % 10);
        write!(f, "functions: {all}, {long} of them ({percent}.{tenth} %) over {SHORT_LINES} lines")
    }
}

/// Counts the functions.
pub(crate) fn functions(repo: &Repo) -> Functions {
    let mut count = Functions::default();
    for function in repo.sources.iter().flat_map(all_functions) {
        count.all += 1;
        count.long += usize::from(function.lines > SHORT_LINES);
    }
    count
}

pub(super) fn check(repo: &Repo) -> Vec<Finding> {
    repo.sources.iter().flat_map(of_one_file).collect()
}

fn of_one_file(source: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut add = |line, what: String, limit: usize, hint| {
        found.push(Finding::new(&source.file, line, format!("{what}; the limit is {limit}"), hint));
    };
    if source.lines > FILE_LINES {
        let hint = "one purpose per file: split it, or put its tests into a separate file";
        add(FILE_LINES + 1, format!("the file has {} lines", source.lines), FILE_LINES, hint);
    }
    for Function { name, line, lines } in all_functions(source) {
        if lines > FUNCTION_LINES {
            let hint = "give parts of it names of their own";
            add(line, format!("the function `{name}` has {lines} lines"), FUNCTION_LINES, hint);
        }
    }
    for (line, lines) in &source.test_modules {
        if *lines > TEST_MODULE_LINES {
            let hint =
                "put the tests into a separate file: `#[cfg(test)] #[path = \"foo_tests.rs\"] mod tests;`";
            add(*line, format!("the module of tests has {lines} lines"), TEST_MODULE_LINES, hint);
        }
    }
    found
}

struct Function {
    name: String,
    line: usize,
    lines: usize,
}

/// From `fn` to the closing brace; documentation and attributes do not count.
fn all_functions(source: &Source) -> Vec<Function> {
    let mut visitor = Collector::default();
    visitor.visit_file(&source.code);
    visitor.0
}

#[derive(Default)]
struct Collector(Vec<Function>);

impl Collector {
    fn add(&mut self, signature: &Signature, body: &Block) {
        let (first, last) = (signature.span().start().line, body.span().end().line);
        self.0.push(Function { name: signature.ident.to_string(), line: first, lines: last - first + 1 });
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.add(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{brief, repo};

    /// A function of `lines` lines.
    fn function(lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2))
    }

    fn found(text: &str) -> Vec<String> {
        brief(&check(&repo(&[("c/src/lib.rs", text)])))
    }

    #[test]
    fn a_long_file_is_found() {
        assert!(found(&"// a\n".repeat(500)).is_empty());
        let flaw = "c/src/lib.rs:501: the file has 501 lines; the limit is 500";
        assert_eq!(found(&"// a\n".repeat(501)), [flaw]);
    }

    #[test]
    fn a_long_function_is_found_wherever_it_is() {
        assert!(found(&function(70)).is_empty());
        let (long, flaw) = (function(71), "the function `f` has 71 lines; the limit is 70");
        for (before, line) in [
            ("", 1),
            ("impl A {\n", 2),
            ("trait A {\n", 2),
            ("fn g() {\n", 2),
            ("mod a {\n/// b\n#[inline]\npub ", 4),
        ] {
            let after = if before.is_empty() { "" } else { "}" };
            let all = found(&format!("{before}{long}{after}"));
            assert!(all.contains(&format!("c/src/lib.rs:{line}: {flaw}")), "{before}: {all:?}");
        }
    }

    #[test]
    fn functions_of_tests_may_be_long_but_not_their_module() {
        let text = format!("\n#[cfg(test)]\nmod tests {{\n{}}}\n", function(197));
        assert!(found(&text).is_empty(), "{:?}", found(&text));
        let text = format!("\n#[cfg(test)]\nmod tests {{\n{}}}\n", function(198));
        assert_eq!(found(&text), ["c/src/lib.rs:2: the module of tests has 201 lines; the limit is 200"]);
    }

    #[test]
    fn functions_over_twenty_lines_are_counted() {
        let text = format!("{}{}{}", function(20), function(21), "#[test]\nfn t() {}\ntrait A { fn a(); }\n");
        let count = functions(&repo(&[("c/src/lib.rs", &text)]));
        assert_eq!(count, Functions { all: 2, long: 1 });
        assert_eq!(count.to_string(), "functions: 2, 1 of them (50.0 %) over 20 lines");
        assert_eq!(functions(&repo(&[])).to_string(), "functions: 0, 0 of them (0.0 %) over 20 lines");
    }
}
