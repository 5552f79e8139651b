//! Tools that run Python in a virtual environment.

use polylogue_core::Tool as _;
use polylogue_test::venv::make;
use polylogue_tools::PythonSession;
use polylogue_tools::code::{Sandbox, Venv, python, shell};
use polylogue_tools::files::{Folder, all};
use serde_json::json;

use crate::{Dir, done, failed, sandbox};

/// A sandbox with a virtual environment in its work directory.
fn with_venv(dir: &Dir) -> Option<Sandbox> {
    let sandbox = sandbox(dir)?;
    let venv = dir.work().join(".venv");
    make(&venv).then(|| sandbox.venv(Venv::open(&venv).unwrap()).unwrap())
}

#[tokio::test]
async fn programs_scripts_and_sessions_use_its_packages_and_describe_them() {
    let dir = Dir::new();
    let Some(sandbox) = with_venv(&dir) else { return };
    let code = "import greeting\nprint(greeting.hello())";
    let session = PythonSession::new(sandbox.clone());
    for tool in [python(sandbox.clone()), shell(sandbox)] {
        assert!(tool.spec().description.contains("these packages: greeting 1.2.3."), "{:?}", tool.spec());
        let code = if tool.spec().name == "shell" { "greet" } else { code };
        assert!(done(&tool, json!({"code": code})).await.ends_with("hello from the package"));
    }
    assert!(session.spec().description.contains("these packages: greeting 1.2.3."));
    let code = "import greeting, sys\n(greeting.hello(), sys.prefix)";
    let expected = format!("('hello from the package', '{}')", dir.work().join(".venv").display());
    assert_eq!(done(&session, json!({"code": code})).await, expected);
}

#[tokio::test]
async fn a_virtual_environment_is_read_only() {
    let dir = Dir::new();
    let Some(sandbox) = with_venv(&dir) else { return };
    let tools = all(&Folder::of(&sandbox));
    let tool = |name: &str| tools.iter().find(|tool| tool.spec().name == name).unwrap();
    for path in [".venv/x", "./a/../.venv/bin/activate", "/work/.venv/lib/x.py"] {
        let error = failed(tool("write_file"), json!({"path": path, "content": "x"})).await;
        assert!(error.ends_with("is in the virtual environment, which cannot be changed"), "{error}");
    }
    let edit = json!({"path": ".venv/pyvenv.cfg", "old": "home", "new": "x"});
    assert!(failed(tool("edit_file"), edit).await.contains("cannot be changed"));
    done(tool("write_file"), json!({"path": ".venv2", "content": "x"})).await;
    done(tool("read_file"), json!({"path": ".venv/pyvenv.cfg"})).await;
    let error = failed(&shell(sandbox), json!({"code": "echo x > /work/.venv/x"})).await;
    assert!(error.contains("Read-only file system"), "{error}");
}
