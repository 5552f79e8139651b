//! Tasks that are solved alone, and how histories are printed. Items 69 and 70.

use expect_test::expect;
use polylogue::tasks::tasks;
use polylogue::tasks::{History, Task};
use polylogue::{Human, Status};
use polylogue_core::{Params, ViewOptions};

use crate::stage::{closed, log, name, run};
use crate::yacana::table::{Played, agent, lines, lists, one};

#[tokio::test]
async fn a_task_leaves_its_prompt_and_its_answer_for_the_next() {
    let spy = lists(&["A1", "A2"], &["B1"]);
    let chat = tasks(
        "all",
        [one(&spy), crate::yacana::table::two(&spy), Task::new(agent("one", spy.model()), "P3")],
    )
    .unwrap();
    let played = Played::chat(spy, &chat).await;
    assert_eq!(played.knows("one"), ["user P1", "assistant A1", "user P3", "assistant A2"]);
    assert_eq!(played.knows("two"), ["user P2", "assistant B1"]);
    assert_eq!(played.reason(), "all 3 tasks are done");
}

// Item 69: the answer is there, the history is as before, and the system text stays.
#[tokio::test]
async fn a_task_that_forgets_leaves_nothing() {
    let spy = lists(&["A1", "yes, it is", "A3"], &[]);
    let shown = agent("one", spy.model()).system("Be brief.");
    let task = |prompt: &str| Task::new(shown.clone(), prompt);
    let chat = tasks("all", [task("P1"), task("Is it?").forget(), task("P3")]).unwrap();
    let played = Played::chat(spy, &chat).await;
    assert_eq!(played.knows("one"), ["user P1", "assistant A1", "user P3", "assistant A3"]);
    let asked = played.spy.asked();
    assert_eq!(lines(&asked[1].entries), ["user P1", "assistant A1", "user Is it?"]);
    assert!(asked.iter().all(|asked| asked.system.as_deref() == Some("Be brief.")));
    assert_eq!(played.chat.last_of(&name("one")).unwrap().message.text(), "A3");
    // Alone, its answer is the summary of the chat.
    let spy = lists(&["yes"], &[]);
    let (status, _) = run(&tasks("one", [one(&spy).forget()]).unwrap(), "").await;
    assert_eq!(closed(&status), ("the task is done".into(), "yes".into()));
}

#[tokio::test]
async fn every_task_has_its_own_settings_and_can_use_the_task_of_the_chat() {
    let spy = lists(&[r#"{"n": 1}"#, "A2"], &[]);
    let schema = serde_json::json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let warm = agent("one", spy.model()).params(Params { temperature: Some(0.7), ..Params::default() });
    let first = Task::new(warm, "")
        .prompt_from(|about| format!("A number from {about}"))
        .output_schema(schema.clone());
    let chat = tasks("all", [first, one(&spy)]).unwrap();
    run(&chat, "1 to 3").await;
    let asked = spy.asked();
    assert_eq!(lines(&asked[0].entries), ["user A number from 1 to 3"]);
    assert_eq!((asked[0].params.schema.as_ref(), asked[0].params.temperature), (Some(&schema), Some(0.7)));
    assert_eq!((asked[1].params.schema.as_ref(), asked[1].params.temperature), (None, None));
}

#[tokio::test]
async fn people_solve_tasks_too() {
    let chat = tasks("all", [Task::by(Human::new("Pat").unwrap(), "Your name?")]).unwrap();
    let mut log = log().await;
    let Status::Waiting(questions) = chat.run_in(&mut log, "").await.unwrap().status else {
        panic!("no person is asked")
    };
    assert_eq!(&*questions[0].1.text, "Your name?");
    log.answer(&questions[0].0, &questions[0].1.who, "Pat").await.unwrap();
    assert_eq!(closed(&chat.resume(&mut log).await.unwrap().status).1, "Pat");
}

// Item 70.
#[tokio::test]
async fn a_history_is_printed_as_blocks_of_role_and_text() {
    let spy = lists(&[" The secret number is: 2", "Noted.\n\n2"], &[]);
    let chat = tasks("all", [one(&spy), Task::new(agent("one", spy.model()), "Say it again.")]).unwrap();
    let played = Played::chat(spy, &chat).await;
    let history = History::from_transcript(&played.chat, &name("one"));
    expect![[r#"
        [user]:
        P1

        [assistant]:
         The secret number is: 2

        [user]:
        Say it again.

        [assistant]:
        Noted.

        2

    "#]]
    .assert_eq(&history.to_string());
    assert_eq!(history, History::through(&played.chat, &name("one"), ViewOptions::default()));
    assert_eq!(History::from_transcript(&played.chat, &name("absent")).to_string(), "");
}
