//! System calls, each a function that returns the error number when it fails.
//!
//! Those that the side within the sandbox uses allocate nothing: it is a copy of a process that may have had other threads.
#![allow(unsafe_code, reason = "this is where system calls are made")]

use std::ffi::{CStr, c_char, c_int, c_long, c_ulong};
use std::io;
use std::ptr;

/// The stage that the setup of a sandbox has reached, or where it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Stage {
    Started = 1,
    ProgramResult,
    Session,
    ProxySocket,
    Root,
    Bind,
    Tmpfs,
    Tree,
    Capabilities,
    Filter,
    Fork,
    Limits,
    Landlock,
    File,
    Exec,
}

impl Stage {
    pub(super) fn words(stage: u32) -> &'static str {
        let all = [
            (Self::Session, "setting the process up"),
            (Self::ProxySocket, "opening the socket of the proxy"),
            (Self::Root, "making a new root"),
            (Self::Bind, "showing the system read-only"),
            (Self::Tmpfs, "mounting temporary directories"),
            (Self::Tree, "making directories"),
            (Self::Capabilities, "dropping capabilities"),
            (Self::Filter, "filtering system calls"),
            (Self::Fork, "starting the program"),
            (Self::Limits, "setting limits"),
            (Self::Landlock, "closing files off by Landlock"),
        ];
        all.iter().find(|(own, _)| *own as u32 == stage).map_or("making the sandbox", |(_, words)| words)
    }
}

pub(super) type Outcome = Result<(), i32>;

pub(super) fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

fn done(result: c_int) -> Outcome {
    if result < 0 { Err(errno()) } else { Ok(()) }
}

fn called(result: c_long) -> Result<c_long, i32> {
    if result < 0 { Err(errno()) } else { Ok(result) }
}

/// The most common reason for a refusal.
pub(super) fn hint() -> &'static str {
    let restricted = std::fs::read_to_string("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    if restricted.is_ok_and(|text| text.trim() == "1") {
        return "; this system restricts user namespaces: sysctl kernel.apparmor_restrict_unprivileged_userns=0 allows them";
    }
    let allowed = std::fs::read_to_string("/proc/sys/user/max_user_namespaces");
    if allowed.is_ok_and(|text| text.trim() == "0") {
        return "; this system allows no user namespaces: sysctl user.max_user_namespaces=10000 does";
    }
    if std::fs::read_to_string("/proc/sys/kernel/unprivileged_userns_clone")
        .is_ok_and(|text| text.trim() == "0")
    {
        return "; this system restricts user namespaces: sysctl kernel.unprivileged_userns_clone=1 allows them";
    }
    "; containers often forbid it: start this one with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined`"
}

/// Copies this process into new namespaces. 0 in the copy.
///
/// # Safety
/// The copy has one thread, and locks of other threads are never released: it must not allocate.
pub(super) unsafe fn clone(flags: c_int) -> c_int {
    let flags = c_long::from(flags | libc::SIGCHLD);
    // SAFETY: without its own stack the child continues with a copy of this one, as after `fork`.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    c_int::try_from(pid).unwrap_or(-1)
}

pub(super) fn ids() -> (u32, u32) {
    // SAFETY: these cannot fail and touch no memory.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

pub(super) fn kill(pid: i32) {
    // SAFETY: a call on numbers.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

pub(super) fn wait_for(pid: i32) {
    // SAFETY: no status is asked for.
    while unsafe { libc::waitpid(pid, ptr::null_mut(), 0) } < 0 && errno() == libc::EINTR {}
}

/// Waits for any child: its id and status.
pub(super) fn wait() -> Option<(i32, c_int)> {
    let mut status = 0;
    loop {
        // SAFETY: the status is a place to write to.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
        if pid >= 0 {
            return Some((pid, status));
        }
        if errno() != libc::EINTR {
            return None;
        }
    }
}

pub(super) fn duplicate_above(fd: c_int, least: c_int) -> io::Result<c_int> {
    // SAFETY: a call on numbers.
    let number = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, least) };
    if number < 0 { Err(io::Error::last_os_error()) } else { Ok(number) }
}

