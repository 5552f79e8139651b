//! What encloses code that agents run.

use polylogue_sandbox::{Measure, what_is_enforced};

use super::rows;

/// The section on code.
pub(super) fn told() -> String {
    let mut text = "\ncode that agents run\n".to_owned();
    let measures = what_is_enforced();
    for measure in &measures {
        rows(&mut text, measure.name, vec![of_measure(measure)]);
    }
    let missing = measures.iter().any(|measure| measure.required && !measure.holds);
    #[cfg(unix)]
    rows(&mut text, "containers", vec![containers()]);
    if missing {
        let hint = "hint: code is refused until that is allowed, or a container or the unsafe host is asked for by name";
        rows(&mut text, "", vec![hint.to_owned()]);
    }
    text
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
            Err(_) => format!("`{name}` is there, but does not answer"),
        })
        .collect();
    if there.is_empty() { "neither `docker` nor `podman` is there".to_owned() } else { there.join("; ") }
}
