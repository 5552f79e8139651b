//! Files that are attached to a task.

use polylogue_test::server::{Answer, Behavior, Playbook};
use serde_json::Value;

use crate::home::{Home, KEY, serve};

const TEAM: &str = "name: look\ntask: What is it?\nagents: [{name: Ann}]\nchat: {participants: [Ann], pattern: sequential}\n";

#[test]
fn pictures_and_texts_are_sent_with_the_task() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("A dot."))).key(KEY));
    let home = Home::at(&server);
    home.file("team.yaml", TEAM);
    home.file("notes.md", "Use ```this```.\n");
    std::fs::write(home.path("dot.png"), b"\x89PNG\r\n\x1a\n....").unwrap();
    let run = ["run", "team.yaml", "-m", "openai:test", "--attach", "dot.png", "--attach", "notes.md"];
    home.run(&run).ok();
    let body = server.requests()[0].body.to_string();
    for part in ["What is it?", "data:image/png;base64,iVBORw0KGgouLi4u", "notes.md:", "Use ```this```."] {
        assert!(body.contains(part), "{part}: {body}");
    }
    let shown = home.run(&["show", "last", "--as", "Ann", "--json"]).ok().out;
    let shown: Value = serde_json::from_str(shown.trim()).unwrap();
    assert!(shown.to_string().contains("image/png"), "{shown}");
}

#[test]
fn what_cannot_be_attached_is_an_error_before_any_model_is_called() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("A dot."))).key(KEY));
    let home = Home::at(&server);
    home.file("team.yaml", TEAM);
    std::fs::write(home.path("dot.png"), b"\x89PNG\r\n\x1a\n....").unwrap();
    std::fs::write(home.path("data.bin"), [0_u8, 159, 146, 150]).unwrap();
    for (file, more, what) in [
        ("gone.png", &[][..], "`gone.png` cannot be attached"),
        ("data.bin", &[], "it is neither a text nor a picture"),
        ("dot.png", &["--capabilities", "text"], "`openai:test` takes none"),
    ] {
        let run = [&["run", "team.yaml", "-m", "openai:test", "--attach", file][..], more].concat();
        let ran = home.run(&run).exits(2);
        assert!(ran.err.contains(what), "{file}: {}", ran.err);
    }
    assert_eq!(server.count(), 0);
}
