//! Programs of teams: where they run, what they may do, and who is asked before.

use std::fs;
use std::path::Path;

use polylogue::{AnyModel, Log, Status};
use polylogue_core::{Body, ToolStatus};
use polylogue_models::Script;
use polylogue_team::{BuildContext, Grant, Overrides, Rules, Team, load};
use polylogue_tools::code::what_is_enforced;

use crate::common;

fn team(text: &str) -> Team {
    let mut team = common::team(text);
    team.use_model("script");
    team
}

/// Whether the sandbox works here.
fn can_run() -> bool {
    let missing = what_is_enforced().into_iter().find(|measure| measure.required && !measure.holds);
    polylogue_test::skip::can_enclose(missing.as_ref().map(|missing| &*missing.detail))
}

fn models(team: &Team) -> impl Fn(&str) -> polylogue::Result<AnyModel> + use<> {
    let model = team.script.model("x");
    move |_: &str| Ok(AnyModel::new(model.clone()))
}

/// Runs `team` at `dir`, answering each question with the next of `answers`; the log, the questions and the result.
async fn play(team: &Team, place: &BuildContext, answers: &[&str]) -> (Log, Vec<String>, String) {
    let chat = team.build_at(&models(team), place).unwrap();
    let mut log = Log::in_memory();
    let mut status = chat.run_in(&mut log, "go").await.unwrap().status;
    let mut asked = Vec::new();
    while let Status::Waiting(questions) = &status {
        let (at, question) = &questions[0];
        log.answer(at, &question.who, answers[asked.len()]).await.unwrap();
        asked.push(question.text.to_string());
        status = chat.resume(&mut log).await.unwrap().status;
    }
    let Status::Closed { summary, .. } = status else { panic!("{status:?}") };
    (log, asked, summary.to_string())
}

/// The results of the tool calls of a log.
async fn outcomes(log: &Log) -> Vec<(ToolStatus, String)> {
    let returned = |body: &Body| match body {
        Body::ToolReturned { result: outcome, .. } => {
            Some((outcome.status, polylogue_core::text_of(&outcome.parts).into_owned()))
        }
        _ => None,
    };
    log.events().await.iter().filter_map(|event| returned(&event.body)).collect()
}

const TALKS_AND_RUNS: &str = r#"
chat: {participants: [Coder, Runner], pattern: sequential}
script: [{Coder: "```sh\necho first > made.txt\ncat made.txt\n```"}]
"#;

fn runner(how: &str) -> Team {
    team(&format!(
        "name: t\nagents: [{{name: Coder}}, {{name: Runner, model: none, code_execution: {how}, default_reply: nothing to run}}]\n{TALKS_AND_RUNS}"
    ))
}

#[tokio::test]
async fn code_is_run_in_the_work_directory_and_nowhere_else() {
    let team = runner("true");
    assert!(team.needs_workplace() && team.wants().is_empty());
    let error = team.build(&models(&team)).unwrap_err().to_string();
    assert_eq!(error, "the team has no work directory for the programs that it runs");
    if !can_run() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("work");
    let (_, asked, summary) = play(&team, &BuildContext::at(&dir), &[]).await;
    assert_eq!(asked, [""; 0]);
    assert!(summary.starts_with("exitcode: 0 (execution succeeded)\nCode output: first"), "{summary}");
    assert_eq!(fs::read_to_string(dir.join("made.txt")).unwrap(), "first\n");
}

#[tokio::test]
async fn a_person_lets_code_run_rejects_it_or_puts_other_code_in_its_place() {
    if !can_run() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| BuildContext::at(place.path().join(name));
    let team = runner("{approval: {when: \"code.contains('made.txt') && language == 'sh'\"}}");
    let (_, asked, summary) = play(&team, &at("run"), &["yes"]).await;
    assert!(
        asked.len() == 1 && asked[0].contains("about to run sh code") && asked[0].contains("cat made.txt")
    );
    assert!(summary.contains("Code output: first"), "{summary}");
    let (_, asked, summary) = play(&team, &at("rejected"), &["no, not today"]).await;
    assert!(asked.len() == 1 && summary.contains("not today"), "{summary}");
    assert!(!place.path().join("rejected/made.txt").exists());
    // A rule that does not apply asks no one.
    let team = runner("{approval: {matches: 'rm -rf'}}");
    let (_, asked, _) = play(&team, &at("other"), &[]).await;
    assert_eq!(asked, [""; 0]);
}

