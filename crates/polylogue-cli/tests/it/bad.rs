//! Bad input and bad places: each has a clear error and an exit code, and loses nothing.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::time::Duration;

use expect_test::{Expect, expect};
use polylogue_test::server::{Answer, Behavior, Playbook};
use polylogue_test::skip::can_enclose;

use crate::home::{Home, Ran, serve, shipped, undated};
use crate::models::{SAID, TALK, said, talk};

/// Runs `team.yaml` of `text`, which is not a team.
fn check_team(text: &str, expected: &Expect) {
    let home = Home::new().with_team(text);
    expected.assert_eq(&home.run(&["run", "team.yaml"]).exits(2).masked(&home));
    assert!(home.listed().is_empty());
}

#[test]
fn a_missing_team() {
    let home = Home::new();
    expect![[r#"
        --- 2
        error: the team file cannot be read: the file does not exist
         --> nowhere.yaml
    "#]]
    .assert_eq(&home.run(&["run", "nowhere.yaml"]).exits(2).masked(&home));
    expect![[r#"
        --- 2
        error: the team file cannot be read: it is not a file
         --> .
        hint: it is a folder: name one of its team files
    "#]]
    .assert_eq(&home.run(&["run", "."]).exits(2).masked(&home));
}

#[test]
fn broken_yaml() {
    check_team(
        "name: [x\nagents: {\n",
        &expect![[r#"
            --- 2
            error: this is not valid YAML: illegal placement of ':' indicator
             --> team.yaml:2:7
              |
            2 | agents: {
              |       ^
        "#]],
    );
    check_team(
        "",
        &expect![[r#"
            --- 2
            error: the file is empty
             --> team.yaml:1:1
              |
            1 | 
              | ^
            hint: a team has at least `name`, `agents` and `chat`
        "#]],
    );
    check_team(
        "\u{0}\u{1b}[2J",
        &expect![[r#"
            --- 2
            error: this is not valid YAML: unexpected character: `\u{0}'
             --> team.yaml:1:1
              |
            1 | ��[2J
              | ^
            hint: take it out
        "#]],
    );
}

#[test]
fn a_cycle_of_teams() {
    let home = Home::new();
    let team = |name: &str, other: &str| {
        format!(
            "name: {name}\nagents: [{{name: A}}]\nteams: [{{name: {other}, file: {other}.yaml}}]\nchat: {{participants: [A, {other}], stop: {{max_turns: 2}}}}\n"
        )
    };
    home.file("one.yaml", &team("one", "two"));
    home.file("two.yaml", &team("two", "one"));
    expect![[r#"
        --- 2
        error: this team contains itself: one.yaml > two.yaml > one.yaml
         --> two.yaml:3:27
          |
        3 | teams: [{name: one, file: one.yaml}]
          |                           ^^^^^^^^
    "#]]
    .assert_eq(&home.run(&["run", "one.yaml"]).exits(2).masked(&home));
}

#[test]
fn unknown_variables_and_other_wrong_options() {
    let home = Home::new().with_team(TALK);
    expect![[r#"
        error: a value is given for `wht`, which is not a variable of this team
         --> team.yaml:5:1
          |
        5 | vars: {what: the weather}
          | ^^^^
        hint: did you mean `what`?
    "#]]
    .assert_eq(&home.run(&["run", "team.yaml", "--var", "wht=x"]).exits(2).err);
    expect![[r#"
        error: invalid value 'much' for '--max-cost <DOLLARS>': expected an amount such as 0.50

        For more information, try '--help'.
    "#]]
    .assert_eq(&home.run(&["run", "team.yaml", "--max-cost", "much"]).exits(2).err);
    expect![[r#"
        error: the argument '--json' cannot be used with '--quiet'

        Usage: polylogue run --json --store <PATH> <TEAM> [TASK]

        For more information, try '--help'.
    "#]]
    .assert_eq(&home.run(&["run", "team.yaml", "--json", "--quiet"]).exits(2).err);
    let ran = Home::run_reading(&home, "\u{0}", &["run", "team.yaml", "-", "--offline"]).exits(2);
    assert!(ran.err.contains("`talk` has no script"), "{}", ran.err);
}

#[test]
fn a_wrong_key() {
    let server = serve(talk());
    let mut home = Home::at(&server);
    home.set("OPENAI_API_KEY", "sk-wrong-key");
    home.file("team.yaml", TALK);
    let ran = home.run(&["run", "team.yaml", "-m", "openai:test"]).exits(1);
    expect![[r#"
        talk: at most 100 turns a chat and 1000 model calls; no bound on tokens and cost: the length of a reply of `openai:test` has no known limit: set `max_tokens` in `parameters`. `polylogue check --price` has the parts.
        error (config): openai:test: the provider answered with status 401: Incorrect API key provided
          hint: check the key in `OPENAI_API_KEY`, and what it is allowed to do
    "#]]
    .assert_eq(&undated(&ran.err));
    assert_eq!(server.count(), 1, "it is not tried again");
    home.set("OPENAI_API_KEY", crate::home::KEY);
    home.run(&["resume", "last"]).ok();
    assert_eq!(said(&home.events()), SAID);
    home.set("OPENAI_API_KEY", "sk-\u{1b}[31m\nx");
    let ran = home.run(&["run", "team.yaml", "-m", "openai:test"]).exits(2);
    expect![[r#"
        error (config): openai: the key has characters that no key has, such as a line end
    "#]]
    .assert_eq(&ran.err);
}

/// Its participants reply without a model, so that they could speak before the summary fails.
#[test]
fn a_summary_without_a_model_and_one_of_an_unknown_kind() {
    for (summary, said) in [
        ("reflect", "no model is set for `pair_summary`"),
        ("{reflect: {model: 'acme:x'}}", "there is no provider `acme`"),
        ("{reflect: {by: Zoe}}", "there is no agent `Zoe`"),
        ("reflection", "`summary` cannot be `reflection`"),
        ("reflection_with_llm", "hint: AutoGen's `reflection_with_llm` is `{reflect: "),
    ] {
        let home = Home::new();
        let team = format!(
            "name: pair\ntask: Talk.\nagents: [{{name: Ann, model: none, default_reply: hi}}, {{name: Bob, model: none, default_reply: ho}}]\n\
             chat: {{participants: [Ann, Bob], summary: {summary}, stop: {{max_turns: 2}}}}\n"
        );
        let ran = home.run(&["run", home.file("team.yaml", &team)]).exits(2);
        assert!(ran.err.contains(said) && ran.out.is_empty(), "{summary}: {}{}", ran.out, ran.err);
        assert!(home.listed().is_empty(), "{summary}: nothing was said");
    }
}

#[test]
fn a_dead_endpoint() {
    let gone = crate::home::UNREACHABLE;
    let mut home = Home::new().var("OPENAI_BASE_URL", gone).with_team(TALK);
    let ran = home.run(&["run", "team.yaml", "-m", "openai:test"]).exits(1);
    let err = ran.err.replace(gone, "SERVER");
    // Each with a time that differs from run to run.
    let (retries, lines): (Vec<&str>, Vec<&str>) = err.lines().partition(|line| line.contains(", retry "));
    assert_eq!(retries.len(), 4, "{err}");
    assert!(retries.iter().all(|line| line.starts_with("Alice: cannot connect to SERVER: ")), "{err}");
    expect![[r#"
        talk: at most 100 turns a chat and 1000 model calls; no bound on tokens and cost: the length of a reply of `openai:test` has no known limit: set `max_tokens` in `parameters`. `polylogue check --price` has the parts.
        error (provider): openai:test: cannot connect to SERVER: tcp connect error: Connection refused (os error 111) (tried 5 times)
          hint: check that the server runs and that the base URL is right
    "#]].assert_eq(&undated(&(lines.join("\n") + "\n")));
    assert!(
        home.listed()[0]["status"].as_str().unwrap().starts_with("failed: openai:test: cannot connect to ")
    );
    let server = serve(talk());
    home.set("OPENAI_BASE_URL", &server.base_url());
    home.set("OPENAI_API_KEY", crate::home::KEY);
    home.run(&["resume", "last"]).ok();
    assert_eq!(said(&home.events()), SAID);
    for address in ["localhost:8000", "127.0.0.1:8000/v1", "gpu.example.com/v1"] {
        home.set("OPENAI_BASE_URL", address);
        let ran = home.run(&["run", "team.yaml", "-m", "openai:test"]).exits(2);
        expect![[r#"
            error (config): openai: the base URL does not begin with `http://` or `https://`
              hint: it looks like `http://127.0.0.1:8000/v1`
        "#]]
        .assert_eq(&ran.err);
    }
}

#[test]
fn a_broken_env_file() {
    let home = Home::new();
    home.file(".env", "OPENAI_API_KEY=\"sk-not-closed\n");
    home.file("team.yaml", TALK);
    let ran = home.run(&["run", "team.yaml", "-m", "openai:test"]).exits(2);
    expect![[r#"
        error (config): `.env` line 1: the quotes do not end
    "#]]
    .assert_eq(&ran.err);
}

#[test]
fn a_store_of_a_newer_version() {
    let home = Home::new();
    home.run(&["run", &shipped("writer-critic")]).ok();
    let before = fs::read(home.path("store.db")).unwrap();
    // Where SQLite keeps `user_version`.
    let mut file = OpenOptions::new().write(true).open(home.path("store.db")).unwrap();
    file.seek(SeekFrom::Start(60)).unwrap();
    file.write_all(&99_u32.to_be_bytes()).unwrap();
    for args in [&["runs"][..], &["show", "last"], &["run", &shipped("writer-critic")], &["doctor"]] {
        let ran = home.run(args).exits(1);
        let newer = "store.db has format 99, and this version knows up to 10\n  hint: read it with the version that wrote it, or a later one\n";
        assert!(ran.err.ends_with(newer), "{args:?}: {}", ran.err);
    }
    fs::write(home.path("store.db"), before).unwrap();
    assert_eq!(home.listed().len(), 1);
}

#[test]
fn a_damaged_log_is_read_as_far_as_it_goes() {
    let mut home = Home::new();
    home.set("POLYLOGUE_STORE", "talks/");
    home.run(&["run", &shipped("writer-critic")]).ok();
    let path = home.path(&format!("talks/{}.jsonl", home.id()));
    let mut lines: Vec<String> = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    lines[9] = lines[9].replace('{', "?");
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let ran = home.run(&["show", "last"]).exits(1);
    assert!(ran.out.contains("Write the label that stands beside a lighthouse"), "{}", ran.out);
    let id = home.id();
    let line =
        ran.err.replace(&path.display().to_string(), "FILE").replace(&format!("talks/{id}.jsonl"), "FILE");
    expect![[r#"
        error (system): FILE is damaged: line 10 is not an event: expected value at column 1; 7 events are intact
          hint: `polylogue show` shows the events before the damage, and `polylogue verify --repair` keeps that and sets the rest aside, so that the conversation can be resumed
    "#]]
    .assert_eq(&line);
    home.run(&["resume", "last"]).exits(1);
}

/// Runs a shell script in which the folder `small` has its own file system of 4 MB. `None` where none can be mounted.
fn on_a_small_disk(home: &Home, script: &str) -> Option<Ran> {
    let mount = "mkdir small && mount -t tmpfs -o size=4m polylogue small";
    let allowed = |how: &str| {
        home.shell(&format!("{how} sh -c 'rmdir small 2>/dev/null; {mount} && echo yes'")).out == "yes\n"
    };
    // Root needs a namespace of mounts, other users need one of users, too.
    let how =
        ["unshare --mount", "unshare --user --map-root-user --mount"].into_iter().find(|how| allowed(how));
    // The sandbox mounts file systems, too.
    let missing = how.is_none().then_some("file systems cannot be mounted here");
    let how = can_enclose(missing).then_some(how)??;
    let program = crate::home::PROGRAM;
    let _ = fs::remove_dir(home.path("small"));
    Some(home.shell(&format!("{how} sh -c '{mount}; export POLYLOGUE=\"{program}\"\n{script}'")))
}

/// A talk that is long, and full of long words: about 60 kB a turn.
const LONG: &str = "name: long\ntask: Go.\nagents: [{name: A, system: You are A.}, {name: B, system: You are B.}]\n\
                    chat: {participants: [A, B], loop_detection: off, stop: {max_turns: 16}}\n";

#[test]
fn a_full_disk() {
    let server = serve(Playbook::new(|received, _| {
        Answer::text(format!("{} {}", received.messages().len(), "word".repeat(15_000)))
    }));
    let home = Home::at(&server).with_team(LONG);
    let script = r#"
        dd if=/dev/zero of=small/filler bs=1024 count=3700 2>/dev/null
        $POLYLOGUE --store small/store.db run team.yaml -m openai:test --no-stream >out 2>err; echo "exit $?"
        rm small/filler
        $POLYLOGUE --store small/store.db show last --json >before
        $POLYLOGUE --store small/store.db resume last --quiet >/dev/null; echo "exit $?"
        $POLYLOGUE --store small/store.db show last --json >after
    "#;
    let Some(ran) = on_a_small_disk(&home, script) else { return a_limit_on_files(&home) };
    assert_eq!(ran.out, "exit 1\nexit 0\n", "{}", ran.err);
    let err = fs::read_to_string(home.path("err")).unwrap();
    let full = "/small/store.db\n  hint: free some space and resume; everything up to here is kept\n";
    assert!(
        err.contains("error (system): no space is left on the disk to write ") && err.ends_with(full),
        "{err}"
    );
    let [shown, before, after] =
        ["out", "before", "after"].map(|file| fs::read_to_string(home.path(file)).unwrap());
    let kept = before.matches("\"type\":\"message\"").count();
    assert!(kept > 0 && after.starts_with(&before), "{kept} turns were kept");
    assert_eq!(shown.matches("wordword\n").count(), kept, "what was shown had been kept before");
    assert_eq!(after.matches("\"type\":\"message\"").count(), 16);
    // A reply that could not be kept is the only one that is asked for again; there is none if the turn could not be begun.
    assert!((16..=17).contains(&server.count()), "{} requests", server.count());
}

/// A disk without a single free byte, after a run that ended, and after one that was killed and left its journal.
#[test]
fn what_is_on_a_disk_without_any_space_can_be_read() {
    let server = serve(
        Behavior::from(Playbook::new(|received, _| {
            Answer::text(format!("{} words", received.messages().len()))
        }))
        .latency(Duration::from_millis(100)),
    );
    let home = Home::at(&server).with_team(LONG);
    let script = r#"
        export POLYLOGUE_STORE=small/store.db
        look() { $POLYLOGUE --store $1/store.db show last --json; $POLYLOGUE --store $1/store.db runs --json; }
        # What is there is compared with what can be read of a copy elsewhere: looking tidies up where there is space.
        compare() {
            ls small; rm -rf copy; mkdir copy; cp small/store.db small/*-wal copy 2>/dev/null; look copy >elsewhere
            cat /dev/zero >small/filler 2>/dev/null
            df --output=avail small | tail -1 | tr -d " "
            look small >here; echo "exit $?"
            cmp elsewhere here && grep -q message here && echo same
            $POLYLOGUE resume last --quiet 2>&1; echo "exit $?"
            rm small/filler
        }
        $POLYLOGUE run team.yaml -m openai:test --max-turns 2 --quiet
        compare
        $POLYLOGUE run team.yaml -m openai:test --quiet >/dev/null 2>&1 & killed=$!
        until $POLYLOGUE show last --json | grep -q "4 words"; do sleep 0.01; done
        kill -9 $killed; wait $killed 2>/dev/null
        # What it shared with others in memory is not a part of what it left.
        rm small/store.db-shm
        compare
        ls small
        $POLYLOGUE resume last --quiet; echo "exit $?"
    "#;
    let Some(ran) = on_a_small_disk(&home, script) else { return };
    expect![[r#"
        2 words
        store.db
        0
        exit 0
        same
        error (system): no space is left on the disk to write HOME/small/store.db
          hint: free some space and resume; everything up to here is kept
        exit 1
        store.db
        store.db-wal
        store.db.writers
        0
        exit 0
        same
        error (system): no space is left on the disk to write HOME/small/store.db
          hint: free some space and resume; everything up to here is kept
        exit 1
        store.db
        store.db-shm
        store.db-wal
        store.db.writers
        16 words
        exit 0
        --- 
    "#]]
    .assert_eq(
        &format!("{}--- \n{}", ran.out, ran.err).replace(&home.path("").display().to_string(), "HOME/"),
    );
}

/// Where no file system can be made, files that cannot grow replace it.
fn a_limit_on_files(home: &Home) {
    // In blocks of 512 bytes.
    let script =
        "trap '' XFSZ; (ulimit -f 600; polylogue run team.yaml -m openai:test --no-stream); echo \"exit $?\"";
    let ran = home.shell(script);
    assert!(
        ran.out.ends_with("exit 1\n") && ran.err.contains("error (system): "),
        "{}\n{}",
        ran.out,
        ran.err
    );
    home.run(&["resume", "last"]).exits(3);
    assert_eq!(said(&home.events()).len(), 17);
}

#[test]
fn places_that_cannot_be_written() {
    let home = Home::new();
    home.file("file", "");
    // Neither root nor anyone else can make a file in /proc, or below a file.
    for (place, exit, expected) in [
        (
            "/proc/nowhere/store.db",
            1,
            expect![[r#"
                error (system): `/proc/nowhere` cannot be made: No such file or directory (os error 2)
                  hint: choose another place with `--store`
            "#]],
        ),
        (
            "/proc/store.db",
            1,
            expect![[r#"
                error (system): /proc/store.db cannot be written: No such file or directory (os error 2)
                  hint: choose another place with `--store`
            "#]],
        ),
        (
            "file/store.db",
            2,
            expect![[r#"
                error (config): `file/store.db` cannot be a store: `file` is a file
                  hint: choose another place with `--store`
            "#]],
        ),
        (
            "file/folder/",
            2,
            expect![[r#"
                error (config): `file/folder/` cannot be a store: `file` is a file
                  hint: choose another place with `--store`
            "#]],
        ),
        (
            "file/",
            2,
            expect![[r#"
                error (config): `file/` cannot be a store: `file` is a file
                  hint: `--store file` names the file; a folder needs another name
            "#]],
        ),
    ] {
        let ran = home.run(&["run", &shipped("writer-critic"), "--store", place]).exits(exit);
        assert_eq!(ran.out, "", "{place}");
        expected.assert_eq(&ran.err.replace(&home.path("").display().to_string(), "HOME/"));
    }
}

#[test]
fn a_place_that_may_only_be_read() {
    let home = Home::new();
    let script = format!(
        r#"
        $POLYLOGUE --store small/store.db run {} >/dev/null 2>&1
        mount -o remount,bind,ro small
        $POLYLOGUE --store small/store.db show last | grep -c APPROVED
        $POLYLOGUE --store small/store.db resume last; echo "exit $?"
        $POLYLOGUE --store small/other.db run {}; echo "exit $?"
        "#,
        shipped("writer-critic"),
        shipped("writer-critic")
    );
    // Where that is not allowed, the test above has to do.
    let Some(ran) = on_a_small_disk(&home, &script) else { return };
    expect![[r#"
        2
        exit 1
        exit 1
        --- 0
        error (system): HOME/small/store.db cannot be written: the system does not allow creating or changing files in its directory
          hint: choose another place with `--store`
        error (system): HOME/small/other.db cannot be written: Read-only file system (os error 30)
          hint: choose another place with `--store`
    "#]].assert_eq(&ran.masked(&home));
}

#[test]
fn small_mistakes_of_the_command_line_are_named() {
    let home = Home::new();
    let demo = home.run(&["run", "demo:studnt-teacher"]).exits(2);
    assert!(demo.err.contains("did you mean `demo:student-teacher`?"), "{}", demo.err);
    home.run(&["run", "demo:student-teacher", "--offline", "--max-turns", "2"]).exits(3);
    let fork = home.run(&["fork", "last", "--at", "1", "--say", "Hi"]).exits(2);
    assert!(fork.err.contains("event 1 is not a message, an answer or a task"), "{}", fork.err);
    assert_eq!(home.run(&["runs", "--state", "unfinished"]).ok().out, "");
    let logged = Home::new().var("RUST_LOG", "polylogue=warn,loud");
    let warned = logged.run(&["runs"]).ok();
    assert!(warned.err.starts_with("warning: `loud` in `RUST_LOG` is not a level"), "{}", warned.err);
    let wrong = Home::new().var("RUST_LOG", "polylogue=warn,polylogue=loud").run(&["runs"]).exits(2);
    assert!(wrong.err.contains("`polylogue=loud` in `RUST_LOG` cannot be read"), "{}", wrong.err);
}

#[test]
fn a_log_of_an_earlier_version_is_no_damage() {
    let home = Home::new().var("POLYLOGUE_STORE", "talks/");
    fs::create_dir(home.path("talks")).unwrap();
    home.file("talks/abc123.jsonl", "{\"polylogue\":1}\n");
    let listed = home.run(&["runs"]).ok();
    assert!(listed.out.contains("old format: `polylogue verify abc123` says what to do"), "{}", listed.out);
    assert!(listed.out.starts_with("abc123   no date  "), "{}", listed.out);
    assert!(home.listed()[0]["created_ms"].is_null());
    let verified = home.run(&["verify"]).exits(1);
    assert!(
        verified.out.contains("abc123   old format  ") && verified.out.contains("has format 1"),
        "{}",
        verified.out
    );
    assert!(verified.err.contains("hint: read it with the version that wrote it"), "{}", verified.err);
    assert_eq!(home.listed()[0]["status"], "old format: `polylogue verify abc123` says what to do");
}
