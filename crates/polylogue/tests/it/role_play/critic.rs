//! A critic in the loop: C14 (85).

use polylogue::tasks::RolePlay;
use polylogue::tasks::role_play::Critic;
use polylogue::{AnyModel, Chat};
use polylogue_core::{Entry, Part};

use crate::role_play::set::{Came, DONE, agent, play, role_play};

const TWO: &str = r#"[
    {"Trader": "Instruction: a"}, {"Trader": "Instruction: b"}, {"Critic": "I choose 2, and not 1."},
    {"Python_programmer": "Solution: c"}, {"Python_programmer": "Solution: d"}, {"Critic": "1"},
    {"Trader": "<CAMEL_TASK_DONE>"}, {"Trader": " "}]"#;

fn with_critic(model: &AnyModel) -> RolePlay {
    role_play(model).critic(Critic::new(agent("Critic", model), 2))
}

fn chat(model: &AnyModel) -> Chat {
    with_critic(model).build("role_play").unwrap()
}

fn texts(came: &Came) -> Vec<String> {
    came.said().into_iter().map(|(_, text)| text).collect()
}

fn last_asked(came: &Came, nth: usize) -> String {
    let Some(Entry::User { parts }) = came.asked("Critic")[nth].entries.last() else { panic!("no question") };
    parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(&**text) } else { None }).collect()
}

#[tokio::test]
async fn each_is_asked_n_times_and_the_first_number_is_chosen() {
    let came = play(TWO, "Trade", chat).await;
    assert_eq!(texts(&came), ["Instruction: b", "Solution: c", DONE]);
    assert_eq!(came.asked("Trader").len(), 4);
    assert_eq!(came.asked("Critic").len(), 2, "with one option the critic is not asked");
    // The two proposals are answers to the same request.
    let [first, second, ..] = came.asked("Trader")[..] else { panic!("asked too seldom") };
    assert_eq!((&first.system, &first.entries), (&second.system, &second.entries));
    assert!(first.system.as_ref().unwrap().starts_with("===== RULES OF THE USER"));
    // No agent sees a rejected proposal.
    let received = format!("{:?}", came.asked("Python_programmer")[0].entries);
    assert!(received.contains("Instruction: b") && !received.contains("Instruction: a"), "{received}");
}

#[tokio::test]
async fn the_critic_receives_the_task_the_criteria_and_the_options() {
    let make = |model: &AnyModel| {
        let critic = Critic::new(agent("Critic", model).system("Be strict."), 2).criteria("brevity");
        role_play(model).critic(critic).language("French").build("role_play").unwrap()
    };
    let came = play(TWO, "Trade wheat", make).await;
    let system = came.asked("Critic")[0].system.clone().unwrap();
    for reported in
        ["Trade wheat", "Python programmer", "Trader", "by this: brevity.", "Be strict.", "write in French"]
    {
        assert!(system.contains(reported), "{system}");
    }
    let asked = last_asked(&came, 0);
    assert!(
        asked.contains("Option 1:\nInstruction: a") && asked.contains("Option 2:\nInstruction: b"),
        "{asked}"
    );
    assert_eq!(came.asked("Critic")[0].params.temperature, Some(0.2));
}

#[tokio::test]
async fn the_texts_in_which_options_are_shown_can_be_set_and_the_usual_ones_name_the_language() {
    let script = r#"[
        {"Trader": "Instruction: {count}"}, {"Trader": "Instruction: b"}, {"Critic": "neither"}, {"Critic": "2"},
        {"Python_programmer": "Solution: c"}, {"Python_programmer": "Solution: d"}, {"Critic": "1"},
        {"Trader": "<CAMEL_TASK_DONE>"}, {"Trader": " "}]"#;
    let usual = |model: &AnyModel| with_critic(model).language("German").build("role_play").unwrap();
    let came = play(script, "Trade", usual).await;
    for nth in 0..2 {
        let asked = last_asked(&came, nth);
        assert!(asked.contains("Answer with the number") && asked.contains("write in German"), "{asked}");
    }
    let own = |model: &AnyModel| {
        let critic = Critic::new(agent("Critic", model), 2).option_line("{number}. Vorschlag:");
        let critic =
            critic.prompt("Welcher der {count} ist der beste?\n{options} {x}").retry_prompt("1 bis {count}!");
        role_play(model).critic(critic).language("German").build("role_play").unwrap()
    };
    let came = play(script, "Trade", own).await;
    let shown = "Welcher der 2 ist der beste?\n1. Vorschlag:\nInstruction: {count}\n\n2. Vorschlag:\nInstruction: b {x}";
    assert_eq!([last_asked(&came, 0), last_asked(&came, 1)], [shown, "1 bis 2!"]);
}

