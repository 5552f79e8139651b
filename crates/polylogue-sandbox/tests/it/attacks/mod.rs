//! Attempts to get out. Each is a program that says `ESCAPED` when it got something it must not have, and `done` at its
//! end, so that one which did not run at all is noticed.

use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Command, Stdio};

use crate::{Dir, python, run, sandbox, sh, text};

const PRELUDE: &str = r"
import os, sys, ctypes, socket, stat, subprocess
libc = ctypes.CDLL(None, use_errno=True)
def attempt(what, action):
    try:
        got = action()
    except (OSError, ValueError) as error:
        print('stopped', what, error)
    else:
        print('ESCAPED', what, got)
def call(number, *args):
    result = libc.syscall(number, *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
";

fn attack(code: &str) {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    attack_in(&sandbox, code);
}

fn attack_in(sandbox: &polylogue_sandbox::Sandbox, code: &str) {
    let ended = run(sandbox, &python(&format!("{PRELUDE}\n{code}\nprint('done')")));
    let output = text(&ended);
    assert!(output.ends_with("done\n") && !output.contains("ESCAPED"), "{:?}\n{output}", ended.how);
}

macro_rules! attempts {
    ($($(#[$about:meta])* $name:ident: $code:expr;)*) => {
        $($(#[$about])* #[test] fn $name() { attack($code); })*
    };
}

attempts! {
    files_of_the_host_are_not_there: r"
for path in ['/root', '/home', '/etc/shadow', '/etc/ssh', '/var', '/srv', '/boot', '/run', '/mnt', '/sys', '/opt', '/.old']:
    attempt(path, lambda: os.stat(path))";
    the_system_cannot_be_written: r"
for path in ['/x', '/usr/x', '/usr/bin/x', '/etc/x', '/etc/passwd', '/dev/x', '/lib/x', '/proc/x', '/proc/self/x']:
    attempt(path, lambda: open(path, 'w'))
attempt('rename', lambda: os.rename('/usr/bin/python3', '/work/python3'))
attempt('unlink', lambda: os.unlink('/usr/bin/env'))
attempt('rmdir', lambda: os.rmdir('/usr/share'))";
    modes_and_times_of_the_system_cannot_be_changed: r"
attempt('chmod', lambda: os.chmod('/usr/bin/env', 0o777))
attempt('chown', lambda: os.chown('/usr/bin/env', 1000, 1000))
attempt('utime', lambda: os.utime('/usr/bin/env'))
attempt('xattr', lambda: os.setxattr('/usr/bin/env', 'user.x', b'1'))";
    hard_links_lead_nowhere: r"
attempt('link', lambda: os.link('/usr/bin/env', '/work/env'))
attempt('link', lambda: os.link('/etc/passwd', '/work/passwd'))";
    the_parent_of_the_root_is_the_root: r"
os.chdir('/')
for _ in range(64): os.chdir('..')
attempt('etc', lambda: os.stat('root'))
attempt('dotdot', lambda: os.stat('/work/../../../../root'))
attempt('chroot', lambda: os.chroot('/work'))";
    the_first_process_cannot_be_looked_into: r"
for file in ['environ', 'mem', 'maps', 'root', 'cwd', 'fd', 'exe']:
    path = '/proc/1/' + file
    attempt(path, lambda: os.listdir(path) if file in ('root', 'cwd', 'fd') else open(path, 'rb').read(1))";
    other_processes_are_not_there: r"
own = {os.getpid()}
for name in os.listdir('/proc'):
    if name.isdigit() and int(name) not in own:
        print('ESCAPED', name)
attempt('parent', lambda: open(f'/proc/{os.getppid()}/environ', 'rb').read())";
    no_descriptor_is_inherited: r"
for fd in range(3, 4096): attempt(fd, lambda: os.fstat(fd))
attempt('input', lambda: os.read(0, 1) or (_ for _ in ()).throw(ValueError('empty')))";
    signals_reach_nobody_outside: r"
import signal
for pid in range(2, 70000):
    if pid in (os.getpid(), 2): continue
    try:
        os.kill(pid, 0)
        print('ESCAPED', pid)
    except (ProcessLookupError, PermissionError): pass
# The first process is not even to be stopped by what it encloses.
try: os.kill(1, signal.SIGKILL)
except PermissionError: pass";
    nobody_is_traced: r"
attempt('attach', lambda: call(101, 16, 1, 0, 0))
attempt('traceme', lambda: call(101, 0, 0, 0, 0))
attempt('vm_readv', lambda: call(310, 1, 0, 0, 0, 0, 0))
attempt('vm_writev', lambda: call(311, 1, 0, 0, 0, 0, 0))
attempt('pidfd_getfd', lambda: call(438, 0, 0, 0))
attempt('kcmp', lambda: call(312, 1, 1, 0, 0, 0))";
    no_internet_socket_is_made: r"
for domain in [socket.AF_INET, socket.AF_INET6, socket.AF_PACKET, socket.AF_NETLINK, socket.AF_VSOCK, 38]:
    for kind in [socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW]:
        attempt((domain, kind), lambda: socket.socket(domain, kind))";
    there_is_no_io_uring: r"
attempt('setup', lambda: call(425, 8, ctypes.create_string_buffer(256)))
attempt('enter', lambda: call(426, 0, 0, 0, 0, 0, 0))";
    no_namespaces_are_made: r"
for flag in [0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000, 0x80]:
    attempt(('unshare', hex(flag)), lambda: call(272, flag))
    if flag != 0x80:
        attempt(('clone', hex(flag)), lambda: call(56, flag | 17, 0, 0, 0, 0))
attempt('setns', lambda: call(308, os.open('/proc/self/ns/user', os.O_RDONLY), 0))
attempt('clone3', lambda: call(435, ctypes.create_string_buffer(88), 88))";
    nothing_is_mounted: r"
attempt('mount', lambda: call(165, b'tmpfs', b'/work', b'tmpfs', 0, 0))
attempt('remount', lambda: call(165, 0, b'/usr', 0, 4096 | 32, 0))
attempt('umount', lambda: call(166, b'/usr', 2))
attempt('pivot', lambda: call(155, b'/work', b'/work'))
attempt('fsopen', lambda: call(430, b'tmpfs', 0))
attempt('open_tree', lambda: call(428, -100, b'/usr', 1))
attempt('move_mount', lambda: call(429, -100, b'/usr', -100, b'/work', 0))
attempt('mount_setattr', lambda: call(442, -100, b'/usr', 0, 0, 32))";
    handles_open_nothing: r"
attempt('name', lambda: call(303, -100, b'/usr', 0, 0, 0))
attempt('open', lambda: call(304, -100, 0, 0))";
    the_kernel_is_out_of_reach: r"
for name, number in [('bpf', 321), ('perf', 298), ('userfaultfd', 323), ('keyctl', 250), ('add_key', 248),
        ('request_key', 249), ('syslog', 103), ('init_module', 175), ('finit_module', 313), ('kexec', 246), ('reboot', 169),
        ('iopl', 172), ('ioperm', 173), ('acct', 163), ('settimeofday', 164), ('fanotify', 300), ('swapon', 167),
        ('sethostname', 170), ('memfd', 319), ('memfd_secret', 447), ('shmget', 29), ('msgget', 68), ('mq_open', 240)]:
    attempt(name, lambda: call(number, 0, 0, 0, 0, 0, 0))";
    calls_of_other_interfaces_are_not_there: r"
attempt('x32 getpid', lambda: call(0x40000000 | 39))
attempt('x32 ptrace', lambda: call(0x40000000 | 521, 16, 1, 0, 0))";
    kernel_settings_are_not_there: r"
for path in ['/proc/sys/kernel/hostname', '/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/proc/kcore', '/proc/kmsg',
        '/proc/kallsyms', '/proc/mounts', '/sys/kernel', '/sys/fs/cgroup', '/proc/sys/vm/drop_caches']:
    attempt(path, lambda: open(path, 'rb').read(1) if path != '/proc/mounts' else (_ for _ in ()).throw(ValueError()))
    attempt(path, lambda: open(path, 'r+b'))";
    devices_are_harmless: r"
assert set(os.listdir('/dev')) == {'fd', 'full', 'null', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'urandom', 'zero'}
for path in ['/dev/tty', '/dev/mem', '/dev/kmsg', '/dev/vda', '/dev/sda', '/dev/fuse', '/dev/kvm', '/dev/net/tun', '/dev/ptmx']:
    attempt(path, lambda: open(path, 'rb'))
for kind in [stat.S_IFCHR, stat.S_IFBLK]:
    attempt('mknod', lambda: os.mknod('/work/device', kind | 0o666, os.makedev(1, 1)))
os.mkfifo('/work/fifo')";
    nobody_gets_rights_of_others: r"
for action in [lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.setresuid(0, 0, 0)]:
    attempt('set id', action)
open('/work/f', 'w').close()
attempt('chmod', lambda: os.chmod('/work/f', 0o4755))
attempt('setgid', lambda: os.chmod('/work/f', 0o2755))
attempt('fchmod', lambda: os.fchmod(os.open('/work/f', os.O_RDWR), 0o6755))
attempt('open', lambda: os.open('/work/g', os.O_CREAT | os.O_WRONLY, 0o4755))
attempt('fchmodat2', lambda: call(452, -100, b'/work/f', 0o4755, 0))
attempt('openat2', lambda: call(437, -100, b'/work/h', ctypes.create_string_buffer(24), 24))
attempt('capability', lambda: os.setxattr('/work/f', 'security.capability', b'\1\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'))
with open('/proc/self/status') as status:
    for line in status:
        if line.startswith('Cap') and int(line.split()[1], 16): print('ESCAPED', line)
        if line.startswith('NoNewPrivs') and line.split()[1] != '1': print('ESCAPED', line)";
    nothing_is_typed_at_a_terminal: r"
import fcntl
for request in [0x5412, 0x541C]: attempt(request, lambda: fcntl.ioctl(0, request, b'x'))
attempt('tty', lambda: os.open('/dev/tty', os.O_RDWR))
attempt('controlling', lambda: os.tcgetpgrp(0))";
    limits_cannot_be_raised: r"
import resource
for limit in [resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_DATA, resource.RLIMIT_NOFILE]:
    attempt(limit, lambda: resource.setrlimit(limit, (2**62, 2**62)))
attempt('nice', lambda: os.nice(-5))
attempt('oom', lambda: open('/proc/self/oom_score_adj', 'w').write('-1000'))";
}

#[test]
fn what_the_caller_knows_is_not_in_the_environment() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    // The test process has this one, as any program under cargo.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let output = text(&run(&sandbox, &sh("env; cat /proc/self/environ | tr '\\0' '\\n'")));
    assert!(output.contains("HOME=/tmp") && !output.contains("CARGO"), "{output}");
    assert!(output.lines().count() < 24, "{output}");
}

#[test]
fn files_beside_the_work_directory_are_not_there() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let secret = dir.0.join("secret");
    std::fs::write(&secret, "hidden").unwrap();
    let path = secret.display();
    attack_in(
        &sandbox,
        &format!(
            "
os.symlink('{path}', '/work/link')
for path in ['{path}', '/work/link', '/work/../secret', '/proc/self/cwd/../secret']:
    attempt('read', lambda: open(path).read())
    attempt('write', lambda: open(path, 'r+'))
    attempt('link', lambda: os.link(os.path.realpath(path), '/work/hard'))
    attempt('chmod', lambda: os.chmod(path, 0o777))
    attempt('rename', lambda: os.rename(path, '/work/x') if path != '/work/link' else open('/work/link'))"
        ),
    );
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "hidden");
}

#[test]
fn a_link_that_a_program_left_leads_the_next_one_nowhere() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let victim = dir.0.join("victim");
    std::fs::write(&victim, "whole").unwrap();
    let outside = dir.0.display();
    run(&sandbox, &sh(&format!("ln -s {outside}/victim main.py; ln -s {outside} dir")));
    for file in ["main.py", "dir/victim"] {
        let program = sh("true").file(file, "broken");
        assert!(sandbox.run(&program, &polylogue_sandbox::Halt::new()).is_err(), "{file}");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "whole");
    }
}

