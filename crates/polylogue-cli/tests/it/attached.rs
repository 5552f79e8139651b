//! Files that are attached to a task.

use polylogue_test::pdf::of_pages;
use polylogue_test::picture::png;
use polylogue_test::server::{Answer, Behavior, Playbook};
use serde_json::Value;

use crate::home::{Home, KEY, serve};
use crate::terminal::Terminal;

const TEAM: &str = "name: look\ntask: What is it?\nagents: [{name: Ann}]\nchat: {participants: [Ann], pattern: sequential}\n";

/// The header of a picture of one pixel.
const DOT: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01";

#[test]
fn pictures_and_texts_are_sent_with_the_task() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("A dot."))).key(KEY));
    let home = Home::at(&server).with_team(TEAM);
    home.file("notes.md", "\u{feff}Use ```this```.\n");
    std::fs::write(home.path("dot.png"), DOT).unwrap();
    let run = ["run", "team.yaml", "-m", "openai:test", "--attach", "dot.png", "--attach", "notes.md"];
    home.run(&run).ok();
    let body = server.requests()[0].body.to_string();
    for part in [
        "What is it?",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB",
        "notes.md:",
        "Use ```this```.",
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
    assert!(!body.contains('\u{feff}'), "{body}");
    let shown = home.run(&["show", "last", "--as", "Ann", "--json"]).ok().out;
    let shown: Value = serde_json::from_str(shown.trim()).unwrap();
    assert!(shown.to_string().contains("image/png"), "{shown}");
}

/// The content of the last user message of the last request.
fn last_sent(server: &polylogue_test::server::Server) -> String {
    let body = server.requests().pop().unwrap().body.clone();
    body["messages"].as_array().unwrap().last().unwrap().to_string()
}

#[test]
fn documents_and_sounds_are_sent_in_one_message_with_the_task() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("A dot."))).key(KEY));
    let home = Home::at(&server).with_team(TEAM);
    std::fs::write(home.path("a.pdf"), b"%PDF-1.7 ....").unwrap();
    std::fs::write(home.path("a.wav"), b"RIFF....WAVEfmt ").unwrap();
    home.run(&["run", "team.yaml", "-m", "openai:test", "--attach", "a.pdf", "--attach", "a.wav"]).ok();
    let sent = last_sent(&server);
    for part in ["What is it?", "data:application/pdf;base64,", "input_audio"] {
        assert!(sent.contains(part), "{part}: {sent}");
    }
    let opened = home.events()[0].clone();
    assert_eq!(opened["messages"].as_array().unwrap().len(), 1, "{opened}");
    assert_eq!(opened["messages"][0]["parts"].as_array().unwrap().len(), 3, "{opened}");
    // A fork with another task keeps the files.
    let fork = home.run(&["fork", "last", "--at", "0", "--say", "And this?"]).ok();
    home.run(&["resume", fork.out.trim(), "-m", "openai:test"]).ok();
    assert!(last_sent(&server).contains("And this?") && last_sent(&server).contains("application/pdf"));
    // A fork of that begins in the same way.
    let again = home.run(&["fork", fork.out.trim(), "--at", "0"]).ok();
    let calls = server.count();
    home.run(&["resume", again.out.trim(), "-m", "openai:test"]).ok();
    assert!(last_sent(&server).contains("And this?") && last_sent(&server).contains("application/pdf"));
    assert_eq!(server.count(), calls + 1);
}

#[test]
fn a_message_of_send_resume_and_chat_has_attachments_too() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("A dot."))).key(KEY));
    let home = Home::at(&server).var("POLYLOGUE_MODEL", "openai:test").with_team(TEAM);
    home.file("notes.md", "Remember this.\n");
    home.run(&["run", "team.yaml"]).ok();
    home.run(&["resume", "last", "And this?", "--attach", "notes.md"]).ok();
    assert!(last_sent(&server).contains("Remember this."), "{}", last_sent(&server));
    home.file("notes.md", "Remember that.\n");
    home.run(&["send", "last", "And that?", "--attach", "notes.md"]).ok();
    home.run(&["resume", "last"]).ok();
    assert!(last_sent(&server).contains("Remember that."), "{}", last_sent(&server));
    home.file("notes.md", "Remember all.\n");
    home.run_reading("Hello\n", &["chat", "--attach", "notes.md"]).ok();
    assert!(last_sent(&server).contains("Remember all."), "{}", last_sent(&server));
    let ran = home.run(&["resume", "last", "--attach", "notes.md"]).exits(2);
    assert!(ran.err.contains("`--attach` is for the next message"), "{}", ran.err);
}

