//! What happens before the two begin: the task is specified and planned.

use polylogue::stop::{LibraryStopReason, ModelMistake};
use polylogue::tasks::RolePlay;
use polylogue::{AnyModel, Assistant, Chat, Name};
use polylogue_core::{Entry, Params, Part, StopReason};

use crate::common::name;
use crate::role_play::set::{Came, DONE, agent, play, role_play, talk};
use crate::stage::Asked;

const IDEA: &str = "Trade";

fn specified(model: &AnyModel) -> Chat {
    role_play(model).specify(agent("Specifier", model)).build("role_play").unwrap()
}

fn system(asked: &Asked) -> &str {
    asked.system.as_deref().unwrap()
}

fn asks(asked: &Asked) -> String {
    let [Entry::User { parts }] = &asked.entries[..] else { panic!("{:?}", asked.entries) };
    parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(&**text) } else { None }).collect()
}

async fn specify(idea: &str, reply: &str) -> Came {
    let script = talk(&[("Specifier", reply)], &["Instruction: go", "Solution: gone", DONE]);
    play(&script, idea, specified).await
}

/// C10 (81)
#[tokio::test]
async fn a_specified_task_is_in_both_prompts_and_the_idea_is_kept() {
    let came = specify(IDEA, " Trade wheat in Chicago. \n").await;
    for who in ["Trader", "Python_programmer"] {
        let system = system(came.asked(who)[0]);
        assert!(system.contains("Never forget it:\nTrade wheat in Chicago.\nI"), "{system}");
    }
    assert_eq!(came.transcript.task(), IDEA);
    let aside = came.transcript.all_messages().iter().find(|line| line.is_private()).unwrap();
    assert_eq!(aside.message.from, name("Specifier"));
    assert_eq!(aside.message.text().trim(), "Trade wheat in Chicago.");
    assert!(crate::stage::printed(&came.events).contains("Trade wheat in Chicago."));
}

/// C10 (81)
#[tokio::test]
async fn without_a_specifier_no_model_is_asked() {
    let came = play(&talk(&[], &[DONE]), IDEA, |model| role_play(model).build("role_play").unwrap()).await;
    assert_eq!(came.asked.len(), 1);
    assert!(system(&came.asked[0]).contains("Never forget it:\nTrade\n"));
}

/// C10 (81)
#[tokio::test]
async fn the_plan_follows_the_task_in_both_prompts() {
    let before = [("Specifier", "Trade wheat."), ("Planner", "1. Buy\n2. Sell")];
    let script = talk(&before, &["Instruction: go", "Solution: gone", DONE]);
    let make = |model: &AnyModel| {
        let role_play = role_play(model).specify(agent("Specifier", model)).plan(agent("Planner", model));
        role_play.build("role_play").unwrap()
    };
    let came = play(&script, IDEA, make).await;
    assert!(asks(came.asked("Planner")[0]).contains("Trade wheat."));
    for who in ["Trader", "Python_programmer"] {
        assert!(system(came.asked(who)[0]).contains("Trade wheat.\n1. Buy\n2. Sell\n"));
    }
    let order: Vec<&str> = came.asked.iter().map(|asked| asked.who.as_str()).collect();
    assert_eq!(order, ["Specifier", "Planner", "Trader", "Python_programmer", "Trader"]);
    // The planner may plan the idea itself.
    let script = talk(&before[1..], &[DONE]);
    let make = |model: &AnyModel| role_play(model).plan(agent("Planner", model)).build("role_play").unwrap();
    let came = play(&script, IDEA, make).await;
    assert!(system(came.asked("Trader")[0]).contains("Trade\n1. Buy\n2. Sell\n"));
}

