//! What the process that runs a program knows.

use std::os::fd::AsRawFd;

use polylogue_sandbox::Sandbox;

use super::{attempts, bait, held, program};
use crate::{Dir, run, sandbox, sh, text};

attempts! {
    works the_callers_environment_in_proc: r"
attempt('environ', lambda: must('PATH' in open(f'/proc/{HOST}/environ').read()))
attempt('parent', lambda: must('PATH' in open(f'/proc/{os.getppid()}/environ').read()))";
    works the_callers_arguments: "attempt('cmdline', lambda: open(f'/proc/{HOST}/cmdline').read())";
    works the_callers_open_files: r"
attempt('list', lambda: os.listdir(f'/proc/{HOST}/fd'))
attempt('open', lambda: os.open(f'/proc/{HOST}/fd/1', os.O_WRONLY))
attempt('cwd', lambda: os.listdir(f'/proc/{HOST}/cwd'))
attempt('root', lambda: os.listdir(f'/proc/{HOST}/root'))";
    works the_callers_memory: r"
attempt('maps', lambda: must(open(f'/proc/{HOST}/maps').read()))
attempt('mem', lambda: open(f'/proc/{HOST}/mem', 'rb'))";
    works the_arguments_of_everyone: r"
own = {'self', 'thread-self', str(os.getpid())}
attempt('list', lambda: must([name for name in os.listdir('/proc') if name.isdigit() and name not in own]))";
    blind the_first_process: r"
for file in ['environ', 'mem', 'maps', 'root', 'cwd', 'fd', 'exe', 'auxv', 'stack']:
    path = '/proc/1/' + file
    attempt(path, lambda: os.listdir(path) if file in ('root', 'cwd', 'fd') else open(path, 'rb').read(1))";
    blind standard_input: r"
attempt('input', lambda: must(os.read(0, 1)))
attempt('error output', lambda: must(os.isatty(2) or os.isatty(1)))";
    blind keys_of_the_kernel: r"
# KEYCTL_GET_KEYRING_ID and KEYCTL_READ of the keyrings of the session and the user.
for ring in [-1, -2, -3, -4, -5]:
    refused('keyctl', 0, ring, 0, 0, 0)
    refused('keyctl', 11, ring, ctypes.create_string_buffer(100), 100, 0)
refused('add_key', b'user', b'x', b'y', 1, -3)
refused('request_key', b'user', b'x', 0, -3)
attempt('keys', lambda: open('/proc/keys').read())";
    blind the_kernels_log: r"
refused('syslog', 3, ctypes.create_string_buffer(100), 100)
attempt('kmsg', lambda: os.open('/dev/kmsg', os.O_RDONLY))
attempt('proc', lambda: os.open('/proc/kmsg', os.O_RDONLY))";
}

#[test]
fn the_callers_environment() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    // The test process has this one, as any program under cargo.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let output = text(&run(&sandbox, &sh("env; cat /proc/self/environ | tr '\\0' '\\n'")));
    assert!(output.contains("HOME=/tmp") && !output.contains("CARGO"), "{output}");
    assert!(output.lines().count() < 24, "{output}");
}

#[test]
fn inherited_descriptors() {
    const CODE: &str = r"
for fd in range(3, 4096):
    attempt(fd, lambda: os.fstat(fd))
    attempt(fd, lambda: os.pread(fd, 100, 0))";
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    bait(&dir.0);
    let secret = std::fs::File::open(dir.0.join("secret")).unwrap();
    #[allow(unsafe_code, reason = "the standard library makes no descriptors that are inherited")]
    // SAFETY: a call on numbers.
    let inherited = unsafe { libc::fcntl(secret.as_raw_fd(), libc::F_DUPFD, 700) };
    assert!(inherited >= 700);
    let bare = run(&Sandbox::unsafe_host(sandbox.work()), &program(&dir.0, CODE));
    assert!(text(&bare).contains("ESCAPED 7"), "{}", text(&bare));
    held(&dir.0, &run(&sandbox, &program(&dir.0, CODE)));
}