#[test]
fn a_file_is_attached_within_a_chat() {
    let server =
        serve(Behavior::from(Playbook::new(|_, nth| Answer::text(format!("Reply {nth}.")))).key(KEY));
    let home = Home::at(&server).var("POLYLOGUE_MODEL", "openai:test");
    home.file("notes.md", "Remember this.\n");
    let mut terminal = Terminal::open(&home, (80, 40), &["chat"]);
    terminal.press_at("Ctrl-D leaves.", "/attach gone.md\r");
    terminal.press_at("`gone.md` cannot be attached", "/attach notes.md\r");
    terminal.press_at("goes with your next message", "What is it?\r");
    terminal.wait_for_question("Reply 0.");
    assert!(last_sent(&server).contains("Remember this."), "{}", last_sent(&server));
    terminal.press("Again\r");
    terminal.press_at("Reply 1.", "\x04");
    assert_eq!(terminal.end().0, 0);
    assert!(!last_sent(&server).contains("Remember this."), "{}", last_sent(&server));
}

#[test]
fn what_a_known_model_cannot_read_is_an_error_before_any_call() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("A dot."))).key(KEY));
    let home = Home::at(&server).var("DEEPSEEK_API_KEY", KEY).var("XAI_API_KEY", KEY).with_team(TEAM);
    std::fs::write(home.path("a.pdf"), b"%PDF-1.7 ....").unwrap();
    std::fs::write(home.path("a.mp3"), b"ID3....").unwrap();
    std::fs::write(home.path("a.png"), DOT).unwrap();
    for (file, model) in [
        ("a.pdf", "openai:gpt-4"),
        ("a.mp3", "openai:gpt-4o-mini"),
        ("a.png", "openai:gpt-3.5-turbo"),
        // No model of these providers reads documents or hears.
        ("a.pdf", "deepseek:deepseek-chat"),
        ("a.mp3", "xai:grok-4.20"),
    ] {
        let ran = home.run(&["run", "team.yaml", "-m", model, "--attach", file]).exits(2);
        assert!(ran.err.contains(&format!("is attached, and `{model}` cannot read it")), "{}", ran.err);
    }
    assert_eq!(server.count(), 0);
    home.run(&["run", "team.yaml", "-m", "openai:gpt-4o-mini", "--attach", "a.pdf"]).ok();
}

#[test]
fn media_of_a_team_that_a_known_model_cannot_read_is_an_error_before_any_call() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("A dot."))).key(KEY));
    let home = Home::at(&server);
    let home = home.var("ANTHROPIC_API_KEY", KEY).var("ANTHROPIC_BASE_URL", &server.root_url());
    let chats = [
        "pattern: {tasks: [{who: Ann, prompt: What is it?, media: [SOUND]}]}",
        "pattern: sequential, opening: {text: '{{task}}', media: [SOUND]}",
    ];
    for (sent, chat) in chats.iter().enumerate() {
        let chat = chat.replace("SOUND", "{type: audio/wav, url: 'data:audio/wav;base64,AA=='}");
        home.file("team.yaml", &TEAM.replace("pattern: sequential", &chat));
        for model in ["anthropic:claude-sonnet-5", "openai:gpt-4o-mini"] {
            for command in ["run", "chat"] {
                let ran = home.run(&[command, "team.yaml", "-m", model]).exits(2);
                let why =
                    format!("`Ann` receives a sound from the team, and its model `{model}` cannot read it");
                let place = " --> team.yaml:4:";
                assert!(ran.err.contains(&why) && ran.err.contains(place), "{}", ran.err);
                assert!(ran.err.contains("hint: "), "{}", ran.err);
            }
        }
        assert!(server.count() == sent && home.listed().len() == sent);
        home.run(&["run", "team.yaml", "-m", "openai:test"]).ok();
        assert!(last_sent(&server).contains("input_audio"), "{}", last_sent(&server));
    }
}

