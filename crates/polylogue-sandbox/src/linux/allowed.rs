//! Which system calls exist for programs. Any other, those of later kernels included, is answered with `ENOSYS`.
//!
//! Left out on purpose are calls that use up what all processes of a user or of the machine share (`inotify_init1`, `io_setup`),
//! and memory that belongs to no process (System V IPC, message queues, `memfd_create`).

use seccompiler::{BpfProgram, sock_filter};

/// The same number everywhere; not all processors have it in `libc`.
pub(super) const SYS_FCHMODAT2: i64 = 452;

#[rustfmt::skip]
const FILES: &[i64] = &[
    libc::SYS_read, libc::SYS_write, libc::SYS_readv, libc::SYS_writev, libc::SYS_pread64, libc::SYS_pwrite64, libc::SYS_preadv,
    libc::SYS_pwritev, libc::SYS_preadv2, libc::SYS_pwritev2, libc::SYS_close, libc::SYS_close_range, libc::SYS_dup, libc::SYS_dup3,
    libc::SYS_openat, libc::SYS_lseek, libc::SYS_fstat, libc::SYS_newfstatat, libc::SYS_statx, libc::SYS_statfs, libc::SYS_fstatfs,
    libc::SYS_faccessat, libc::SYS_faccessat2, libc::SYS_fcntl, libc::SYS_flock, libc::SYS_ftruncate, libc::SYS_truncate,
    libc::SYS_fallocate, libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_sync, libc::SYS_sync_file_range, libc::SYS_syncfs,
    libc::SYS_readahead, libc::SYS_fadvise64, libc::SYS_sendfile, libc::SYS_splice, libc::SYS_tee, libc::SYS_copy_file_range,
    libc::SYS_ioctl, libc::SYS_getdents64, libc::SYS_getcwd, libc::SYS_chdir, libc::SYS_fchdir, libc::SYS_mkdirat,
    libc::SYS_unlinkat, libc::SYS_symlinkat, libc::SYS_linkat, libc::SYS_renameat, libc::SYS_renameat2, libc::SYS_readlinkat,
    libc::SYS_fchmod, libc::SYS_fchmodat, SYS_FCHMODAT2, libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_utimensat,
    libc::SYS_umask, libc::SYS_mknodat, libc::SYS_pipe2, libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr,
    libc::SYS_getxattr, libc::SYS_lgetxattr, libc::SYS_fgetxattr, libc::SYS_listxattr, libc::SYS_llistxattr,
    libc::SYS_flistxattr, libc::SYS_removexattr, libc::SYS_lremovexattr, libc::SYS_fremovexattr,
];

#[rustfmt::skip]
const WAITING: &[i64] = &[
    libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_create1, libc::SYS_epoll_ctl, libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2, libc::SYS_eventfd2, libc::SYS_signalfd4, libc::SYS_timerfd_create, libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime, libc::SYS_futex, libc::SYS_futex_waitv, libc::SYS_nanosleep, libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime, libc::SYS_clock_getres, libc::SYS_gettimeofday, libc::SYS_getitimer, libc::SYS_setitimer,
    libc::SYS_timer_create, libc::SYS_timer_settime, libc::SYS_timer_gettime, libc::SYS_timer_getoverrun,
    libc::SYS_timer_delete, libc::SYS_restart_syscall,
];

#[rustfmt::skip]
const MEMORY: &[i64] = &[
    libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mprotect, libc::SYS_mremap, libc::SYS_madvise, libc::SYS_brk, libc::SYS_msync,
    libc::SYS_mincore, libc::SYS_munlock, libc::SYS_munlockall, libc::SYS_pkey_alloc, libc::SYS_pkey_free,
    libc::SYS_pkey_mprotect, libc::SYS_membarrier, libc::SYS_get_mempolicy,
];