pub(super) fn set_nonblocking(fd: c_int) {
    // SAFETY: a call on numbers.
    unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
}

pub(super) fn duplicate(from: c_int, to: c_int) -> Outcome {
    // SAFETY: a call on numbers.
    done(unsafe { libc::dup2(from, to) })
}

pub(super) fn close_range(first: u32, last: u32) {
    if first <= last {
        // SAFETY: nothing in this process uses these any more.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

/// One byte; false when the other side is gone.
pub(super) fn read_byte(fd: c_int) -> bool {
    let mut byte = 0_u8;
    // SAFETY: there is room for one byte.
    (unsafe { libc::read(fd, (&raw mut byte).cast(), 1) }) == 1
}

pub(super) fn write(fd: c_int, bytes: &[u8]) -> Outcome {
    let mut rest = bytes;
    while !rest.is_empty() {
        // SAFETY: the buffer is as long as is said.
        let count = unsafe { libc::write(fd, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(count) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(_) if errno() == libc::EINTR => {}
            Err(_) => return Err(errno()),
        }
    }
    Ok(())
}

pub(super) fn exit(code: c_int) -> ! {
    // SAFETY: ends the process without running anything of it.
    unsafe { libc::_exit(code) }
}

pub(super) fn session() -> Outcome {
    // SAFETY: a call without arguments.
    done(unsafe { libc::setsid() })
}

/// No handler of the process that this is a copy of, and no blocked signal.
pub(super) fn default_signals() {
    // SAFETY: the set is made before it is used; a signal that cannot be set is passed over.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        libc::umask(0o022);
    }
}

pub(super) fn prctl(option: c_int, value: c_ulong) -> Outcome {
    // SAFETY: only options whose arguments are numbers are used.
    done(unsafe { libc::prctl(option, value, 0, 0, 0) })
}

pub(super) fn no_groups() {
    // Fails for ordinary users, who cannot leave their groups.
    // SAFETY: an empty list is read from nowhere.
    unsafe { libc::syscall(libc::SYS_setgroups, 0, ptr::null::<libc::gid_t>()) };
}

/// Drops all capabilities, those that a program could ever get included.
pub(super) fn no_capabilities() -> Outcome {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    /// `_LINUX_CAPABILITY_VERSION_3`: two sets of 32.
    const VERSION: u32 = 0x2008_0522;
    for capability in 0..64 {
        if prctl(libc::PR_CAPBSET_DROP, capability) == Err(libc::EPERM) {
            return Err(libc::EPERM);
        }
    }
    // PR_CAP_AMBIENT_CLEAR_ALL.
    prctl(libc::PR_CAP_AMBIENT, 4)?;
    let header = Header { version: VERSION, pid: 0 };
    let none = [0_u32; 6];
    // SAFETY: both are laid out as the kernel has them.
    called(unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) }).map(drop)
}

pub(super) fn limit(resource: libc::__rlimit_resource_t, value: u64) -> Outcome {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: the limit is read.
    done(unsafe { libc::setrlimit(resource, &raw const limit) })
}

pub(super) fn host_name(name: &CStr) -> Outcome {
    // SAFETY: the name is as long as is said.
    done(unsafe { libc::sethostname(name.as_ptr(), name.count_bytes()) })
}

pub(super) fn directory(path: &CStr) -> Outcome {
    // SAFETY: the path ends with a zero.
    match done(unsafe { libc::mkdir(path.as_ptr(), 0o755) }) {
        Err(libc::EEXIST) => Ok(()),
        other => other,
    }
}

pub(super) fn remove_directory(path: &CStr) -> Outcome {
    // SAFETY: the path ends with a zero.
    done(unsafe { libc::rmdir(path.as_ptr()) })
}

