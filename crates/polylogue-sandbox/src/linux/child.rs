//! The side within the sandbox: from the copy of this process to the program.
//!
//! Nothing here allocates, takes a lock or panics.

use super::landlock;
use super::plan::{Fds, MountStep, Plan};
use super::socket;
use super::sys::{self, Outcome, Stage};
use crate::proxy::PORT;

/// The old root, until it is unmounted.
const OLD: &std::ffi::CStr = c"/.old";

/// The first process: builds the sandbox, starts the program, and ends with it.
pub(super) fn enclose(plan: &Plan) -> ! {
    let report = plan.fds.report;
    if let Err((stage, errno)) = prepare(plan) {
        send_report(report, stage, errno);
        sys::exit(1);
    }
    // SAFETY: the copy runs nothing but `program`, which allocates nothing and never returns.
    #[allow(unsafe_code, reason = "the program's process is a copy of this one")]
    let child = unsafe { sys::clone(0) };
    if child == 0 {
        program(plan);
    }
    if child < 0 {
        send_report(report, Stage::Fork, sys::errno());
        sys::exit(1);
    }
    // The program's output ends with the program.
    sys::close_range(0, 2);
    while let Some((pid, status)) = sys::wait() {
        if pid == child {
            send_report(report, Stage::ProgramResult, status);
            break;
        }
    }
    // What is still running ends with this process.
    sys::exit(0)
}

fn send_report(report: i32, stage: Stage, value: i32) {
    let mut bytes = [0_u8; 8];
    let (first, second) = bytes.split_at_mut(4);
    first.copy_from_slice(&(stage as u32).to_ne_bytes());
    second.copy_from_slice(&value.to_ne_bytes());
    // An error cannot be reported any more.
    let _ = sys::write(report, &bytes);
}

fn prepare(plan: &Plan) -> Result<(), (Stage, i32)> {
    let at = |stage| move |errno| (stage, errno);
    session(plan).map_err(at(Stage::Session))?;
    proxy_socket(plan).map_err(at(Stage::ProxySocket))?;
    root(plan).map_err(at(Stage::Root))?;
    for make in &plan.tree {
        carry_out(make)?;
    }
    sys::unmount(OLD).and_then(|()| sys::remove_directory(OLD)).map_err(at(Stage::Root))?;
    let read_only = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID;
    let closed = sys::restrict_mount(c"/dev", read_only, false)
        .and_then(|()| sys::restrict_mount(c"/", read_only | libc::MOUNT_ATTR_NODEV, false));
    closed.map_err(at(Stage::Root))?;
    sys::no_capabilities()
        .and_then(|()| sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1))
        // This process is a copy of one with secrets: no other process may inspect it.
        .and_then(|()| sys::prctl(libc::PR_SET_DUMPABLE, 0))
        .map_err(at(Stage::Capabilities))?;
    // No file, and no program of the host that collects dumps either. The filter then keeps it so.
    sys::limit(libc::RLIMIT_CORE, 1).map_err(at(Stage::Limits))?;
    for filter in &plan.filters {
        seccompiler::apply_filter(filter).map_err(|_| (Stage::Filter, sys::errno()))?;
    }
    Ok(())
}

/// Closes the descriptors and leaves the session of the process that this is a copy of.
fn session(plan: &Plan) -> Outcome {
    let Fds { input, output, report, go, proxy_socket } = plan.fds;
    // Before all else: it must not outlive the process that waits for it.
    sys::prctl(libc::PR_SET_PDEATHSIG, 9)?;
    sys::default_signals();
    sys::duplicate(input, 0)?;
    sys::duplicate(output, 1)?;
    sys::duplicate(output, 2)?;
    close_all_but([report, go, proxy_socket]);
    // Waits until the user is mapped; without the other side there is nothing to do.
    if !sys::read_byte(go) {
        return Err(libc::EPIPE);
    }
    sys::close(go);
    sys::no_groups();
    sys::session()?;
    sys::host_name(c"sandbox")
}