#[tokio::test]
async fn a_language_that_is_not_given_is_refused_and_one_that_is_saved_is_not_run() {
    if !can_run() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let team = runner("{languages: [python], saves: [sh]}");
    let (log, _, summary) = play(&team, &BuildContext::at(place.path().join("a")), &[]).await;
    assert!(summary.contains("Code saved to /work/code_"), "{summary}");
    assert_eq!(outcomes(&log).await.len(), 1);
    assert!(!place.path().join("a/made.txt").exists());
    let team = runner("{languages: [python]}");
    let (log, _, summary) = play(&team, &BuildContext::at(place.path().join("b")), &[]).await;
    assert!(summary.contains("unknown language `sh`"), "{summary}");
    assert_eq!(outcomes(&log).await, []);
}

#[tokio::test]
async fn a_block_that_takes_too_long_is_ended() {
    if !can_run() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let mut team = runner("{timeout: 300 ms}");
    team.script = serde_json::from_str(r#"[{"Coder": "```sh\nsleep 60\n```"}]"#).unwrap();
    let (_, _, summary) = play(&team, &BuildContext::at(place.path().join("work")), &[]).await;
    assert!(summary.starts_with("exitcode: 124 (execution failed)"), "{summary}");
}

#[tokio::test]
async fn without_a_sandbox_it_has_to_be_granted_and_a_person_is_asked() {
    let text = format!(
        "name: t\nsandbox: {{backend: none}}\nagents: [{{name: Coder}}, {{name: Runner, model: none, code_execution: true}}]\n{TALKS_AND_RUNS}"
    );
    let team = team(&text);
    assert_eq!(team.wants().into_keys().collect::<Vec<_>>(), [Grant::UnsafeHost]);
    let place = tempfile::tempdir().unwrap();
    let work = BuildContext::at(place.path().join("work"));
    let error = team.build_at(&models(&team), &work).unwrap_err().to_string();
    assert!(error.contains("`backend: none`"), "{error}");
    let (_, asked, summary) = play(&team, &work.grant([Grant::UnsafeHost]), &["yes"]).await;
    assert_eq!(asked.len(), 1);
    assert!(summary.contains("Code output: first"), "{summary}");
}

/// Ann calls two tools, by herself or by the hands of Bob.
fn caller(how: &str) -> Team {
    team(&format!(
        r#"
name: t
agents:
{how}
chat: {{participants: [Ann, Bob], pattern: sequential}}
script:
  - Ann: {{calls: [{{tool: set_state, args: {{key: a, value: 1}}, id: c1}}, {{tool: calculator, args: {{expression: "1 + 1"}}, id: c2}}]}}
  - Ann: {{say: done}}
"#
    ))
}

#[tokio::test]
async fn a_person_approves_tool_calls_of_every_kind_of_caller() {
    for (rule, asked) in [
        ("never", 0),
        ("always", 2),
        ("{tools: [calculator, 'x*']}", 1),
        ("{tools: ['*_state']}", 1),
        ("{when: \"tool == 'set_state' && args.value > 0 && who == 'Ann'\"}", 1),
        ("{when: \"args.expression.contains('+')\"}", 2),
        ("{when: \"has(args.expression)\"}", 1),
        ("{matches: '\"expression\":.*\\+'}", 1),
    ] {
        let own = format!(
            "  - {{name: Ann, tools: [set_state, calculator], approval: {rule}}}\n  - {{name: Bob, default_reply: x, model: none}}"
        );
        let others = format!(
            "  - {{name: Ann, suggests_tools: [set_state, calculator]}}\n  - {{name: Bob, model: none, executes_tools: [set_state, calculator], approval: {rule}}}"
        );
        for how in [own, others] {
            let team = caller(&how);
            let (log, questions, _) = play(&team, &BuildContext::none(), &["no, not so", "no, not so"]).await;
            assert_eq!(questions.len(), asked, "{how}");
            assert!(questions.iter().all(|text| text.starts_with("`Ann` calls `")), "{questions:?}");
            let shown = format!("{:?}", log.events().await);
            assert_eq!(shown.matches("it was rejected. not so").count() > 0, asked > 0, "{how}\n{shown}");
        }
    }
}

/// An agent that calls tools in its own way asks as well.
#[tokio::test]
async fn a_person_is_asked_however_an_agent_reasons() {
    let call = r#"{calls: [{tool: calculator, args: {expression: 6*7}, id: c1}]}"#;
    let plan = r##""Plan: count\n#E1 = calculator[{\"expression\": \"6*7\"}]""##;
    let block = r#""```json\n{\"name\": \"calculator\", \"parameters\": {\"expression\": \"6*7\"}}\n```""#;
    for (agents, who, script) in [
        (
            "{name: Ann, tools: [calculator], approval: always, reasoning: react}".to_owned(),
            "Ann",
            format!("{{Ann: {call}}}, {{Ann: {{say: done, expect: {{last: not so}}}}}}"),
        ),
        (
            "{name: Ann, tools: [calculator], approval: {tools: ['calc*']}, reasoning: rewoo}".to_owned(),
            "Ann",
            format!("{{Ann: {plan}}}, {{Ann: {{say: done, expect: {{last: not so}}}}}}"),
        ),
        (
            "{name: Ann, output_blocks: [{kind: tool, begin: \"```json\\n\", end: \"\\n```\", json: true}]}, \
             {name: Bob, model: none, runs_output_blocks: {tools: [calculator]}, approval: {when: \"args.expression.contains('*')\"}}"
                .to_owned(),
            "Ann, Bob",
            format!("{{Ann: {block}}}"),
        ),
    ] {
        let text = format!(
            "{{name: t, model: 'a:b', agents: [{agents}], chat: {{participants: [{who}], pattern: sequential}}, script: [{script}]}}"
        );
        let (log, asked, _) = play(&team(&text), &BuildContext::none(), &["no, not so"]).await;
        assert_eq!(asked.len(), 1, "{agents}");
        assert!(asked[0].starts_with("`Ann` calls `calculator` with:\n\n```\n{\"expression\":\"6*7\"}\n"), "{asked:?}");
        let outcomes = outcomes(&log).await;
        assert_eq!((outcomes.len(), outcomes[0].0), (1, ToolStatus::Failed), "{agents}");
        assert_eq!(outcomes[0].1, "This call was not made: it was rejected. not so");
    }
}

#[tokio::test]
async fn tools_that_run_programs_without_a_sandbox_are_not_run_unasked() {
    let text = |approve: &str| {
        format!(
            r#"
name: t
sandbox: {{backend: none}}
agents: [{{name: A, tools: [shell, calculator, touch]{approve}}}]
commands: [{{name: touch, description: Makes a file, command: [touch, made]}}]
chat: {{participants: [A], pattern: sequential}}
script:
  - A: {{calls: [{{tool: shell, args: {{code: "echo first"}}}}, {{tool: calculator, args: {{expression: "1+1"}}}}, {{tool: touch, args: {{}}}}]}}
  - A: done
"#
        )
    };
    let place = tempfile::tempdir().unwrap();
    let work = BuildContext::at(place.path().join("work")).grant([Grant::UnsafeHost]);
    let (log, asked, _) = play(&team(&text("")), &work, &["yes", "no"]).await;
    assert_eq!(asked.len(), 2, "{asked:?}");
    let outcomes = outcomes(&log).await;
    assert!(outcomes.iter().any(|(_, text)| text.contains("Code output: first")), "{outcomes:?}");
    assert!(!place.path().join("work/made").exists());
    // A team file cannot have it otherwise; the user can.
    for approve in [", approval: never", ", approval: {tools: [calculator]}", ", approval: {when: 'false'}"] {
        let place = tempfile::tempdir().unwrap();
        let work = BuildContext::at(place.path().join("work")).grant([Grant::UnsafeHost]);
        let (_, asked, _) = play(&team(&text(approve)), &work, &["no", "no", "no"]).await;
        assert!(asked.len() >= 2 && !place.path().join("work/made").exists(), "{approve}: {asked:?}");
    }
    let rules =
        Rules::read("- allow: {command: 'touch*'}\n- allow: {tool: shell}\n", "approvals.yaml").unwrap();
    let work = work.with_rules(rules, "content");
    let (_, asked, _) = play(&team(&text(", approval: never")), &work, &[]).await;
    assert!(asked.is_empty() && place.path().join("work/made").exists());
}

/// Whether a person is asked before a file is written at `path`.
async fn is_asked_about(path: &str, approve: &str, rules: &str) -> bool {
    let place = tempfile::tempdir().unwrap();
    let work = BuildContext::at(place.path().join("work"));
    let work = work.with_rules(Rules::read(rules, "approvals.yaml").unwrap(), "content");
    let path = path.replace("WORK", place.path().join("work").to_str().unwrap());
    let text = format!(
        "name: t\nagents: [{{name: A, tools: [write_file], approval: {approve}}}]\n\
         chat: {{participants: [A], pattern: sequential}}\n\
         script: [{{A: {{calls: [{{tool: write_file, args: {{path: \"{path}\", content: x}}}}]}}}}, {{A: done}}]\n"
    );
    let (_, asked, _) = play(&team(&text), &work, &["no"]).await;
    !asked.is_empty()
}

#[tokio::test]
async fn a_path_that_is_written_otherwise_gets_around_no_condition_and_no_rule() {
    let elsewhere = [
        "secret/a",
        "./secret/a",
        "draft/../secret/a",
        "secret//a",
        "draft/./../secret/./a",
        "/work/secret/a",
        "/work/draft/../secret/a",
        "WORK/secret/a",
        r"draft\\b/../../secret/a",
        r"x\\y/../secret/a",
        " /../secret/a",
    ];
    let when = "{when: \"!args.path.startsWith('draft/')\"}";
    for path in elsewhere {
        assert!(is_asked_about(path, when, "").await, "{path}");
        assert!(is_asked_about(path, "{when: \"args.path.startsWith('secret/')\"}", "").await, "{path}");
        assert!(is_asked_about(path, "{matches: '\"secret/a\"'}", "").await, "{path}");
        assert!(is_asked_about(path, "never", "- ask: {path: 'secret/*'}").await, "{path}");
        assert!(is_asked_about(path, "always", "- allow: {path: 'draft/*'}").await, "{path}");
    }
    for path in ["draft/a", "./draft/a", "secret/../draft/a", "/work/draft/a", "WORK/draft/a"] {
        assert!(!is_asked_about(path, when, "").await, "{path}");
        assert!(
            !is_asked_about(path, "always", "- allow: {tool: write_file, path: 'draft/*'}").await,
            "{path}"
        );
        assert!(
            !is_asked_about(path, "always", "- deny: {tool: 'write*'}\n- ask: {tool: '*'}").await,
            "denied: {path}"
        );
    }
}

/// Whether a person is asked before the call `call` by a rule about this command.
async fn is_asked_about_command(call: &str, pattern: &str) -> bool {
    let place = tempfile::tempdir().unwrap();
    let rules = Rules::read(&format!("- ask: {{command: '{pattern}'}}\n"), "approvals.yaml").unwrap();
    let work = BuildContext::at(place.path().join("work")).with_rules(rules, "content");
    let text = format!(
        r#"
name: t
agents: [{{name: A, tools: [deploy, remove, say]}}]
commands:
  - name: deploy
    description: Deploys
    command: [echo, deploy, "--to={{env}}", {{when: force, words: [--force]}}]
    arguments: {{env: {{type: string, default: production}}, force: {{type: boolean, optional: true}}}}
  - name: remove
    description: Removes
    command: [echo, rm, -rf, --, "{{paths}}"]
    arguments: {{paths: {{type: strings}}}}
  - name: say
    description: Says
    command: [echo, "{{a}}", "{{b}}"]
    arguments: {{a: {{type: string}}, b: {{type: string}}}}
chat: {{participants: [A], pattern: sequential}}
script: [{{A: {{calls: [{call}]}}}}, {{A: done}}]
"#
    );
    let (_, asked, _) = play(&team(&text), &work, &["no"]).await;
    !asked.is_empty()
}

#[tokio::test]
async fn a_rule_about_a_command_is_about_the_words_that_run() {
    for (call, pattern, is_asked) in [
        ("{tool: deploy, args: {}}", "echo deploy --to=production", true),
        ("{tool: deploy, args: {env: test}}", "*production*", false),
        ("{tool: deploy, args: {force: true}}", "*--force*", true),
        ("{tool: deploy, args: {force: false}}", "*--force*", false),
        ("{tool: deploy, args: {}}", "*--force*", false),
        ("{tool: remove, args: {paths: [/data/a, /data/b]}}", "*rm -rf -- /data/a /data/b", true),
        ("{tool: say, args: {a: '{b}', b: secret}}", "echo {b} secret", true),
        ("{tool: say, args: {a: '{b}', b: secret}}", "*secret secret*", false),
        ("{tool: deploy, args: {env: 5}}", "*", false),
    ] {
        assert_eq!(is_asked_about_command(call, pattern).await, is_asked, "{call} {pattern}");
    }
}

#[test]
fn permissions_of_inner_teams_must_be_granted_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    file(
        "outer.yaml",
        "{name: outer, agents: [{name: A}], teams: [{name: desk, file: inner.yaml}],
          chat: {pattern: sequential, participants: [A, desk]}}",
    );
    file(
        "inner.yaml",
        "{name: inner, agents: [{name: R, tools: [shell]}], chat: {pattern: sequential, participants: [R]},
          sandbox: {network: [example.org], readable: [/nowhere/at/all]}}",
    );
    let mut team = load(folder.path().join("outer.yaml"), &Overrides::default()).unwrap().team;
    team.use_model("script");
    let wants: Vec<_> = team.wants().into_iter().collect();
    let expected = [(Grant::Network, "example.org"), (Grant::Readable, "/nowhere/at/all")];
    assert_eq!(wants, expected.map(|(grant, what)| (grant, vec![what.to_owned()])));
    let model = |_: &str| Ok(AnyModel::new(Script::default().model("x")));
    let built = |grants: &[Grant]| {
        let place = BuildContext::at(folder.path().join("work")).grant(grants.iter().copied());
        team.build_at(&model, &place).unwrap_err().to_string()
    };
    assert!(built(&[]).contains("wants to reach `example.org` over the network"));
    assert!(built(&[Grant::Network]).contains("want to read `/nowhere/at/all`"));
    // What is granted and not there is said when the team is built; agents can be looked at without.
    assert!(built(&[Grant::Network, Grant::Readable]).contains("`/nowhere/at/all` cannot be read"));
    assert_eq!(team.assistants(&model).unwrap().len(), 2);
    assert!(!folder.path().join("work").exists());
}

