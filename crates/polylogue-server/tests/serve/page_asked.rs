//! What people are asked and what they send, in a real browser, and how what was cut off, selected and measured is shown.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::conversations::{begin, begin_until, events, until};
use crate::page_browser::{browser_of, check_clean, page, until_state};
use crate::page_views::{resize, show, show_until, stored_run};
use crate::world::{World, generous};

/// Three calls in one reply, of each of which a person is asked.
const APPROVED: &str = r#"
name: approved
task: Calculate.
agents: [{name: Ops, tools: [calculator], approval: always}, {name: Ann}]
chat: {participants: [Ops, Ann], pattern: round_robin, stop: {max_turns: 1}}
script:
  - Ops:
      calls:
        - {tool: calculator, args: {expression: "1+1"}}
        - {tool: calculator, args: {expression: "2+2"}}
        - {tool: calculator, args: {expression: "3+3"}}
  - Ops: Done.
"#;

/// What the first button of a question says, if it is the only one that stands out.
const MAIN: &str = "(() => { const [first, ...others] = document.querySelectorAll('.question .actions button'); return first.matches('.main') && !others.some((it) => it.matches('.main')) && first.textContent; })()";

/// The answers to the questions of a conversation.
async fn answers(world: &World, id: &str) -> Vec<Value> {
    let events = events(world, id).await;
    let provided = events.iter().filter(|event| event["type"] == "input_provided");
    provided.map(|event| event["text"].clone()).collect()
}

/// Waits until the page asks about this call, and shows it alone in a block.
async fn until_asked(browser: &mut Browser, args: &str) {
    let block = "document.querySelector('.question pre')?.textContent";
    browser.until(&format!("({block}) === {}", json!(args))).await;
}

#[tokio::test]
async fn calls_are_approved_rejected_with_a_reason_and_changed_by_buttons() {
    let world = World::with_team("approved", APPROVED).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "approved"})).await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    until_asked(&mut browser, r#"{"expression":"1+1"}"#).await;
    // Neither fences nor words for those who type.
    let shown = browser.eval("document.querySelector('.question').innerText").await;
    let shown = shown.as_str().unwrap();
    assert!(!shown.contains('`') && !shown.contains("yes") && !shown.contains("exit"), "{shown}");
    assert_eq!(browser.eval(MAIN).await, "Approve");
    // A list says it without what is to run.
    show(&mut browser, "#/").await;
    browser
        .until("document.querySelector('.waits')?.textContent === 'Ops asks for approval of calculator'")
        .await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    until_asked(&mut browser, r#"{"expression":"1+1"}"#).await;
    browser.press("Approve").await;
    until_asked(&mut browser, r#"{"expression":"2+2"}"#).await;
    browser.fill(".question textarea", "too large").await;
    browser.press("Reject, and say why").await;
    until_asked(&mut browser, r#"{"expression":"3+3"}"#).await;
    let other = r#"{"expression": "4+4"}"#;
    browser.fill(".question textarea", other).await;
    // To approve would be without them.
    browser.until(&format!("{MAIN} === 'Run with these arguments'")).await;
    browser.press("Run with these arguments").await;
    until(&world, &id, "closed").await;
    assert_eq!(answers(&world, &id).await, ["yes", "no, too large", other]);
    check_clean(&browser, &world);
}

/// An empty reply and `exit` end it, both.
const REVIEWED: &str = "
name: reviewed
task: Decide.
agents: [{name: Ann}, {name: Bob, model: none, human_input: terminate, terminate_on: {says: DONE}}]
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 6}}
script: [{Ann: DONE}]
";

#[tokio::test]
async fn what_two_answers_do_alike_is_one_button() {
    let world = World::with_team("reviewed", REVIEWED).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "reviewed"})).await;
    let asked = until(&world, &id, "waiting").await["questions"][0].clone();
    let effects = asked["choices"].as_array().unwrap().iter().map(|choice| choice["effect"].clone());
    assert_eq!(effects.collect::<Vec<Value>>(), ["end", "end"]);
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until("document.querySelector('.question .actions button')").await;
    let buttons = "[...document.querySelectorAll('.question .actions button')].map((it) => it.textContent)";
    assert_eq!(browser.eval(buttons).await, json!(["Answer", "End the conversation"]));
    assert_eq!(browser.eval(MAIN).await, "Answer");
    // Nothing is written, which would end it, too.
    let is_off = "document.querySelector('.question .main').disabled";
    assert_eq!(browser.eval(is_off).await, true);
    browser.fill(".question textarea", "Not yet.").await;
    browser.until(&format!("!{is_off}")).await;
    browser.fill(".question textarea", " ").await;
    browser.until(is_off).await;
    browser.press("End the conversation").await;
    until(&world, &id, "closed").await;
    assert_eq!(answers(&world, &id).await, [""]);
    check_clean(&browser, &world);
}

