//! A Python that remembers.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use polylogue_core::ToolStatus::{Done, Failed};
use polylogue_core::{Event, LogId, Part, Resources, ToolResult};
use polylogue_test::tool::call_tool;
use polylogue_tools::PythonSession;
use polylogue_tools::code::{Limits, Sandbox};
use serde_json::json;

use crate::{Dir, call, held, result_of, sandbox};

/// The first pixel that ever was: a whole PNG.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

fn limited(sandbox: Sandbox, change: impl FnOnce(&mut Limits)) -> PythonSession {
    let mut limits = Limits { time: Duration::from_secs(60), ..*sandbox.limits() };
    change(&mut limits);
    PythonSession::new(sandbox.limited(limits))
}

/// What a session says to pieces of code, one after the other.
async fn says(session: &PythonSession, code: &str) -> String {
    let (status, text) = result_of(session, json!({"code": code})).await;
    if status == Done { text } else { format!("failed: {text}") }
}

/// How many processes of this machine have `word` among their arguments.
fn running(word: &str) -> usize {
    let has = |entry: &std::fs::DirEntry| {
        let args = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&args).contains(word)
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter(has).count()
}

#[tokio::test]
async fn variables_persist_between_calls_of_a_session() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = PythonSession::new(sandbox);
    assert_eq!(says(&session, "import math\nx = 20").await, "(no output)");
    assert_eq!(says(&session, "def f(y):\n    return y + 1\nx += f(21)").await, "(no output)");
    assert_eq!(says(&session, "print('x is', x)\nx").await, "x is 42\n42");
    assert_eq!(says(&session, "_ + math.floor(0.5)").await, "42");
    assert_eq!(says(&session, "x;").await, "42");
    assert_eq!(says(&session, "```python\nx + 1\n```").await, "43");
    assert_eq!(says(&session, "None").await, "(no output)");
    assert_eq!(says(&session, "").await, "(no output)");
    assert_eq!(says(&session, "'é\\n'").await, "'é\\n'");
}

#[tokio::test]
async fn all_output_is_returned_in_order() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = PythonSession::new(sandbox);
    let code = "import os, subprocess\nprint('a', end='')\nsubprocess.run(['echo', 'b'])\nos.system('echo c')\nprint('d')";
    assert_eq!(says(&session, code).await, "ab\nc\nd");
    let code = "import sys\nfor i in range(3):\n    print('out', i)\n    print('err', i, file=sys.stderr)";
    assert_eq!(says(&session, code).await, "out 0\nerr 0\nout 1\nerr 1\nout 2\nerr 2");
    assert_eq!(says(&session, "os.write(1, b'\\xff\\xfe\\x00ok')").await, "\u{fffd}\u{fffd}\0ok\n5");
    let lines = says(&session, "for i in range(20000): print(i)").await;
    assert!(lines.starts_with("0\n1\n") && lines.ends_with("\n19999"), "{}", lines.len());
}

#[tokio::test]
async fn errors_are_shown_from_where_the_code_begins() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = PythonSession::new(sandbox);
    says(&session, "x = 1\ndef f(y):\n    return y / 0").await;
    let text = says(&session, "print('before')\nx = 2\nf(x)\nx = 3").await;
    assert!(
        text.starts_with("failed: before\nTraceback (most recent call last):\n  File \"<cell 2>\", line 3"),
        "{text}"
    );
    assert!(text.contains("return y / 0") && text.ends_with("ZeroDivisionError: division by zero"), "{text}");
    assert_eq!(says(&session, "x").await, "2");
    let text = says(&session, "x = = 1").await;
    assert!(text.starts_with("failed: ") && text.ends_with("SyntaxError: invalid syntax"), "{text}");
    assert!(says(&session, "import sys; sys.exit(3)").await.ends_with("SystemExit: 3"));
    assert!(says(&session, "input()").await.ends_with("EOFError: EOF when reading a line"));
    assert!(
        says(&session, "class E(BaseException):\n    def __str__(self): raise self\nraise E()")
            .await
            .contains('E')
    );
    assert_eq!(says(&session, "x").await, "2");
}