#[tokio::test]
async fn a_critic_who_chooses_nothing_is_asked_again_and_then_the_first_is_taken() {
    let script = r#"[
        {"Trader": "Instruction: a"}, {"Trader": "Instruction: b"},
        {"Critic": "neither"}, {"Critic": "number 3"}, {"Critic": "2"},
        {"Python_programmer": "Solution: c"}, {"Python_programmer": "Solution: d"},
        {"Critic": "0"}, {"Critic": "none"}, {"Critic": "99999999999999999999999"},
        {"Trader": "<CAMEL_TASK_DONE>"}, {"Trader": ""}]"#;
    let came = play(script, "Trade", chat).await;
    assert_eq!(texts(&came), ["Instruction: b", "Solution: c", DONE]);
    assert_eq!(came.asked("Critic").len(), 6);
    assert!(last_asked(&came, 1).contains("none of the options"));
    let make = |model: &AnyModel| {
        let critic = Critic::new(agent("Critic", model), 2).retries(0);
        role_play(model).critic(critic).max_messages(1).build("role_play").unwrap()
    };
    let came = play(script, "Trade", make).await;
    assert_eq!(texts(&came), ["Instruction: a"]);
    assert_eq!(came.asked("Critic").len(), 1);
}

#[tokio::test]
async fn only_what_is_proposed_now_can_be_chosen() {
    let script = r#"[
        {"Trader": "Instruction: a"}, {"Trader": "Instruction: b"}, {"Trader": "Instruction: c"}, {"Critic": "3"},
        {"Python_programmer": "Solution: d"}, {"Python_programmer": ""}, {"Python_programmer": "Solution: e"},
        {"Critic": "3"}, {"Critic": "2"}]"#;
    let make = |model: &AnyModel| {
        role_play(model)
            .critic(Critic::new(agent("Critic", model), 3))
            .max_rounds(1)
            .build("role_play")
            .unwrap()
    };
    let came = play(script, "Trade", make).await;
    assert_eq!(texts(&came), ["Instruction: c", "Solution: e"]);
    assert!(last_asked(&came, 1).contains("2 options") && !last_asked(&came, 1).contains("Instruction: a"));
}

#[tokio::test]
async fn one_option_needs_no_critic() {
    for options in [0, 1] {
        let script = r#"[{"Trader": "<CAMEL_TASK_DONE>"}]"#;
        let make = |model: &AnyModel| {
            role_play(model).critic(Critic::new(agent("Critic", model), options)).build("role_play").unwrap()
        };
        let came = play(script, "Trade", make).await;
        assert_eq!(came.asked.len(), 1);
    }
}

#[tokio::test]
async fn proposals_that_are_all_blank_are_a_blank_reply() {
    let script = r#"[{"Trader": ""}, {"Trader": " "}, {"Trader": "Instruction: a"}, {"Trader": ""},
        {"Python_programmer": "Solution: b"}, {"Python_programmer": ""}]"#;
    let came =
        play(script, "Trade", |model| with_critic(model).max_rounds(1).build("role_play").unwrap()).await;
    assert_eq!(texts(&came), ["Instruction: a", "Solution: b"]);
    assert!(came.asked("Critic").is_empty());
}

/// CAMEL's critic can be a person, too. A person who leaves ends it.
#[tokio::test]
async fn a_person_may_choose() {
    use polylogue::{Human, Status};
    use polylogue_core::StopReason;
    let script = r#"[
        {"Trader": "Instruction: a"}, {"Trader": "Instruction: b"},
        {"Python_programmer": "Solution: c"}, {"Python_programmer": "Solution: d"}]"#;
    let model = crate::stage::script(script);
    let person = Human::new("Chair").unwrap();
    let chat = role_play(&model).critic(Critic::person(person, 2)).build("role_play").unwrap();
    let mut log = crate::stage::log().await;
    let mut status = chat.run_in(&mut log, "Trade").await.unwrap().status;
    let mut answers = ["what", "2", "exit"].into_iter();
    while let Status::Waiting(questions) = &status {
        let (at, question) = &questions[0];
        log.answer(at, &question.who, answers.next().unwrap()).await.unwrap();
        status = chat.resume(&mut log).await.unwrap().status;
    }
    let Status::Closed { reason, .. } = status else { panic!("{status:?}") };
    assert!(matches!(&reason, StopReason::Left { who, .. } if who.as_str() == "Chair"), "{reason:?}");
    let transcript = log.transcript().await.unwrap();
    let said: Vec<_> = transcript.messages().skip(1).map(|line| line.message.text()).collect();
    assert_eq!(said, ["Instruction: b"]);
    assert_eq!(answers.next(), None);
}
