//! The prompts of the two roles.

use expect_test::expect;
use polylogue::tasks::RolePlay;
use polylogue::tools::GetHistory;
use polylogue::{AnyModel, Assistant};

use crate::role_play::set::{Came, DONE, agent, play, role_play, talk};

async fn prompts(make: impl FnOnce(&AnyModel) -> RolePlay) -> [String; 2] {
    let script = talk(&[], &["Instruction: go", "Solution: gone", DONE]);
    let came = play(&script, "Trade wheat", |model| make(model).build("role_play").unwrap()).await;
    ["Python_programmer", "Trader"].map(|who| came.asked(who)[0].system.clone().unwrap())
}

#[tokio::test]
async fn the_rules_of_the_assistant() {
    let [assistant, _] = prompts(role_play).await;
    expect![[r#"
        ===== RULES OF THE ASSISTANT =====
        You are Python programmer, and I am Trader. We never swap these roles.
        You never give me instructions; I give them to you.
        We both want this task to be done, and you have to help me do it. Never forget it:
        Trade wheat
        I instruct you by your expertise and my needs, one instruction at a time.
        Answer an instruction with a specific solution, and explain it.
        Write nothing but your solution to my instruction. Never ask me questions: you only answer them.
        Never reply with a fake solution. Write declarative sentences in the simple present tense.
        If you cannot follow an instruction, because it is physically impossible, immoral, illegal or beyond your abilities, decline honestly, and say why.
        Unless I say that the task is done, begin every answer with:
        Solution: <your solution>
        Write the solution in full detail, ready to be used, with examples.
        End every answer with: Next request."#]].assert_eq(&assistant);
}

#[tokio::test]
async fn the_rules_of_the_user() {
    let [_, user] = prompts(role_play).await;
    expect![[r#"
        ===== RULES OF THE USER =====
        You are Trader, and I am Python programmer. We never swap these roles.
        You always give me instructions; I never give them to you.
        We both want this task to be done, and I have to help you do it. Never forget it:
        Trade wheat
        Instruct me by my expertise and your needs, only in one of these two forms.
        With an input that the instruction needs:
        Instruction: <your instruction>
        Input: <the input>
        Without an input:
        Instruction: <your instruction>
        Input: None
        The instruction says what to do or asks a question; the input gives the context or the data that it needs.
        Give one instruction at a time. I have to answer it with a solution, or decline honestly and say why.
        Instruct me, and ask me no questions. Write the instruction and its input, and nothing else.
        Continue until you judge the task complete. Then reply with this one word and nothing else: <CAMEL_TASK_DONE>
        Never write that word before my answers have completed the task."#]].assert_eq(&user);
}

/// C13 (84)
#[tokio::test]
async fn there_is_one_sentence_on_the_language_however_often_it_is_set() {
    for prompt in prompts(|model| role_play(model).language("German").language("French")).await {
        assert_eq!(prompt.matches("Whatever language you read").count(), 1, "{prompt}");
        assert!(prompt.contains("write in French") && !prompt.contains("German"), "{prompt}");
        assert!(prompt.lines().last().unwrap().starts_with("Whatever language"), "{prompt}");
    }
    for prompt in prompts(role_play).await {
        assert!(!prompt.contains("language"), "{prompt}");
    }
}

#[tokio::test]
async fn all_agents_write_in_the_language() {
    let script = talk(&[("Specifier", "Spec"), ("Planner", "Plan")], &[DONE]);
    let make = |model: &AnyModel| {
        let role_play = role_play(model).specify(agent("Specifier", model)).plan(agent("Planner", model));
        role_play.language("French").build("role_play").unwrap()
    };
    let came = play(&script, "Trade", make).await;
    assert!(came.asked.iter().all(|asked| asked.system.as_ref().unwrap().contains("write in French")));
}

#[tokio::test]
async fn an_agents_own_system_message_comes_after_the_rules() {
    let [assistant, user] = prompts(|model| {
        let own = agent("Python_programmer", model).system_from(|task| format!("Use tools for: {task}"));
        RolePlay::new(own, agent("Trader", model))
    })
    .await;
    assert!(assistant.starts_with("===== RULES OF THE ASSISTANT"), "{assistant}");
    assert!(assistant.ends_with("\n\nUse tools for: Trade wheat"), "{assistant}");
    assert!(!user.contains("Use tools"), "{user}");
}

#[tokio::test]
async fn the_rules_can_be_others() {
    let prompts = prompts(|model| {
        role_play(model)
            .roles("C++ developer", "2nd trader")
            .assistant_rules(|casting| format!("{} for {}", casting.assistant, casting.user))
            .user_rules(|casting| format!("{} {} until {}", casting.user, casting.task, casting.done))
    })
    .await;
    assert_eq!(prompts, ["C++ developer for 2nd trader", "2nd trader Trade wheat until <CAMEL_TASK_DONE>"]);
}

/// The program of the seed: the assistant may read the conversation, and no other.
#[tokio::test]
async fn a_role_may_have_tools() {
    let script = r#"[{"Trader": "Instruction: what did I say"},
        {"Python_programmer": {"calls": [{"tool": "get_history", "args": {"limit": 2}}]}},
        {"Python_programmer": "Solution: that. Next request."}, {"Trader": "<CAMEL_TASK_DONE>"}]"#;
    let make = |model: &AnyModel| {
        let programmer: Assistant = agent("Python_programmer", model).tool(GetHistory::default());
        RolePlay::new(programmer, agent("Trader", model)).build("role_play").unwrap()
    };
    let came: Came = play(script, "Trade", make).await;
    assert_eq!(came.summary, "Solution: that. Next request.");
    assert_eq!(came.asked("Python_programmer")[0].tools.len(), 1);
    assert!(came.asked("Trader").iter().all(|asked| asked.tools.is_empty()));
    let log = crate::stage::printed(&came.events);
    assert!(log.contains("gets #Python_programmer-0-0: Trader: Instruction: what did I say"), "{log}");
}
