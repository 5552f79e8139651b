//! The name of the process that writes a log, for other processes.

use std::fs;

/// This process, as `process 4711 on atlas`.
///
/// The machine is named because process numbers mean nothing across containers that share a folder.
pub(crate) fn this_process() -> String {
    let machine = fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| fs::read_to_string("/etc/hostname"))
        .unwrap_or_else(|_| std::env::var("HOSTNAME").unwrap_or_default());
    let pid = std::process::id();
    match machine.trim() {
        "" => format!("process {pid}"),
        machine => format!("process {pid} on {machine}"),
    }
}

/// The holder of a claim with the rest of its lease.
pub(crate) fn with_lease(holder: &str, lease_s: Option<u64>) -> String {
    let holder = if holder.is_empty() { "another process" } else { holder };
    match lease_s {
        Some(seconds) => format!("{holder}, whose lease lasts for {seconds} s"),
        None => format!("{holder}, whose lease has run out"),
    }
}
