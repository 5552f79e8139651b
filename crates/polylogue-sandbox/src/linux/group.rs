//! How many processes root may have: the kernel counts those of all users but root, for whom it takes a control group.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where control groups are.
const ALL: &str = "/sys/fs/cgroup";
/// How often a group is asked to go whose processes the kernel has not quite forgotten yet.
const TRIES: u32 = 20;

/// A control group, which is gone when this is dropped.
pub(super) struct Group(PathBuf);

impl Group {
    /// One for so many processes; none where none can be made, and for ordinary users, who need none.
    pub(super) fn of(processes: u64) -> Option<Self> {
        static NTH: AtomicU64 = AtomicU64::new(0);
        if super::sys::ids().0 != 0 {
            return None;
        }
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let nth = NTH.fetch_add(1, Ordering::Relaxed);
        let name = format!("polylogue-{}-{nth}", std::process::id());
        let group = parents(&own).into_iter().find_map(|parent| {
            clear(&parent);
            let path = parent.join(&name);
            fs::create_dir(&path).ok().map(|()| Self(path))
        })?;
        // Dropped, it goes again.
        fs::write(group.0.join("pids.max"), processes.to_string()).ok()?;
        Some(group)
    }

    /// Moves a process there, and whatever it will start with it. Where that fails it is counted from outside only, as it is
    /// where there is no group.
    pub(super) fn add(&self, pid: i32) {
        drop(fs::write(self.0.join("cgroup.procs"), pid.to_string()));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// Removes the groups of processes that were killed before they could. Those with somebody in them stay anyway.
fn clear(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix("polylogue-")?.split('-').next());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            drop(fs::remove_dir(entry.path()));
        }
    }
}

/// Groups that may have one below them that counts processes: this process's own of the old kind; its own or the one above
/// of the new kind. Below it all limits of those above hold, too.
fn parents(own: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(kinds), Some(path)) = (fields.next(), fields.next()) else { continue };
        let path = path.trim_start_matches('/');
        if kinds == "pids" {
            found.push(Path::new(ALL).join("pids").join(path));
        }
        if kinds.is_empty() {
            let own = Path::new(ALL).join(path);
            let above = (!path.is_empty()).then(|| own.parent().map(Path::to_owned)).flatten();
            let counts = |dir: &PathBuf| {
                let kinds = fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default();
                kinds.split_whitespace().any(|kind| kind == "pids")
            };
            found.extend([Some(own), above].into_iter().flatten().filter(counts));
        }
    }
    found
}