#[tokio::test]
async fn code_that_takes_too_long_is_interrupted_and_the_session_continues() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = limited(sandbox, |limits| limits.time = Duration::from_secs(2));
    says(&session, "x = 1\nimport time").await;
    for code in ["print('begun')\nwhile True: pass", "print('begun')\ntime.sleep(600)"] {
        let began = Instant::now();
        let text = says(&session, code).await;
        assert!(text.starts_with("failed: begun\nTraceback"), "{text}");
        assert!(text.ends_with("KeyboardInterrupt\nTimeout: interrupted after 2 s"), "{text}");
        assert!(began.elapsed() < Duration::from_secs(20));
        assert_eq!(says(&session, "x").await, "1");
    }
}

#[tokio::test]
async fn code_that_cannot_be_interrupted_is_killed() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = limited(sandbox, |limits| limits.time = Duration::from_secs(1));
    says(&session, "x = 1").await;
    let code = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nwhile True: pass";
    let text = says(&session, code).await;
    assert!(text.contains("The session ended (Ended: cancelled): its variables are lost"), "{text}");
    assert!(text.ends_with("Timeout: interrupted after 1 s"), "{text}");
    assert!(says(&session, "x").await.ends_with("NameError: name 'x' is not defined"));
}

#[tokio::test]
async fn a_session_that_dies_is_replaced() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = limited(sandbox, |limits| limits.memory_bytes = 512 << 20);
    let text = says(&session, "import os\nprint('last words', flush=True)\nos.kill(os.getpid(), 11)").await;
    assert!(text.contains("The session ended (Ended by signal 11)"), "{text}");
    let text = says(&session, "import os\nos._exit(7)").await;
    assert!(text.contains("The session ended (Exit code 7)"), "{text}");
    // Memory beyond the limit is an error like others.
    assert!(says(&session, "x = bytearray(1 << 30)").await.ends_with("MemoryError"));
    assert_eq!(says(&session, "1 + 1").await, "2");
}

#[tokio::test]
async fn a_python_session_can_be_restarted() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = PythonSession::new(sandbox);
    says(&session, "x = 1").await;
    let (status, text) = result_of(&session, json!({"restart": true})).await;
    assert_eq!((status, &*text), (Done, "(no output)"));
    assert!(says(&session, "x").await.contains("NameError"));
    says(&session, "x = 1").await;
    session.restart(&held()).await;
    assert!(says(&session, "x").await.contains("NameError"));
    assert_eq!(
        result_of(&session, json!({})).await,
        (Failed, "`code` must be a text: what to run next".into())
    );
}

#[tokio::test]
async fn pictures_are_parts() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = PythonSession::new(sandbox);
    let picture =
        format!("import base64\nclass P:\n    def _repr_png_(self): return base64.b64decode('{PIXEL}')\nP()");
    let outcome = call(&session, json!({"code": picture})).await.unwrap();
    assert_eq!(pictures(&outcome), [format!("data:image/png;base64,{PIXEL}")]);
    // It is a file, too, and the text before it says so.
    let shown = outcome.text().into_owned();
    let name = shown.split_once("Picture: ").unwrap().1.strip_suffix(" (1x1)").unwrap();
    assert!(name.starts_with("picture-") && name.ends_with(".png"), "{shown}");
    assert!(std::fs::read(dir.work().join(name)).unwrap().starts_with(b"\x89PNG"));
    // A link that is in its place leads nowhere.
    std::fs::remove_file(dir.work().join(name)).unwrap();
    std::os::unix::fs::symlink(dir.0.join("victim"), dir.work().join(name)).unwrap();
    let outcome = call(&session, json!({"code": "P()"})).await.unwrap();
    assert!(outcome.text().contains("(A picture was not saved: ") && !dir.0.join("victim").exists());
    // A module that draws as matplotlib does, for machines without it.
    let plots = format!(
        "import base64\nopen_figures = [1, 2]\nclass Figure:\n    def savefig(self, file, **how): file.write(base64.b64decode('{PIXEL}'))\ndef get_fignums(): return open_figures\ndef figure(number): return Figure()\ndef close(which): open_figures.clear()\n"
    );
    dir.write("work/matplotlib/pyplot.py", plots);
    let outcome =
        call(&session, json!({"code": "import matplotlib.pyplot as plt\nprint('drawn')"})).await.unwrap();
    assert_eq!((pictures(&outcome).len(), &outcome.parts[0]), (2, &Part::text("drawn")));
    assert!(pictures(&call(&session, json!({"code": "1"})).await.unwrap()).is_empty());
    let fake = "class Q:\n    def _repr_png_(self): return b'no picture'\nQ()";
    let outcome = call(&session, json!({"code": fake})).await.unwrap();
    assert!(pictures(&outcome).is_empty() && outcome.text().contains("(1 more pictures are left out)"));
}

