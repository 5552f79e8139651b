use super::*;
use crate::fixture::{brief, repo};

/// What is found in the crate `c` with these files of `src`.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let mut all: Vec<(String, &str)> =
        files.iter().map(|(file, text)| (format!("c/src/{file}"), *text)).collect();
    all.push(("c/Cargo.toml".into(), "[package]\nname = \"c\"\n"));
    let all: Vec<(&str, &str)> = all.iter().map(|(file, text)| (file.as_str(), *text)).collect();
    brief(&check(&repo(&all)))
}

const CIRCLE: [(&str, &str); 3] = [
    ("lib.rs", "mod a;\nmod b;\npub use a::A;\npub use b::B;"),
    ("a.rs", "use crate::B;\npub struct A(B);"),
    ("b.rs", "pub struct B;\nfn f() { println!(\"{}\", crate::a::A::LIMIT) }"),
];

#[test]
fn arrows_in_one_direction_are_right() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;"),
        ("a.rs", "mod inner;\npub use inner::helper;\npub struct A;"),
        // Re-exported by the file of its folder, which does not use it.
        ("a/inner.rs", "use super::A;\npub fn helper(_: A) {}"),
        ("b.rs", "use crate::{A, c::C};\nimpl A { fn f(self) { self.g() } }"),
        ("c.rs", "pub struct C;\nimpl crate::A { fn g(self) { self.f() } }"),
    ];
    assert!(found(&files).is_empty(), "{:?}", found(&files));
}

#[test]
fn a_circle_through_reexports_and_macros_is_found() {
    let wanted = "c/src/a.rs:1: `c`, crate: a, b use each other in a circle\
                  \n    a -> b: `B` at c/src/a.rs:1\
                  \n    b -> a: `LIMIT` at c/src/b.rs:2";
    assert_eq!(found(&CIRCLE), [wanted]);
}

#[test]
fn a_circle_between_subtrees_is_found_at_their_level() {
    let files = [
        ("lib.rs", "mod a { mod x { use crate::b::Y; pub struct X; } pub use x::X; }\nmod b;"),
        ("b.rs", "mod z;\npub struct Y;"),
        ("b/z.rs", "type T = crate::a::X;"),
    ];
    let found = found(&files);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("c/src/lib.rs:1: `c`, crate: a, b use each other"), "{found:?}");
}

#[test]
fn a_circle_between_a_file_and_its_folder_is_found() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a.rs", "mod x;\npub struct A;\nfn f() { x::g() }"),
        ("a/x.rs", "use super::*;\npub fn g() {}\nfn h(_: A) {}"),
    ];
    let found = found(&files);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("c/src/a.rs:3: `c`, a: self, x use each other in a circle"), "{found:?}");
}

#[test]
fn a_file_that_reexports_and_uses_its_folder_is_above_it() {
    let folder = ("a/x.rs", "pub struct A(super::B);\npub fn g() {}");
    let files =
        [("lib.rs", "mod a;"), ("a.rs", "mod x;\npub use x::g;\nfn f() { g() }\npub struct B;"), folder];
    assert_eq!(found(&files).len(), 1, "{:?}", found(&files));
    let files = [("lib.rs", "mod a;"), ("a.rs", "mod x;\npub use x::g;\npub struct B;"), folder];
    assert!(found(&files).is_empty(), "{:?}", found(&files));
}

#[test]
fn the_kernel_keeps_its_order() {
    let files = [
        ("k/Cargo.toml", "[package]\nname = \"polylogue-core\"\n"),
        ("k/src/lib.rs", "mod data;\nmod log;\nmod extra;"),
        ("k/src/data.rs", "use crate::log::Log;"),
        ("k/src/log.rs", "pub struct Log;"),
        ("k/src/extra.rs", ""),
    ];
    let wanted = [
        "xtask/src/checks/modules.rs:1: the module `extra` of the kernel is in no layer",
        "k/src/data.rs:1: the layer `data` of the kernel uses `Log` of `log`, which is above it",
    ];
    assert_eq!(brief(&check(&repo(&files))), wanted);
}

#[test]
fn tests_are_no_uses() {
    let files = [
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "pub struct A;\n#[cfg(test)]\nmod tests { use crate::b::B; }"),
        ("b.rs", "use crate::a::A;\npub struct B(A);"),
    ];
    assert!(found(&files).is_empty(), "{:?}", found(&files));
}