#[tokio::test]
async fn models_call_commands_programs_and_tools_that_work_with_files() {
    if !can_run() {
        return;
    }
    let team = team(
        r#"
name: t
agents: [{name: A, tools: [python, files, words]}]
commands:
  - {name: words, description: Counts words, command: [wc, -w, --, "{file}"], arguments: {file: {type: string}}}
chat: {participants: [A], pattern: sequential}
script:
  - A: {calls: [{tool: write_file, args: {path: a.txt, content: one two three}}]}
  - A: {calls: [{tool: python, args: {code: "print(open('a.txt').read().upper())"}}]}
  - A: {calls: [{tool: words, args: {file: "a.txt; id"}}]}
  - A: {calls: [{tool: words, args: {file: a.txt}}]}
  - A: {calls: [{tool: read_file, args: {path: ../secret}}]}
  - A: done
"#,
    );
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("secret"), "x").unwrap();
    let (log, ..) = play(&team, &BuildContext::at(place.path().join("work")), &[]).await;
    let came = outcomes(&log).await;
    let ok: Vec<bool> = came.iter().map(|(status, _)| *status == ToolStatus::Done).collect();
    assert_eq!(ok, [true, true, false, true, false], "{came:?}");
    assert!(came[1].1.contains("ONE TWO THREE"), "{came:?}");
    assert!(came[2].1.contains("a.txt; id") && came[2].1.contains("No such file"), "{came:?}");
    assert_eq!(came[3].1, "3 a.txt");
    assert!(came[4].1.contains("is not in the work directory"), "{came:?}");
}

