//! Code: items 21 and 22, 66 to 73. Programs really run, in a sandbox.

mod cut;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use polylogue::layers::code::CodeBlock;
use polylogue::layers::human_input::HumanInput;
use polylogue::layers::reply::Stack;
use polylogue::layers::{Coder, Executor};
use polylogue::policies::{with_summary_by, with_termination};
use polylogue::stop::max_turns;
use polylogue::tools::Approval;
use polylogue::tools::FunctionTool;
use polylogue::{Act, Assistant, Chat, Function, Tool, round_robin, sequential};
use polylogue_core::{Body, Event, QuestionKind};
use polylogue_tools::code::{Limits, Sandbox, javascript, python, save, shell, what_is_enforced};

use crate::autogen::people::{questions, talk};
use crate::common::pair_chat;
use crate::stage::{Spy, closed, name, printed, run, script};

/// A directory for the files of one test, gone when it is over.
pub(crate) struct Bench {
    pub(crate) dir: PathBuf,
}

impl Bench {
    /// None, with the reason on the error output, where the kernel does not support the sandbox.
    pub(crate) fn new() -> Option<Self> {
        static NTH: AtomicU32 = AtomicU32::new(0);
        let missing = what_is_enforced().into_iter().find(|measure| measure.required && !measure.holds);
        if !polylogue_test::skip::can_enclose(missing.as_ref().map(|missing| &*missing.detail)) {
            return None;
        }
        let nth = NTH.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("polylogue-code-{}-{nth}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Some(Self { dir })
    }

    pub(crate) fn sandbox(&self) -> Sandbox {
        Sandbox::enclosed(self.dir.join("work"))
    }

    /// Runs Python and shell, and saves HTML.
    pub(crate) fn coder(&self) -> Coder {
        let saves = save(self.sandbox());
        Coder::new()
            .tool(python(self.sandbox()))
            .tool(shell(self.sandbox()))
            .tool_for(&["html", "css"], saves)
    }

    pub(crate) fn file(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.dir.join("work").join(path)).ok()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Ann says `lines`, and Bob runs what is in them.
fn pair(lines: &[&str], coder: Coder, turns: u64) -> Chat {
    let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let ann = Function::new("Ann", move |turn| {
        let nth = usize::try_from(turn.transcript().turns_of(turn.me())).unwrap();
        Ok(lines.get(nth).map_or(Act::Pass, |line| Act::say(line.clone())))
    });
    let bob = Stack::new("Bob").unwrap().then(coder).otherwise("(nothing)");
    let policy = with_termination(round_robin(), max_turns(turns));
    Chat::builder("pair").participant(ann.unwrap()).participant(bob).policy(policy).build().unwrap()
}

/// What `who` said.
fn said(events: &[Arc<Event>], who: &str) -> Vec<String> {
    events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Message(message) if message.from == name(who) => Some(message.text().into_owned()),
            _ => None,
        })
        .collect()
}

/// What Bob replies to one message of Ann.
async fn reply(message: &str, coder: Coder) -> String {
    let (_, events) = run(&pair(&[message], coder, 2), "go").await;
    said(&events, "Bob").remove(0)
}

fn ok(output: &str) -> String {
    format!("exitcode: 0 (execution succeeded)\nCode output: {output}")
}

