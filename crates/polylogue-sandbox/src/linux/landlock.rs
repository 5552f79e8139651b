//! A second layer of file isolation: rules that the kernel checks on every path.

use super::plan::Plan;
use super::sys::{self, Outcome};

/// Reading and executing: EXECUTE, READ_FILE, READ_DIR.
const READ: u64 = 1 | 1 << 2 | 1 << 3;
/// Writing to what is there, as to `/dev/null`: WRITE_FILE, TRUNCATE, IOCTL_DEV.
const WRITE: u64 = 1 << 1 | 1 << 14 | 1 << 15;
/// Making devices: MAKE_CHAR, MAKE_BLOCK.
const DEVICES: u64 = 1 << 6 | 1 << 11;

/// The version of the interface; 0 where there is none.
pub(crate) fn abi() -> i32 {
    sys::landlock_create(None).unwrap_or(0)
}

/// All rights to files in a version of the interface.
const fn files(abi: i32) -> u64 {
    let bits = match abi {
        ..=1 => 13,
        2 => 14,
        3 | 4 => 15,
        _ => 16,
    };
    (1 << bits) - 1
}

/// Denies the program all files but its own; without network access also connections, and in any case signals to processes
/// outside and their abstract sockets.
pub(super) fn restrict(plan: &Plan) -> Outcome {
    let abi = abi();
    if abi <= 0 {
        return Ok(());
    }
    let all = files(abi);
    // BIND_TCP, CONNECT_TCP, where there is nothing to connect to; ABSTRACT_UNIX_SOCKET, SIGNAL.
    let attributes = [all, if plan.has_sockets { 0 } else { 3 }, 3];
    let known = match abi {
        ..=3 => 1,
        4 | 5 => 2,
        _ => 3,
    };
    let ruleset = sys::landlock_create(Some(attributes.get(..known).unwrap_or_default()))?;
    allow(ruleset, c"/", READ & all)?;
    allow(ruleset, c"/dev", (READ | WRITE) & all)?;
    for path in [c"/work", c"/tmp", c"/dev/shm"] {
        allow(ruleset, path, all & !DEVICES)?;
    }
    sys::landlock_restrict(ruleset)?;
    sys::close(ruleset);
    Ok(())
}

fn allow(ruleset: i32, path: &std::ffi::CStr, access: u64) -> Outcome {
    let parent = sys::open(path, libc::O_PATH, 0)?;
    let result = sys::landlock_allow(ruleset, parent, access);
    sys::close(parent);
    result
}
