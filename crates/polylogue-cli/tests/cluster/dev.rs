//! `polylogue dev --postgres`: a cluster of one command.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};

use polylogue_test::postgres::PostgresServer;
use rustix::process::{Pid, Signal, kill_process};

use crate::commands::{TALK, lists_files};
use crate::place::{Place, of_type, until};

/// Starts it, and returns what the line `store` and the next one have.
fn start(place: &Place, args: &[&str]) -> (Child, String, String) {
    let mut command =
        place.command(&[&["dev", "team.yaml", "--offline", "--listen", "127.0.0.1:0"], args].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let store = lines.next().unwrap().strip_prefix("store ").unwrap().to_owned();
    let url = lines.next().unwrap();
    // What else it prints is read, so that it can write.
    std::thread::spawn(move || lines.for_each(drop));
    (child, store, url)
}

/// The folder of the database at an address.
fn folder_of(store: &str) -> String {
    let host = store.strip_prefix("postgres://polylogue@").unwrap().split('/').next().unwrap();
    host.replace("%2F", "/").replace("%2D", "-").replace("%2E", ".").replace("%5F", "_")
}

#[test]
fn a_cluster_of_one_command_runs_conversations_and_leaves_nothing_behind() {
    // Where there is none, it is skipped, or fails in CI.
    if PostgresServer::start().is_none() {
        return;
    }
    let place = Place::new("").with_team(TALK);
    let (mut dev, store, url) = start(&place, &["--postgres"]);
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    let other = Place::new(&store).with_team(TALK);
    let id = other.detach(&["team.yaml", "--offline"]);
    until("a worker has run it", || of_type(&other.events(&id), "closed").len() == 1);
    assert_eq!(other.cluster().0.len(), 2, "two workers");
    let most = std::fs::read_to_string(format!("{}/data/postmaster.opts", folder_of(&store))).unwrap();
    assert!(most.contains("max_connections=100"), "8 for each worker: {most}");
    kill_process(Pid::from_child(&dev), Signal::INT).unwrap();
    assert!(dev.wait().unwrap().success());
    assert!(!std::path::Path::new(&folder_of(&store)).exists(), "{store}");
    let left = place.path(".local/share/polylogue/postgres").read_dir();
    assert_eq!(left.map_or(0, Iterator::count), 0, "work directories and tokens");
    other.run(&["cluster"], 1);
}

#[test]
fn what_a_team_is_allowed_holds_for_workers_and_the_server() {
    if PostgresServer::start().is_none() {
        return;
    }
    let place = Place::new("").with_team(&lists_files());
    let (mut dev, store, _) = start(&place, &["--postgres", "--workers", "1", "--allow", "unsafe-host"]);
    let other = Place::new(&store).with_team(&lists_files());
    let id = other.detach(&["team.yaml", "--offline", "--allow", "unsafe-host"]);
    until("a worker has run it", || of_type(&other.events(&id), "closed").len() == 1);
    kill_process(Pid::from_child(&dev), Signal::INT).unwrap();
    assert!(dev.wait().unwrap().success());
}

#[test]
fn a_cluster_in_a_folder_is_there_again_and_what_cannot_be_is_an_error_with_a_hint() {
    if PostgresServer::start().is_none() {
        return;
    }
    let place = Place::new("").with_team(TALK);
    for (args, what) in [
        (&["dev"][..], "--postgres"),
        (&["dev", "--postgres", "--store", "x.db"], "has a database of its own"),
        (&["dev", "--postgres=/proc/nothing"], "cannot be made"),
        (&["dev", "--postgres=."], "has other files than those of a database"),
        (&["dev", "--postgres", "--workers", "0"], "--workers"),
        (&["dev", "--postgres", "--workers", "65"], "at most 64 workers"),
    ] {
        let ran = place.command(args).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(!ran.status.success() && said.contains(what), "{args:?}: {said}");
    }
    // It may be one that is there.
    let folder = std::env::temp_dir().join(format!("polylogue-kept-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let flag = format!("--postgres={}", folder.display());
    let mut ids = Vec::new();
    for killed in [false, true] {
        let (mut dev, store, _) = start(&place, &[&flag, "--workers", "1"]);
        let socket = std::fs::metadata(folder.join(".s.PGSQL.5432")).unwrap();
        assert_eq!(socket.permissions().mode() & 0o777, 0o700, "others can look into the folder");
        let second = place.run(&["dev", &flag], 2);
        assert!(
            second.err.contains("another process runs the database in") && second.err.contains("hint: "),
            "{}",
            second.err
        );
        let other = Place::new(&store).with_team(TALK);
        ids.push(other.detach(&["team.yaml", "--offline"]));
        let id = ids.last().unwrap();
        until("it is run", || of_type(&other.events(id), "closed").len() == 1);
        assert!(other.all(ids.len(), |state| state.starts_with("done")), "those of before are there");
        kill_process(Pid::from_child(&dev), if killed { Signal::KILL } else { Signal::TERM }).unwrap();
        let _ = dev.wait();
        // Even when it is killed, its processes end.
        let file = folder.join("data/postmaster.pid");
        until("the database has ended", || !file.exists());
    }
    std::fs::remove_dir_all(folder).unwrap();
}
