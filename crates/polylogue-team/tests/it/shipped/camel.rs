//! The trading bot works as CAMEL's role-play is meant to, with the faults of its copies left out: the opening is sent
//! once, the end is noticed before another call is paid for, and no text of a model is taken for a template.

use std::sync::Arc;

use polylogue::stop::{Counted, LibraryStopReason};
use polylogue_core::Window;
use polylogue_core::{Body, Entry, Part, StopReason};
use polylogue_team::{Overrides, Summary, Team};

use crate::shipped::stage::{Played, chat, files, log, name, play, team, team_with};

const OPENING: &str = "Now start to give me instructions one by one. Only reply with Instruction and Input.";
const DONE: &str = "<CAMEL_TASK_DONE>";
const TRADER: &str = "Stock_Trader";
const PROGRAMMER: &str = "Python_Programmer";

fn shipped(overrides: &Overrides) -> Team {
    team(files().iter().find(|file| file.ends_with("trading-bot.yaml")).unwrap(), overrides)
}

/// The trading bot with a script of these turns of the two, the trader's first.
fn talk(turns: &[&str]) -> Team {
    let speakers = [TRADER, PROGRAMMER].into_iter().cycle();
    let turns = speakers.zip(turns).map(|(who, text)| format!(r#"{{"{who}": {}}}"#, serde_json::json!(text)));
    let first = r#"{"Specifier": "Build it with candles."}"#.to_owned();
    let last = r#"{"work_summary": "It is built."}"#.to_owned();
    let steps: Vec<String> = std::iter::once(first).chain(turns).chain([last]).collect();
    team_with("trading-bot", &format!("[{}]", steps.join(",")))
}

/// The same with its own limit on the turns of the two.
fn talk_up_to(turns: u64) -> Team {
    let texts: Vec<String> = (0..turns).map(|turn| format!("Instruction or solution {turn}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut team = talk(&texts);
    stop(&mut team).max_turns = Some(turns);
    team
}

fn stop(team: &mut Team) -> &mut polylogue_team::Stop {
    team.chats[0].chat.stop.as_mut().unwrap()
}

/// What a model was asked in the end, without the exchanges with tools.
fn without_tools(entries: &[Entry]) -> Vec<&Entry> {
    let is_of_tools = |entry: &&Entry| match entry {
        Entry::Tool { .. } => true,
        Entry::Assistant { parts, .. } => parts.iter().any(|part| matches!(part, Part::ToolCall(_))),
        Entry::User { .. } | Entry::System { .. } => false,
    };
    entries.iter().filter(|entry| !is_of_tools(entry)).collect()
}

fn plain(entry: &Entry) -> String {
    polylogue_core::text_of(entry.parts()).into_owned()
}

#[tokio::test(start_paused = true)]
async fn the_opening_is_sent_exactly_once_and_to_the_trader_alone() {
    let played = play(&shipped(&Overrides::default())).await;
    let opened = played.events.iter().filter(|event| {
        matches!(&event.body, Body::Opened(opening) if opening.messages.iter().any(|m| m.text() == OPENING))
    });
    assert_eq!(opened.count(), 1);
    for asked in &played.asked {
        let times = asked.texts().iter().filter(|text| text.contains(OPENING)).count();
        assert_eq!(times, usize::from(asked.who.as_str() == TRADER), "{asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn turns_of_both_make_one_call_each_after_the_one_that_specifies() {
    for rounds in [1, 2, 5] {
        let limited = play(&talk_up_to(2 * rounds)).await;
        let calls = |played: &Played| {
            played.asked.iter().filter(|asked| asked.who.as_str() != "work_summary").count()
        };
        assert_eq!(calls(&limited) as u64, 1 + 2 * rounds);
        assert_eq!(limited.asked_of("Specifier").len(), 1);
        // One fewer when the trader ends it.
        let turns: Vec<String> =
            (0..2 * rounds - 2).map(|turn| format!("Instruction or solution {turn}")).collect();
        let turns: Vec<&str> = turns.iter().map(String::as_str).chain([DONE]).collect();
        let ended = play(&talk(&turns)).await;
        assert_eq!(calls(&ended) as u64, 1 + 2 * rounds - 1);
        assert_eq!(ended.unconsumed, [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn each_of_the_two_reads_the_other_as_user_and_itself_as_assistant_in_turn() {
    let played = play(&shipped(&Overrides::default())).await;
    let said = played.said("/work.1");
    for who in [TRADER, PROGRAMMER] {
        let asked = played.asked_of(who);
        assert!(asked.len() > 5, "{}", asked.len());
        for asked in asked {
            assert!(asked.system.starts_with("===== RULES OF THE"), "{}", asked.system);
            let entries = without_tools(&asked.entries);
            for (nth, entry) in entries.iter().enumerate() {
                let is_own = matches!(entry, Entry::Assistant { .. });
                assert_eq!(is_own, nth % 2 == 1, "{who} is asked {}", asked.roles());
                let (author, _) = said.iter().find(|(_, text)| *text == plain(entry)).unwrap();
                assert_eq!(author == who, is_own, "{author} said what {who} reads as {entry:?}");
            }
            assert!(matches!(entries.last(), Some(Entry::User { .. })));
        }
    }
    // The opening is not for the programmer; else both read everything, each once.
    let read = |who| without_tools(&played.asked_of(who).last().unwrap().entries).len();
    assert_eq!((read(TRADER), read(PROGRAMMER)), (said.len() - 1, said.len() - 3));
}

#[tokio::test(start_paused = true)]
async fn a_later_request_begins_with_the_earlier_one() {
    let played = play(&shipped(&Overrides::default())).await;
    for who in [TRADER, PROGRAMMER] {
        for pair in played.asked_of(who).windows(2) {
            assert_eq!(pair[0].system, pair[1].system);
            assert!(pair[1].entries.starts_with(&pair[0].entries), "{pair:#?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn building_and_opening_call_no_model_and_every_run_begins_afresh() {
    let team = talk(&["Instruction: one", "Solution: one", DONE]);
    let (chat, _, asked) = chat(&team);
    assert!(asked.lock().unwrap().is_empty());
    let mut runs = Vec::new();
    for _ in 0..2 {
        let mut log = log().await;
        chat.run_in(&mut log, "A bot").await.unwrap();
        runs.push((log.events().await, std::mem::take(&mut *asked.lock().unwrap())));
    }
    let [(first, asked_first), (second, asked_second)] = runs.as_slice() else { unreachable!("two runs") };
    assert_eq!(first, second);
    let entries = |asked: &[crate::shipped::stage::Asked]| {
        asked.iter().map(|asked| asked.entries.clone()).collect::<Vec<_>>()
    };
    assert_eq!(entries(asked_first), entries(asked_second));
}

#[tokio::test(start_paused = true)]
async fn the_marker_alone_ends_the_work_before_the_programmer_is_called() {
    let played = play(&talk(&["Instruction: one", "Solution: one", DONE])).await;
    let (reason, summary) = played.end_of("/work.1");
    assert_eq!(
        *reason,
        StopReason::from(LibraryStopReason::Mentioned { text: DONE.into(), by: name(TRADER) })
    );
    assert_eq!(summary, "It is built.");
    assert_eq!(played.said("/work.1").last(), Some(&(TRADER.to_owned(), DONE.to_owned())));
    assert_eq!(played.asked_of(PROGRAMMER).len(), 1);
    assert_eq!(
        (&played.reason, &*played.summary),
        (&StopReason::from(LibraryStopReason::AllSpoken), "It is built.")
    );
}

#[tokio::test(start_paused = true)]
async fn the_marker_within_an_instruction_a_solution_or_a_thought_ends_nothing() {
    let quoted = format!("Instruction: when I am content I will say {DONE}");
    let turns = [&*quoted, DONE, "Instruction: one", "Solution: one", DONE];
    let mut team = talk(&turns);
    let mut steps = team.script.steps().to_vec();
    steps[3].think = Some(Arc::from(DONE));
    team.script = polylogue_models::Script::new(steps);
    let strict = play(&team).await;
    assert_eq!(strict.unconsumed, [""; 0]);
    assert_eq!(strict.said("/work.1").len(), 1 + turns.len());
    // Where it is not the whole message that counts, the first mention by the trader ends it.
    stop(&mut team).says.as_mut().unwrap().whole = false;
    let lenient = play(&team).await;
    assert_eq!(lenient.said("/work.1").last(), Some(&(TRADER.to_owned(), quoted)));
}

#[tokio::test(start_paused = true)]
async fn limits_on_turns_and_messages_are_exact_and_say_what_they_are() {
    for limit in [1, 2, 7] {
        let played = play(&talk_up_to(limit)).await;
        assert_eq!(
            *played.end_of("/work.1").0,
            StopReason::from(LibraryStopReason::CountReached { count: limit, of: Counted::Turns })
        );
        assert_eq!(played.said("/work.1").len() as u64, 1 + limit, "the opening is not a turn");

        let mut team = talk_up_to(limit);
        stop(&mut team).max_messages = Some(limit);
        let played = play(&team).await;
        let planned =
            StopReason::from(LibraryStopReason::CountReached { count: limit, of: Counted::Messages });
        // With the opening alone no participant has said anything.
        let expected = if limit == 1 { StopReason::NoOutput { ended: Box::new(planned) } } else { planned };
        assert_eq!(*played.end_of("/work.1").0, expected);
        assert_eq!(played.said("/work.1").len() as u64, limit, "the opening is a message");
    }
}

#[tokio::test(start_paused = true)]
async fn prompts_hold_the_specified_task_and_the_log_holds_the_original_too() {
    let played = play(&talk(&["Instruction: one", "Solution: one", DONE])).await;
    for who in [TRADER, PROGRAMMER] {
        let system = &played.asked_of(who)[0].system;
        assert!(system.contains("This is the task; never forget it: Build it with candles.\n"), "{system}");
        assert!(!system.contains("Develop a trading bot"), "{system}");
    }
    let original = ("user".to_owned(), "Develop a trading bot for the stock market".to_owned());
    assert_eq!(played.said("").first(), Some(&original));
}

#[tokio::test(start_paused = true)]
async fn without_a_specifier_prompts_hold_the_unchanged_task() {
    let mut team = talk(&["Instruction: one", "Solution: one", DONE]);
    team.chat = team.chats[0].chat.clone();
    team.chat.summary = Summary::Last;
    let played = play(&team).await;
    assert_eq!(played.asked.len(), 3);
    assert_eq!(
        played.reason,
        StopReason::from(LibraryStopReason::Mentioned { text: DONE.into(), by: name(TRADER) })
    );
    for asked in &played.asked {
        assert!(asked.system.contains("never forget it: Develop a trading bot for the stock market\n"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_specifier_receives_the_task_both_roles_and_the_word_limit() {
    let overrides = Overrides { vars: [("word_limit".into(), "33".into())].into(), ..Overrides::default() };
    let played = play(&shipped(&overrides)).await;
    let [asked] = played.asked_of("Specifier")[..] else { panic!("it is asked once") };
    for shown in ["Stock Trader", "Python Programmer", "in 33 words or less"] {
        assert!(asked.system.contains(shown), "{}", asked.system);
    }
    assert_eq!(asked.texts(), ["Develop a trading bot for the stock market"]);
}

#[tokio::test(start_paused = true)]
async fn braces_of_people_and_models_are_never_taken_for_variables() {
    let task = r#"Parse {"a": {"b": 1}} and {} and {task} and {{task}} and {{user_role}} and {{"#;
    let overrides = Overrides { task: Some(task.into()), ..Overrides::default() };
    let mut team = shipped(&overrides);
    let specified = r#"{{task}} {{word_limit}} {user_role} {"#;
    let script = talk(&["Instruction: {{task}}", "Solution: {{task}}", DONE]).script;
    let mut steps = script.steps().to_vec();
    steps[0].say = Some(specified.into());
    team.script = polylogue_models::Script::new(steps);
    let played = play(&team).await;
    assert_eq!(played.unconsumed, [""; 0]);
    assert_eq!(played.asked_of("Specifier")[0].texts(), [task]);
    for who in [TRADER, PROGRAMMER] {
        let system = &played.asked_of(who)[0].system;
        assert!(system.contains(&format!("never forget it: {specified}\n")), "{system}");
    }
    assert_eq!(played.asked_of(PROGRAMMER)[0].texts(), ["Instruction: {{task}}"]);
}

#[tokio::test(start_paused = true)]
async fn a_window_keeps_the_system_text_and_the_latest_and_no_orphan_of_a_tool() {
    for window in [2, 3, 4, 5, 8] {
        let mut team = shipped(&Overrides::default());
        let programmer = team.agents.iter_mut().find(|agent| agent.name.as_str() == PROGRAMMER).unwrap();
        let polylogue_team::AgentKind::Model(keys) = &mut programmer.kind else { panic!() };
        keys.view.value.window = Some(Window::Messages(window));
        let played = play(&team).await;
        assert_eq!(played.unconsumed, [""; 0]);
        let said = played.said("/work.1");
        for asked in played.asked_of(PROGRAMMER) {
            let roles = asked.roles();
            assert!(asked.system.starts_with("===== RULES OF THE Python Programmer ====="));
            // What it works on, the call of the tool and its result always stay.
            let most = window.max(3);
            assert!(roles.len() <= most, "a window of {window} holds {roles}");
            assert!(!roles.starts_with('t') && !roles.contains("ut"), "an orphan in {roles}");
            let read = asked.texts().into_iter().any(|text| said.contains(&(TRADER.to_owned(), text)));
            assert!(read, "no word of the trader is left: {roles}");
        }
    }
}