pub(super) fn symlink(target: &CStr, at: &CStr) -> Outcome {
    // SAFETY: both end with a zero.
    done(unsafe { libc::symlink(target.as_ptr(), at.as_ptr()) })
}

pub(super) fn change_directory(path: &CStr) -> Outcome {
    // SAFETY: the path ends with a zero.
    done(unsafe { libc::chdir(path.as_ptr()) })
}

pub(super) fn open(path: &CStr, flags: c_int, mode: u32) -> Result<c_int, i32> {
    // SAFETY: the path ends with a zero.
    let fd = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, mode) };
    if fd < 0 { Err(errno()) } else { Ok(fd) }
}

pub(super) fn close(fd: c_int) {
    // SAFETY: its owner closes it.
    unsafe { libc::close(fd) };
}

/// Writes a whole file again. A pipe at its path is an error instead of a wait for a reader.
pub(super) fn file(path: &CStr, content: &[u8]) -> Outcome {
    let fd = open(path, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_NONBLOCK, 0o644)?;
    let result = write(fd, content);
    close(fd);
    result
}

pub(super) fn mount(
    from: Option<&CStr>,
    to: &CStr,
    kind: Option<&CStr>,
    flags: c_ulong,
    options: Option<&CStr>,
) -> Outcome {
    let pointer = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: each is a text that ends with a zero, or none.
    done(unsafe { libc::mount(pointer(from), to.as_ptr(), pointer(kind), flags, pointer(options).cast()) })
}

/// Adds attributes to a mount, and with `deep` to all mounts below it.
pub(super) fn restrict_mount(at: &CStr, attributes: u64, deep: bool) -> Outcome {
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        userns: u64,
    }
    let attributes = Attributes { set: attributes, clear: 0, propagation: 0, userns: 0 };
    let flags = if deep { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the attributes are laid out as the kernel has them, and as long as is said.
    called(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            at.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    })
    .map(drop)
}

pub(super) fn pivot_root(new: &CStr, old: &CStr) -> Outcome {
    // SAFETY: both end with a zero.
    called(unsafe { libc::syscall(libc::SYS_pivot_root, new.as_ptr(), old.as_ptr()) }).map(drop)
}

pub(super) fn unmount(path: &CStr) -> Outcome {
    // SAFETY: the path ends with a zero.
    done(unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) })
}

/// Executes another program; returns only when that fails.
pub(super) fn exec(path: &CStr, args: &[*const c_char], env: &[*const c_char]) -> i32 {
    // SAFETY: both lists end with a null pointer, and what they point to outlives the call.
    unsafe { libc::execve(path.as_ptr(), args.as_ptr(), env.as_ptr()) };
    errno()
}

pub(super) fn landlock_create(attributes: Option<&[u64]>) -> Result<c_int, i32> {
    /// Asks for the version instead of making a ruleset.
    const VERSION: u32 = 1;
    // SAFETY: the attributes are as long as is said.
    let result = called(unsafe {
        match attributes {
            Some(attributes) => libc::syscall(
                libc::SYS_landlock_create_ruleset,
                attributes.as_ptr(),
                size_of_val(attributes),
                0,
            ),
            None => libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<u64>(), 0, VERSION),
        }
    })?;
    c_int::try_from(result).map_err(|_| libc::EIO)
}

pub(super) fn landlock_allow(ruleset: c_int, parent: c_int, access: u64) -> Outcome {
    #[repr(C, packed)]
    struct Beneath {
        access: u64,
        parent: c_int,
    }
    let rule = Beneath { access, parent };
    // SAFETY: the rule is laid out as the kernel has it; 1 is the type of this one.
    called(unsafe { libc::syscall(libc::SYS_landlock_add_rule, ruleset, 1, &raw const rule, 0) }).map(drop)
}

pub(super) fn landlock_restrict(ruleset: c_int) -> Outcome {
    // SAFETY: a call on numbers.
    called(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) }).map(drop)
}
