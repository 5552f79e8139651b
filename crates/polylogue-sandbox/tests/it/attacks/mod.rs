//! Attempts to get out. Each is a program that says `ESCAPED` when it got something it must not have, and `done` at its
//! end, so that one which did not run at all is noticed.
//!
//! Those that `works` stands before are first run without a sandbox, where they must succeed: an attack that fails
//! everywhere proves nothing. Those that `blind` stands before are not, because they would do harm, or because some
//! machines forbid them to everyone.

mod devices;
mod files;
mod kernel;
mod links;
mod network;
mod processes;
mod rights;
mod secrets;
mod survivors;
mod users;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::path::Path;

use polylogue_sandbox::{ProgramResult, Sandbox};

use crate::{Dir, python, run, sandbox, text};

/// The content of the file that must not be read, and of the one that must not be written.
const SECRET: &str = "a word that stays outside";

const PRELUDE: &str = r"
import os, sys, ctypes, errno, signal, socket, stat, struct, subprocess, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def attempt(what, action):
    try:
        got = action()
    except (OSError, ValueError, ImportError, AttributeError, subprocess.CalledProcessError) as error:
        print('stopped', what, repr(error))
    else:
        print('ESCAPED', what, repr(got)[:200])
def must(condition, why='nothing to be seen'):
    if not condition: raise ValueError(why)
    return condition
def word(value):
    return ctypes.c_long(value) if isinstance(value, int) else value
def call(name, *args):
    result = libc.syscall(word(SYS[name]), *map(word, args))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def refused(name, *args):
    '''Whatever the arguments are: any other error than these would come from the call itself.'''
    result = libc.syscall(word(SYS[name]), *map(word, args or [0] * 6))
    failed = result < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS)
    print('stopped' if failed else 'ESCAPED', name, result, ctypes.get_errno())
";

/// The calls that attacks make by number, as this processor numbers them.
fn calls() -> String {
    macro_rules! numbers {
        ($($name:ident)*) => { [$((stringify!($name), libc::$name)),*] };
    }
    let all = numbers! {
        SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_pidfd_open SYS_pidfd_getfd SYS_pidfd_send_signal SYS_kcmp
        SYS_process_madvise SYS_unshare SYS_clone SYS_clone3 SYS_setns SYS_mount SYS_umount2 SYS_pivot_root SYS_fsopen
        SYS_fsconfig SYS_fsmount SYS_fspick SYS_open_tree SYS_move_mount SYS_mount_setattr SYS_name_to_handle_at
        SYS_open_by_handle_at SYS_bpf SYS_perf_event_open SYS_userfaultfd SYS_keyctl SYS_add_key SYS_request_key SYS_syslog
        SYS_init_module SYS_finit_module SYS_delete_module SYS_kexec_load SYS_kexec_file_load SYS_reboot SYS_acct
        SYS_settimeofday SYS_clock_settime SYS_clock_adjtime SYS_adjtimex SYS_fanotify_init SYS_swapon SYS_swapoff
        SYS_quotactl SYS_sethostname SYS_setdomainname SYS_memfd_create SYS_memfd_secret SYS_shmget SYS_semget SYS_msgget
        SYS_mq_open SYS_mlock SYS_mlockall SYS_vmsplice SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register
        SYS_openat2 SYS_personality SYS_migrate_pages SYS_move_pages SYS_vhangup SYS_getpid SYS_sched_setattr SYS_inotify_init1 SYS_inotify_add_watch SYS_io_setup
        SYS_mbind SYS_set_mempolicy
    };
    let entries = all.map(|(name, number)| format!("'{}': {number}", name.trim_start_matches("SYS_")));
    // The last has no name on some processors, and the same number on all.
    format!("SYS = {{{}, 'fchmodat2': 452}}\n", entries.join(", "))
}

/// The whole text of an attack from a work directory in `dir`, which holds a `secret` and a `victim`.
fn program(dir: &Path, code: &str) -> polylogue_sandbox::Program {
    let known = format!("OUT, HOST = {:?}, {}\n", dir.display().to_string(), std::process::id());
    python(&format!("{PRELUDE}\n{}{known}{code}\nprint('done')", calls()))
}

/// Makes again what an attack is after.
fn bait(dir: &Path) {
    for name in ["secret", "victim"] {
        std::fs::write(dir.join(name), SECRET).unwrap();
    }
}

/// Runs an attack without a sandbox, where it has to succeed, if it is one that can.
fn attack(code: &str, works: bool) {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    bait(&dir.0);
    if works {
        let exposed = Sandbox::unsafe_host(sandbox.work());
        let bare = text(&run(&exposed, &program(&dir.0, code)));
        assert!(bare.contains("ESCAPED"), "it does not even work without a sandbox:\n{bare}");
        std::fs::remove_dir_all(sandbox.work()).unwrap();
        bait(&dir.0);
    }
    held(&dir.0, &run(&sandbox, &program(&dir.0, code)));
}

/// The attack ran to its end, got nothing, and changed nothing.
fn held(dir: &Path, ended: &ProgramResult) {
    let output = text(ended);
    assert!(output.ends_with("done\n") && !output.contains("ESCAPED"), "{:?}\n{output}", ended.how);
    assert!(!output.contains(SECRET), "{output}");
    for name in ["secret", "victim"] {
        assert_eq!(std::fs::read_to_string(dir.join(name)).unwrap(), SECRET, "{name}");
    }
}

/// Tests: what each attempts, and the program that does.
macro_rules! attempts {
    ($($(#[$about:meta])* $kind:ident $name:ident: $code:expr;)*) => {
        $($(#[$about])* #[test] fn $name() { crate::attacks::attack($code, attempts!(@ $kind)); })*
    };
    (@ works) => { true };
    (@ blind) => { false };
}
use attempts;
