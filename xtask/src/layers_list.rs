//! Lists the modules of crates by layer.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::checks::modules::crates;
use crate::modules::Level;
use crate::repo::Repo;

/// The modules of the crate `only`, or of every crate, from the bottom up. `None` if there is no such crate.
pub(crate) fn list(repo: &Repo, only: Option<&str>) -> Option<String> {
    let mut text = String::new();
    for (name, tree) in crates(repo).into_iter().filter(|(name, _)| only.is_none_or(|only| only == name)) {
        let _ = writeln!(text, "{name}, from the bottom up");
        for level in tree.levels().iter().filter(|level| level.modules.len() > 1) {
            write(&mut text, level);
        }
        text.push('\n');
    }
    (!text.is_empty()).then(|| text.trim_end().to_owned() + "\n")
}

fn write(text: &mut String, level: &Level) {
    let indent = if level.within.is_empty() { "  " } else { "      " };
    if !level.within.is_empty() {
        let _ = writeln!(text, "    {}", level.within);
    }
    for (number, layer) in (1..).zip(level.layers()) {
        let groups: Vec<String> = layer.iter().map(group).collect();
        let _ = writeln!(text, "{indent}{number:>2}  {}", groups.join(", "));
    }
}

/// A module, or those in a circle.
fn group(modules: &BTreeSet<String>) -> String {
    let names: Vec<&str> = modules.iter().map(String::as_str).collect();
    match names.as_slice() {
        [name] => (*name).to_owned(),
        circle => format!("({})", circle.join(" <-> ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::repo;

    #[test]
    fn modules_are_listed_from_the_bottom_up() {
        let repo = repo(&[
            ("c/Cargo.toml", "[package]\nname = \"c\"\n"),
            ("c/src/lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\npub use a::A;"),
            ("c/src/a.rs", "use crate::b::B;\npub struct A(B);"),
            ("c/src/b.rs", "mod x;\nmod y;\npub struct B;"),
            ("c/src/b/x.rs", "use super::B;\npub struct X(B);"),
            ("c/src/b/y.rs", "use super::x::X;"),
            ("c/src/c.rs", "pub struct C(crate::d::D);"),
            ("c/src/d.rs", "pub struct D(Option<Box<crate::c::C>>);"),
        ]);
        let wanted = "c, from the bottom up\n   1  b, (c <-> d)\n   2  a\n    b\n       1  self\n       2  x\n       3  y\n";
        assert_eq!(list(&repo, Some("c")).unwrap(), wanted);
        assert_eq!(list(&repo, None).unwrap(), wanted);
        assert_eq!(list(&repo, Some("d")), None);
    }
}