/// The limits are those that its provider publishes.
#[test]
fn what_is_more_than_a_provider_takes_is_an_error_before_any_call() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("It is wide."))).key(KEY));
    let home = Home::at(&server);
    let home = home.var("ANTHROPIC_API_KEY", KEY).var("ANTHROPIC_BASE_URL", &server.root_url());
    let model = "anthropic:claude-haiku-4-5";
    for (file, content, what, why, hint) in [
        (
            "wide.png",
            png(8_001, 1, 0),
            "a picture",
            "a picture can have at most 8000 pixels on a side, and this one has 8001 x 1",
            "make the picture smaller",
        ),
        (
            "long.pdf",
            of_pages(101),
            "a PDF document",
            "a document can have at most 100 pages, and this one has 101",
            "split the document, or attach it as text",
        ),
    ] {
        std::fs::write(home.path(file), content).unwrap();
        home.file("team.yaml", TEAM);
        let run = ["run", "team.yaml", "--attach", file, "-m"];
        let ran = home.run(&[&run[..], &[model]].concat()).exits(2);
        let says = format!("{what} is attached, and `{model}` cannot read it: {why}\n  hint: {hint}");
        assert!(ran.err.contains(&says), "{}", ran.err);
        // Of a model that nothing is known of, nothing is said.
        home.run(&[&run[..], &["openai:test"]].concat()).ok();
        let chat =
            format!("pattern: {{tasks: [{{who: Ann, prompt: What is it?, media: [{{file: {file}}}]}}]}}");
        let team = TEAM.replace("pattern: sequential", &chat);
        home.file("team.yaml", &team.replace("{name: Ann}", &format!("{{name: Ann, model: '{model}'}}")));
        for command in ["check", "run"] {
            let ran = home.run(&[command, "team.yaml"]).exits(2);
            let says =
                format!("`Ann` receives {what} from the team, and its model `{model}` cannot read it: {why}");
            let hint = format!("hint: {hint}");
            assert!(ran.err.contains(&says) && ran.err.contains(&hint), "{command}: {}", ran.err);
            assert!(ran.err.contains(" --> team.yaml:4:"), "{command}: {}", ran.err);
        }
    }
    assert_eq!(server.count(), 2);
}

/// The content is kept with the conversation: nothing reads the file again.
#[test]
fn a_file_that_a_team_attaches_is_sent_and_not_needed_afterwards() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("A dot."))).key(KEY));
    let home = Home::at(&server);
    let sent = "\"url\":\"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB\"";
    for chat in [
        "pattern: {tasks: [{who: Ann, prompt: What is it?, media: [{file: dot.png}]}]}",
        "pattern: sequential, opening: {text: '{{task}}', media: [{file: dot.png}]}",
    ] {
        std::fs::write(home.path("dot.png"), DOT).unwrap();
        home.file("team.yaml", &TEAM.replace("pattern: sequential", chat));
        home.run(&["run", "team.yaml", "-m", "openai:test"]).ok();
        assert!(last_sent(&server).contains(sent), "{}", last_sent(&server));
        std::fs::remove_file(home.path("dot.png")).unwrap();
        let fork = home.run(&["fork", "last", "--at", "0", "--say", "And this?"]).ok();
        home.run(&["resume", fork.out.trim(), "-m", "openai:test"]).ok();
        assert!(last_sent(&server).contains(sent), "{}", last_sent(&server));
        let ran = home.run(&["run", "team.yaml", "-m", "openai:test"]).exits(2);
        assert!(ran.err.contains("team.yaml:4:") && ran.err.contains("does not exist"), "{}", ran.err);
    }
}

/// R12: an API that fetches no addresses gets the content.
#[test]
fn media_at_an_address_that_an_api_does_not_fetch_is_an_error_before_any_call() {
    let home = Home::new();
    let home = home.var("AWS_BEARER_TOKEN_BEDROCK", KEY).var("AWS_REGION", "eu-west-1");
    let chat = "pattern: sequential, opening: {text: '{{task}}', media: [{type: image/png, url: 'https://example.org/a.png'}]}";
    home.file("team.yaml", &TEAM.replace("pattern: sequential", chat));
    for model in ["bedrock:amazon.nova-pro-v1:0", "ollama:llava"] {
        let ran = home.run(&["run", "team.yaml", "-m", model, "--allow", "network"]).exits(2);
        let why = format!(
            "`Ann` receives a picture from the team, and its model `{model}` cannot read it from an address\n"
        );
        let hint = "hint: its API takes the content and fetches no addresses";
        assert!(ran.err.contains(&why) && ran.err.contains(hint), "{}", ran.err);
        assert!(ran.err.contains(" --> team.yaml:4:"), "{}", ran.err);
    }
    assert!(home.listed().is_empty());
}

