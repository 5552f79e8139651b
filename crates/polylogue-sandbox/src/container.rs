//! Programs in a container, by the command line of an engine.
//!
//! Docker, Podman and others share the command line, and people can read and repeat it.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::error::Error;
use crate::files;
use crate::host::{Watched, supervised};
use crate::program::{Cancellation, Program, Streams};
use crate::program_result::ExitReason;
use crate::sandbox::{Network, Sandbox};

/// Timeout of ending a container.
const ENDING: Duration = Duration::from_secs(15);
/// Timeout of asking an engine for its version.
const ANSWERING: Duration = Duration::from_secs(5);
/// The exit code of engines that failed themselves.
const ENGINE_FAILED: i32 = 125;
/// Maximum length of engine output in errors, in bytes.
const SAID: usize = 2000;

impl Engine {
    /// Arguments of the engine before the image and the program. The image comes from team files: it must not be one more of them.
    fn options(
        &self,
        sandbox: &Sandbox,
        container: &Container<'_>,
        largest_file: u64,
    ) -> Result<Options, Error> {
        if !Self::is_image(&self.image) {
            return Err(Error::Config(format!("`{}` is not the name of an image", self.image)));
        }
        let limits = sandbox.limits();
        let mut options = Options::default();
        options.add("name", container.name);
        options.add("cidfile", container.id);
        match sandbox.network {
            Network::None => options.add("network", "none"),
            // The default network of the engine.
            Network::Host => {}
            Network::Hosts(_) => return Err(Error::Config(ALL_OR_NONE.into())),
        }
        options.add("cap-drop", "ALL");
        options.add("security-opt", "no-new-privileges");
        options.add("pids-limit", limits.processes.to_string());
        options.add("memory", limits.memory_bytes.to_string());
        // Of memory and swap together: no swap.
        options.add("memory-swap", limits.memory_bytes.to_string());
        options.add("ulimit", format!("fsize={0}:{0}", largest_file));
        options.add("ulimit", "nofile=1024:1024");
        options.add("ulimit", "core=0:0");
        options.add("tmpfs", "/tmp:rw,nosuid,nodev,size=256m");
        self.user(sandbox, &mut options)?;
        options.add("mount", mount(sandbox.work(), Path::new("/work"), self.relabeled())?);
        for path in &sandbox.readable {
            options.add("mount", mount(path, path, ",readonly")?);
        }
        options.add("workdir", "/work");
        // The image knows best where its programs are.
        for (variable, value) in sandbox.environment().filter(|(variable, _)| variable != "PATH") {
            let mut entry = variable;
            entry.push("=");
            entry.push(value);
            options.add("env", entry);
        }
        Ok(options)
    }

    /// Programs run as the owner of the work directory, so that what they write there is the owner's.
    fn user(&self, sandbox: &Sandbox, options: &mut Options) -> Result<(), Error> {
        let about = std::fs::metadata(sandbox.work())
            .map_err(|error| Error::system("the work directory cannot be looked at", error))?;
        options.add("user", format!("{}:{}", about.uid(), about.gid()));
        if self.is_podman() && about.uid() != 0 {
            options.add("userns", "keep-id");
        }
        Ok(())
    }