/// C11 (82), Z11 (64)
#[tokio::test]
async fn braces_are_literal_in_ideas_tasks_plans_roles_and_prompts() {
    for braces in
        ["{symbol}", "{a} {b}", r#"{"k":1}"#, "{", "}", "{}", "{task}", "{0}", "<TASK> %s $1 {{task}}"]
    {
        let before = [("Specifier", braces), ("Planner", braces)];
        let script = talk(&before, &[&format!("Instruction: {braces}"), "Solution: gone", DONE]);
        let make = |model: &AnyModel| {
            let own = agent("Trader", model).system(format!("own {braces}"));
            RolePlay::new(agent("Python_programmer", model), own)
                .roles(format!("dev {braces}"), format!("boss {braces}"))
                .specify(agent("Specifier", model))
                .plan(agent("Planner", model))
                .build("role_play")
                .unwrap()
        };
        let came = play(&script, braces, make).await;
        assert!(asks(came.asked("Specifier")[0]).contains(&format!("this task:\n{braces}\n")));
        let trader = system(came.asked("Trader")[0]);
        assert!(trader.contains(&format!("You are boss {braces}, and I am dev {braces}.")), "{trader}");
        assert!(trader.contains(&format!("Never forget it:\n{braces}\n{braces}\nI")), "{trader}");
        assert!(trader.ends_with(&format!("own {braces}")), "{trader}");
        assert_eq!(asks(came.asked("Python_programmer")[0]), format!("Instruction: {braces}"));
    }
}

/// C12 (83)
#[tokio::test]
async fn the_specifier_receives_both_roles_and_the_word_limit() {
    let came = specify(IDEA, "Trade wheat.").await;
    let asked = asks(came.asked("Specifier")[0]);
    for shown in ["Python programmer", "Trader", IDEA, "at most 50 words"] {
        assert!(asked.contains(shown), "{asked}");
    }
    let make = |model: &AnyModel| {
        role_play(model).specify(agent("Specifier", model)).word_limit(7).build("role_play").unwrap()
    };
    let came = play(&talk(&[("Specifier", "x")], &[DONE]), IDEA, make).await;
    assert!(asks(came.asked("Specifier")[0]).contains("at most 7 words"));
}

/// Z14 (67)
#[tokio::test]
async fn the_specifier_is_hot_and_the_roles_are_cool() {
    let temperatures =
        |came: &Came| came.asked.iter().map(|asked| asked.params.temperature).collect::<Vec<_>>();
    let came = specify(IDEA, "Trade wheat.").await;
    assert_eq!(temperatures(&came), [Some(1.0), Some(0.2), Some(0.2), Some(0.2)]);
    // What is set stays, and nothing is set where models are to know themselves.
    let own = |name: &str, model: &AnyModel, temperature| {
        agent(name, model).params(Params { temperature, max_tokens: Some(9), ..Params::default() })
    };
    let make = |model: &AnyModel| {
        RolePlay::new(own("Python_programmer", model, Some(0.5)), own("Trader", model, None))
            .specify(own("Specifier", model, Some(0.7)))
            .model_temperatures()
            .build("role_play")
            .unwrap()
    };
    let script = talk(&[("Specifier", "x")], &["Instruction: go", "Solution: gone", DONE]);
    let came = play(&script, IDEA, make).await;
    assert_eq!(temperatures(&came), [Some(0.7), None, Some(0.5), None]);
    assert!(came.asked.iter().all(|asked| asked.params.max_tokens == Some(9)));
}

#[tokio::test]
async fn a_specifier_who_says_nothing_is_asked_again_and_then_ends_it() {
    let script = talk(&[("Specifier", " "), ("Specifier", "Trade wheat.")], &[DONE]);
    let came = play(&script, IDEA, specified).await;
    assert!(system(came.asked("Trader")[0]).contains("Trade wheat."));
    let script = talk(&[("Specifier", " "), ("Specifier", "")], &[DONE]);
    let came = play(&script, IDEA, specified).await;
    let silent = StopReason::from(LibraryStopReason::Errors {
        who: name("Specifier"),
        of: ModelMistake::Reply,
        limit: 1,
    });
    assert_eq!(came.reason, silent);
    assert!(came.said().is_empty());
}

#[test]
fn a_specifier_cannot_have_the_name_of_a_role() {
    let model = crate::stage::script("[]");
    let twice = |specifier: Assistant| role_play(&model).specify(specifier).build("role_play").unwrap_err();
    assert!(twice(agent("Trader", &model)).to_string().contains("`Trader`"));
    assert!(Name::new("C++ developer").is_err(), "which is why roles are no names");
}

/// All fixed texts can be set; those that are not follow the language.
#[tokio::test]
async fn the_fixed_texts_can_be_set_and_follow_the_language() {
    let before = [("Specifier", "Trade wheat."), ("Planner", "1. Buy")];
    let cast = |model: &AnyModel| {
        role_play(model).specify(agent("Specifier", model)).plan(agent("Planner", model)).language("French")
    };
    let script = talk(&before, &["Instruction: buy", "Solution: bought", DONE]);
    let came = play(&script, IDEA, |model| cast(model).build("role_play").unwrap()).await;
    for who in ["Specifier", "Planner", "Trader"] {
        assert!(asks(came.asked(who)[0]).contains("write in French"), "{who}");
    }
    let make = |model: &AnyModel| {
        let set = cast(model)
            .opening(|casting| format!("Allez, {} : {}", casting.user, casting.task))
            .specifier_prompt(|casting| format!("Precise: {}", casting.task))
            .planner_prompt(|casting| format!("Divise: {}", casting.task));
        set.build("role_play").unwrap()
    };
    let came = play(&script, IDEA, make).await;
    assert_eq!(asks(came.asked("Specifier")[0]), format!("Precise: {IDEA}"));
    assert_eq!(asks(came.asked("Planner")[0]), "Divise: Trade wheat.");
    assert_eq!(asks(came.asked("Trader")[0]), format!("Allez, Trader : {IDEA}"));
}
