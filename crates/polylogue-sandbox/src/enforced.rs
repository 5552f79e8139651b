//! What holds on this machine: for `doctor`, and for refusals.

use std::sync::OnceLock;

/// A part of the enclosure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// What it is called.
    pub name: &'static str,
    /// Whether it holds on this machine.
    pub holds: bool,
    /// Whether programs are refused without it.
    pub required: bool,
    /// What it does; or, where it does not hold, why not.
    pub detail: String,
}

#[cfg(not(target_os = "linux"))]
pub(crate) const NOT_LINUX: &str =
    "only Linux has what encloses them; there is no enclosure for this system yet";

/// What encloses programs on this machine. It is found out by enclosing something, once in the life of the process.
#[must_use]
pub fn what_is_enforced() -> &'static [Measure] {
    static MEASURES: OnceLock<Vec<Measure>> = OnceLock::new();
    MEASURES.get_or_init(measures)
}

#[cfg(target_os = "linux")]
fn measures() -> Vec<Measure> {
    let probe = crate::linux::probe();
    let landlock = crate::linux::landlock_abi();
    let measure = |name, required, detail: &str| {
        let why = probe.as_ref().err();
        Measure {
            name,
            holds: why.is_none(),
            required,
            detail: why.cloned().unwrap_or_else(|| detail.into()),
        }
    };
    vec![
        measure(
            "namespaces",
            true,
            "other processes, files outside of the work directory and the network are not there",
        ),
        measure("seccomp", true, "system calls that are of use to attacks only are refused"),
        measure(
            "limits",
            true,
            "time, memory, output, processes and files are bounded; nothing outlives a run",
        ),
        Measure {
            name: "landlock",
            holds: landlock > 0,
            required: false,
            detail: if landlock > 0 {
                format!("a second wall around files, version {landlock}")
            } else {
                "the kernel has none; files are kept apart by namespaces alone".into()
            },
        },
    ]
}

#[cfg(not(target_os = "linux"))]
fn measures() -> Vec<Measure> {
    vec![Measure { name: "namespaces", holds: false, required: true, detail: NOT_LINUX.into() }]
}