fn pictures(outcome: &ToolResult) -> Vec<&str> {
    let mut urls = Vec::new();
    for part in &outcome.parts {
        if let Part::Media(media) = part {
            urls.push(&*media.url);
        }
    }
    urls
}

#[tokio::test]
async fn what_matplotlib_plots_is_a_picture() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = PythonSession::new(sandbox);
    let outcome = call(&session, json!({"code": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nNone"}))
        .await
        .unwrap();
    if outcome.text().contains("ModuleNotFoundError") {
        polylogue_test::skip::skipped("there is no matplotlib");
        return;
    }
    assert_eq!(pictures(&outcome).len(), 1, "{outcome:?}");
}

#[tokio::test]
async fn too_much_output_is_left_out() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = limited(sandbox, |limits| limits.output_bytes = 1000);
    let text = says(&session, "x = 5\nprint('y' * 5000)").await;
    assert_eq!(text, format!("{}\n(4001 more bytes are left out)", "y".repeat(1000)));
    assert_eq!(says(&session, "x").await, "5");
}

#[tokio::test]
async fn two_sessions_share_nothing() {
    let (one, two) = (Dir::new(), Dir::new());
    let (Some(first), Some(second)) = (sandbox(&one), sandbox(&two)) else { return };
    let (first, second) = (PythonSession::new(first), PythonSession::new(second));
    says(&first, "import os, sys\nsecret = 'hidden'\nopen('/tmp/f', 'w').write('x')\nopen('f', 'w').write('x')\nsys.modules['m'] = 1").await;
    let code = "import os, sys\n('secret' in dir(), os.path.exists('/tmp/f'), os.path.exists('f'), 'm' in sys.modules, [p for p in os.listdir('/proc') if p.isdigit()] == [str(os.getpid())])";
    assert_eq!(says(&second, code).await, "(False, False, False, False, True)");
    let code = "import socket\ntry: socket.socket(socket.AF_INET)\nexcept OSError: print('no network')";
    assert_eq!(says(&second, code).await, "no network");
}

/// One agent with one tool, in several conversations at the same time.
#[tokio::test]
async fn conversations_that_one_program_runs_share_no_interpreter() {
    const CONVERSATIONS: usize = 4;
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let script = r#"[
        {"Ann": {"calls": [{"tool": "python_session", "args": {"code": "import os\nx = globals().get('x', 0) + 1"}, "id": "c1"}]}},
        {"Ann": {"calls": [{"tool": "python_session", "args": {"code": "x += 1\n(x, os.getpid())"}, "id": "c2"}]}},
        {"Ann": "Done."}]"#;
    let script: polylogue_models::Script = serde_json::from_str(script).unwrap();
    let ann = polylogue::Assistant::new("Ann", polylogue::AnyModel::new(script.model("test"))).unwrap();
    let ann = ann.tool(PythonSession::new(sandbox));
    let chat =
        polylogue::Chat::builder("one").participant(ann).policy(polylogue::sequential()).build().unwrap();
    let store = polylogue_core::AnyStore::new(polylogue_store::Memory::new());
    let mut logs = Vec::new();
    for nth in 0..CONVERSATIONS {
        let id = LogId::new(&format!("talk-{nth}")).unwrap();
        logs.push(polylogue::Log::create(store.clone(), id).await.unwrap());
    }
    let [a, b, c, d] = &mut logs[..] else { panic!() };
    let ended =
        tokio::join!(chat.run_in(a, "go"), chat.run_in(b, "go"), chat.run_in(c, "go"), chat.run_in(d, "go"));
    assert!(ended.0.is_ok() && ended.1.is_ok() && ended.2.is_ok() && ended.3.is_ok(), "{ended:?}");
    for log in &logs {
        let outcomes = crate::returned(&log.events().await);
        assert_eq!(outcomes[0], "(no output)");
        assert!(outcomes[1].starts_with("(2, "), "{outcomes:?}");
    }
}

fn until(wrong: &str, holds: impl Fn() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(20), "{wrong}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn a_python_session_is_killed_with_its_conversation() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let nap = format!("91{}", std::process::id());
    let session = PythonSession::new(sandbox);
    let code =
        format!("import subprocess\nsubprocess.Popen(['sleep', '{nap}'], start_new_session=True)\nNone");
    let held = Resources::default();
    call_tool(&session, json!({"code": code}), &held, &[]).await.unwrap();
    // Its start is reported before it has a name.
    until("it is not there", || running(&nap) == 1);
    // What another conversation does is its own matter.
    assert_eq!(says(&session, "1").await, "1");
    drop(held);
    until("it outlives its conversation", || running(&nap) == 0);
    assert_eq!(says(&session, "_").await, "1");
}