#[rustfmt::skip]
const PROCESSES: &[i64] = &[
    libc::SYS_clone, libc::SYS_execve, libc::SYS_execveat, libc::SYS_exit, libc::SYS_exit_group, libc::SYS_wait4, libc::SYS_waitid,
    libc::SYS_getpid, libc::SYS_getppid, libc::SYS_gettid, libc::SYS_getpgid, libc::SYS_setpgid, libc::SYS_getsid, libc::SYS_setsid,
    libc::SYS_getuid, libc::SYS_geteuid, libc::SYS_getgid, libc::SYS_getegid, libc::SYS_getresuid, libc::SYS_getresgid,
    libc::SYS_getgroups, libc::SYS_setuid, libc::SYS_setgid, libc::SYS_setreuid, libc::SYS_setregid, libc::SYS_setresuid,
    libc::SYS_setresgid, libc::SYS_setgroups, libc::SYS_setfsuid, libc::SYS_setfsgid, libc::SYS_capget, libc::SYS_capset,
    libc::SYS_prctl, libc::SYS_set_tid_address, libc::SYS_set_robust_list, libc::SYS_get_robust_list, libc::SYS_rseq,
    libc::SYS_kill, libc::SYS_tkill, libc::SYS_tgkill, libc::SYS_pidfd_open, libc::SYS_pidfd_send_signal,
    libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn, libc::SYS_rt_sigpending,
    libc::SYS_rt_sigtimedwait, libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo, libc::SYS_rt_sigsuspend,
    libc::SYS_sigaltstack, libc::SYS_personality, libc::SYS_getrlimit, libc::SYS_setrlimit, libc::SYS_prlimit64,
    libc::SYS_getrusage, libc::SYS_times, libc::SYS_sysinfo, libc::SYS_uname, libc::SYS_getcpu, libc::SYS_getpriority,
    libc::SYS_setpriority, libc::SYS_ioprio_get, libc::SYS_ioprio_set, libc::SYS_sched_yield, libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity, libc::SYS_sched_getparam, libc::SYS_sched_setparam, libc::SYS_sched_getscheduler,
    libc::SYS_sched_setscheduler, libc::SYS_sched_get_priority_max, libc::SYS_sched_get_priority_min,
    libc::SYS_sched_rr_get_interval, libc::SYS_sched_getattr, libc::SYS_getrandom, libc::SYS_seccomp,
    libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self,
];

#[rustfmt::skip]
const SOCKETS: &[i64] = &[
    libc::SYS_socket, libc::SYS_socketpair, libc::SYS_bind, libc::SYS_connect, libc::SYS_listen, libc::SYS_accept,
    libc::SYS_accept4, libc::SYS_getsockname, libc::SYS_getpeername, libc::SYS_sendto, libc::SYS_recvfrom, libc::SYS_sendmsg,
    libc::SYS_recvmsg, libc::SYS_sendmmsg, libc::SYS_recvmmsg, libc::SYS_shutdown, libc::SYS_setsockopt, libc::SYS_getsockopt,
];

/// Calls that newer processors no longer have.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLD: &[i64] = &[
    libc::SYS_open, libc::SYS_creat, libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_chmod, libc::SYS_chown,
    libc::SYS_lchown, libc::SYS_mkdir, libc::SYS_rmdir, libc::SYS_rename, libc::SYS_link, libc::SYS_symlink, libc::SYS_unlink,
    libc::SYS_readlink, libc::SYS_mknod, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat, libc::SYS_getdents,
    libc::SYS_pipe, libc::SYS_select, libc::SYS_poll, libc::SYS_epoll_create, libc::SYS_epoll_wait, libc::SYS_eventfd,
    libc::SYS_signalfd, libc::SYS_dup2, libc::SYS_fork, libc::SYS_vfork, libc::SYS_alarm, libc::SYS_pause, libc::SYS_getpgrp,
    libc::SYS_time, libc::SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[i64] = &[];

/// A filter that lets these calls through, as far as others do, and no other.
pub(super) fn filter() -> BpfProgram {
    const LOAD: u16 = 0x20;
    const JUMP_IF_GREATER_OR_EQUAL: u16 = 0x35;
    const JUMP_IF_GREATER: u16 = 0x25;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    // The number of the call. Which interface it belongs to is checked by the other filter.
    let mut program = vec![step(LOAD, 0, 0, 0)];
    for (first, last) in ranges() {
        program.push(step(JUMP_IF_GREATER_OR_EQUAL, 0, 2, first));
        program.push(step(JUMP_IF_GREATER, 1, 0, last));
        program.push(step(RETURN, 0, 0, ALLOW));
    }
    program.push(step(RETURN, 0, 0, ERRNO | libc::ENOSYS.unsigned_abs()));
    program
}

/// The calls as ranges of numbers without gaps, first and last, in order.
fn ranges() -> Vec<(u32, u32)> {
    let all = [FILES, WAITING, MEMORY, PROCESSES, SOCKETS, OLD].concat();
    let mut numbers: Vec<u32> = all.into_iter().filter_map(|number| number.try_into().ok()).collect();
    numbers.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if number <= last.saturating_add(1) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}