fn close_all_but(mut kept: [i32; 3]) {
    kept.sort_unstable();
    let mut next = 3;
    for fd in kept.into_iter().filter_map(|fd| u32::try_from(fd).ok()) {
        sys::close_range(next, fd.saturating_sub(1));
        next = fd + 1;
    }
    sys::close_range(next, u32::MAX);
}

/// Opens the socket of the proxy, which the outer process accepts connections on.
fn proxy_socket(plan: &Plan) -> Outcome {
    let proxy_socket = plan.fds.proxy_socket;
    if proxy_socket < 0 {
        return Ok(());
    }
    socket::loopback_up()?;
    let listening = socket::listen_on_loopback(PORT)?;
    socket::send_descriptor(proxy_socket, listening)?;
    sys::close(listening);
    sys::close(proxy_socket);
    Ok(())
}

/// Its own root, with the old one at `/.old`.
fn root(plan: &Plan) -> Outcome {
    sys::mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)?;
    // On top of the work directory, since that is sure to be there; below `/.old` it is itself again.
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    sys::mount(Some(c"tmpfs"), &plan.work, Some(c"tmpfs"), flags, Some(c"size=4m,mode=0755"))?;
    sys::change_directory(&plan.work)?;
    sys::directory(c".old")?;
    sys::pivot_root(c".", c".old")?;
    sys::change_directory(c"/")
}

fn carry_out(make: &MountStep) -> Result<(), (Stage, i32)> {
    let at = |stage| move |errno| (stage, errno);
    match make {
        MountStep::Directory(path) => sys::directory(path).map_err(at(Stage::Tree)),
        MountStep::Link { target, path } => sys::symlink(target, path).map_err(at(Stage::Tree)),
        MountStep::File { path, content } => sys::file(path, content).map_err(at(Stage::Tree)),
        MountStep::Bind { from, to, attributes } => {
            let bound = sys::mount(Some(from), to, None, libc::MS_BIND | libc::MS_REC, None);
            bound.and_then(|()| sys::restrict_mount(to, *attributes, true)).map_err(at(Stage::Bind))
        }
        MountStep::Tmpfs { path, options } => {
            let flags = libc::MS_NOSUID | libc::MS_NODEV;
            sys::mount(Some(c"tmpfs"), path, Some(c"tmpfs"), flags, Some(options)).map_err(at(Stage::Tmpfs))
        }
        MountStep::Processes => {
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            // Own processes only, and nothing of the kernel. Where it is not to be had there is none: programs rarely
            // need it.
            let options = Some(c"subset=pid,hidepid=ptraceable");
            let _ = sys::mount(Some(c"proc"), c"/proc", Some(c"proc"), flags, options);
            Ok(())
        }
    }
}

/// The second process: becomes the program.
fn program(plan: &Plan) -> ! {
    let report = plan.fds.report;
    let (stage, errno) = match start(plan) {
        Err(failure) => failure,
        Ok(()) => {
            send_report(report, Stage::Started, 0);
            (Stage::Exec, sys::exec(&plan.path, &plan.args.pointers, &plan.env.pointers))
        }
    };
    send_report(report, stage, errno);
    sys::exit(127)
}

fn start(plan: &Plan) -> Result<(), (Stage, i32)> {
    landlock::restrict(plan).map_err(|errno| (Stage::Landlock, errno))?;
    for (resource, value) in plan.limits {
        sys::limit(resource, value).map_err(|errno| (Stage::Limits, errno))?;
    }
    sys::change_directory(c"/work").map_err(|errno| (Stage::Session, errno))?;
    for (parents, path, content) in &plan.files {
        let made = parents.iter().try_for_each(|parent| sys::directory(parent));
        made.and_then(|()| sys::file(path, content)).map_err(|errno| (Stage::File, errno))?;
    }
    Ok(())
}