// Item 66. That each block ran is in the log.
#[tokio::test]
async fn code_is_run_until_a_block_fails() {
    let Some(bench) = Bench::new() else { return };
    assert_eq!(reply("Look:\n```python\nprint(6 * 7)\n```", bench.coder()).await, ok("42"));
    let message = "```sh\necho one; exit 3\n```\nthen\n```sh\ntouch never\n```";
    let (status, events) = run(&pair(&[message], bench.coder(), 2), "go").await;
    assert_eq!(said(&events, "Bob"), ["exitcode: 3 (execution failed)\nCode output: one"]);
    assert_eq!((bench.file("never"), &*closed(&status).0), (None, "2 of 2 turns"));
    let text = printed(&events);
    assert_eq!(text.matches("Bob calls shell").count(), 1, "{text}");
    assert!(text.contains(r#"Bob calls shell {"code":"echo one; exit 3\n"} #code-0-0"#), "{text}");
}

// Item 67.
#[tokio::test]
async fn blocks_run_in_their_order_and_languages_are_inferred() {
    let Some(bench) = Bench::new() else { return };
    let message = "```sh\nprintf 'a = 1' > m.py\necho made\n```\nand\n```\nimport m\nprint(m.a + 1)\n```";
    assert_eq!(
        reply(message, bench.coder()).await,
        format!("{}\n\nFiles written: `m.py` (5 bytes)", ok("made\n2"))
    );
    // Nothing is installed: it is a command line, and no Python.
    let out = reply("```\npip --version\n```\n", bench.coder()).await;
    assert!(!out.contains("SyntaxError") && out.contains("pip"), "{out}");
    assert_eq!(reply("```\nDear Bob, all is well.\n```\n", bench.coder()).await, "(nothing)");
}

// Item 68, trap T31: that nothing outlives it is tested with the tools.
#[tokio::test]
async fn when_time_is_up_the_exit_code_is_124() {
    let Some(bench) = Bench::new() else { return };
    let limits = Limits { time: Duration::from_millis(500), ..Limits::default() };
    let coder = Coder::new().tool(shell(bench.sandbox().limited(limits)));
    let out = reply("```bash\necho begun\n(sleep 1; touch late) &\nsleep 1000\n```", coder).await;
    assert_eq!(out, "exitcode: 124 (execution failed)\nCode output: begun\nTimeout");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(bench.file("late"), None);
}

// Item 69.
#[tokio::test]
async fn code_in_other_languages_is_refused_or_saved() {
    let Some(bench) = Bench::new() else { return };
    let refused =
        "exitcode: 1 (execution failed)\nCode output: unknown language `c++`; what can be run here is";
    let out = reply("```c++\nint main() {}\n```", bench.coder()).await;
    assert!(out.starts_with(refused) && out.contains("`python`, `py`"), "{out}");
    let out = reply("```html\n<!-- filename: a.html -->\n<p>Hi</p>\n```", bench.coder()).await;
    assert_eq!(out, ok("Code saved to /work/a.html"));
    assert_eq!(bench.file("a.html").as_deref(), Some("<!-- filename: a.html -->\n<p>Hi</p>\n"));
    // Prompts and displayed code are not programs to run.
    for data in
        ["```json\n{}\n```", "```text\nprint(1)\n```", "```markdown\n# Hi\n```", "```python\nprint(1)"]
    {
        assert_eq!(reply(data, bench.coder()).await, "(nothing)", "{data}");
    }
    // A coder without tools refuses with a text, too.
    let out = reply("```python\nprint(1)\n```", Coder::new()).await;
    assert!(out.ends_with("unknown language `python`; what can be run here is no language"), "{out}");
}

// Item 70.
#[tokio::test]
async fn a_file_name_is_kept_within_the_work_directory() {
    let Some(bench) = Bench::new() else { return };
    let code = "# filename: a.py\nprint('hi')\n";
    assert_eq!(reply(&format!("```python\n{code}```"), bench.coder()).await, ok("hi"));
    assert_eq!(bench.file("a.py").as_deref(), Some(code));
    let out = reply("```python\n# filename: ../b.py\nprint('hi')\n```", bench.coder()).await;
    assert_eq!(out, "exitcode: 1 (execution failed)\nCode output: `../b.py` is not in the work directory");
    assert_eq!(bench.file("../b.py"), None);
}

// Item 71, trap T30.
#[tokio::test]
async fn an_ordinary_comment_names_no_file() {
    let Some(bench) = Bench::new() else { return };
    for comment in ["# load data/x", "# main.py", "// a.py", "# The filename: of it"] {
        let code = if comment.starts_with('#') { "print('hi')" } else { "console.log('hi')" };
        let tag = if comment.starts_with('#') { "python" } else { "js" };
        let coder = bench.coder().tool(javascript(bench.sandbox()));
        let out = reply(&format!("```{tag}\n{comment}\n{code}\n```"), coder).await;
        // Where there is no Node.js, that is said, and no file is named either.
        assert!(out == ok("hi") || out.contains("there is no program `node`"), "{out}");
    }
    assert!(bench.file("main.py").is_none() && bench.file("a.py").is_none());
}

// Item 71: what would be dangerous outside fails inside, as a failed execution; the chat continues.
#[tokio::test]
async fn a_dangerous_command_is_an_execution_that_failed() {
    let Some(bench) = Bench::new() else { return };
    let precious = bench.dir.join("precious");
    std::fs::write(&precious, "").unwrap();
    let code = format!("```sh\nrm {} && echo gone\n```", precious.display());
    let (status, events) = run(&pair(&[&code, "Pity."], bench.coder(), 4), "go").await;
    assert!(precious.exists());
    let replies = said(&events, "Bob");
    assert!(
        replies[0].starts_with("exitcode: 1 (execution failed)") && !replies[0].contains("gone"),
        "{replies:?}"
    );
    assert_eq!((&*replies[1], &*closed(&status).0), ("(nothing)", "4 of 4 turns"));
}

// Item 72, trap T30.
#[tokio::test]
async fn only_new_code_is_run() {
    let Some(bench) = Bench::new() else { return };
    let code = "```sh\necho x >> runs; wc -l < runs\n```";
    // What was said before Bob's own last message is over and done with.
    let (_, events) = run(&pair(&[code, "Thanks.", code], bench.coder(), 6), "go").await;
    let replies = said(&events, "Bob");
    assert_eq!(replies[0], format!("{}\n\nFiles written: `runs` (2 bytes)", ok("1")));
    assert_eq!(replies[1], "(nothing)");
    assert_eq!(replies[2], format!("{}\n\nFiles written: `runs` (4 bytes)", ok("2")));
    assert_eq!(reply(code, bench.coder().last(0)).await, "(nothing)");
    assert_eq!(bench.file("runs").as_deref(), Some("x\nx\n"));
}

/// Ann and Cem each say something, then it is Bob's turn.
async fn after_two(ann: &'static str, cem: &'static str, coder: Coder) -> String {
    let chat = Chat::builder("three")
        .participant(Function::new("Ann", move |_| Ok(Act::say(ann))).unwrap())
        .participant(Function::new("Cem", move |_| Ok(Act::say(cem))).unwrap())
        .participant(Stack::new("Bob").unwrap().then(coder).otherwise("(nothing)"))
        .policy(sequential())
        .build()
        .unwrap();
    said(&run(&chat, "go").await.1, "Bob").remove(0)
}

// Item 72: the newest message with code is run, all of it; older ones are not. A window of 1 ignores them altogether.
#[tokio::test]
async fn of_several_messages_the_newest_with_code_is_run() {
    let Some(bench) = Bench::new() else { return };
    let (one, two) = ("```sh\necho one\n```", "```sh\necho two\n```\n```sh\necho three\n```");
    assert_eq!(after_two(one, two, bench.coder()).await, ok("two\nthree"));
    assert_eq!(after_two(one, "Well?", bench.coder()).await, ok("one"));
    assert_eq!(after_two(one, "Well?", bench.coder().last(1)).await, "(nothing)");
    assert_eq!(after_two(one, "Well?", bench.coder().last(2)).await, ok("one"));
}

// Item 72: code that the task is about is not run because a reply to it has none.
#[tokio::test]
async fn code_in_the_task_is_not_run_for_want_of_other() {
    let Some(bench) = Bench::new() else { return };
    let task = "Explain this:\n```sh\ntouch ran\n```";
    let (_, events) = run(&pair(&["It makes a file."], bench.coder(), 2), task).await;
    assert_eq!((said(&events, "Bob"), bench.file("ran")), (vec!["(nothing)".to_owned()], None));
    // Input that is only code should run.
    let bob = Stack::new("Bob").unwrap().then(bench.coder());
    let chat = Chat::builder("alone").participant(bob).policy(sequential()).build().unwrap();
    let replies = said(&run(&chat, task).await.1, "Bob");
    assert_eq!(replies, [format!("{}\n\nFiles written: `ran` (0 bytes)", ok("").trim_end())]);
    assert!(bench.file("ran").is_some());
}

// Item 73, trap T30.
#[tokio::test]
async fn fences_within_longer_fences_do_not_end_a_block() {
    let Some(bench) = Bench::new() else { return };
    let message = "````python\ntext = '''\n```sh\ntouch inner\n```\n'''\nprint(text.count('```'))\n````";
    assert_eq!(reply(message, bench.coder()).await, ok("2"));
    assert_eq!(bench.file("inner"), None);
    let out = reply("```c++\nint main() {}\n```\n```sh\ntouch later\n```", bench.coder()).await;
    assert!(out.contains("unknown language `c++`") && bench.file("later").is_none(), "{out}");
}

// Items 21 and 22: a person first, then tools, then code, then a model.
#[tokio::test]
async fn code_comes_after_people_and_tools_and_before_the_model() {
    let Some(bench) = Bench::new() else { return };
    let clock = || FunctionTool::new("clock", "Tells the time.", async |_: ()| Ok("noon"));
    let bobs = Spy::on(script(r#"[{"Bob": "A model speaks."}]"#));
    let model = script(
        r#"[{"Ann": {"say": "```sh\necho hi\n```", "calls": [{"tool": "clock", "id": "c"}]}},
            {"Ann": "```sh\necho ho\n```"}, {"Ann": "```sh\ntouch never\n```"}, {"Ann": "That is all."}]"#,
    );
    let ann = Assistant::new("Ann", model).unwrap().suggest_tool(clock().spec().clone());
    let bob = Stack::new("Bob")
        .unwrap()
        .then(HumanInput::always())
        .then(Executor::new().tool(clock()))
        .then(bench.coder())
        .then(Assistant::new("Bob", bobs.model()).unwrap());
    let chat = pair_chat("pair", ann, bob, 8);
    let (_, events) = talk(&chat, "go", &["", "", "Do not run this.", ""]).await;
    let replies = said(&events, "Bob");
    assert!(printed(&events).contains("Bob says: clock #c of Ann: noon\n"), "{}", printed(&events));
    assert_eq!(replies[1..], [ok("ho"), "Do not run this.".into(), "A model speaks.".into()]);
    assert_eq!((bobs.asked().len(), bench.file("never")), (1, None));
}

// A summary is asked of the model; code does not run in private turns.
#[tokio::test]
async fn nothing_runs_in_private_turns() {
    let Some(bench) = Bench::new() else { return };
    let model = script(r#"[{"Bob": "Ann wrote code."}]"#);
    let ann = Function::new("Ann", |_| Ok(Act::say("```sh\ntouch ran\n```"))).unwrap();
    let bob = Stack::new("Bob").unwrap().then(bench.coder()).then(Assistant::new("Bob", model).unwrap());
    let policy =
        with_summary_by(with_termination(round_robin(), max_turns(1)), name("Bob"), |_| "Sum up.".into());
    let chat = Chat::builder("pair").participant(ann).participant(bob).policy(policy).build().unwrap();
    assert_eq!(closed(&run(&chat, "go").await.0).1, "Ann wrote code.");
    assert_eq!(bench.file("ran"), None);
}

// The approval function of AutoGen 0.4: who is asked lets it run, puts other code in its place, or rejects it.
#[tokio::test]
async fn a_person_approves_edits_or_rejects_each_block() {
    let Some(bench) = Bench::new() else { return };
    let chat = |coder: Coder| pair(&["```sh\necho one\n```\n```sh\necho two\n```"], coder, 2);
    let always = || chat(bench.coder().approval(Approval::always()));
    let (_, events) = talk(&always(), "go", &["yes", " Yes "]).await;
    assert_eq!(said(&events, "Bob"), [ok("one\ntwo")]);
    let asked = questions(&events);
    assert_eq!(asked[0], "`Bob` is about to run sh code:\n\n```\necho one\n```");
    let is_of_code =
        |body: &Body| matches!(body, Body::InputRequired(asked) if asked.kind == QuestionKind::CodeApproval);
    assert!(events.iter().any(|event| is_of_code(&event.body)), "{events:?}");
    assert!(asked[1].contains("echo two"), "{asked:?}");
    let (_, events) = talk(&always(), "go", &["yes", "no, that is wrong"]).await;
    assert_eq!(
        said(&events, "Bob"),
        [
            "exitcode: 1 (execution failed)\nCode output: one\nThe code was not run: it was rejected. that is wrong"
        ]
    );
    let (_, events) = talk(&always(), "go", &["```sh\necho 1\n```\n", "hm", "yes"]).await;
    assert_eq!(
        said(&events, "Bob"),
        [format!("{}\n\nBefore it was run, the code was changed to:\n```sh\necho 1\n```", ok("1\ntwo"))]
    );
    assert!(questions(&events)[2].starts_with("The answer was unclear. `Bob` is about to run"));
    assert!(printed(&events).contains(r#"calls shell {"code":"echo 1\n"}"#));
    let (status, events) = talk(&always(), "go", &["exit"]).await;
    assert_eq!((&*closed(&status).0, said(&events, "Bob").len()), ("Bob left: said `exit`", 0));
}

#[tokio::test]
async fn a_person_is_asked_only_about_what_a_rule_names_and_what_can_be_run() {
    let Some(bench) = Bench::new() else { return };
    let coder = || bench.coder().approval(Approval::when(|block: &CodeBlock| block.code.contains("rm ")));
    assert_eq!(reply("```sh\necho fine\n```", coder()).await, ok("fine"));
    let chat = pair(&["```sh\necho fine\n```\n```sh\nrm x\n```"], coder(), 2);
    let (_, events) = talk(&chat, "go", &["no"]).await;
    assert!(said(&events, "Bob")[0].contains("fine\nThe code was not run: it was rejected."));
    // Code without a tool needs no approval.
    let asks = Coder::new().approval(Approval::always());
    assert!(reply("```ruby\nputs 1\n```", asks).await.contains("unknown language `ruby`"));
}
