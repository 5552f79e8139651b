//! Virtual environments of Python, for tests of what runs in them.
#![expect(clippy::expect_used, reason = "for tests: an error would only be unwrapped")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::skip::{has, has_python};

/// Makes a virtual environment at `path` with the system's Python: with the package `greeting` 1.2.3, whose function `hello` returns a
/// text, and the program `greet`, which prints it. Returns `false`, and reports that the test is skipped, where that is not possible.
///
/// # Panics
/// When it cannot be written.
pub fn make(path: &Path) -> bool {
    let pythons = ["/usr/local/bin/python3", "/usr/bin/python3", "/bin/python3"].into_iter();
    let Some(python) = pythons.into_iter().find(|python| Path::new(python).exists()).filter(|_| has_python())
    else {
        return false;
    };
    let mut command = Command::new(python);
    let made = command.args(["-m", "venv", "--without-pip"]).arg(path).stdin(Stdio::null()).output();
    if !has("the module `venv` of Python", made.is_ok_and(|made| made.status.success())) {
        return false;
    }
    let module = site(path).join("greeting");
    fs::create_dir_all(&module).expect("a folder");
    fs::write(module.join("__init__.py"), "def hello(): return 'hello from the package'\n").expect("a file");
    package(path, "greeting", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.2.3\n");
    let program = path.join("bin/greet");
    let text = format!("#!{}/bin/python3\nimport greeting; print(greeting.hello())\n", path.display());
    fs::write(&program, text).expect("a file");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    true
}

/// Returns the folder of the packages of the virtual environment at `path`.
///
/// # Panics
/// When there is none.
pub fn site(path: &Path) -> PathBuf {
    let versions = fs::read_dir(path.join("lib")).expect("a folder `lib`").flatten();
    let mut sites = versions.map(|version| version.path().join("site-packages"));
    sites.find(|site| site.is_dir()).expect("a folder `site-packages`")
}

/// Writes the metadata of a package into the virtual environment at `path`.
///
/// # Panics
/// When it cannot be written.
pub fn package(path: &Path, name: &str, metadata: impl AsRef<[u8]>) {
    let info = site(path).join(format!("{name}-1.dist-info"));
    fs::create_dir_all(&info).expect("a folder");
    fs::write(info.join("METADATA"), metadata).expect("a file");
}