#[test]
fn servers_of_this_machine_are_out_of_reach() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let path = dir.0.join("socket");
    let _unix = UnixListener::bind(&path).unwrap();
    let name = format!("polylogue-{}", std::process::id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    attack_in(
        &sandbox,
        &format!(
            "
def unix(path):
    socket.socket(socket.AF_UNIX).connect(path)
attempt('tcp', lambda: socket.create_connection(('127.0.0.1', {}), 5))
attempt('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {})))
attempt('unix', lambda: unix('{}'))
attempt('abstract', lambda: unix('\\0{name}'))
attempt('name', lambda: socket.getaddrinfo('example.com', 80))
a, b = socket.socketpair()
a.send(b'x')
assert b.recv(1) == b'x'",
            tcp.local_addr().unwrap().port(),
            udp.local_addr().unwrap().port(),
            path.display()
        ),
    );
}

#[test]
fn nothing_outlives_a_program() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let nap = format!("7{}", std::process::id());
    let code =
        format!("(setsid sleep {nap} >/dev/null 2>&1 &) ; sleep {nap} & nohup sleep {nap} & echo started");
    let ended = run(&sandbox, &sh(&code));
    assert!(text(&ended).contains("started"));
    assert_eq!(running(&nap), 0, "everything is dead when the call returns");
}

