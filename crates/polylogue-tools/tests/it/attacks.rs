//! What code in a session tries against the process that runs it, and against the other tools of its work directory.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use polylogue_core::ToolStatus::Done;
use polylogue_tools::PythonSession;
use polylogue_tools::code::{Limits, Sandbox, shell};
use serde_json::json;

use crate::{Dir, result_of, sandbox};

/// Programs of a session that run on after its call.
fn in_background(code: &str) -> String {
    format!("import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', r'''{code}'''])\nNone")
}

#[tokio::test]
async fn directories_that_are_exchanged_for_links_leak_no_names() {
    const CALLS: u32 = 30;
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    for nth in 0..50 {
        dir.write(&format!("outside/private-{nth}"), "x");
    }
    let outside = dir.0.join("outside").display().to_string();
    let session = PythonSession::new(sandbox.clone());
    // RENAME_EXCHANGE, which is what makes the race likely.
    let swap = format!(
        "import ctypes, os\nlibc = ctypes.CDLL(None)\nos.makedirs('d', exist_ok=True)\nos.symlink('{outside}', 'link')\nwhile True: libc.renameat2(-100, b'd', -100, b'link', 2)"
    );
    result_of(&session, json!({"code": in_background(&swap)})).await;
    let shell = shell(sandbox);
    for _ in 0..CALLS {
        let (_, text) = result_of(&shell, json!({"code": "touch d/mine 2>/dev/null; true"})).await;
        assert!(!text.contains("private"), "{text}");
    }
    result_of(&session, json!({"code": "import os\nos.kill(-1, 9)"})).await;
}

/// Where the channel of a session is, for code that looks for it: the pipes that are no standard stream.
const CHANNEL: &str = "
import fcntl, json, os, time
def pipes():
    found = []
    for name in os.listdir('/proc/self/fd'):
        try:
            pipe = os.readlink('/proc/self/fd/' + name)
            if pipe.startswith('pipe:') and pipe != os.readlink('/proc/self/fd/1'): found.append(int(name))
        except OSError: pass
    return found
def writable():
    return [fd for fd in pipes() if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY]
def fork():
    import ctypes
    return ctypes.CDLL(None).fork()
";

fn session(sandbox: Sandbox, change: impl FnOnce(&mut Limits)) -> PythonSession {
    let mut limits = Limits { time: Duration::from_secs(3), ..*sandbox.limits() };
    change(&mut limits);
    PythonSession::new(sandbox.limited(limits))
}

/// Bytes of memory that this process has.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// How much the memory of this process grows while `future` runs, at most.
async fn growth<T>(future: impl Future<Output = T>) -> (T, u64) {
    let before = resident();
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    let most = std::thread::spawn(move || {
        let mut most = 0;
        while is_over.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
            most = most.max(resident());
        }
        most
    });
    let got = future.await;
    drop(over);
    (got, most.join().unwrap().saturating_sub(before))
}

/// A child raises the size of the pipe and floods it with lines of 15 MiB.
#[tokio::test]
async fn a_flood_of_lines_holds_up_no_limit() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = session(sandbox, |limits| limits.disk_bytes = 100 << 20);
    let flood = format!(
        "{CHANNEL}\nfor n in range(4):\n  if not fork():\n    for fd in writable() + [1]:\n      try: fcntl.fcntl(fd, 1031, 1 << 20)\n      except OSError: pass\n    line = b'{{' + b'A' * (15 << 20) + b'\\n'\n    while True:\n      for fd in writable(): os.write(fd, line)\n"
    );
    // Its time: the code never ends.
    let began = Instant::now();
    let code = format!(
        "{flood}\nimport signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nwhile True: pass"
    );
    let ((_, text), grown) = growth(result_of(&session, json!({"code": code}))).await;
    assert!(text.contains("Timeout: interrupted after 3 s"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(grown < 200 << 20, "this process grew by {} MiB", grown >> 20);
    // Its disk.
    let code = format!(
        "{flood}\nfor n in range(1000):\n  open(f'f{{n}}', 'wb').write(bytes(1 << 20))\n  time.sleep(0.01)"
    );
    let (_, text) = result_of(&session, json!({"code": code})).await;
    assert!(text.contains("the work directory grew too large"), "{text}");
}

/// A child that outlives its call says what only the interpreter may say.
#[tokio::test]
async fn messages_of_earlier_calls_count_for_nothing() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = session(sandbox, |limits| limits.time = Duration::from_secs(20));
    let forge = r"
if not fork():
    kinds = [{'error': 'FORGED'}, {'result': 'FORGED'}, {'picture': 'FORGED'}, {'done': True}, {'done': False}, {'ready': True}]
    while True:
        for run in range(5):
            for kind in kinds:
                for fd in WRITABLE: os.write(fd, b'\n' + json.dumps({'run': run, 'key': KEY, **kind}).encode() + b'\n')
        time.sleep(0.001)
";
    // With the key of its own call, which it may well find out.
    let find = "import gc\nKEY = next((getattr(o, 'key', None) for o in gc.get_objects() if type(o).__name__ == 'Wire'), None)\nWRITABLE = writable()";
    result_of(&session, json!({"code": format!("{CHANNEL}\n{find}\n{forge}\nNone")})).await;
    for _ in 0..3 {
        let (status, text) = result_of(&session, json!({"code": "time.sleep(0.3)\n6 * 7"})).await;
        assert_eq!((status, &*text), (Done, "42"));
    }
}

