//! The files of a conversation over HTTP: those of its work directory, and those that are stored with it.

use polylogue_core::LogId;
use polylogue_runtime::FilesPolicy;
use polylogue_server::{Scope, ServerOptions};
use serde_json::json;

use crate::client::Request;
use crate::conversations::begin_until;
use crate::world::{World, generous, loopback, place};

const WRITES: &str = "
name: writes
task: Write.
agents: [{name: Ann, tools: [write_file]}]
chat: {participants: [Ann], pattern: round_robin, stop: {max_turns: 1}}
script:
  - Ann: {calls: [{tool: write_file, args: {path: \"notes/ä b.txt\", content: one}}]}
  - Ann: written
";

#[tokio::test]
async fn files_are_listed_and_sent_and_nothing_else_is() {
    for policy in [FilesPolicy::Local, FilesPolicy::Kept] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("writes.yaml"), WRITES).unwrap();
        let place = place(dir.path()).with_files(policy.clone());
        let options = ServerOptions { limits: generous(), ..ServerOptions::new(loopback(), place.clone()) };
        let world = World::start(dir, options).await;
        let id = begin_until(&world, "writes", "closed").await;
        let path = format!("/api/v1/conversations/{id}/files");
        if policy == FilesPolicy::Kept {
            // As on a machine that has not run it.
            place.remove_work_dir(&LogId::new(&id).unwrap()).unwrap();
        } else {
            let link = place.work_dir(&LogId::new(&id).unwrap()).unwrap().join("link");
            std::os::unix::fs::symlink("/etc/hostname", link).unwrap();
        }
        let mut listed = world.get(&path).await.json();
        for list in ["files", "folders"] {
            let mode = listed[list][0].as_object_mut().unwrap().shift_remove("mode").unwrap();
            assert_eq!(mode.as_u64().unwrap() & 0o600, 0o600, "{list}");
        }
        let links = if policy == FilesPolicy::Kept {
            json!([])
        } else {
            json!([{"path": "link", "to": "/etc/hostname"}])
        };
        let files = json!([{"path": "notes/ä b.txt", "bytes": 3}]);
        let all = json!({"files": files, "folders": [{"path": "notes"}], "links": links, "left_out": []});
        assert_eq!(listed, all, "{policy:?}");
        let sent = world.get(&format!("{path}/content?path=notes/%C3%A4%20b.txt")).await;
        assert_eq!((sent.status, &*sent.body), (200, "one"), "{policy:?}");
        assert_eq!(sent.header("content-type"), Some("application/octet-stream"));
        let name = "attachment; filename*=UTF-8''%C3%A4%20b.txt";
        assert_eq!(sent.header("content-disposition"), Some(name));
        for (query, status) in [
            ("", 400),
            ("?path=notes", 404),
            ("?path=link", 404),
            ("?path=notes/none", 404),
            ("?path=/etc/hostname", 404),
            ("?path=../../writes.yaml", 404),
        ] {
            let refused = world.get(&format!("{path}/content{query}")).await;
            assert_eq!(refused.status, status, "{policy:?} {query}: {}", refused.body);
        }
        // The file of a conversation has none.
        let log = world.get(&format!("/api/v1/conversations/{id}/export")).await.body;
        let imported = world.post("/api/v1/imports", &json!({"log": log})).await.json();
        let of_imported = format!("/api/v1/conversations/{}/files", imported["id"].as_str().unwrap());
        let empty = json!({"files": [], "folders": [], "links": [], "left_out": []});
        let none = world.get(&of_imported).await;
        assert_eq!((none.status, none.json()), (200, empty), "{policy:?}");
        let (_, other) = world.new_token("other", &Scope::ALL);
        for path in [path.clone(), format!("{path}/content?path=notes/%C3%A4%20b.txt")] {
            let refused = Request::new("GET", &path).token(&other).send(world.address).await;
            assert_eq!(refused.status, 404, "of another tenant: {}", refused.body);
        }
    }
}
