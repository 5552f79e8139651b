//! What code in a session tries against the process that runs it, and against the other tools of its work directory.

use polylogue_tools::PythonSession;
use polylogue_tools::code::shell;
use serde_json::json;

use crate::{Dir, sandbox, told};

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
    told(&session, json!({"code": in_background(&swap)})).await;
    let shell = shell(sandbox);
    for _ in 0..CALLS {
        let (_, text) = told(&shell, json!({"code": "touch d/mine 2>/dev/null; true"})).await;
        assert!(!text.contains("private"), "{text}");
    }
    told(&session, json!({"code": "import os\nos.kill(-1, 9)"})).await;
}
