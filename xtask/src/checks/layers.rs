//! The arrows between crates: who may depend on whom.

use crate::finding::Finding;
use crate::manifest::{Dependency, Manifest, workspace_features};
use crate::repo::Repo;

const CORE: &str = "polylogue-core";

/// The layers, lowest first. A crate may depend on crates of lower layers, not on its own, except as [`is_allowed_sibling`] says.
const LAYERS: [&[&str]; 11] = [
    &["polylogue-config-derive", "polylogue-files"],
    &[CORE, "polylogue-macros", "polylogue-sandbox", "polylogue-http", "polylogue-config"],
    // Types of the native API, for servers and clients.
    &["polylogue-memory", "polylogue-wire"],
    &[
        "polylogue-models", "polylogue-tools", "polylogue-mcp", "polylogue-store", "polylogue-test",
        "polylogue-client",
    ],
    // Reads replies as the models of local servers write them; is made of the parts of other stores.
    &["polylogue-local", "polylogue-postgres"],
    // Re-exports models and stores, so that a program needs one dependency.
    &["polylogue"],
    &["polylogue-team"],
    &["polylogue-import", "polylogue-runtime"],
    &["polylogue-server"],
    &["polylogue-cli"],
    // Nothing is above these, so nothing depends on them.
    &["polylogue-bench", "polylogue-examples", "polylogue-fuzz", "xtask"],
];

/// What the kernel may use: nothing that does IO, opens sockets or needs a runtime.
const KERNEL_MAY_USE: [&str; 14] = [
    "base64", "blake3", "derive_more", "futures-util", "imagesize", "miniz_oxide", "schemars", "serde",
    "serde_json", "strsim", "thiserror", "tokio", "tracing", "unicode-normalization",
];

/// The features of tokio that need no runtime.
const KERNEL_TOKIO: [&str; 1] = ["sync"];

const HINT: &str = "core, macros, sandbox, http, files <- memory, wire <- models, tools, mcp, store, client, test <- local, postgres <- polylogue <- team <- import, runtime <- server <- cli; see ARCHITECTURE.md";
const KERNEL_HINT: &str = "the kernel does no IO and needs no runtime: put this into a crate above it";

