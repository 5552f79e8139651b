//! What a person changes in the page, in a real browser: team files, titles, limits, files of runs; and points of view over time.

use std::sync::Arc;

use polylogue_core::{Event, LogId, Meta, Store as _, Timestamp};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::conversations::{begin, begin_until, until};
use crate::editing::{talk, with_broken};
use crate::page_browser::{browser_of, check_clean, id_of, page, picture};
use crate::page_views::{show, show_until};
use crate::world::World;

const PATH: &str = "/api/v1/conversations";

#[tokio::test]
async fn s97_a_team_is_saved_and_a_conflict_keeps_both_texts() {
    let Some((world, mut browser)) = page().await else { return };
    let file = world.dir.path().join("talk.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let mine = text.replace("task: Count.", "task: Count down.");
    show(&mut browser, "#/teams/talk").await;
    browser.until_text("No errors.").await;
    browser.fill(".text textarea", &mine).await;
    browser.until_text("A draft in this tab").await;
    browser.press("Save").await;
    browser.until_text("Saved. New runs use this text.").await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), mine);
    browser.press("Run").await;
    browser.until("document.querySelector('textarea[name=message]')?.placeholder === 'Count down.'").await;

    // Someone else changes the file while a draft is open.
    show(&mut browser, "#/teams/talk").await;
    browser.until_text("No errors.").await;
    let again = mine.replace("Count down.", "Count up.");
    browser.fill(".text textarea", &again).await;
    let theirs = mine.replace("Count down.", "Count sheep.");
    std::fs::write(&file, &theirs).unwrap();
    browser.press("Save").await;
    browser.until("document.querySelector('.conflict .theirs')").await;
    let value = |selector: &str| format!("document.querySelector('{selector}').value");
    assert_eq!(browser.eval(&value(".conflict .theirs")).await, theirs);
    assert_eq!(browser.eval(&value(".text textarea")).await, again, "both texts are there");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), theirs, "and nothing was overwritten");
    picture(&mut browser, "conflict").await;
    // A draft survives a reload, and is still one of the old version.
    browser.reload().await;
    browser.until(&format!("{} === {}", value(".text textarea"), json!(again))).await;
    browser.until_text("No errors.").await;
    browser.press("Save").await;
    browser.press("Save mine over theirs").await;
    browser.until_text("Saved. New runs use this text.").await;
    browser.until("!document.querySelector('.conflict')").await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), again);
    // What the team was not given cannot be saved, and the page says so.
    let more = again.replace("{name: Bob}", "{name: Bob, tools: [shell]}");
    browser.fill(".text textarea", &more).await;
    browser.until("document.querySelector('.findings')").await;
    browser.press("Save").await;
    browser.until_text("the team could do more than its file allows: agents.Bob.tools.shell").await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), again);
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_team_with_errors_shows_them_and_is_repaired_in_the_editor() {
    let text = talk("{name: Bob}");
    let world = with_broken(&text.replace("task:", "tsk:")).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    for view in ["#/teams", "#/new?team=flawed"] {
        show(&mut browser, view).await;
        // Its lines, one below the other.
        let quoted = browser.until("document.querySelector('.file-error pre')?.textContent").await;
        let quoted = quoted.as_str().unwrap();
        assert!(quoted.lines().any(|line| line.ends_with("| tsk: Count.")), "{view}: {quoted}");
    }
    show_until(&mut browser, "#/teams/flawed", "document.querySelector('.findings .error')").await;
    browser.fill(".text textarea", &text).await;
    browser.until("!document.querySelector('.findings .error')").await;
    browser.press("Save").await;
    browser.until_text("Saved. New runs use this text.").await;
    assert_eq!(std::fs::read_to_string(world.dir.path().join("flawed.yaml")).unwrap(), text);
    check_clean(&browser, &world);
}

const LIMITED: &str = "
name: limited
task: Count.
agents: [{name: Ann}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 6}}
limits: {calls: 2, on_limit: ask}
script: [{Ann: one}, {Bob: two}, {Ann: three}, {Bob: four}, {Ann: five}, {Bob: six}]
";