#[test]
fn a_program_that_ignores_signals_dies_all_the_same() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let limits = polylogue_sandbox::Limits { time: std::time::Duration::from_secs(1), ..*sandbox.limits() };
    let sandbox = sandbox.limited(limits);
    let nap = format!("8{}", std::process::id());
    let ended =
        run(&sandbox, &sh(&format!("trap '' TERM INT HUP; setsid sleep {nap} & while :; do :; done")));
    assert_eq!(ended.how, polylogue_sandbox::How::TimedOut);
    assert_eq!(running(&nap), 0);
}

/// How many processes of this machine have `word` among their arguments.
fn running(word: &str) -> usize {
    let has = |entry: &std::fs::DirEntry| {
        let args = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        args.split(|byte| *byte == 0).any(|arg| arg == word.as_bytes())
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter(has).count()
}

/// All tests once more as an ordinary user, where they run as root.
#[test]
fn an_ordinary_user_is_enclosed_as_well() {
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == 0);
    if !is_root || std::env::var_os("POLYLOGUE_ORDINARY").is_some() {
        return;
    }
    let copy = std::env::temp_dir().join(format!("polylogue-attacks-{}", std::process::id()));
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let ran = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .args(["--test-threads=2"])
        .env("POLYLOGUE_ORDINARY", "1")
        .env("CARGO_MANIFEST_DIR", "/")
        .current_dir("/")
        .stdin(Stdio::null())
        .output();
    std::fs::remove_file(&copy).unwrap();
    let Ok(ran) = ran else {
        eprintln!("SKIPPED: there is no `setpriv` to become an ordinary user with");
        return;
    };
    std::io::stderr().write_all(&ran.stdout).unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}