/// What one leaves in the work directory the next one finds, however long it takes.
#[tokio::test]
async fn calls_of_one_message_follow_one_another_where_they_share_the_work_directory() {
    if !can_run() {
        return;
    }
    let team = team(
        r#"
name: t
agents: [{name: A, tools: [shell, files, words]}]
commands:
  - {name: words, description: Counts words, command: [wc, -w, --, "{file}"], arguments: {file: {type: string}}}
chat: {participants: [A], pattern: sequential}
script:
  - A:
      calls:
        - {tool: shell, args: {code: sleep 0.4; printf 'one two' > a.txt}}
        - {tool: words, args: {file: a.txt}}
        - {tool: edit_file, args: {path: a.txt, old: one, new: zero}}
        - {tool: shell, args: {code: cat a.txt}}
        - {tool: read_file, args: {path: a.txt}}
  - A: done
"#,
    );
    let place = tempfile::tempdir().unwrap();
    let (log, ..) = play(&team, &BuildContext::at(place.path().join("work")), &[]).await;
    let came = outcomes(&log).await;
    let shown: Vec<&str> = came[1..].iter().map(|(_, text)| text.trim()).collect();
    let printed = "exitcode: 0 (execution succeeded)\nCode output: zero two";
    assert_eq!(shown, ["2 a.txt", "Replaced it once in `a.txt`.", printed, "zero two"], "{came:?}");
}