#[tokio::test]
async fn a_limit_is_raised_and_ended_by_buttons() {
    let world = World::with_team("limited", LIMITED).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "limited"})).await;
    let asked = until(&world, &id, "waiting").await["questions"][0].clone();
    assert_eq!((&asked["limit"]["more"], &asked["call"]), (&json!({"calls": 2}), &Value::Null), "{asked}");
    assert!(asked["limit"]["reached"].as_str().unwrap().contains('2'), "{asked}");
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until_text("has reached").await;
    let hint = browser.eval("document.querySelector('.question textarea').placeholder").await;
    assert_eq!(hint, "Or another amount, such as 5");
    picture(&mut browser, "limit").await;
    browser.press("Allow 2 more model calls").await;
    browser.until_text("four").await;
    // What has no turn is drawn again, too.
    browser.until_text("Answer of page: yes").await;
    browser.press("End the run").await;
    let closed = until(&world, &id, "closed").await;
    assert_eq!((&closed["turns"], &closed["ended"]["word"]), (&json!(4), &json!("limit")), "{closed}");
    browser.until("!document.querySelector('.question')").await;
    browser.until_text("Answer of page: no").await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_run_that_a_limit_on_calls_has_ended_continues_by_a_button() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin(&world, &json!({"team": "short"})).await;
    assert_eq!(until(&world, &id, "closed").await["turns"], 3);
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.eval("window.confirm = (text) => { window.asked = text; return true; }").await;
    browser.press("Raise the limit").await;
    browser.until_text("four").await;
    assert_eq!(browser.eval("window.asked").await, "Allow 3 more model calls?");
    assert_eq!(until(&world, &id, "closed").await["turns"], 6);
    check_clean(&browser, &world);
}

