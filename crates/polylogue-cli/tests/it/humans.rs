//! People in a chat: asked at the terminal, or answering later.

use std::time::Duration;

use expect_test::expect;
use polylogue_test::server::{Answer, Playbook};
use polylogue_test::teams::OFFICE;
use serde_json::json;

use crate::home::{Home, KEY, of_type, serve, shipped, undated};
use crate::models::said;
use crate::pictures::can_enclose;
use crate::terminal::Terminal;

fn home() -> Home {
    Home::new().with_team(OFFICE)
}

fn masked(text: &str, home: &Home) -> String {
    let text = undated(&text.replace(&home.id(), "ID"));
    let lines: Vec<_> = text.lines().collect();
    let from = lines.iter().position(|line| line.starts_with("office: at most")).map_or(0, |line| line + 1);
    let time = |line: &str| match line.rsplit_once(" · ").filter(|_| line.contains(" turn")) {
        Some((before, _)) => format!("{before} · TIME\n"),
        None => format!("{line}\n"),
    };
    lines[from..].iter().map(|line| time(line)).collect()
}

const PROMPT: &str = "\nKim>";
const SECOND_PROMPT: &str = "Then not.\n┊\n┊ Kim, it is your turn. Enter passes, exit leaves.\nKim>";

#[test]
fn a_person_is_asked_at_the_terminal_and_answers() {
    let home = home();
    let mut terminal = Terminal::open(&home, (80, 40), &["run", "team.yaml"]);
    terminal.wait_for(PROMPT);
    terminal.press("Why not **tomorrow**?\n");
    terminal.wait_for(SECOND_PROMPT);
    terminal.press("agreed\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0);
    expect![[r#"
        participants: meeting

        user → meeting
        Decide.

        ┊ chat meeting begins: Bot, Kim
        ┊
        ┊ user → all · meeting
        ┊ Decide. (as above)
        ┊
        ┊ Bot → Kim · meeting
        ┊ Shall we?
        ┊
        ┊ Kim, it is your turn. Enter passes, exit leaves.
        Kim> Why not **tomorrow**?
        ┊
        ┊ Bot → Kim · meeting
        ┊ Then not.
        ┊
        ┊ Kim, it is your turn. Enter passes, exit leaves.
        Kim> agreed
        ┊
        ┊ chat meeting ends: Kim said `agreed`

        meeting
        agreed (as above)

        done: meeting replied · 4 turns · tokens unknown · $0 · TIME
        `polylogue show ID`
    "#]]
    .assert_eq(&masked(&seen, &home));
    assert_eq!(
        said(&home.events()),
        ["Decide.", "Decide.", "Shall we?", "Why not **tomorrow**?", "Then not.", "agreed", "agreed"]
    );
}

#[test]
fn enter_passes_and_exit_leaves() {
    let home = home();
    let mut terminal = Terminal::open(&home, (80, 40), &["run", "team.yaml"]);
    terminal.wait_for(PROMPT);
    terminal.press("\n");
    terminal.wait_for(SECOND_PROMPT);
    terminal.press(" EXIT \n");
    let (code, seen) = terminal.end();
    expect![[r#"
        participants: meeting

        user → meeting
        Decide.

        ┊ chat meeting begins: Bot, Kim
        ┊
        ┊ user → all · meeting
        ┊ Decide. (as above)
        ┊
        ┊ Bot → Kim · meeting
        ┊ Shall we?
        ┊
        ┊ Kim, it is your turn. Enter passes, exit leaves.
        Kim>
        ┊
        ┊ Kim passes
        ┊
        ┊ Bot → Kim · meeting
        ┊ Then not.
        ┊
        ┊ Kim, it is your turn. Enter passes, exit leaves.
        Kim>  EXIT
        ┊
        ┊ Kim leaves: said `exit`
        ┊ chat meeting ends: 4 of 4 turns

        meeting
        Then not. (as above)

        done: meeting replied · 4 turns · tokens unknown · $0 · TIME
        `polylogue show ID`
    "#]]
    .assert_eq(&masked(&seen, &home));
    let events = home.events();
    assert_eq!((of_type(&events, "passed").len(), of_type(&events, "left").len()), (1, 1));
    assert_eq!(code, 0);
}

#[test]
fn ctrl_d_and_ctrl_c_at_the_prompt_leave_the_question_open() {
    for key in ["\u{4}", "\u{3}"] {
        let home = home();
        let mut terminal = Terminal::open(&home, (80, 40), &["run", "team.yaml"]);
        terminal.wait_for(PROMPT);
        terminal.press(key);
        let (code, seen) = terminal.end();
        assert_eq!(code, 5, "{seen}");
        assert!(seen.contains("\n\nwaiting for Kim · 1 turn · "), "{seen}");
        let mut terminal = Terminal::open(&home, (80, 40), &["resume", "last"]);
        terminal.wait_for("Kim>");
        terminal.press("agreed\n");
        let (code, seen) = terminal.end();
        assert_eq!(code, 0, "{seen}");
    }
}

#[test]
fn without_a_terminal_the_run_waits_and_continues_with_an_answer() {
    let home = home();
    let ran = home.run(&["run", "team.yaml"]).exits(5);
    expect![[r#"
        participants: meeting

        user -> meeting:
        Decide.

        chat meeting begins: Bot, Kim

        user -> all · meeting:
        Decide. (as above)

        Bot -> Kim · meeting:
        Shall we?

        Kim, it is your turn. Enter passes, `exit` leaves.

        waiting for Kim · 1 turn · tokens unknown · $0 · TIME
        `polylogue show ID` / `polylogue resume ID --answer TEXT`
        --- 5
        This is a demonstration: the agents speak by the team's script, because no model is named.
        For a real model, use `--model openai:gpt-4o-mini` with `OPENAI_API_KEY` set, or `--model ollama:llama3.2` with Ollama running.
        office: at most 100 turns a chat, 1000 model calls
    "#]].assert_eq(&ran.masked(&home));
    let listed = &home.listed()[0];
    assert_eq!((&listed["state"], &listed["status"]), (&json!("waiting"), &json!("waiting for Kim")));
    let before = home.events();
    home.run(&["resume", "last"]).exits(5);
    assert_eq!(home.events(), before, "asking again changes nothing");
    let ran = home.run(&["resume", &home.id(), "--answer", "Not yet."]).exits(5);
    expect![[r#"
        Bot -> Kim · meeting:
        Shall we?

        Kim, it is your turn. Enter passes, `exit` leaves.

        Kim -> Bot · meeting:
        Not yet.

        Bot -> Kim · meeting:
        Then not.

        Kim, it is your turn. Enter passes, `exit` leaves.

        waiting for Kim · 3 turns · tokens unknown · $0 · TIME
        `polylogue show ID` / `polylogue resume ID --answer TEXT`
        --- 5
    "#]]
    .assert_eq(&ran.masked(&home));
    let ran = home.run(&["resume", "last", "--answer", "agreed", "--quiet"]).ok();
    assert_eq!(ran.out, "agreed\n");
}

#[test]
fn a_quiet_run_says_next_to_its_output_who_is_asked_what_and_how_to_answer() {
    let home = home();
    let ran = home.run(&["run", "team.yaml", "--quiet"]).exits(5);
    assert!(!ran.out.contains("Kim, it is your turn"), "{}", ran.out);
    let id = home.id();
    let expected = format!(
        "Kim, it is your turn. The answer is your message, and the answer `exit` leaves the chat.\n\
         waiting for Kim: answer with `polylogue resume {id} --answer TEXT`\n"
    );
    assert!(ran.err.ends_with(&expected), "{}", ran.err);
}

/// A person alone in a chat.
const ALONE: &str = "name: desk\ntask: Write.\nagents: [{name: Kim, human: true}, {name: Bot, system: b}]\n\
                     chat: {participants: [Kim, Bot], stop: {max_turns: 6}}\nscript: [{Bot: ok}, {Bot: ok}, {Bot: ok}]\n";

#[test]
fn a_line_can_be_edited_recalled_and_have_several_lines() {
    let home = Home::new().with_team(ALONE);
    let mut terminal = Terminal::open(&home, (80, 40), &["run", "team.yaml"]);
    terminal.wait_for(PROMPT);
    // Left twice, and a letter that was forgotten; then another line.
    terminal.press("helo\u{1b}[D\u{1b}[Dl\u{1b}[F\u{1b}\rthere\r");
    terminal.wait_for_question("\nok\n");
    // What is pasted is not a key: its line ends do not end the answer.
    terminal.press("\u{1b}[200~one\rtwo\u{1b}[201~");
    terminal.wait_for("Kim> one\ntwo");
    terminal.press("\r");
    terminal.wait_for_question("two\n\nBot → Kim\nok\n");
    // The last answer but one again.
    terminal.press("\u{1b}[A\u{1b}[A\u{1b}[A\r");
    terminal.end();
    assert_eq!(
        said(&home.events()),
        ["Write.", "hello\nthere", "ok", "one\ntwo", "ok", "hello\nthere", "ok"]
    );
}

#[test]
fn json_begins_with_the_conversation_and_ends_with_its_totals() {
    let home = home();
    let lines = home.run(&["run", "team.yaml", "--json"]).exits(5).lines();
    let (first, last) = (&lines[0], &lines[lines.len() - 1]);
    let id = home.id();
    assert_eq!(*first, json!({"type": "run_started", "id": id, "team": "office"}));
    assert_eq!(
        (&last["type"], &last["state"], &last["turns"]),
        (&json!("run_ended"), &json!("waiting"), &json!(1))
    );
    assert_eq!(last["continue"], json!(format!("polylogue resume {id} --answer TEXT")));
    assert!(last["usage"]["calls"].as_u64() > Some(0) && last["elapsed_ms"].is_u64(), "{last}");
    assert_eq!(lines[1..lines.len() - 1], home.events(), "between them are the events, whole");
    let ran = home.run(&["resume", "last", "--answer", "agreed", "--json"]).ok().lines();
    let last = ran.last().unwrap();
    assert_eq!((&last["state"], last.get("continue")), (&json!("done"), None));
}

#[test]
fn a_person_is_asked_next_to_an_output_that_goes_elsewhere() {
    let home = home();
    let mut terminal = Terminal::open(&home, (80, 24), &["run", "team.yaml", "--quiet"]);
    terminal.wait_for("Kim, it is your turn. Enter passes, `exit` leaves.\nKim>");
    terminal.press("agreed\n");
    terminal.wait_for("agreed\nagreed\n");
}

/// A server whose model writes slowly.
fn slow_talk() -> polylogue_test::server::Server {
    let words: String = (0..200).map(|n| format!("word{n} ")).collect();
    let answer = Answer::text(words).with(polylogue_test::server::Quirk::Pace(Duration::from_millis(20)));
    serve(Playbook::always(answer))
}

const PAIR: &str = "name: pair\ntask: Go.\nagents: [{name: A, system: a}, {name: B, system: b}]\n\
                    chat: {participants: [A, B], loop_detection: off, stop: {max_turns: 2}}\n";

#[test]
fn ctrl_c_while_a_model_writes_leaves_no_trace_on_the_screen() {
    let server = slow_talk();
    let home = Home::at(&server).with_team(PAIR);
    let mut terminal = Terminal::open(&home, (80, 24), &["run", "team.yaml", "-m", "openai:test"]);
    terminal.wait_for("word9 ");
    terminal.press("\u{3}");
    terminal.wait_for("\nfinishing this step; Ctrl-C again stops now\n");
    assert!(!terminal.sees().contains("^C"), "{}", terminal.sees());
    terminal.press("\u{3}");
    let (code, seen) = terminal.end();
    assert_eq!(code, 6);
    assert!(!seen.contains("finishing this step"), "{seen}");
    assert!(seen.contains("\n(broken off here)\n"), "{seen}");
    for once in ["word0 ", "word9 ", "(broken off here"] {
        assert_eq!(seen.matches(once).count(), 1, "{seen}");
    }
    assert!(!seen.contains("was cut off after"), "{seen}");
    assert!(seen.contains("\nstopped: it can be resumed · 0 turns · "), "{seen}");
    assert_eq!(home.listed()[0]["status"], "interrupted");
}

#[test]
fn an_error_is_shown_once_and_where_it_happened() {
    let server = serve(Playbook::always(Answer::error(400, format!("bad \u{1b}[31mkey\u{7} {KEY}"))));
    let home = Home::at(&server).with_team(PAIR);
    let (code, seen) = Terminal::open(&home, (100, 24), &["run", "team.yaml", "-m", "openai:test"]).end();
    assert_eq!(code, 1);
    expect![[r#"
        pair: at most 2 turns and 8 model calls; no bound on tokens and cost: the length of a reply of
        `openai:test` has no known limit: set `max_tokens` in `parameters`. `polylogue check --price` has
        the parts.
        participants: A, B

        user → all
        Go.

        ✗ A failed (config): openai:test: the provider answered with status 400: bad ␛[31mkey␇ [key]

        failed: it can be resumed · 0 turns · 0 tokens · $0 · 0 s · TIME
        `polylogue show ID` / `polylogue resume ID`
    "#]]
    .assert_eq(&masked(&seen, &home));
    let ran = home.run(&["resume", "last"]).exits(1);
    assert!(!ran.err.contains('\u{1b}') && ran.err.contains("bad ␛[31mkey␇ [key]"), "{}", ran.err);
}

#[test]
fn no_color_is_plain_text_on_a_terminal_too() {
    let home = home().var("NO_COLOR", "1");
    let mut terminal = Terminal::open(&home, (80, 40), &["run", "team.yaml"]);
    terminal.wait_for(PROMPT);
    terminal.press("agreed\n");
    terminal.wait_for("`polylogue show ");
    let bytes = terminal.bytes();
    assert!(!bytes.contains('\u{1b}'), "{bytes:?}");
    assert!(bytes.contains("Bot -> Kim · meeting:"), "{bytes:?}");
}

/// They need neither a model nor a script.
#[test]
fn people_talk_among_themselves() {
    let home = Home::new();
    let team =
        "name: hall\ntask: Who sweeps?\nagents: [{name: Ann, human: true}, {name: Bob, human: true}]\n";
    home.file("team.yaml", &format!("{team}chat: {{participants: [Ann, Bob], stop: {{max_turns: 2}}}}\n"));
    let ran = home.run(&["run", "team.yaml"]).exits(5);
    assert!(
        ran.out.contains("waiting for Ann") && !ran.err.contains("demonstration"),
        "{}{}",
        ran.out,
        ran.err
    );
    home.run(&["resume", "last", "--answer", "You."]).exits(5);
    assert_eq!(home.run(&["resume", "last", "--answer", "No, you.", "--quiet"]).ok().out, "No, you.\n");
    let offline = home.run(&["run", "team.yaml", "--offline"]).exits(5);
    assert!(!offline.err.contains("demonstration"), "{}", offline.err);
}

#[test]
fn a_team_learns_from_lines_that_a_loop_reads_from_standard_input() {
    if !can_enclose() {
        return;
    }
    let home = Home::new();
    let team = shipped("continual-learning");
    let begun = home.run(&["run", &team, "--offline"]).exits(5);
    assert!(begun.out.contains("waiting for Stream"), "{}", begun.out);
    let script = "printf '2024-03-01 48.00\\n2024-03-08 51.00\\nEND\\n' |
        while read -r line; do polylogue resume last --answer \"$line\" </dev/null; done";
    let ran = home.shell(script).ok();
    for known in ["1 prices, change 0.0", "2 prices, change 3.0", "\ndone: "] {
        assert!(ran.out.contains(known), "{known}: {}\n{}", ran.out, ran.err);
    }
}

#[test]
fn one_of_several_questions_is_answered_by_its_number_alone() {
    let home = Home::new();
    home.file(
        "team.yaml",
        "name: hall\ntask: Choose.\nagents: [{name: Kim, human: true}, {name: Lee, human: true}]\n\
         chat: {participants: [Kim, Lee], pattern: parallel}\n",
    );
    let ran = home.run(&["run", "team.yaml", "--quiet"]).exits(5);
    let id = home.id();
    let answer = format!("`polylogue answer {id} NUMBER TEXT`");
    assert!(ran.err.contains(&format!("waiting for Kim and Lee: answer with {answer}")), "{}", ran.err);
    let shown = home.run(&["resume", "last"]).exits(5);
    assert!(shown.out.ends_with(&format!(" / `polylogue resume {id}`\n")), "{}", shown.out);
    let refused = home.run(&["resume", "last", "--answer", "red"]).exits(2);
    assert!(refused.err.contains("has 2 open questions") && refused.err.contains(&answer), "{}", refused.err);
    assert!(of_type(&home.events(), "input_provided").is_empty());
    let noted = home.run(&["show", "last"]).ok();
    assert!(noted.err.contains(&format!("waits for Kim and Lee: {answer} answers one")), "{}", noted.err);
    let waiting = home.run(&["waiting", "--json"]).ok().lines();
    let mut numbers: Vec<String> = waiting.iter().map(|open| open["question"].to_string()).collect();
    numbers.reverse();
    for (number, text) in numbers.iter().zip(["blue", "red"]) {
        home.run(&["answer", "last", number, text]).ok();
    }
    home.run(&["resume", "last"]).ok();
    assert_eq!(said(&home.events()), ["Choose.", "red", "blue"]);
}

#[test]
fn three_people_who_are_asked_are_listed_as_in_a_sentence() {
    let home = Home::new();
    home.file(
        "team.yaml",
        "name: hall\ntask: Choose.\n\
         agents: [{name: Max, human: true}, {name: Kim, human: true}, {name: Lee, human: true}]\n\
         chat: {participants: [Max, Kim, Lee], pattern: parallel}\n",
    );
    let ran = home.run(&["run", "team.yaml", "--quiet"]).exits(5);
    assert!(ran.err.contains("waiting for Max, Kim, and Lee: answer with"), "{}", ran.err);
    let noted = home.run(&["show", "last"]).ok();
    assert!(noted.err.contains("waits for Max, Kim, and Lee: "), "{}", noted.err);
    let listed = home.run(&["runs"]).ok();
    assert!(listed.out.contains("waiting for Max, Kim, and Lee"), "{}", listed.out);
}

/// The chat of Kim ends at its limit while Kim is asked.
#[test]
fn an_answer_is_for_the_only_question_that_is_open() {
    let home = Home::new();
    home.file(
        "team.yaml",
        "name: office\ntask: Decide.\n\
         agents: [{name: Kim, human: true}, {name: One}, {name: Two}, {name: Boss, human: true}]\n\
         chats: [{name: desk, pattern: parallel, participants: [Kim, One, Two], limits: {calls: 1}}]\n\
         chat: {pattern: sequential, participants: [desk, Boss]}\n\
         script: [{One: Yes.}, {Two: Never asked.}]\n",
    );
    home.run(&["run", "team.yaml"]).exits(5);
    let waiting = home.run(&["waiting", "--json"]).ok().lines();
    let who: Vec<_> = waiting.iter().map(|question| &question["who"]).collect();
    assert_eq!(who, ["Boss"]);
    let ended = home.run(&["resume", "last", "--answer", "approved"]).ok();
    assert!(ended.out.contains("approved"), "{}", ended.out);
}
