//! Everything that a sandbox needs, made ready before the process is copied.

use std::ffi::{CString, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use seccompiler::BpfProgram;

use super::filter;
use crate::error::Error;
use crate::program::Program;
use crate::sandbox::{Network, Sandbox};
use crate::venv::Venv;
use crate::visible::SYSTEM;

/// The user and the group inside.
pub(super) const USER: u32 = 1000;

/// The files of `/etc` that every program can read.
const ETC: [&str; 5] = ["alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime"];
/// Those that programs with web access can read, too: certificates to trust, and no private keys of this machine.
const ETC_WEB: [&str; 8] = [
    "ca-certificates", "pki/ca-trust/extracted", "pki/tls/cert.pem", "pki/tls/certs", "services",
    "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf",
];
/// Those that programs with the network of this machine can read, too.
const ETC_NETWORK: [&str; 3] = ["resolv.conf", "hosts", "nsswitch.conf"];
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// Attributes of mounts: where programs can write, and where they can only read.
const WRITABLE: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
const READ_ONLY: u64 = WRITABLE | libc::MOUNT_ATTR_RDONLY;
/// Options of `/tmp` and `/dev/shm`, with their sizes.
const TMP: &str = "size=256m,nr_inodes=65536,mode=1777";
const SHM: &str = "size=64m,nr_inodes=4096,mode=1777";

/// A step of building the file system. Paths are those of the new root; the old one is at `/.old`.
pub(super) enum MountStep {
    Directory(CString),
    Link { target: CString, path: CString },
    File { path: CString, content: Vec<u8> },
    Bind { from: CString, to: CString, attributes: u64 },
    Tmpfs { path: CString, options: CString },
    Processes,
}

/// A list of texts as the kernel takes them.
pub(super) struct Texts {
    pub(super) pointers: Vec<*const c_char>,
    /// What they point to.
    _texts: Vec<CString>,
}

/// The descriptors that the side within the sandbox uses.
#[derive(Clone, Copy)]
pub(super) struct Fds {
    /// The standard input of the program.
    pub(super) input: c_int,
    /// Its standard output and error output.
    pub(super) output: c_int,
    /// Where the progress of the isolation is reported.
    pub(super) report: c_int,
    /// One byte arrives here when the user is mapped, for which the first process waits.
    pub(super) go: c_int,
    /// Where the listening socket of the proxy is sent to; negative when there is none.
    pub(super) proxy_socket: c_int,
}

impl Fds {
    pub(super) const NONE: Self = Self { input: -1, output: -1, report: -1, go: -1, proxy_socket: -1 };
}

pub(super) struct Plan {
    pub(super) namespaces: c_int,
    /// Whether the program may use internet sockets at all.
    pub(super) has_sockets: bool,
    pub(super) fds: Fds,
    /// The work directory, from outside.
    pub(super) work: CString,
    pub(super) tree: Vec<MountStep>,
    pub(super) filters: Vec<BpfProgram>,
    pub(super) limits: [(libc::__rlimit_resource_t, u64); 6],
    /// Files to write, with the directories that they are in.
    pub(super) files: Vec<(Vec<CString>, CString, Vec<u8>)>,
    pub(super) path: CString,
    pub(super) args: Texts,
    pub(super) env: Texts,
}

impl Plan {
    pub(super) fn of(
        sandbox: &Sandbox,
        program: &Program,
        path: &Path,
        largest_file: u64,
    ) -> Result<Self, Error> {
        let has_network = matches!(sandbox.network, Network::Host);
        let apart = libc::CLONE_NEWUSER
            | libc::CLONE_NEWNS
            | libc::CLONE_NEWPID
            | libc::CLONE_NEWIPC
            | libc::CLONE_NEWUTS
            | libc::CLONE_NEWCGROUP;
        let limits = sandbox.limits();
        let environment = sandbox.environment().map(|(name, value)| {
            let mut entry = name;
            entry.push("=");
            entry.push(value);
            entry
        });
        Ok(Self {
            namespaces: if has_network { apart } else { apart | libc::CLONE_NEWNET },
            has_sockets: sandbox.network != Network::None,
            fds: Fds::NONE,
            work: text(sandbox.work())?,
            tree: Tree::of(sandbox)?,
            filters: filter::filters(&sandbox.network)?,
            limits: [
                // Not the address space, of which some interpreters reserve far more than they use.
                (libc::RLIMIT_DATA, limits.memory_bytes),
                (libc::RLIMIT_FSIZE, largest_file),
                // The first process of the sandbox counts, too.
                (libc::RLIMIT_NPROC, limits.processes.saturating_add(1)),
                // Less than what other processes of the user may have, with which they share those that are in flight.
                (libc::RLIMIT_NOFILE, 512),
                // What is counted for all processes of the user.
                (libc::RLIMIT_SIGPENDING, 1024),
                (libc::RLIMIT_MEMLOCK, 0),
            ],
            files: program.files.iter().map(file).collect::<Result<_, _>>()?,
            path: text(path)?,
            args: Texts::of([path.as_os_str().to_owned()].into_iter().chain(program.args.iter().cloned()))?,
            env: Texts::of(environment)?,
        })
    }
}

impl Texts {
    fn of(texts: impl Iterator<Item = OsString>) -> Result<Self, Error> {
        let texts = texts.map(text).collect::<Result<Vec<_>, _>>()?;
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Ok(Self { pointers, _texts: texts })
    }
}

fn text(text: impl AsRef<OsStr>) -> Result<CString, Error> {
    let text = text.as_ref();
    CString::new(text.as_bytes())
        .map_err(|_| Error::Config(format!("{} has a zero byte in it", text.to_string_lossy())))
}

fn file((path, content): &(PathBuf, Vec<u8>)) -> Result<(Vec<CString>, CString, Vec<u8>), Error> {
    let parents = path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
    let mut parents = parents.map(text).collect::<Result<Vec<_>, _>>()?;
    parents.reverse();
    Ok((parents, text(path)?, content.clone()))
}

/// The steps of building a file system.
#[derive(Default)]
struct Tree(Vec<MountStep>);

impl Tree {
    fn of(sandbox: &Sandbox) -> Result<Vec<MountStep>, Error> {
        let mut tree = Self::default();
        for path in SYSTEM {
            tree.show(Path::new(path))?;
        }
        tree.etc(&sandbox.network)?;
        tree.devices()?;
        tree.directory("/proc")?;
        tree.0.push(MountStep::Processes);
        tree.tmpfs("/tmp", TMP)?;
        // Nothing is shown twice: what is within something else is shown with it.
        let mut readable: Vec<&PathBuf> = sandbox.readable.iter().collect();
        readable.sort();
        readable.dedup_by(|path, before| path.starts_with(before));
        for path in readable {
            tree.show(path)?;
        }
        tree.directory("/work")?;
        tree.bind(sandbox.work(), Path::new("/work"), WRITABLE)?;
        for path in sandbox.python().into_iter().flat_map(Venv::paths) {
            tree.protect(sandbox.work(), path)?;
        }
        for (path, target) in &sandbox.links {
            tree.parents(path)?;
            tree.0.push(MountStep::Link { target: text(target)?, path: text(path)? });
        }
        Ok(tree.0)
    }

    /// Makes `path` read-only where it is a part of the work directory, too. The directories that it is in are made mounts, which
    /// programs can neither move nor replace.
    fn protect(&mut self, work: &Path, path: &Path) -> Result<(), Error> {
        let Ok(below) = path.strip_prefix(work) else { return Ok(()) };
        let mut parents: Vec<&Path> =
            below.ancestors().skip(1).filter(|path| *path != Path::new("")).collect();
        parents.reverse();
        for parent in parents {
            self.bind(&work.join(parent), &Path::new("/work").join(parent), WRITABLE)?;
        }
        self.bind(path, &Path::new("/work").join(below), READ_ONLY)
    }

    fn directory(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.0.push(MountStep::Directory(text(path.as_ref())?));
        Ok(())
    }

    fn tmpfs(&mut self, path: &str, options: &str) -> Result<(), Error> {
        self.directory(path)?;
        self.0.push(MountStep::Tmpfs { path: text(path)?, options: text(options)? });
        Ok(())
    }

    fn parents(&mut self, path: &Path) -> Result<(), Error> {
        let mut parents: Vec<&Path> =
            path.ancestors().skip(1).filter(|parent| parent.parent().is_some()).collect();
        parents.reverse();
        parents.into_iter().try_for_each(|parent| self.directory(parent))
    }

    /// Shows a path of the system at its own place, if it is there: a link as a link.
    fn show(&mut self, path: &Path) -> Result<(), Error> {
        let Ok(about) = std::fs::symlink_metadata(path) else { return Ok(()) };
        if let (true, Ok(target)) = (about.is_symlink(), std::fs::read_link(path)) {
            self.0.push(MountStep::Link { target: text(target)?, path: text(path)? });
            return Ok(());
        }
        // Already shown with what it is in.
        if SYSTEM.iter().any(|shown| path != Path::new(shown) && path.starts_with(shown)) {
            return Ok(());
        }
        self.parents(path)?;
        self.place(path, path)
    }

    /// Binds what is at `from` read-only at `to`.
    fn place(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        if from.is_dir() {
            self.directory(to)?;
        } else {
            self.0.push(MountStep::File { path: text(to)?, content: Vec::new() });
        }
        self.bind(from, to, READ_ONLY)
    }

    fn bind(&mut self, from: &Path, to: &Path, attributes: u64) -> Result<(), Error> {
        let mut old = OsString::from("/.old");
        old.push(from);
        self.0.push(MountStep::Bind { from: text(old)?, to: text(to)?, attributes });
        Ok(())
    }

    fn etc(&mut self, network: &Network) -> Result<(), Error> {
        self.directory("/etc")?;
        let more: &[&[&str]] = match network {
            Network::None => &[],
            Network::Hosts(_) => &[&ETC_WEB],
            Network::Host => &[&ETC_WEB, &ETC_NETWORK],
        };
        for name in ETC.iter().chain(more.iter().copied().flatten()) {
            let path = Path::new("/etc").join(name);
            // What a link leads to may not be shown; what it means is.
            if let Ok(real) = path.canonicalize() {
                self.parents(&path)?;
                self.place(&real, &path)?;
            }
        }
        let user = format!("user:x:{USER}:{USER}::/tmp:/bin/sh\n");
        self.0.push(MountStep::File { path: text("/etc/passwd")?, content: user.into_bytes() });
        self.0.push(MountStep::File {
            path: text("/etc/group")?,
            content: format!("user:x:{USER}:\n").into_bytes(),
        });
        Ok(())
    }

    fn devices(&mut self) -> Result<(), Error> {
        self.tmpfs("/dev", "size=64k,nr_inodes=64,mode=0755")?;
        for name in DEVICES {
            let path = Path::new("/dev").join(name);
            self.0.push(MountStep::File { path: text(&path)?, content: Vec::new() });
            // Read-only is the node, whose mode and owner are those of the host; what it leads to can be written.
            let attributes = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;
            self.bind(&path, &path, attributes)?;
        }
        let links = [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")];
        for (name, fd) in links {
            let (target, path) = (format!("/proc/self/fd{fd}"), format!("/dev/{name}"));
            self.0.push(MountStep::Link { target: text(target)?, path: text(path)? });
        }
        self.tmpfs("/dev/shm", SHM)
    }
}