#[tokio::test]
async fn s96_the_task_is_edited_and_rerun_in_a_fork() {
    let Some((world, mut browser)) = page().await else { return };
    // As the first message, and where no message has it.
    for (team, task, last) in [("talk", ".turn", "four"), ("whisper", ".task", "What a game!")] {
        let source = begin_until(&world, team, "closed").await;
        show(&mut browser, &format!("#/runs/{source}")).await;
        browser.until_text(last).await;
        browser.eval(&format!("document.querySelector('{task} button.edit').click()")).await;
        browser.until("document.activeElement.matches('.edit-form textarea')").await;
        browser.fill(".edit-form textarea", "Another task.").await;
        browser.press("Rerun in a fork").await;
        browser
            .until(&format!("document.querySelector('main[data-run]:not([data-run=\"{source}\"])')"))
            .await;
        browser.until_text(&format!("edited fork of {source}")).await;
        browser.until_text(last).await;
        let shown = format!("document.querySelector('{task} .parts').innerText");
        assert_eq!(browser.eval(&shown).await, "Another task.");
        let fork = id_of(&mut browser).await;
        let fork = until(&world, &fork, "closed").await;
        let parent = json!({"id": source, "seq": 0, "edited": true});
        assert_eq!((&fork["task"], &fork["parent"]), (&json!("Another task."), &parent));
        picture(&mut browser, &format!("task-of-{team}")).await;
    }
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_run_is_renamed_exported_and_imported_in_the_page() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "talk", "closed").await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.press("Rename").await;
    browser.fill(".rename-form input", "Counting to four").await;
    browser.eval("document.querySelector('.rename-form').requestSubmit()").await;
    browser.until("document.querySelector('.run-name h1')?.textContent === 'Counting to four'").await;
    browser.until("document.title.startsWith('Counting to four')").await;
    // The file behind the link is the one of the API, by the cookie of the page.
    let link = "[...document.querySelectorAll('.run-head a')].find((it) => it.textContent === 'Export')";
    browser.until(link).await;
    assert_eq!(browser.eval(&format!("{link}.download")).await, format!("{id}.jsonl"));
    let file = browser.eval(&format!("fetch({link}.href).then((it) => it.text())")).await;
    let file = file.as_str().unwrap().to_owned();
    assert_eq!(file, world.get(&format!("{PATH}/{id}/export")).await.body);
    let saved = world.dir.path().join("run.jsonl");
    std::fs::write(&saved, &file).unwrap();
    show(&mut browser, "#/").await;
    browser.until_text("Counting to four").await;
    let choose = async |browser: &mut Browser, path: &std::path::Path| {
        browser.until("document.querySelector('input.file')").await;
        let document = browser.command("DOM.getDocument", json!({})).await;
        let query = json!({"nodeId": document["root"]["nodeId"], "selector": "input.file"});
        let node = browser.command("DOM.querySelector", query).await["nodeId"].clone();
        browser.command("DOM.setFileInputFiles", json!({"nodeId": node, "files": [path]})).await;
    };
    choose(&mut browser, &saved).await;
    browser.until_text("Imported from a file: it can be read, and not be continued.").await;
    browser.until_text("four").await;
    let steering = "document.querySelectorAll('#say, .question, button.fork, button.edit').length";
    assert_eq!(browser.eval(steering).await, 0);
    browser.until("document.querySelector('.run-name h1').textContent === 'Counting to four'").await;
    picture(&mut browser, "imported").await;
    // A file that was changed is refused, with the reason.
    std::fs::write(&saved, file.replacen("three", "thirty", 1)).unwrap();
    show(&mut browser, "#/").await;
    choose(&mut browser, &saved).await;
    browser.until_text("the log cannot be imported: event").await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn s95_late_joiners_and_cleared_histories_are_dimmed_as_they_are_received() {
    let Some((world, mut browser)) = page().await else { return };
    let opened = json!({"type": "opened", "participants": ["Ann", "Bob"], "late_joiners": ["Cid"], "task": "Talk.", "messages": []});
    let mut bodies = vec![opened];
    let say = |bodies: &mut Vec<Value>, who: &str, text: &str| {
        bodies.push(json!({"type": "turn_started", "turns": [{"who": who}]}));
        bodies.push(json!({"type": "message", "from": who, "parts": [{"text": text}]}));
    };
    say(&mut bodies, "Ann", "first words");
    say(&mut bodies, "Bob", "second words");
    bodies.push(json!({"type": "joined", "who": "Cid", "sees": "new"}));
    say(&mut bodies, "Cid", "third words");
    bodies.push(json!({"type": "cleared", "who": "Ann", "of": "Bob", "keep": 1}));
    say(&mut bodies, "Ann", "fourth words");
    bodies.push(json!({"type": "closed", "reason": "finished", "summary": ""}));
    let event = |(seq, mut body): (u64, Value)| {
        (body["seq"], body["time_ms"]) = (seq.into(), (1_700_000_000_000 + seq).into());
        Arc::new(serde_json::from_value::<Event>(body).unwrap())
    };
    let events: Vec<Arc<Event>> = (0..).zip(bodies).map(event).collect();
    let (store, id) = (world.store().await, LogId::new("overtime").unwrap());
    let meta = Meta { title: "talk".into(), created: Timestamp(1_700_000_000_000), ..Meta::default() };
    let claim = store.create(&id, &meta).await.unwrap();
    store.append(&claim, &events).await.unwrap();
    store.release(claim).await.unwrap();
    show(&mut browser, "#/runs/overtime").await;
    browser.until_text("fourth words").await;
    let dimmed =
        "[...document.querySelectorAll('.dimmed')].map((it) => it.innerText.match(/\\w+ words/)?.[0]).join()";
    for (who, unseen) in
        [("Cid", "first words,second words"), ("Bob", "first words,second words"), ("Ann", "")]
    {
        show(&mut browser, &format!("#/runs/overtime?as={who}")).await;
        browser.until_text(&format!("What {who} does not receive is dimmed.")).await;
        browser.until(&format!("({dimmed}) === {}", json!(unseen))).await;
        picture(&mut browser, &format!("view-of-{who}")).await;
    }
    check_clean(&browser, &world);
}