const SELECTED: &str = "
name: selected
task: Decide.
agents: [{name: Ann, description: writes}, {name: Bob}, {name: The_Head_of_the_Department_of_Long_Names, human: true}]
chat:
  participants: [Ann, Bob]
  pattern: {group: {select: {human: The_Head_of_the_Department_of_Long_Names}}}
  stop: {max_turns: 1}
script: [{Bob: Done.}]
";

#[tokio::test]
async fn a_person_selects_the_speaker_by_a_button_and_all_say_whole_who_selects() {
    let world = World::with_team("selected", SELECTED).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "selected"})).await;
    show_until(&mut browser, &format!("#/runs/{id}"), "document.querySelector('.question button')").await;
    // Each candidate is there once, as a button.
    let count = "document.querySelector('.question').innerText.split('Ann: writes').length - 1";
    assert_eq!(browser.eval(count).await, 1);
    browser.press("Bob").await;
    until(&world, &id, "closed").await;
    browser.until_text("Answer of page: 2 (Bob)").await;
    let choices = "[...document.querySelectorAll('.choice')].map((it) => it.textContent).filter((it) => it)";
    let selector = "The_Head_of_the_Department_of_Long_Names";
    let expected = json!(["selects from Ann, Bob", format!("selected by {selector} from Ann, Bob")]);
    browser.until(&format!("JSON.stringify({choices}) === {}", json!(expected.to_string()))).await;
    show(&mut browser, &format!("#/runs/{id}/graph")).await;
    let name = "document.querySelector('.node.selector .node-name')";
    browser.until(name).await;
    assert_eq!(
        browser.eval(&format!("{name}.textContent")).await,
        format!("selected by {selector}"),
        "it is not cut"
    );
    let fits =
        format!("{name}.getBBox().width < document.querySelector('.node.selector rect').getBBox().width");
    assert_eq!(browser.eval(&fits).await, true);
    check_clean(&browser, &world);
}