/// All of it at once, each at its place; also in a team within the team, whose agent has the model of the outer one.
#[test]
fn check_finds_media_that_a_known_model_cannot_read() {
    let home = Home::new();
    let sound = "{type: audio/wav, url: 'data:audio/wav;base64,AA=='}";
    let inner = format!(
        "name: inner\nagents: [{{name: Cy}}]\nchat:\n  participants: [Cy]\n  pattern:\n    tasks:\n      - who: Cy\n        prompt: What is it?\n        media: [{sound}]\n"
    );
    home.file("inner.yaml", &inner);
    let team = |model: &str| {
        format!(
            "name: outer\nmodel: {model}\nteams: [{{name: Inner, file: inner.yaml}}]\nagents: [{{name: Ann}}, {{name: Bob, model: 'openai:gpt-4o-audio-preview'}}]\nchat:\n  \
             participants: [Ann, Bob, Inner]\n  pattern: sequential\n  opening:\n    text: '{{{{task}}}}'\n    media:\n      - {sound}\n"
        )
    };
    home.file("outer.yaml", &team("anthropic:claude-sonnet-5"));
    let ran = home.run(&["check", "outer.yaml"]).exits(2);
    let says = |who: &str| {
        format!(
            "`{who}` receives a sound from the team, and its model `anthropic:claude-sonnet-5` cannot read it"
        )
    };
    for expected in
        [says("Ann"), says("Cy"), "outer.yaml:11:32".into(), "inner.yaml:9:40".into(), "hint: ".into()]
    {
        assert!(ran.err.contains(&expected), "{expected}: {}", ran.err);
    }
    assert_eq!(ran.err.matches("cannot read it").count(), 2, "{}", ran.err);
    let ran = home.run(&["check", "outer.yaml", "--json"]).exits(2);
    let found: Value = serde_json::from_str(ran.out.trim()).unwrap();
    assert_eq!((&found["ok"], &found["problems"][0]["place"]["line"]), (&false.into(), &11.into()));
    // Of a model that nothing is known of, nothing is said.
    home.file("outer.yaml", &team("ollama-openai:mine"));
    home.run(&["check", "outer.yaml"]).ok();
    home.file("outer.yaml", &team("openai:gpt-4o-audio-preview"));
    home.run(&["check", "outer.yaml"]).ok();
}

#[test]
fn ollama_reads_neither_documents_nor_sounds() {
    let home = Home::new().with_team(TEAM);
    std::fs::write(home.path("a.pdf"), b"%PDF-1.7 ....").unwrap();
    std::fs::write(home.path("a.mp3"), b"ID3....").unwrap();
    for (file, what) in [("a.pdf", "a PDF document"), ("a.mp3", "a sound")] {
        let ran = home.run(&["run", "team.yaml", "-m", "ollama:llama3.2", "--attach", file]).exits(2);
        let why = format!("{what} is attached, and `ollama:llama3.2` cannot read it\n  hint: ");
        assert!(ran.err.contains(&why), "{}", ran.err);
    }
    assert!(home.listed().is_empty());
}

#[test]
fn what_cannot_be_attached_is_an_error_before_any_model_is_called() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("A dot."))).key(KEY));
    let home = Home::at(&server).with_team(TEAM);
    std::fs::write(home.path("dot.png"), DOT).unwrap();
    std::fs::write(home.path("half.png"), &DOT[..20]).unwrap();
    home.file("mark.md", "\u{feff}");
    std::fs::write(home.path("data.bin"), [0_u8, 159, 146, 150]).unwrap();
    std::fs::File::create(home.path("large.png")).unwrap().set_len((20 << 20) + 1).unwrap();
    for (file, more, what) in [
        ("gone.png", &[][..], "`gone.png` cannot be attached"),
        ("mark.md", &[], "`mark.md` cannot be attached: it is empty"),
        ("data.bin", &[], "its type is not supported"),
        ("large.png", &[], "`large.png` cannot be attached: it has 20.1 MiB, and the limit is 20 MiB"),
        ("half.png", &[], "`half.png` cannot be attached: it is a damaged picture"),
        ("dot.png", &["--capabilities", "text"], "a picture is attached, and `openai:test` cannot read it"),
    ] {
        let run = [&["run", "team.yaml", "-m", "openai:test", "--attach", file][..], more].concat();
        let ran = home.run(&run).exits(2);
        assert!(ran.err.contains(what), "{file}: {}", ran.err);
    }
    assert_eq!(server.count(), 0);
}

#[test]
fn the_most_that_a_run_takes_counts_what_is_attached() {
    let server = serve(Behavior::from(Playbook::always(Answer::text("A dot.").usage(100, 3))).key(KEY));
    let home = Home::at(&server)
        .with_team(&TEAM.replace("{name: Ann}", "{name: Ann, parameters: {max_tokens: 10}}"));
    home.file("notes.md", &"words ".repeat(2_000));
    std::fs::write(home.path("dot.png"), DOT).unwrap();
    std::fs::write(home.path("a.wav"), b"RIFF....WAVEfmt ").unwrap();
    // A sound can have another price than text, so that nothing is computed.
    for (file, is_computed) in [("dot.png", true), ("notes.md", true), ("a.wav", false)] {
        let ran = home.run(&["run", "team.yaml", "-m", "openai:test", "--attach", file]).ok();
        assert!(ran.err.starts_with("look: at most "), "{file}: {}", ran.err);
        assert_eq!(ran.err.contains("`polylogue check --price`"), is_computed, "{file}: {}", ran.err);
        assert!(!ran.err.contains("no longer applies"), "{file}: {}", ran.err);
    }
}
