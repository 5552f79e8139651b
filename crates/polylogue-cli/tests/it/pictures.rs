//! Pictures that a Python session makes: files of the work directory, named wherever the conversation is read, and drawn by
//! terminals that can.

use std::path::PathBuf;
use std::process::Command;

use polylogue_test::server::{Answer, Playbook};
use polylogue_test::skip::has_python;
use serde_json::{Value, json};

use crate::home::{Home, KEY, of_type, serve, shipped};
use crate::terminal::Terminal;

/// A gray picture of 64 columns and 48 rows, by the standard library alone, as the value of the last expression.
const CODE: &str = r"
import struct, zlib
def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
class Picture:
    def _repr_png_(self):
        rows = (b'\0' + bytes([x * 4 for x in range(64)])) * 48
        head = struct.pack('>IIBBBBB', 64, 48, 8, 0, 0, 0, 0)
        return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b'')
    def __repr__(self):
        return 'gray'
Picture()
";

const RUN: [&str; 5] = ["run", "team.yaml", "--offline", "--allow", "unsafe-host"];

/// Ann, who draws; none where there is no Python. There is no sandbox, so that it works on every machine.
fn home() -> Option<Home> {
    if !has_python() {
        return None;
    }
    let call = serde_json::json!({"Ann": {"calls": [{"tool": "python_session", "args": {"code": CODE}, "id": "c1"}]}});
    let home = Home::new();
    home.allow_programs();
    let text = format!(
        "
name: drawing
task: Draw.
sandbox: {{backend: none}}
agents: [{{name: Ann, tools: [python_session], approval: never}}]
chat: {{participants: [Ann], pattern: sequential}}
script: [{call}, {{Ann: There it is.}}]
"
    );
    home.file("team.yaml", &text);
    Some(home)
}

/// The picture, which is the only file of the work directory.
fn picture(home: &Home) -> PathBuf {
    let dir = home.path("store.db.work").join(home.id());
    let mut files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|end| end == "png")).unwrap();
    assert!(std::fs::read(&file).unwrap().starts_with(b"\x89PNG\r\n\x1a\n"));
    file
}

#[test]
fn a_picture_is_a_file_that_is_named_wherever_the_conversation_is_read() {
    let Some(home) = home() else { return };
    let ran = home.run(&RUN).ok();
    let path = picture(&home);
    let name = path.file_name().unwrap().to_str().unwrap();
    let line = format!("[picture: {} 64x48]", path.display());
    assert!(ran.out.contains(&line), "{}", ran.out);
    let shown = home.run(&["show", "last"]).ok().out;
    assert!(shown.contains(&line) && shown.contains(&format!("Picture: {name} (64x48)")), "{shown}");
    assert!(shown.contains(&format!("files: {} (", path.parent().unwrap().display())), "{shown}");
    let file = home.run(&["show", "last", "--markdown"]).ok().out;
    assert!(file.contains(&format!("![image/png](<{}>)", path.display())), "{file}");
    let events = home.events();
    let parts = of_type(&events, "tool_returned")[0]["result"]["parts"].as_array().unwrap().clone();
    assert_eq!(parts[0]["text"], "gray");
    assert_eq!(parts[1]["text"].as_str().unwrap(), format!("Picture: {name} (64x48)"));
    assert!(
        parts[2]["media"]["url"].as_str().unwrap().starts_with("data:image/png;base64,iVBOR"),
        "{}",
        parts[2]
    );
    // Without the file, it is still in the log.
    std::fs::remove_file(&path).unwrap();
    assert!(home.run(&["show", "last"]).ok().out.contains("[picture: image/png 64x48]"));
    assert!(
        home.run(&["show", "last", "--markdown"]).ok().out.contains("![image/png](<data:image/png;base64,")
    );
}

/// What the model of Ann is sent after she drew, and what `show --as` tells of it.
fn sent_after_drawing(more: &str, options: &[&str]) -> Option<(Vec<Value>, Value)> {
    let mut home = home()?;
    let server = serve(Playbook::list([
        Answer::text("").call("python_session", json!({"code": CODE})),
        Answer::text("A gray ramp."),
    ]));
    home.set("OPENAI_API_KEY", KEY);
    home.set("OPENAI_BASE_URL", &server.base_url());
    let team = std::fs::read_to_string(home.path("team.yaml")).unwrap();
    home.file("team.yaml", &format!("{}model: openai:test\n{more}", team.split("script:").next().unwrap()));
    home.run(&[&["run", "team.yaml", "--allow", "unsafe-host"], options].concat()).ok();
    assert_eq!((server.violations(), server.count()), (Vec::new(), 2));
    let shown = home.run(&["show", "last", "--as", "Ann", "--json"]).ok().lines().remove(0);
    Some((server.requests()[1].messages().to_vec(), shown))
}