#[tokio::test]
async fn a_call_that_is_given_up_is_interrupted() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = PythonSession::new(sandbox);
    says(&session, "x = 1").await;
    {
        let mut long =
            pin!(call(&session, json!({"code": "x = 2\nopen('begun', 'w').close()\nwhile True: pass"})));
        let is_pending = poll_fn(|cx| Poll::Ready(long.as_mut().poll(cx).is_pending())).await;
        assert!(is_pending);
        while !dir.work().join("begun").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    assert_eq!(says(&session, "x").await, "2");
}

#[tokio::test]
async fn a_call_that_is_given_up_and_cannot_be_interrupted_is_killed() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = limited(sandbox, |limits| limits.time = Duration::from_secs(20));
    {
        let code = "import time\nopen('begun', 'w').close()\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass";
        let mut long = pin!(call(&session, json!({"code": code})));
        while !dir.work().join("begun").exists() {
            let is_pending = poll_fn(|cx| Poll::Ready(long.as_mut().poll(cx).is_pending())).await;
            assert!(is_pending);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let text = says(&session, "1").await;
    assert!(text.contains("The session ended (Ended: cancelled)") && !text.contains("Timeout"), "{text}");
    assert_eq!(says(&session, "2").await, "2");
}

#[tokio::test]
async fn code_cannot_take_the_session_over() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let session = limited(sandbox, |limits| limits.time = Duration::from_secs(20));
    // A copy of the process that continues where the code ends; standard streams that are closed or replaced.
    assert_eq!(
        says(&session, "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('once')").await,
        "once\nonce"
    );
    assert_eq!(says(&session, "import sys\nsys.stdout = None\n1").await, "1");
    assert_eq!(says(&session, "print('back')").await, "back");
    says(&session, "import threading, time\ndef late():\n    time.sleep(0.3)\n    print('late')\nthreading.Thread(target=late).start()").await;
    assert!(says(&session, "time.sleep(1)\nprint('later')").await.contains("late\nlater"));
    let text = says(&session, "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(abs, [-1, -2]))").await;
    assert_eq!(text, "[1, 2]");
}

#[tokio::test]
async fn no_interpreter_is_an_error_that_says_so() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let (status, text) =
        result_of(&PythonSession::new(sandbox.clone()).interpreter("no-python"), json!({"code": "1"})).await;
    assert_eq!(
        (status, &*text),
        (Failed, "there is no program `no-python` in /usr/local/bin, /usr/bin, /bin")
    );
    let (status, text) =
        result_of(&PythonSession::new(sandbox).interpreter("false"), json!({"code": "1"})).await;
    assert_eq!((status, &*text), (Failed, "`false` started no session: Exit code 1"));
}

#[tokio::test]
async fn the_result_says_that_variables_are_lost() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let called = json!({"seq": 1, "time_ms": 0, "type": "tool_called", "who": "Ann",
        "call": {"id": "c0", "tool": "python_session", "args": {"code": "x = 1"}}});
    let turn = [Arc::new(serde_json::from_value::<Event>(called).unwrap())];
    let held = Resources::default();
    // As after a resumption in another process.
    let session = PythonSession::new(sandbox);
    let next = async |args| call_tool(&session, args, &held, &turn).await.unwrap();
    let outcome = next(json!({"code": "1"})).await;
    assert_eq!(outcome.text(), "(This is a new session: the variables of earlier calls are lost)\n1");
    assert_eq!(next(json!({"code": "2"})).await.text(), "2");
    let outcome = next(json!({"code": "3", "restart": true})).await;
    assert_eq!(outcome.text(), "3", "who asks for it knows");
}

#[tokio::test]
async fn a_python_session_runs_in_the_folder_of_its_sandbox() {
    let dir = Dir::new();
    let session = PythonSession::new(Sandbox::unsafe_host(dir.work()));
    says(&session, "x = 1").await;
    let work = dir.work().display().to_string();
    assert_eq!(
        says(&session, "import os\n(x, os.getcwd())").await,
        format!("(1, {work:?})").replace('"', "'")
    );
}
