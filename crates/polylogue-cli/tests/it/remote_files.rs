//! `files` of a conversation of a server: what is listed and copied is the same as without the server.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use polylogue_core::TotalUsage;
use serde_json::{Value, json};

use crate::home::Home;
use crate::remote::use_server;
use crate::serving::Serving;

const WRITES: &str = "
name: writes
task: Write.
agents: [{name: Ann, tools: [write_file]}]
chat: {participants: [Ann], pattern: round_robin, stop: {max_turns: 1}}
script:
  - Ann: {calls: [{tool: write_file, args: {path: \"notes/ä&b.txt\", content: one}}]}
  - Ann: written
";

/// A file of several pieces.
const LARGE: usize = 5 << 20;

#[test]
fn files_of_a_server_are_listed_and_copied_as_those_of_its_store() {
    let mut there = Home::new();
    there.file("writes.yaml", WRITES);
    let serving = Serving::of(&there, "writes.yaml", true);
    use_server(&mut there, &serving);
    there.run(&["run", "writes"]).ok();
    let id = there.id();
    let work = there.path("store.db.work").join(&id);
    fs::set_permissions(work.join("notes/ä&b.txt"), Permissions::from_mode(0o750)).unwrap();
    fs::write(work.join("notes.bin"), vec![7; LARGE]).unwrap();
    fs::create_dir(work.join("empty")).unwrap();
    symlink("../outside", work.join("link")).unwrap();
    // The same store without the server.
    let here = Home::new().var("POLYLOGUE_STORE", &there.path("store.db").display().to_string());
    for args in [&["files", &id][..], &["files", "last", "--json"]] {
        let (local, remote) = (here.run(args).ok(), there.run(args).ok());
        assert_eq!((local.out, local.err), (remote.out, remote.err), "{args:?}");
    }
    let shown = there.run(&["show", &id]).ok().out;
    let files = format!("files: 2 files stored; `polylogue files {id} --to FOLDER` copies them");
    assert!(shown.contains(&files), "{shown}");
    for (home, to) in [(&here, "copy"), (&there, "copy/")] {
        assert_eq!(home.run(&["files", &id, "--to", to]).ok().out, format!("3 files in {to}\n"));
        let copy = home.path("copy");
        let note = copy.join("notes/ä&b.txt");
        assert_eq!(fs::read_to_string(&note).unwrap(), "one");
        assert_eq!(note.metadata().unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(fs::read(copy.join("notes.bin")).unwrap(), vec![7; LARGE]);
        assert_eq!(fs::read_link(copy.join("link")).unwrap(), Path::new("../outside"));
        assert!(copy.join("empty").is_dir());
        let refused = home.run(&["files", &id, "--to", to]).exits(2).err;
        assert!(refused.contains("nothing is replaced") && refused.contains("hint: "), "{refused}");
    }
    fs::write(work.join(OsStr::from_bytes(b"\xff.txt")), "x").unwrap();
    let listed = there.run(&["files", &id]).ok();
    assert!(listed.err.contains("1 file left out") && listed.err.contains("is not UTF-8"), "{}", listed.err);
    serving.end();
}

/// Responds to requests for paths that begin as the first of each pair. Returns its address.
fn impostor(responses: Vec<(&'static str, String)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut lines = BufReader::new(socket.try_clone().unwrap()).lines().map(Result::unwrap);
            let request = lines.next().unwrap();
            while lines.next().is_some_and(|line| !line.is_empty()) {}
            let path = request.split(' ').nth(1).unwrap();
            let (_, body) = responses.iter().find(|(start, _)| path.starts_with(start)).unwrap();
            let head =
                format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            socket.write_all((head + body).as_bytes()).unwrap();
        }
    });
    address
}

#[test]
fn a_server_has_nothing_written_outside_of_the_folder() {
    let conversation = json!({
        "id": "abc", "team": "t", "team_name": "t", "title": null, "task": "", "state": "closed", "created_ms": 1, "started_ms": 1,
        "updated_ms": 1, "seq": 1, "turns": 0, "usage": TotalUsage::default(), "questions": [],
    });
    let page = json!({"conversations": [conversation], "next_cursor": null}).to_string();
    let home = Home::new().var("POLYLOGUE_TOKEN", "ply_0123456789abcdef");
    let outside = home.path("outside").display().to_string();
    fs::create_dir(&outside).unwrap();
    let file = |path: &str| json!({"path": path, "bytes": 7, "mode": 0o644});
    let link = |path: &str, to: &str| json!({"path": path, "to": to});
    let folder = |path: &str| json!({"path": path, "mode": 0o755});
    let none = || Vec::<Value>::new();
    for (files, folders, links) in [
        (vec![file("../outside/planted")], none(), none()),
        (vec![file(&format!("{outside}/planted"))], none(), none()),
        (vec![file("a/./../../outside/planted")], vec![folder("a")], none()),
        (vec![file("")], none(), none()),
        (vec![file("a/planted")], none(), vec![link("a", &outside)]),
        (none(), none(), vec![link("a", &outside), link("a/planted", "x")]),
        (none(), vec![folder("../outside/planted")], none()),
    ] {
        let listing = json!({"files": files, "folders": folders, "links": links, "left_out": []});
        let server = impostor(vec![
            ("/api/v1/conversations/abc/files/content", "planted".into()),
            ("/api/v1/conversations/abc/files", listing.to_string()),
            ("/api/v1/conversations?", page.clone()),
        ]);
        let ran = home.run(&["files", "abc", "--to", "copy", "--server", &server]).exits(1);
        assert!(ran.err.contains("`copy.restored` cannot be written: "), "{listing}: {}", ran.err);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{listing}");
        assert!(!home.path("copy").exists() && !home.path("copy.restored").exists(), "{listing}");
    }
}