pub(super) fn check(repo: &Repo) -> Vec<Finding> {
    let root = repo.text("Cargo.toml").unwrap_or_default();
    let mut found = Vec::new();
    for krate in &repo.crates {
        match layer(&krate.name) {
            Some(layer) => found.extend(arrows(krate, layer)),
            None => found.push(Finding::new(
                &krate.file,
                1,
                format!("the crate `{}` is in no layer", krate.name),
                "give it a place in `LAYERS` of xtask/src/checks/layers.rs",
            )),
        }
        if krate.name == CORE {
            found.extend(kernel(krate, root));
        }
    }
    found
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

fn arrows(krate: &Manifest, own: usize) -> Vec<Finding> {
    let wrong = krate.dependencies.iter().filter(|dependency| match layer(&dependency.name) {
        None => false,
        // The binary is run, not linked.
        Some(_) if dependency.name == "polylogue-cli" => true,
        Some(theirs) => theirs >= own && !is_allowed_sibling(&krate.name, dependency),
    });
    let flaw = |dependency: &Dependency| format!("`{}` may not depend on `{}`", krate.name, dependency.name);
    wrong.map(|dependency| Finding::new(&krate.file, dependency.line, flaw(dependency), HINT)).collect()
}

/// Whether `name` may depend on this crate although it is in no lower layer.
fn is_allowed_sibling(name: &str, dependency: &Dependency) -> bool {
    // Tests of one crate may stand on another of its layer: a chat is tested with scripted models and a real store.
    dependency.dev
        && (["polylogue-test", "polylogue"].contains(&dependency.name.as_str())
            || layer(&dependency.name) == layer(name))
}

fn kernel(krate: &Manifest, root: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for dependency in krate.dependencies.iter().filter(|dependency| !dependency.dev) {
        let mut add = |flaw| found.push(Finding::new(&krate.file, dependency.line, flaw, KERNEL_HINT));
        if layer(&dependency.name).is_none() && !KERNEL_MAY_USE.contains(&dependency.name.as_str()) {
            add(format!("the kernel may not depend on `{}`", dependency.name));
        }
        if dependency.name == "tokio" {
            let features = dependency.features.iter().cloned().chain(workspace_features(root, "tokio"));
            for feature in features.filter(|feature| !KERNEL_TOKIO.contains(&feature.as_str())) {
                add(format!("the kernel may not use the feature `{feature}` of `tokio`"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{brief, repo};

    fn found(name: &str, dependencies: &str) -> Vec<String> {
        let text = format!("[package]\nname = \"{name}\"\n{dependencies}");
        brief(&check(&repo(&[("c/Cargo.toml", &text)])))
    }

    #[test]
    fn arrows_that_point_down_are_right() {
        for (name, dependencies) in [
            (
                "polylogue-core",
                "[dependencies]\nserde = \"1\"\ntokio = { version = \"1\", features = [\"sync\"] }",
            ),
            ("polylogue-core", "[dev-dependencies]\ntokio = { version = \"1\", features = [\"full\"] }"),
            (
                "polylogue-store",
                "[dependencies]\npolylogue-core = \"0\"\n[dev-dependencies]\npolylogue-test = \"0\"",
            ),
            ("polylogue-tools", "[dev-dependencies]\npolylogue = \"0\""),
            ("polylogue", "[dependencies]\npolylogue-store = \"0\"\npolylogue-models = \"0\""),
            ("polylogue-team", "[dependencies]\npolylogue-tools = \"0\"\npolylogue = \"0\""),
            ("polylogue-cli", "[dependencies]\npolylogue-server = \"0\"\npolylogue-core = \"0\""),
            (
                "polylogue-server",
                "[dependencies]\npolylogue-wire = \"0\"\n[dev-dependencies]\npolylogue-client = \"0\"",
            ),
            ("polylogue-bench", "[dependencies]\npolylogue-server = \"0\""),
        ] {
            assert!(found(name, dependencies).is_empty(), "{:?}", found(name, dependencies));
        }
    }

    #[test]
    fn arrows_that_point_up_or_aside_are_found() {
        for (name, dependency) in [
            ("polylogue-core", "polylogue"),
            ("polylogue-models", "polylogue-tools"),
            ("polylogue-models", "polylogue-test"),
            ("polylogue-models", "polylogue"),
            ("polylogue-macros", "polylogue"),
            ("polylogue-macros", "polylogue-core"),
            ("polylogue-store", "polylogue-team"),
            ("polylogue-team", "polylogue-server"),
            ("polylogue-server", "polylogue-cli"),
            ("polylogue-client", "polylogue-server"),
            ("polylogue-wire", "polylogue-runtime"),
            ("polylogue-bench", "polylogue-cli"),
            ("polylogue-cli", "xtask"),
        ] {
            let flaw = format!("c/Cargo.toml:4: `{name}` may not depend on `{dependency}`");
            assert_eq!(found(name, &format!("[dependencies]\n{dependency} = \"0\"")), [flaw]);
        }
    }

    #[test]
    fn renamed_target_and_development_dependencies_are_no_way_around() {
        let renamed =
            "[target.'cfg(unix)'.dependencies]\nx = { package = \"polylogue-cli\", version = \"0\" }";
        let flaw = "c/Cargo.toml:4: `polylogue-team` may not depend on `polylogue-cli`";
        assert_eq!(found("polylogue-team", renamed), [flaw]);
        assert_eq!(found("polylogue-team", "[dev-dependencies]\npolylogue-cli = \"0\""), [flaw]);
    }

    #[test]
    fn the_kernel_may_not_do_io() {
        let dependencies =
            "[dependencies]\nreqwest = \"0\"\ntokio = { version = \"1\", features = [\"sync\", \"net\"] }";
        let wanted = [
            "c/Cargo.toml:4: the kernel may not depend on `reqwest`",
            "c/Cargo.toml:5: the kernel may not use the feature `net` of `tokio`",
        ];
        assert_eq!(found("polylogue-core", dependencies), wanted);
    }

    #[test]
    fn features_that_the_workspace_gives_the_kernel_count() {
        let files = [
            ("Cargo.toml", "[workspace.dependencies]\ntokio = { version = \"1\", features = [\"rt\"] }"),
            ("c/Cargo.toml", "[package]\nname = \"polylogue-core\"\n[dependencies]\ntokio.workspace = true"),
        ];
        let flaw = "c/Cargo.toml:4: the kernel may not use the feature `rt` of `tokio`";
        assert_eq!(brief(&check(&repo(&files))), [flaw]);
    }

    #[test]
    fn a_crate_without_a_layer_is_found() {
        assert_eq!(
            found("polylogue-extra", ""),
            ["c/Cargo.toml:1: the crate `polylogue-extra` is in no layer"]
        );
    }
}