/// With a condition that is too long to be drawn.
const CONDITIONAL: &str = "
name: conditional
task: Talk.
agents: [{name: Ann}, {name: Bob}]
chat:
  participants: [Ann, Bob]
  pattern: {state_machine: {start: Ann, after: {Ann: [{when: \"last.text.startsWith('A long beginning of a reply') || turns > 3\", then: Bob}, {then: end}], Bob: Ann}}}
  stop: {max_turns: 4}
script: [{Ann: Hi.}]
";

#[tokio::test]
async fn a_condition_that_is_drawn_shortened_is_in_full_in_its_title_and_in_the_table() {
    let world = World::with_team("conditional", CONDITIONAL).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "conditional"})).await;
    show(&mut browser, &format!("#/runs/{id}/graph")).await;
    let whole = json!("last.text.startsWith('A long beginning of a reply') || turns > 3");
    let titles = "[...document.querySelectorAll('.edge-label title')].map((it) => it.textContent)";
    browser.until(&format!("({titles}).includes({whole})")).await;
    let cells = "[...document.querySelectorAll('.graph-table td')].map((it) => it.textContent)";
    assert_eq!(browser.eval(&format!("({cells}).includes({whole})")).await, true);
    check_clean(&browser, &world);
}

#[tokio::test]
async fn what_was_said_until_a_reply_was_cut_off_is_said_once() {
    let Some((world, mut browser)) = page().await else { return };
    let turn = |who: &str| json!({"type": "turn_started", "turns": [{"who": who}]});
    let cut = |who: &str, text: &str| json!({"type": "reply_interrupted", "who": who, "model": "script:test", "text": text});
    let kept = json!([{"text": "Once upon "}, {"text": "[cut off by the user]"}, {"cut": "interrupted"}]);
    let bodies = [
        turn("Ann"),
        cut("Ann", "Once upon "),
        json!({"type": "message", "from": "Ann", "parts": kept}),
        turn("Bob"),
        cut("Bob", "There was"),
        json!({"type": "message", "from": "Bob", "parts": [{"text": "Then not."}]}),
    ];
    let id = stored_run(&world, "cut", bodies).await;
    show_until(&mut browser, &format!("#/runs/{id}"), "document.querySelector('.closed')").await;
    let text = "[...document.querySelectorAll('.turn')].map((it) => it.textContent).join()";
    let times = async |browser: &mut Browser, said: &str| {
        browser.eval(&format!("({text}).split({}).length - 1", json!(said))).await
    };
    assert_eq!(times(&mut browser, "Once upon").await, 1);
    assert_eq!(times(&mut browser, "truncated").await, 0, "the message says so itself");
    // What no message has is in a fold.
    assert_eq!(times(&mut browser, "There was").await, 1);
    let folds = "[...document.querySelectorAll('.turn .fold:not([open])')].map((it) => it.textContent)";
    let folds = browser.eval(folds).await;
    assert!(
        folds.as_array().unwrap().len() == 1 && folds[0].as_str().unwrap().ends_with("There was"),
        "{folds}"
    );
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_message_into_a_running_chat_is_shown_until_it_is_said_and_in_the_head_at_its_event() {
    let (gate, world) = World::gated("so it goes", generous(), 1).await;
    let Some(mut browser) = browser_of(&world).await else { return gate.lift() };
    let id = begin(&world, &json!({"team": "long"})).await;
    // Nothing is read by the clock.
    browser.eval("window.setInterval = () => 0").await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until("document.querySelector('.turn.open[data-who=Bob]')").await;
    browser.fill("#say", "Be brief.").await;
    browser.press("Send").await;
    browser.until("document.querySelector('.pending')?.textContent.includes('Be brief.')").await;
    let said = "[...document.querySelectorAll('.turn')].some((it) => it.innerText.includes('Be brief.'))";
    // It is shown when it is sent: the server may have it some turns later, and says it after the next one.
    let mut open = 1;
    while browser.eval(said).await != true {
        open += 1;
        gate.open_until(open);
        // The task, the turns that have ended, and the one that has begun.
        browser.until(&format!("{said} || document.querySelectorAll('.turn').length >= {open} + 2")).await;
    }
    browser.until("!document.querySelector('.pending')").await;
    let why =
        "The maximum computed before the run no longer applies: the conversation continued with a message.";
    browser.until_text(why).await;
    until_state(&mut browser, "running").await;
    gate.lift();
    until(&world, &id, "closed").await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn the_focus_is_in_the_new_view_when_what_had_it_is_gone() {
    let Some((world, mut browser)) = page().await else { return };
    begin_until(&world, "talk", "closed").await;
    browser.until("document.querySelector('.run-row a')").await;
    browser
        .eval("(() => { const it = document.querySelector('.run-row a'); it.focus(); it.click(); })()")
        .await;
    browser.until("document.querySelector('main.run')").await;
    browser.until("document.activeElement.matches('main.run')").await;
    // A link that stays keeps it.
    browser
        .eval("(() => { const it = document.querySelector('.top nav a'); it.focus(); it.click(); })()")
        .await;
    browser.until("document.querySelector('.run-row a')").await;
    assert_eq!(browser.eval("document.activeElement.matches('.top nav a')").await, true);
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_list_says_whose_turn_it_is_and_a_timeline_has_no_columns_of_what_is_unknown() {
    let Some((world, mut browser)) = page().await else { return };
    let waiting = begin(&world, &json!({"team": "ask", "message": "Read `a.csv`."})).await;
    until(&world, &waiting, "waiting").await;
    let ended = begin_until(&world, "talk", "closed").await;
    show(&mut browser, "#/").await;
    browser.until("document.querySelector('.waits')?.innerText === 'It is the turn of Pat'").await;
    assert_eq!(browser.eval("document.querySelector('.run-task code').textContent").await, "a.csv");
    show_until(&mut browser, "#/?q=nothing-like-this", "document.querySelector('.empty a')").await;
    browser.eval("document.querySelector('.empty a').click()").await;
    browser.until("document.querySelectorAll('.run-row').length === 2").await;
    show(&mut browser, &format!("#/runs/{waiting}")).await;
    browser.until("document.querySelector('.question-head')?.innerText.includes('has the turn')").await;
    show(&mut browser, &format!("#/runs/{ended}/timeline")).await;
    browser.until("document.querySelector('.calls td')").await;
    let heads = "[...document.querySelectorAll('.calls th')].map((it) => it.innerText).join()";
    assert_eq!(browser.eval(heads).await, "Start ↑,Who,What,Time,First token,Cost");
    assert_eq!(browser.eval("document.querySelector('.lane .count').innerText").await, "2 calls · $0");
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_timeline_has_a_scale_and_heads_say_each_thing_once_in_few_rows() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "whisper", "closed").await;
    resize(&mut browser, 1440).await;
    show(&mut browser, &format!("#/runs/{id}/timeline")).await;
    browser.until("document.querySelectorAll('.scale text').length >= 2").await;
    assert_eq!(browser.eval("document.querySelector('.scale text').textContent").await, "0");
    // The name of the team is the title, and what can be done is next to it.
    assert_eq!(
        browser.eval("document.querySelector('.run-head').innerText.split('whisper').length - 1").await,
        1
    );
    let middle = |of: &str| {
        format!(
            "(() => {{ const it = document.querySelector('.run-head {of}').getBoundingClientRect(); return (it.top + it.bottom) / 2; }})()"
        )
    };
    let apart = format!("Math.abs({} - {})", middle("h1"), middle(".actions"));
    assert!(browser.eval(&apart).await.as_f64().is_some_and(|apart| apart < 10.0));
    // The buttons of the top are in one row also on a small screen.
    resize(&mut browser, 820).await;
    let rows = "new Set([...document.querySelectorAll('.top > :not(.spring, .skip)')].map((it) => { const { top, bottom } = it.getBoundingClientRect(); return Math.round((top + bottom) / 2); })).size";
    assert_eq!(browser.eval(rows).await, 1);
    show_until(&mut browser, "#/teams", "document.querySelector('.teams .run-row')").await;
    assert_eq!(browser.eval("document.querySelectorAll('.teams .run-facts .mono').length").await, 0);
    check_clean(&browser, &world);
}