    /// On systems with SELinux, Podman must relabel the work directory.
    fn relabeled(&self) -> &'static str {
        if self.is_podman() { ",relabel=private" } else { "" }
    }

    /// Returns the versions of client and server, for `doctor`.
    ///
    /// # Errors
    /// When the engine does not exist or does not answer.
    pub fn answers(&self) -> Result<String, Error> {
        let path = self.path()?;
        let mut asked = Command::new(&path);
        asked.args(["version", "--format", "{{.Client.Version}} {{.Server.Version}}"]).stdin(Stdio::null());
        let refused = |why: String| Error::Refused { why: failure(&path, why.as_bytes()) };
        let child = asked.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| refused(error.to_string()))?;
        if !is_over_within(&mut child, ANSWERING) {
            drop(child.kill().and_then(|()| child.wait()));
            return Err(refused(format!("it does not answer within {} s", ANSWERING.as_secs())));
        }
        let output = child.wait_with_output().map_err(|error| refused(error.to_string()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        Err(refused(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

fn is_over_within(child: &mut std::process::Child, time: Duration) -> bool {
    let since = Instant::now();
    while child.try_wait().is_ok_and(|status| status.is_none()) {
        if since.elapsed() > time {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

const ALL_OR_NONE: &str =
    "a container reaches the whole network or none of it: hosts by name are for the native sandbox only";

/// Command-line arguments of an engine.
#[derive(Default)]
struct Options(Vec<OsString>);

impl Options {
    fn add(&mut self, option: &str, value: impl AsRef<OsStr>) {
        let mut word = OsString::from(format!("--{option}="));
        word.push(value);
        self.0.push(word);
    }
}

/// The option that mounts a directory: fields separated by commas.
fn mount(from: &Path, to: &Path, more: &str) -> Result<OsString, Error> {
    if from.to_string_lossy().contains([',', '"', '\n']) {
        let why = "its name has a comma, a quotation mark or a line break";
        return Err(Error::Config(format!("`{}` cannot be shown to a container: {why}", from.display())));
    }
    let mut text = OsString::from("type=bind,source=");
    text.push(from);
    text.push(",target=");
    text.push(to);
    text.push(more);
    Ok(text)
}

/// A container that may be running.
struct Container<'a> {
    engine: &'a Path,
    name: &'a str,
    /// The file to which the engine writes the container's id.
    id: &'a Path,
}

impl Container<'_> {
    /// Kills and removes it. It may have ended already, so errors are ignored.
    fn end(&self) {
        for words in [&["kill"][..], &["rm", "--force"]] {
            let mut command = Command::new(self.engine);
            command
                .args(words)
                .arg(self.name)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let Ok(mut child) = command.spawn() else { return };
            is_over_within(&mut child, ENDING);
            drop(child.kill().and_then(|()| child.wait()));
        }
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        drop(std::fs::remove_file(self.id));
    }
}

/// A unique name of a container.
fn name() -> String {
    static NTH: AtomicU64 = AtomicU64::new(0);
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    format!("polylogue-{}-{since:x}-{}", std::process::id(), NTH.fetch_add(1, Ordering::Relaxed))
}

/// Runs `program` in a container.
pub(crate) fn run(
    engine: &Engine,
    sandbox: &Sandbox,
    program: &Program,
    cancellation: &Cancellation,
    streams: Streams<'_>,
) -> Result<ExitReason, Error> {
    let path = engine.path()?;
    let name = name();
    let id = std::env::temp_dir().join(format!("{name}.id"));
    let container = Container { engine: &path, name: &name, id: &id };
    #[cfg(target_os = "linux")]
    let mut disk = crate::disk::WatchDisk::begin(sandbox, program)?;
    #[cfg(target_os = "linux")]
    let largest_file = disk.largest_file();
    #[cfg(not(target_os = "linux"))]
    let largest_file = sandbox.limits().largest_file();
    let mut command = Command::new(&path);
    command.args(["run", "--rm", "--read-only", "--pull=never"]);
    if streams.input.is_some() {
        command.arg("--interactive");
    }
    command
        .args(engine.options(sandbox, &container, largest_file)?.0)
        .arg(&engine.image)
        .arg(&program.command);
    command.args(&program.args);
    files::write(sandbox.work(), &program.files)?;
    let mut said = Vec::new();
    let output = &mut |bytes: &[u8]| {
        said.extend(bytes.iter().take(SAID.saturating_sub(said.len())));
        (streams.output)(bytes);
    };
    #[cfg(target_os = "linux")]
    let mut watch = || disk.look(Vec::new);
    // Otherwise the size of the work directory is not checked.
    #[cfg(not(target_os = "linux"))]
    let mut watch = || None;
    let watched = Watched { sandbox, cancellation, slow: &mut watch, end: &|| container.end() };
    match supervised(command, Streams { input: streams.input, output }, watched)? {
        ExitReason::Exited(ENGINE_FAILED) if !id.exists() => {
            Err(Error::Refused { why: failure(&path, &said) })
        }
        #[cfg(target_os = "linux")]
        how => Ok(disk.after(how)),
        #[cfg(not(target_os = "linux"))]
        how => Ok(how),
    }
}

/// The error text of an engine that did not start a container.
fn failure(engine: &Path, said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let name = engine.file_name().unwrap_or_default().display();
    format!("the container engine `{name}` made no container: {}", said.join("; "))
}
