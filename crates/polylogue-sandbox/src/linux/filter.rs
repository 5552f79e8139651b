//! Filters of system calls.
//!
//! There are two: one allows the calls that programs need, and returns `ENOSYS` for all others, so that C libraries use an older
//! call (`clone` instead of `clone3`, whose arguments a filter cannot see). The other returns `EPERM` for calls that must appear
//! forbidden rather than missing, and for allowed calls with arguments that attacks use.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use super::allowed::{self, SYS_FCHMODAT2};
use crate::error::Error;
use crate::sandbox::Network;

/// Refused whatever the arguments are.
const REFUSED: [i64; 67] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // Memory that is not accounted to any process.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgctl,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_mlockall,
    libc::SYS_vmsplice,
];

/// Modes with which a file runs with the rights of its owner or group.
const SET_ID: [u32; 2] = [libc::S_ISUID, libc::S_ISGID];

/// Calls with a mode, and which argument it is.
const WITH_MODE: [(i64, u8); 4] =
    [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (SYS_FCHMODAT2, 2), (libc::SYS_openat, 3)];
#[cfg(target_arch = "x86_64")]
const WITH_MODE_OLD: [(i64, u8); 3] = [(libc::SYS_chmod, 1), (libc::SYS_open, 2), (libc::SYS_creat, 1)];
#[cfg(not(target_arch = "x86_64"))]
const WITH_MODE_OLD: [(i64, u8); 0] = [];

/// Calls whose mode says as well which kind of file is made: devices, too, and files with any mode.
#[cfg(target_arch = "x86_64")]
const WITH_DEVICE: [(i64, u8); 2] = [(libc::SYS_mknodat, 2), (libc::SYS_mknod, 1)];
#[cfg(not(target_arch = "x86_64"))]
const WITH_DEVICE: [(i64, u8); 1] = [(libc::SYS_mknodat, 2)];

#[cfg(target_arch = "x86_64")]
const REFUSED_OLD: [i64; 5] =
    [libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_uselib, libc::SYS__sysctl];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_OLD: [i64; 0] = [];

const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// `F_SETPIPE_SZ`: the pages of pipes are counted for all processes of a user.
const SET_PIPE_SIZE: u64 = 1031;

/// Faking what is typed at a terminal.
const TYPING: [u64; 2] = [0x5412, 0x541C];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filters, in the order in which they are set.
pub(super) fn filters(network: &Network) -> Result<Vec<BpfProgram>, Error> {
    let mut rules: Rules = REFUSED.iter().chain(&REFUSED_OLD).map(|call| (*call, Vec::new())).collect();
    conditional(&mut rules, network).map_err(|error| broken(&error))?;
    let refused = compile(rules).map_err(|error| broken(&error))?;
    // Of two that refuse, the error is that of the one that was set last.
    Ok(vec![allowed::filter(), refused])
}

fn broken(error: &seccompiler::BackendError) -> Error {
    Error::Refused { why: format!("system calls cannot be filtered: {error}") }
}

fn compile(rules: Rules) -> Result<BpfProgram, seccompiler::BackendError> {
    let architecture = std::env::consts::ARCH.try_into()?;
    let errno = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, errno, architecture)?.try_into()
}

/// Calls that are refused for some of their arguments.
fn conditional(rules: &mut Rules, network: &Network) -> Result<(), seccompiler::BackendError> {
    let has = |argument, bits: u64| {
        let condition =
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), bits)?;
        SeccompRule::new(vec![condition])
    };
    for (call, argument) in WITH_MODE.iter().chain(&WITH_MODE_OLD).chain(&WITH_DEVICE) {
        for mode in SET_ID {
            rules.entry(*call).or_default().push(has(*argument, u64::from(mode))?);
        }
    }
    for flag in NAMESPACES {
        rules.entry(libc::SYS_clone).or_default().push(has(0, u64::from(flag.unsigned_abs()))?);
    }
    let is = |argument, mask: u64, value: u64| {
        let condition =
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)?;
        SeccompRule::new(vec![condition])
    };
    for (call, argument) in WITH_DEVICE {
        for kind in [libc::S_IFCHR, libc::S_IFBLK] {
            rules.entry(call).or_default().push(is(argument, u64::from(libc::S_IFMT), u64::from(kind))?);
        }
    }
    for request in TYPING {
        rules.entry(libc::SYS_ioctl).or_default().push(is(1, u64::from(u32::MAX), request)?);
    }
    rules.entry(libc::SYS_fcntl).or_default().push(is(1, u64::from(u32::MAX), SET_PIPE_SIZE)?);
    rules.entry(libc::SYS_socket).or_default().push(other_sockets(network)?);
    rules.entry(libc::SYS_socketpair).or_default().push(other_sockets(&Network::None)?);
    rules.entry(libc::SYS_personality).or_default().push(other_personalities()?);
    for (call, rule) in core_limits()? {
        rules.entry(call).or_default().push(rule);
    }
    Ok(())
}

/// Other ways for the kernel to behave than the ordinary one: without random addresses, with all memory executable.
fn other_personalities() -> Result<SeccompRule, seccompiler::BackendError> {
    /// Asks what it is.
    const ASK: u64 = 0xffff_ffff;
    let is_not = |value| SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value);
    SeccompRule::new(vec![is_not(0)?, is_not(ASK)?])
}

/// Setting the limit on core dumps. It is 1, which alone keeps the kernel from starting the host's collector of dumps, a
/// program that runs outside of all sandboxes; at 0 it would.
fn core_limits() -> Result<[(i64, SeccompRule); 2], seccompiler::BackendError> {
    let core = |argument| {
        let value = u64::from(libc::RLIMIT_CORE);
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
    };
    let is_new = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    let limit = SeccompRule::new(vec![core(1)?, is_new])?;
    Ok([(libc::SYS_prlimit64, limit), (libc::SYS_setrlimit, SeccompRule::new(vec![core(0)?])?)])
}

/// Sockets of other kinds than are allowed.
fn other_sockets(network: &Network) -> Result<SeccompRule, seccompiler::BackendError> {
    let allowed: &[i32] = match network {
        Network::None => &[libc::AF_UNIX],
        Network::Hosts(_) => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6],
        Network::Host => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    };
    let is_not = |domain: i32| {
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, u64::from(domain.unsigned_abs()))
    };
    SeccompRule::new(allowed.iter().copied().map(is_not).collect::<Result<_, _>>()?)
}
