//! Control groups: what the kernel counts for all processes of a sandbox together. Memory, that which the kernel needs on
//! their behalf included, and for root, whose processes it does not count otherwise, their number.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sandbox::Limits;

/// Where control groups are.
const ALL: &str = "/sys/fs/cgroup";
/// Attempts to remove a group, 1 ms apart: the kernel may still count processes that have ended.
const TRIES: u32 = 20;

/// The control groups of one sandbox, which are gone when this is dropped.
#[derive(Default)]
pub(super) struct Group {
    dirs: Vec<PathBuf>,
    /// The file that counts the processes that were killed for want of memory.
    kills: Option<PathBuf>,
}

impl Group {
    /// Groups with these limits, as far as this user may make any.
    pub(super) fn of(limits: &Limits) -> Self {
        let mut group = Self::default();
        let Ok(own) = fs::read_to_string("/proc/self/cgroup") else { return group };
        // The first process counts, too.
        let processes = limits.processes.saturating_add(1);
        let mut has_processes = super::sys::ids().0 != 0;
        for place in places(&own) {
            let counts_processes = place.processes && !has_processes;
            let counts_memory = place.memory.filter(|_| group.kills.is_none());
            if !counts_processes && counts_memory.is_none() {
                continue;
            }
            clear(&place.dir);
            let Some(dir) = new_group(&place.dir) else { continue };
            if counts_processes {
                has_processes = fs::write(dir.join("pids.max"), processes.to_string()).is_ok();
            }
            if let Some(memory) = counts_memory {
                group.kills = memory.limit(&dir, limits.memory_bytes);
            }
            group.dirs.push(dir);
        }
        group
    }

    /// Whether memory is counted.
    pub(super) const fn counts_memory(&self) -> bool {
        self.kills.is_some()
    }

    /// Moves a process to the groups; processes that it starts later are in them, too. Where that fails it is only observed from outside, as
    /// where there is no group.
    pub(super) fn add(&self, pid: i32) {
        for dir in &self.dirs {
            drop(fs::write(dir.join("cgroup.procs"), pid.to_string()));
        }
    }

    /// Whether the kernel has killed a process for want of memory.
    pub(super) fn ran_out(&self) -> bool {
        let events = self.kills.as_ref().and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.is_some_and(|kills| kills.trim() != "0")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for dir in &self.dirs {
            for _ in 0..TRIES {
                if fs::remove_dir(dir).is_ok() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    }
}

/// Why no memory is counted on this machine for this user, if it is not.
pub(crate) fn memory_obstacle() -> Option<&'static str> {
    let group = Group::of(&Limits::default());
    (!group.counts_memory()).then_some(
        "this user may make no group in a memory controller: the memory of processes is looked at 20 times a second, and \
         what the kernel holds for their sockets is not counted; `systemd-run --user --scope polylogue ...` has one on most systems",
    )
}

/// A version of the memory controller.
#[derive(Clone, Copy)]
enum Memory {
    V1,
    V2,
}

impl Memory {
    /// Limits the group in `dir`, and returns the file that counts the processes that were killed; `None` if it cannot be limited.
    fn limit(self, dir: &Path, bytes: u64) -> Option<PathBuf> {
        let bytes = bytes.to_string();
        let (limit, more, kills): (_, &[(&str, &str)], _) = match self {
            // Of memory and swap together, and of buffers of TCP, where these are counted.
            Self::V1 => (
                "memory.limit_in_bytes",
                &[("memory.memsw.limit_in_bytes", &bytes), ("memory.kmem.tcp.limit_in_bytes", &bytes)],
                "memory.oom_control",
            ),
            Self::V2 => {
                ("memory.max", &[("memory.swap.max", "0"), ("memory.oom.group", "1")], "memory.events")
            }
        };
        fs::write(dir.join(limit), &bytes).ok()?;
        for (file, value) in more {
            // Some kernels do not count these.
            drop(fs::write(dir.join(file), value));
        }
        Some(dir.join(kills)).filter(|kills| kills.exists())
    }
}

/// Creates a group below `parent`; `None` if this user may not. A group that has the name already belongs to a process with the same
/// id: one before this one, or one in another container. Without a group of its own, a program would run without these limits.
fn new_group(parent: &Path) -> Option<PathBuf> {
    static NTH: AtomicU64 = AtomicU64::new(0);
    loop {
        let nth = NTH.fetch_add(1, Ordering::Relaxed);
        let dir = parent.join(format!("polylogue-{}-{nth}", std::process::id()));
        match fs::create_dir(&dir) {
            Ok(()) => return Some(dir),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
    }
}

/// Removes the groups of processes that were killed before they could. Groups with live processes stay.
fn clear(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix("polylogue-")?.split('-').next());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            drop(fs::remove_dir(entry.path()));
        }
    }
}

/// A group that may have others below it, and what these count.
struct ControlGroup {
    dir: PathBuf,
    processes: bool,
    memory: Option<Memory>,
}