#[test]
fn a_model_that_is_said_to_see_is_shown_what_its_tools_drew() {
    let endpoint = "endpoints: {openai: {capabilities: {vision: true}}}\n";
    for (more, options) in
        [("", &["--capabilities", "tools,vision"][..]), ("", &["--capabilities", "vision"]), (endpoint, &[])]
    {
        let Some((messages, shown)) = sent_after_drawing(more, options) else { return };
        let [.., result, picture] = &messages[..] else { panic!("{messages:?}") };
        assert!(result["role"] == "tool" && result["content"].as_str().unwrap().ends_with("[image/png]"));
        let words = "(The pictures that `python_session` returned. No participant wrote the text in them.)";
        assert_eq!((&picture["role"], &picture["content"][0]["text"]), (&json!("user"), &json!(words)));
        let url = &picture["content"][1]["image_url"]["url"];
        assert!(url.as_str().unwrap().starts_with("data:image/png;base64,iVBOR"), "{picture}");
        let [.., seen] = &shown["entries"].as_array().unwrap()[..] else { panic!("{shown}") };
        assert_eq!((&seen["parts"][0]["text"], &seen["parts"][1]["media"]["url"]), (&json!(words), url));
    }
}

#[test]
fn a_model_without_known_vision_receives_a_note_about_a_picture() {
    let Some((messages, shown)) = sent_after_drawing("", &[]) else { return };
    let last = messages.last().unwrap();
    assert!(last["role"] == "tool" && last["content"].as_str().unwrap().ends_with("[image/png]"), "{last}");
    assert_eq!(shown["entries"].as_array().unwrap().last().unwrap()["role"], "tool");
}

#[test]
fn pictures_are_drawn_or_named_by_the_terminal() {
    for (program, begins) in [
        ("ghostty", "\x1b_Ga=T,f=100,q=2,c=7,m=0;iVBOR"),
        ("iTerm.app", "\x1b]1337;File=inline=1;width=7;preserveAspectRatio=1:iVBOR"),
        ("xterm", ""),
    ] {
        let Some(mut home) = home() else { return };
        home.set("TERM_PROGRAM", program);
        let terminal = Terminal::open(&home, (200, 40), &RUN);
        terminal.wait_for("`polylogue show ");
        let bytes = terminal.bytes();
        assert!(bytes.contains(begins) && bytes.contains("64x48]"), "{program}: {bytes:?}");
        assert_eq!(bytes.contains("iVBOR"), !begins.is_empty(), "{program}");
        assert_eq!(terminal.end().0, 0);
        assert!(!home.run(&["show", "last"]).ok().out.contains("iVBOR"), "{program}");
    }
}

/// Whether the sandbox works here.
pub(crate) fn can_enclose() -> bool {
    let missing = polylogue_sandbox::what_is_enforced();
    let missing = missing.iter().find(|measure| measure.required && !measure.holds);
    polylogue_test::skip::can_enclose(missing.map(|missing| &*missing.detail))
}

/// Reads a PNG as its standard has it, checks its sums, and says how large it is and how many of its pixels are not white.
const READER: &str = r"
import struct, sys, zlib
data = open(sys.argv[1], 'rb').read()
assert data[:8] == b'\x89PNG\r\n\x1a\n'
at, chunks = 8, {}
while at < len(data):
    size, kind = struct.unpack('>I4s', data[at:at + 8])
    body = data[at + 8:at + 8 + size]
    assert struct.unpack('>I', data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body)
    chunks[kind] = chunks.get(kind, b'') + body
    at += 12 + size
assert list(chunks) == [b'IHDR', b'IDAT', b'IEND']
wide, high, depth, colors = struct.unpack('>IIBB', chunks[b'IHDR'][:10])
assert (depth, colors) == (8, 2)
pixels = zlib.decompress(chunks[b'IDAT'])
assert len(pixels) == high * (1 + 3 * wide)
rows = [pixels[y * (1 + 3 * wide):][1:1 + 3 * wide] for y in range(high)]
print(wide, high, sum(row[3 * x:3 * x + 3] != b'\xff\xff\xff' for row in rows for x in range(wide)))
";

#[test]
fn the_visualizer_that_ships_draws_a_real_picture() {
    if home().is_none() || !can_enclose() {
        return;
    }
    let home = Home::new();
    let ran = home.run(&["run", &shipped("data-visualizer"), "--offline"]).ok();
    assert!(ran.out.contains("done: Charter said `Final Answer`"), "{}", ran.out);
    let dir = home.path("store.db.work").join(home.id());
    let file = dir.join("gdp.png");
    assert!(ran.out.contains(&format!("files: {} (gdp.png, picture-", dir.display())), "{}", ran.out);
    let shown = home.run(&["show", "last"]).ok().out;
    assert!(shown.contains(&format!("[picture: {}/picture-", dir.display())), "{shown}");
    assert!(shown.contains(".png 640x400]") && shown.contains("in the file `gdp.png`"), "{shown}");
    let read = Command::new("python3").args(["-c", READER]).arg(&file).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let numbers: Vec<u32> =
        String::from_utf8(read.stdout).unwrap().split_whitespace().map(|n| n.parse().unwrap()).collect();
    assert!(numbers[..2] == [640, 400] && (4000..40_000).contains(&numbers[2]), "{numbers:?}");
}
