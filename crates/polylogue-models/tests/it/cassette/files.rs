//! The files that cassettes are.

use std::fs;

use polylogue_core::Fault;
use polylogue_models::{Cassette, CassetteError, Recorder, Recording};

use super::{Asked, Fake, Fresh, reply};

/// A cassette of `texts`, the replies to as many calls of `A`.
async fn recorded(texts: &[&str]) -> Fresh {
    let file = Fresh::new();
    let model = Recorder::new(Fake::saying(texts), &Cassette::create(&file).unwrap());
    for nth in 0..texts.len() {
        Asked::new("A", nth as u64).of(&model).await.unwrap();
    }
    file
}

#[tokio::test]
async fn a_cassette_is_json_lines_under_a_header() {
    let file = recorded(&["one", "two"]).await;
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with(r#"{"polylogue_cassette":2,"chain":""#), "{}", lines[0]);
    let second: serde_json::Value = serde_json::from_str(lines[2]).unwrap();
    assert_eq!(second["kept"], 1);
    assert_eq!(second["entries"].as_array().unwrap().len(), 2);
    assert_eq!(second["result"]["reply"]["parts"][0]["text"], "two");
}

#[tokio::test]
async fn every_call_is_in_the_file_when_it_is_finished() {
    let file = Fresh::new();
    let cassette = Cassette::create(&file).unwrap();
    let model = Recorder::new(Fake::saying(&["one", "two"]), &cassette);
    for nth in 0..2 {
        Asked::new("A", nth).of(&model).await.unwrap();
        assert_eq!(Recording::open(&file).unwrap().calls() as u64, nth + 1);
    }
}

#[tokio::test]
async fn wherever_the_last_line_is_cut_off_the_calls_before_are_replayed_and_recording_continues() {
    let whole = fs::read(recorded(&["one", "two"]).await).unwrap();
    let second = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in (second..whole.len() - 1).step_by(7).chain([whole.len() - 2]) {
        let file = Fresh::new();
        fs::write(&file, &whole[..cut]).unwrap();
        let recording = Recording::open(&file).unwrap();
        assert_eq!(recording.calls(), 1, "cut at {cut}");
        assert_eq!(Asked::new("A", 0).of(&recording.model("fake:model")).await.unwrap(), reply("one"));

        let model = Recorder::new(Fake::saying(&["two"]), &Cassette::append(&file).unwrap());
        Asked::new("A", 1).of(&model).await.unwrap();
        assert_eq!(fs::read(&file).unwrap(), whole, "cut at {cut}");
    }
}

#[tokio::test]
async fn a_last_line_that_only_lacks_its_end_is_whole() {
    let file = recorded(&["one"]).await;
    let mut bytes = fs::read(&file).unwrap();
    bytes.pop();
    fs::write(&file, &bytes).unwrap();
    assert_eq!(Recording::open(&file).unwrap().calls(), 1);
    let model = Recorder::new(Fake::saying(&["two"]), &Cassette::append(&file).unwrap());
    Asked::new("A", 1).of(&model).await.unwrap();
    assert_eq!(fs::read(&file).unwrap(), fs::read(recorded(&["one", "two"]).await).unwrap());
}

#[tokio::test]
async fn a_recording_in_two_processes_is_the_recording_in_one() {
    let file = Fresh::new();
    for (nth, text) in ["one", "two", "three"].into_iter().enumerate() {
        let model = Recorder::new(Fake::saying(&[text]), &Cassette::append(&file).unwrap());
        Asked::new("A", nth as u64).of(&model).await.unwrap();
    }
    assert_eq!(fs::read(&file).unwrap(), fs::read(recorded(&["one", "two", "three"]).await).unwrap());
}

#[tokio::test]
async fn a_damaged_line_before_the_last_is_named() {
    let file = recorded(&["one", "two", "three"]).await;
    let text = fs::read_to_string(&file).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let whole = lines.clone();
    lines[2] = "{\"who\":\"A\",";
    fs::write(&file, lines.join("\n")).unwrap();
    for error in [Recording::open(&file).unwrap_err(), Cassette::append(&file).unwrap_err()] {
        assert!(error.to_string().starts_with("line 3 of the recording"), "{error}");
        assert_eq!(error.hint().unwrap(), "the calls before line 3 are intact: cut the file there");
    }
    // Other words than were recorded, a line that is gone, and two that changed places.
    let changed = whole[2].replace("two", "ten");
    let moved = [whole[0], whole[2], whole[1], whole[3]];
    let damages = [
        ([whole[0], whole[1], &changed, whole[3]].to_vec(), 3),
        (lines_but(&whole, 2), 3),
        (moved.to_vec(), 2),
    ];
    for (lines, first_bad) in damages {
        fs::write(&file, lines.join("\n") + "\n").unwrap();
        let error = Recording::open(&file).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line {first_bad} of the recording")), "{error}");
        assert!(error.ends_with("it is not what was written, or does not follow the line before"), "{error}");
    }
}

fn lines_but<'a>(lines: &[&'a str], gone: usize) -> Vec<&'a str> {
    lines.iter().enumerate().filter(|(index, _)| *index != gone).map(|(_, line)| *line).collect()
}

#[test]
fn a_later_format_and_other_files_are_refused() {
    let file = Fresh::new();
    let open = |text: &str| {
        fs::write(&file, text).unwrap();
        let errors =
            [Recording::open(&file).map(drop), Cassette::append(&file).map(drop)].map(Result::unwrap_err);
        assert_eq!(errors[0], errors[1]);
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "the file is left alone");
        errors[0].clone()
    };
    let newer = open("{\"polylogue_cassette\":3,\"more\":true}\n");
    assert!(matches!(newer, CassetteError::Newer { found: 3, known: 2, .. }), "{newer}");
    assert!(newer.to_string().ends_with("has format 3, and this version knows up to 2"), "{newer}");
    assert_eq!(newer.fault(), Fault::System);
    for text in ["hello\n", "{}\n", "{\"polylogue_cassette\":0}\n", "[1]"] {
        let error = open(text);
        assert!(matches!(error, CassetteError::NoCassette { .. }), "{error}");
    }
}

#[test]
fn a_cassette_is_never_overwritten_and_has_one_writer() {
    let file = Fresh::new();
    let missing = Recording::open(&file).unwrap_err();
    assert!(matches!(missing, CassetteError::Io { doing: "read", .. }), "{missing}");
    let cassette = Cassette::create(&file).unwrap();
    assert_eq!(cassette.place(), file.path);
    assert!(matches!(Cassette::create(&file).unwrap_err(), CassetteError::Exists { .. }));
    assert!(matches!(Cassette::append(&file).unwrap_err(), CassetteError::Busy { .. }));
    assert_eq!(Recording::open(&file).unwrap().calls(), 0, "reading is allowed meanwhile");
    drop(cassette);
    Cassette::append(&file).unwrap();
    let nowhere = Cassette::create(file.path.join("below/a/file")).unwrap_err();
    assert!(matches!(nowhere, CassetteError::Io { doing: "written", .. }), "{nowhere}");
}