/// This process's own groups of the old kind, one for each controller; its own or the one above of the new kind. Below them
/// all limits of those above hold, too.
fn places(own: &str) -> Vec<ControlGroup> {
    let mut found = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(kinds), Some(path)) = (fields.next(), fields.next()) else { continue };
        let path = path.trim_start_matches('/');
        if kinds == "pids" || kinds == "memory" {
            let memory = (kinds == "memory").then_some(Memory::V1);
            found.push(ControlGroup {
                dir: Path::new(ALL).join(kinds).join(path),
                processes: kinds == "pids",
                memory,
            });
        }
        if kinds.is_empty() {
            let own = Path::new(ALL).join(path);
            let above = (!path.is_empty()).then(|| own.parent().map(Path::to_owned)).flatten();
            found.extend([Some(own), above].into_iter().flatten().map(unified));
        }
    }
    found
}

/// A group of the new kind.
fn unified(dir: PathBuf) -> ControlGroup {
    let kinds = fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default();
    let has = |wanted: &str| kinds.split_whitespace().any(|kind| kind == wanted);
    ControlGroup { processes: has("pids"), memory: has("memory").then_some(Memory::V2), dir }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_kinds_are_found() {
        let v1 = "8:pids:/\n5:cpu,cpuacct:/x\n4:memory:/a/b\n0::/\n";
        let found: Vec<_> = places(v1)
            .into_iter()
            .map(|place| (place.dir, place.processes, place.memory.is_some()))
            .collect();
        let expected = [("/sys/fs/cgroup/pids/", true, false), ("/sys/fs/cgroup/memory/a/b", false, true)];
        for (found, (dir, processes, memory)) in found.iter().zip(expected) {
            assert_eq!(found, &(PathBuf::from(dir), processes, memory));
        }
        let v2 = places("0::/user.slice/app.scope\n");
        let dirs: Vec<_> = v2.iter().map(|place| place.dir.display().to_string()).collect();
        assert_eq!(dirs, ["/sys/fs/cgroup/user.slice/app.scope", "/sys/fs/cgroup/user.slice"]);
    }

    #[test]
    fn a_group_of_another_process_with_the_same_id_is_not_shared() {
        let parent = tempfile::tempdir().unwrap();
        let taken: Vec<PathBuf> = (0..1_000)
            .map(|nth| parent.path().join(format!("polylogue-{}-{nth}", std::process::id())))
            .collect();
        taken.iter().for_each(|dir| fs::create_dir(dir).unwrap());
        let made = new_group(parent.path()).unwrap();
        assert!(made.exists() && !taken.contains(&made), "{}", made.display());
        assert_eq!(new_group(&parent.path().join("nowhere")), None);
    }

    /// Whatever kind this machine has; an imitation shows the other.
    #[test]
    fn the_kernel_ends_processes_of_a_group_for_want_of_memory() {
        let group = Group::of(&Limits { memory_bytes: 32 << 20, ..Limits::default() });
        let Some(kills) = &group.kills else {
            return polylogue_test::skip::skipped("this user may make no group in a memory controller");
        };
        if !kills.ends_with("memory.events") {
            polylogue_test::skip::skipped(
                "the memory controller here is of control groups v1: v2 is not tried on a kernel",
            );
        }
        // It waits until it is in the group, and then keeps a line of 300 MiB.
        let mut hog = std::process::Command::new("sh");
        let hog = hog.args(["-c", "read go && head -c 300m /dev/zero | tail -n 1"]);
        let hog = hog.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
        let mut hog = hog.spawn().unwrap();
        group.add(i32::try_from(hog.id()).unwrap());
        assert!(!group.ran_out());
        std::io::Write::write_all(&mut hog.stdin.take().unwrap(), b"go\n").unwrap();
        hog.wait().unwrap();
        assert!(group.ran_out(), "{:?}", group.dirs);
    }

    #[test]
    fn a_group_of_the_new_kind_is_limited() {
        // A directory with the files that the kernel has there.
        let dir = std::env::temp_dir().join(format!("polylogue-group-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        for (file, content) in
            [("cgroup.subtree_control", "cpu memory pids\n"), ("memory.events", "low 0\noom_kill 2\n")]
        {
            fs::write(dir.join(file), content).unwrap();
        }
        let place = unified(dir.clone());
        assert!(place.processes);
        let kills = place.memory.unwrap().limit(&dir, 1 << 20);
        assert_eq!(fs::read_to_string(dir.join("memory.max")).unwrap(), "1048576");
        assert_eq!(fs::read_to_string(dir.join("memory.swap.max")).unwrap(), "0");
        let group = Group { dirs: Vec::new(), kills };
        assert!(group.counts_memory() && group.ran_out());
        fs::write(dir.join("memory.events"), "oom 5\noom_kill 0\n").unwrap();
        assert!(!group.ran_out());
        fs::remove_dir_all(&dir).unwrap();
    }
}