#[tokio::test]
async fn agents_and_chats_are_asked_as_tools_within_their_limits() {
    let team = team(
        r#"
name: t
agents:
  - name: A
    agent_tools: [{who: B, tool: ask, max_calls: 1}, talk]
  - {name: B, description: Knows}
  - {name: C}
chat: {participants: [A], pattern: sequential}
chats: [{name: talk, description: Talks it over, participants: [B, C], stop: {max_turns: 2}}]
script:
  - A: {calls: [{tool: ask, args: {task: Why?}}, {tool: ask, args: {task: And why that?}}, {tool: talk, args: {task: Talk}}]}
  - B: Because.
  - B: I say one thing.
  - C: I say another.
  - A: {say: So it is., expect: {last: I say another.}}
"#,
    );
    assert!(!team.needs_workplace());
    let (log, _, summary) = play(&team, &BuildContext::none(), &[]).await;
    assert_eq!(summary, "So it is.");
    let came: Vec<String> = outcomes(&log).await.into_iter().map(|(_, text)| text).collect();
    assert_eq!(came, ["Because.", "`ask` is asked at most once before you answer", "I say another."]);
}

#[test]
fn files_are_brought_along_once_and_links_lead_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    fs::create_dir_all(home.join("data")).unwrap();
    fs::write(folder.path().join("secret.txt"), "key").unwrap();
    fs::write(home.join("data/in.txt"), "with {{braces}}\n").unwrap();
    fs::write(home.join("binary"), [0xff, 0xfe, 0]).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret.txt", home.join("link.txt")).unwrap();
    let write = |files: &str| {
        let text = format!(
            "{{name: t, agents: [{{name: A, tools: [read_file]}}], files: {files}, chat: {{pattern: sequential, participants: [A]}}}}"
        );
        fs::write(home.join("t.yaml"), text).unwrap();
        load(home.join("t.yaml"), &Overrides::default())
    };
    let said = |files: &str| write(files).unwrap_err().to_string();
    assert!(said("[data/in.txt, other/../data/in.txt]").contains("not below the folder"));
    assert!(said("[missing.txt]").contains("the file does not exist"));
    assert!(said("[binary]").contains("it is not UTF-8 text"));
    assert!(
        said("[data/in.txt, ./data/in.txt]")
            .contains("there is a file `in.txt` in the work directory already")
    );
    #[cfg(unix)]
    assert!(said("[link.txt]").contains("not below the folder"));
    let team = write("[data/in.txt]").unwrap().team;
    let stored: Team = serde_json::from_value(serde_json::to_value(&team).unwrap()).unwrap();
    assert_eq!(stored, team);
    let work = folder.path().join("deep/work");
    let content = |work: &Path| fs::read_to_string(work.join("in.txt")).unwrap();
    stored.prepare(&work).unwrap();
    assert_eq!(content(&work), "with {{braces}}\n");
    fs::write(work.join("in.txt"), "changed").unwrap();
    stored.prepare(&work).unwrap();
    assert_eq!(content(&work), "changed", "what programs did is kept");
}