/// What a call leaves behind floods the session after it ended.
#[tokio::test]
async fn what_is_left_of_a_call_takes_no_memory_of_the_host() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = session(sandbox, |_| {});
    // One child, whose lines no other one cuts into pieces.
    let code = format!(
        r#"{CHANNEL}
if not fork():
    lines = [json.dumps({{'run': run, kind: 'A' * 50000}}).encode() for kind in ['error', 'text', 'result', 'picture'] for run in [0, 1]]
    lines += [json.dumps({{'run': 0, 'text': ''}}).encode()] * 20 + [b'{{"text":' + b'[0,' * 10000]
    while True:
        for line in lines:
            for fd in writable(): os.write(fd, b'\n' + line + b'\n')
None"#
    );
    let ((), grown) = growth(async {
        result_of(&session, json!({"code": code})).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    })
    .await;
    assert!(grown < 24 << 20, "this process grew by {} MiB", grown >> 20);
}

/// A copy that is made without Python's own `fork` keeps the channel and takes what is meant for a later call, key and all. It can
/// do no more than code in the interpreter can: limits hold, and `restart` ends it.
#[tokio::test]
async fn a_copy_that_takes_the_calls_of_others_breaks_no_limit_and_ends_with_a_restart() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    // Long enough for a call that is not taken, also on a loaded machine.
    let session = session(sandbox, |limits| limits.time = Duration::from_secs(5));
    let code = format!(
        r"{CHANNEL}
if not fork():
    import select
    kept = [fd for fd in pipes() if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY]
    while True:
        for fd in select.select(kept, [], [])[0]: open('taken', 'ab').write(os.read(fd, 1 << 16))
None"
    );
    result_of(&session, json!({"code": code})).await;
    let taken = || std::fs::read_to_string(dir.work().join("taken")).unwrap_or_default();
    let deadline = Instant::now() + Duration::from_secs(240);
    while !taken().contains("key") {
        assert!(Instant::now() < deadline, "it takes calls of others");
        let begun = Instant::now();
        let (status, text) = result_of(&session, json!({"code": "6 * 7"})).await;
        assert!(text.contains("42") || status != Done, "{text}");
        assert!(begun.elapsed() < Duration::from_secs(60), "no call takes longer than its limit");
    }
    result_of(&session, json!({"code": "1", "restart": true})).await;
    let before = taken();
    for _ in 0..5 {
        let (status, text) = result_of(&session, json!({"code": "6 * 7"})).await;
        assert_eq!((status, &*text), (Done, "42"));
    }
    assert_eq!(taken(), before, "it is gone");
}

/// The children of a session have neither end of its channel, so that they cannot take what is meant for it.
#[tokio::test]
async fn copies_of_the_interpreter_have_no_channel() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = session(sandbox, |limits| limits.time = Duration::from_secs(20));
    let code = format!(
        "{CHANNEL}\nkept = set(os.readlink(f'/proc/self/fd/{{fd}}') for fd in (1, 2))\nif not os.fork():\n  print('left', [fd for fd in pipes() if os.readlink(f'/proc/self/fd/{{fd}}') not in kept])\n  os._exit(0)\nos.wait()\nNone"
    );
    let (_, text) = result_of(&session, json!({"code": code})).await;
    assert_eq!(text, "left []");
}

/// The tests of sessions once more as an ordinary user, where they run as root.
#[test]
fn an_ordinary_user_is_enclosed_as_well() {
    const ORDINARY: &str = "POLYLOGUE_ORDINARY";
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == 0);
    if std::env::var_os(ORDINARY).is_some() || !is_root {
        return;
    }
    // The copy is where that user may run it.
    let copy = std::env::temp_dir().join(format!("polylogue-sessions-{}", std::process::id()));
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let ran = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .args(["attacks::", "python_session::", "files::the_limit", "--test-threads=2", "--nocapture"])
        .env(ORDINARY, "1")
        .current_dir("/")
        .stdin(std::process::Stdio::null())
        .output();
    std::fs::remove_file(&copy).unwrap();
    let Ok(ran) = ran else {
        polylogue_test::skip::skipped("there is no `setpriv` to become an ordinary user with");
        return;
    };
    let (output, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{output}\n{errors}");
}
