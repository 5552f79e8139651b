//! The protections that this machine supports, for `doctor` and for refusals.

/// A protection of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// The name of the protection.
    pub name: &'static str,
    /// Whether this machine supports it.
    pub holds: bool,
    /// Whether programs are refused without it.
    pub required: bool,
    /// What it does, or why it is not supported.
    pub detail: String,
}

#[cfg(not(target_os = "linux"))]
pub(crate) const NOT_LINUX: &str = "the native sandbox needs Linux; there is none for this system yet";

/// Why this machine does not support the sandbox; `None` if it does.
#[cfg(target_os = "linux")]
pub(crate) fn obstacle() -> Option<String> {
    probed().err()
}

/// Tries the sandbox. Success is cached for the life of the process; a failure is not, since its cause may be temporary: a full
/// disk, too many processes, a slow machine.
#[cfg(target_os = "linux")]
fn probed() -> Result<(), String> {
    /// Number of attempts, and the wait between them.
    const TRIES: u32 = 3;
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);
    static HOLDS: std::sync::OnceLock<()> = std::sync::OnceLock::new();
    let mut result = Ok(());
    for nth in 0..TRIES {
        if HOLDS.get().is_some() {
            return Ok(());
        }
        if nth > 0 {
            std::thread::sleep(PAUSE);
        }
        result = crate::linux::probe();
        if result.is_ok() {
            HOLDS.get_or_init(|| ());
        }
    }
    result
}

/// Returns the protections on this machine, found by trying the sandbox; success is cached.
#[cfg(target_os = "linux")]
pub fn what_is_enforced() -> Vec<Measure> {
    let probe = probed();
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
            "programs cannot see other processes, files outside the work directory, or the network",
        ),
        measure("seccomp", true, "programs can make listed system calls only"),
        measure(
            "limits",
            true,
            "time, memory, output, processes and files are bounded; nothing outlives a run",
        ),
        memory(),
        Measure {
            name: "landlock",
            holds: landlock > 0,
            required: false,
            detail: if landlock > 0 {
                format!("a second layer of file isolation (ABI {landlock})")
            } else {
                "the kernel has none; files are kept apart by namespaces alone".into()
            },
        },
    ]
}

/// Whether the kernel counts the memory of programs.
#[cfg(target_os = "linux")]
fn memory() -> Measure {
    let obstacle = crate::linux::memory_obstacle();
    Measure {
        name: "memory",
        holds: obstacle.is_none(),
        required: false,
        detail: obstacle
            .unwrap_or("a control group counts all memory of a program, that of its sockets and page tables included")
            .into(),
    }
}

/// Returns the protections on this machine: none.
#[cfg(not(target_os = "linux"))]
pub fn what_is_enforced() -> Vec<Measure> {
    vec![Measure { name: "namespaces", holds: false, required: true, detail: NOT_LINUX.into() }]
}
