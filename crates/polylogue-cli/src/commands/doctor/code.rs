//! The sandbox of code that agents run.

use polylogue_sandbox::{Measure, what_is_enforced};

/// The findings on code, each with its name.
pub(super) fn findings() -> Vec<(&'static str, String)> {
    let measures = what_is_enforced();
    let mut found: Vec<_> = measures.iter().map(|measure| (measure.name, of_measure(measure))).collect();
    let missing = measures.iter().any(|measure| measure.required && !measure.holds);
    #[cfg(unix)]
    found.push(("containers", containers()));
    if missing {
        let hint = "hint: code is refused until that is allowed, or a container or the unsafe host is asked for by name";
        found.push(("", hint.to_owned()));
    }
    found
}

fn of_measure(measure: &Measure) -> String {
    let Measure { holds, required, detail, .. } = measure;
    match (holds, required) {
        (true, _) => format!("yes: {detail}"),
        (false, true) => format!("no: {detail}"),
        (false, false) => format!("no, which is not needed: {detail}"),
    }
}

/// The engines that could run code instead.
#[cfg(unix)]
fn containers() -> String {
    let engines = ["docker", "podman"].map(|name| (name, polylogue_sandbox::Engine::new(name, "")));
    let there: Vec<String> = engines
        .iter()
        .filter(|(_, engine)| engine.path().is_ok())
        .map(|(name, engine)| match engine.answers() {
            Ok(version) => format!("`{name}` answers ({version})"),
            Err(_) => format!("`{name}` is installed, but does not answer"),
        })
        .collect();
    if there.is_empty() { "not installed: `docker`, `podman`".to_owned() } else { there.join("; ") }
}
