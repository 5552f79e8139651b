//! Who chooses, and how: items 76 to 80 and 90.

use polylogue::policies::group::{HumanSelector, Method, Repeat, Selected, Selector, Transitions};
use polylogue::policies::with_termination;
use polylogue::stop::{max_messages, max_turns};
use polylogue::{Error, Group, Name, Transcript};
use polylogue_core::{AnswerChoice, AnswerEffect, Chooser, PromptRole, QuestionKind};

use super::*;
use crate::autogen::people::{questions, talk};
use crate::stage::{Spy, closed, log};

/// What a selector that replies so chooses, and what it was asked each time. Ann begins; after so many turns it is
/// over.
async fn selected(
    turns: u64,
    replies: &str,
    set: fn(Selector) -> Selector,
) -> (Vec<Choice>, Vec<crate::stage::Asked>) {
    let spy = Spy::on(script(replies));
    let group = with_termination(Group::select_by_name(name("sel")), max_turns(turns));
    let chat = Chat::builder("group")
        .participant(speaker("Ann"))
        .participant(speaker("Coder"))
        .participant(speaker("Coder_2"))
        .private_agent(set(Selector::new("sel", spy.model()).unwrap()))
        .policy(group);
    let (_, events) = run(&begun_by_ann(chat), "hi").await;
    (choices(&events), spy.asked())
}

async fn one(replies: &str) -> Choice {
    selected(1, replies, |selector| selector).await.0.remove(0)
}

fn by_selector() -> Chooser {
    Chooser::Agent(name("sel"))
}

// Item 76. The prompt is sent as `user` unless it is set otherwise (T16, T21); an earlier choice is not sent again.
#[tokio::test]
async fn a_model_that_answers_a_name_gives_that_participant_the_turn() {
    let spy = Spy::on(script(r#"[{"sel": "Bob"}, {"sel": "Cid"}]"#));
    let described = |who: &str, about: &str| {
        let says = script(&format!(r#"[{{"{who}": "{who} speaks"}}]"#));
        assistant(who, &says).description(about)
    };
    let selector = Selector::new("sel", spy.model()).unwrap();
    let selector =
        selector.system("Play:\n{roles}\nOf {agentlist}, {no one else}.").prompt("Now one of {agentlist}.");
    let chat = Chat::builder("group")
        .participant(described("Ann", "asks"))
        .participant(described("Bob", "answers {roles}"))
        .participant(described("Cid", ""))
        .private_agent(selector)
        .policy(with_termination(Group::select_by_name(name("sel")).repeat(Repeat::No), max_turns(2)));
    let (_, events) = run(&begun_by_ann(chat), "hi").await;
    assert_eq!(speakers(&events), "Ann Bob Cid");
    let asked = spy.asked();
    let system = "Play:\nBob: answers {roles}\nCid\nOf Bob, Cid, {no one else}.";
    assert_eq!(asked[0].system.as_deref(), Some(system));
    assert_eq!(sent(&asked[0].entries), ["user: Ann: hi", "user: Now one of Bob, Cid."]);
    assert_eq!(
        sent(&asked[1].entries),
        ["user: Ann: hi", "user: Bob: Bob speaks", "user: Now one of Ann, Cid."]
    );
    let choice = &choices(&events)[0];
    assert_eq!((&choice.of, &choice.by), (&vec![name("Bob"), name("Cid")], &by_selector()));
    assert_eq!(choice.reply.as_deref(), Some("Bob"));
}

// Item 76: without a prompt the conversation itself is the question, and nothing of it is omitted or doubled.
#[tokio::test]
async fn without_a_prompt_the_last_message_is_last() {
    let (choices, asked) = selected(1, r#"[{"sel": "Coder"}]"#, |selector| selector.prompt("")).await;
    assert_eq!(choices[0].by, by_selector());
    assert_eq!(sent(&asked[0].entries), ["user: Ann: hi"]);
}

// Item 77.
#[tokio::test]
async fn unclear_answers_are_corrected_twice() {
    let replies = r#"[{"sel": "Ann and Coder"}, {"sel": "absent"}, {"sel": "Coder"}]"#;
    let set = |selector: Selector| {
        selector.prompt("Who?").when_several("One of {agentlist}!").when_none("Only {agentlist}!")
    };
    let (choices, asked) = selected(1, replies, set).await;
    assert_eq!((&choices[0].by, choices[0].reply.as_deref()), (&by_selector(), Some("Coder")));
    assert_eq!(
        sent(&asked[2].entries),
        [
            "user: Ann: hi",
            "user: Who?",
            "assistant: Ann and Coder",
            "user: One of Ann, Coder, Coder_2!",
            "assistant: absent",
            "user: Only Ann, Coder, Coder_2!",
        ]
    );
}

// Items 77 and 78, trap T15: the log says that no one was selected, and why. AgentChat's fallback may be the excluded
// speaker (T41); this one is the next of those who may speak.
#[tokio::test]
async fn three_unclear_answers_leave_it_to_the_order_and_the_log_says_so() {
    let replies =
        r#"[{"sel": "?"}, {"sel": ""}, {"sel": "Ann, Coder"}, {"sel": "x"}, {"sel": "x"}, {"sel": "x"}]"#;
    let spy = Spy::on(script(replies));
    let group = Group::select_by_name(name("sel")).repeat(Repeat::No);
    let chat = group_chat(with_termination(group, max_turns(2)))
        .private_agent(Selector::new("sel", spy.model()).unwrap());
    let (_, events) = run(&begun_by_ann(chat), "hi").await;
    assert_eq!(speakers(&events), "Ann Bob Cid");
    let choice = &choices(&events)[0];
    let Chooser::Fallback { why } = &choice.by else { panic!("{choice:?}") };
    assert_eq!(
        &**why,
        "`sel` selected no participant in 3 replies; the last named no participant who may speak"
    );
    assert_eq!(choice.reply.as_deref(), Some("Ann, Coder"));
    assert_eq!(spy.asked().len(), 6);
}

// Item 77: how often is settable.
#[tokio::test]
async fn the_number_of_attempts_can_be_set() {
    let (choices, asked) = selected(1, r#"[{"sel": "?"}]"#, |selector| selector.attempts(1)).await;
    let Chooser::Fallback { why } = &choices[0].by else { panic!("{choices:?}") };
    assert!(why.contains("in 1 reply"), "{why}");
    assert_eq!(asked.len(), 1);
}

// Item 78, trap T15.
#[tokio::test]
async fn names_are_found_as_whole_words_and_the_longest_match_wins() {
    for (reply, chosen) in [
        ("Coder 2", "Coder_2"),
        ("The next speaker: Coder 2.", "Coder_2"),
        (r"Coder\\_2", "Coder_2"),
        ("**Coder**", "Coder"),
        ("ANN", "Ann"),
        ("coder, I think", "Coder"),
    ] {
        let choice = one(&format!(r#"[{{"sel": "{reply}"}}]"#)).await;
        assert_eq!(choice.by, by_selector(), "{reply}: {choice:?}");
        let (_, events) = {
            let selector = Selector::new("sel", script(&format!(r#"[{{"sel": "{reply}"}}]"#))).unwrap();
            let chat = Chat::builder("group")
                .participant(speaker("Ann"))
                .participant(speaker("Coder"))
                .participant(speaker("Coder_2"))
                .private_agent(selector)
                .policy(with_termination(Group::select_by_name(name("sel")), max_turns(1)));
            run(&begun_by_ann(chat), "hi").await
        };
        assert_eq!(speakers(&events), format!("Ann {chosen}"), "{reply}");
    }
}

// Trap T15: with a model that can, the choice is constrained to the names; a model that does not keep to it is
// understood.
#[tokio::test]
async fn a_model_can_be_constrained_to_the_names() {
    let replies = r#"[{"sel": "{\"speaker\": \"Coder_2\"}"}, {"sel": "Coder"}]"#;
    let (choices, asked) = selected(2, replies, |selector| selector.constrained()).await;
    assert!(choices.iter().all(|choice| choice.by == by_selector()), "{choices:?}");
    let schema = asked[0].params.schema.as_ref().unwrap();
    assert_eq!(schema["properties"]["speaker"]["enum"], serde_json::json!(["Ann", "Coder", "Coder_2"]));
    assert_eq!(schema["required"], serde_json::json!(["speaker"]));
}

// Item 79.
#[tokio::test]
async fn chance_chooses_only_among_those_who_may_speak_and_can_be_repeated() {
    let play = async |seed| {
        let policy = with_termination(Group::random(seed).repeat(Repeat::No), max_turns(40));
        let (_, events) = run(&group_chat(policy).build().unwrap(), "hi").await;
        (speakers(&events), choices(&events))
    };
    let (first, chosen) = play(Some(1)).await;
    assert_eq!(first, play(Some(1)).await.0);
    assert_ne!(first, play(Some(2)).await.0);
    let who: Vec<&str> = first.split(' ').collect();
    assert!(who.windows(2).all(|pair| pair[0] != pair[1]), "{first}");
    assert!(["Ann", "Bob", "Cid"].iter().all(|name| who.contains(name)), "{first}");
    assert!(chosen.iter().all(|choice| choice.by == Chooser::Chance { seed: 1 }));
    // Without a seed it is the time of the first event, which is 0 here: the log has it.
    assert_eq!(play(None).await.1[0].by, Chooser::Chance { seed: 0 });
}

// Item 79.
#[tokio::test]
async fn a_person_selects_by_number_or_name_among_choices() {
    let policy = with_termination(Group::select_by_name(name("chair")), max_turns(5));
    let chat = group_chat(policy).private_agent(HumanSelector::new("chair").unwrap()).build().unwrap();
    let answers = ["3.", "bob", "", "seven", "99", "0", "Q"];
    let (_, events) = talk(&chat, "hi", &answers).await;
    assert_eq!(speakers(&events), "user Cid Bob Cid Ann Bob");
    let by: Vec<Chooser> = choices(&events).into_iter().map(|choice| choice.by).collect();
    let chair = Chooser::Agent(name("chair"));
    let why = "`chair` selected no participant who may speak, twice".into();
    assert_eq!(by, [chair.clone(), chair, Chooser::Order, Chooser::Fallback { why }, Chooser::Order]);
    let asked = events.iter().find_map(|event| match &event.body {
        Body::InputRequired(question) => Some(question),
        _ => None,
    });
    let asked = asked.unwrap();
    assert_eq!((&*asked.text, asked.kind), ("Who speaks next?", QuestionKind::Speaker));
    let select = |number: &str, who: &str| AnswerChoice::new(number, AnswerEffect::Select).label(who);
    let next = AnswerChoice::new("", AnswerEffect::Next).label("Ann");
    let exit = AnswerChoice::new("exit", AnswerEffect::End);
    assert_eq!(asked.choices, [select("1", "Ann"), select("2", "Bob"), select("3", "Cid"), next, exit]);
    assert_eq!(questions(&events)[4], "`seven` is none of them. Who speaks next?");
}

// Item 79: a person who chooses can end it, too.
#[tokio::test]
async fn a_person_who_chooses_can_end_the_conversation() {
    let policy = Group::select_by_name(name("chair"));
    let chat = group_chat(policy).private_agent(HumanSelector::new("chair").unwrap()).build().unwrap();
    let (status, events) = talk(&chat, "hi", &["1", " EXIT "]).await;
    assert_eq!(closed(&status), ("chair left: said `exit`".into(), "Ann 1".into()));
    assert_eq!(speakers(&events), "user Ann");
}

// Item 80.
#[tokio::test]
async fn a_custom_rule_names_a_participant_or_a_method_or_the_end() {
    let rule = |chat: &Transcript, of: &[Name]| match chat.turns() {
        0 => name("Cid").into(),
        1 => Method::Agent(name("sel")).into(),
        2 => Method::Random(Some(3)).into(),
        3 => of[0].clone().into(),
        _ => Selected::End,
    };
    let selector = Selector::new("sel", script(r#"[{"sel": "Bob"}]"#)).unwrap();
    let chat = group_chat(Group::custom(rule)).private_agent(selector).build().unwrap();
    let (status, events) = run(&chat, "hi").await;
    let by: Vec<Chooser> = choices(&events).into_iter().map(|choice| choice.by).collect();
    assert_eq!(by, [Chooser::Rule, by_selector(), Chooser::Chance { seed: 3 }, Chooser::Rule]);
    assert!(speakers(&events).starts_with("user Cid Bob "));
    assert_eq!(closed(&status).0, "no participant may speak after Ann");
}

// Item 80: an unknown participant is an error of the rule, and what was said before is in the log.
#[tokio::test]
async fn a_rule_that_names_an_unknown_participant_is_an_error() {
    let rule = |chat: &Transcript, _: &[Name]| name(["Ann", "Zoe"][usize::from(chat.turns() > 0)]).into();
    let mut log = log().await;
    let error = group_chat(Group::custom(rule)).build().unwrap().run_in(&mut log, "hi").await.unwrap_err();
    let Error::Config(why) = error else { panic!("{error}") };
    assert_eq!(why.to_string(), "the policy of `group` picks `Zoe` where only Ann, Bob, Cid may speak");
    assert_eq!(speakers(&log.events().await), "user Ann");
}

// Item 80: a selector that names an unknown participant, or returns nothing, does not end the conversation.
#[tokio::test]
async fn a_selector_that_names_an_unknown_participant_leaves_it_to_the_order() {
    for (said, why) in [
        (
            Act::Say(vec![polylogue_core::Part::Data(serde_json::json!({"speaker": "Zoe"}))]),
            "`boss` picked `Zoe`, who may not speak now",
        ),
        (
            Act::Say(vec![polylogue_core::Part::Data(serde_json::json!([1]))]),
            "the answer says nothing of a `speaker`",
        ),
        (Act::say("Zoe, please"), "`boss` named no participant who may speak now"),
        (Act::say("Ann and Bob"), "`boss` named several"),
        (Act::Pass, "`boss` said nothing"),
    ] {
        let boss = Function::new("boss", move |_| Ok(said.clone())).unwrap();
        let chat = group_chat(with_termination(Group::select_by_name(name("boss")), max_turns(1)))
            .private_agent(boss)
            .build()
            .unwrap();
        let (_, events) = run(&chat, "hi").await;
        assert_eq!(choices(&events)[0].by, Chooser::Fallback { why: why.into() });
        assert_eq!(speakers(&events), "user Ann");
    }
    // A name as plain text is a selection.
    let boss = Function::new("boss", |_| Ok(Act::say("I want to hear Cid."))).unwrap();
    let chat = group_chat(with_termination(Group::select_by_name(name("boss")), max_turns(1)))
        .private_agent(boss)
        .build()
        .unwrap();
    assert_eq!(speakers(&run(&chat, "hi").await.1), "user Cid");
}

// Trap T11: neither a selector nor chance nor a failed selection leads out of the transitions.
#[tokio::test]
async fn no_way_of_choosing_leads_out_of_the_transitions() {
    let graph = || {
        let (ann, bob, cid) = (name("Ann"), name("Bob"), name("Cid"));
        Transitions::allowed([
            (ann.clone(), vec![bob.clone(), cid.clone()]),
            (bob.clone(), vec![ann.clone(), cid.clone()]),
            (cid, vec![ann, bob]),
        ])
    };
    let selector = |replies: &str| Selector::new("sel", script(replies)).unwrap().attempts(1);
    let chat = group_chat(with_termination(
        Group::select_by_name(name("sel")).transitions(graph()),
        max_messages(4),
    ));
    let chat =
        begun_by_ann(chat.private_agent(selector(r#"[{"sel": "Ann"}, {"sel": "Bob"}, {"sel": "Cid"}]"#)));
    // Ann, Bob and Cid each name themselves, which the transitions do not allow.
    assert_eq!(speakers(&run(&chat, "hi").await.1), "Ann Bob Cid Ann");
    let chat = begun_by_ann(group_chat(with_termination(
        Group::random(Some(5)).transitions(graph()),
        max_messages(30),
    )));
    let spoken = speakers(&run(&chat, "hi").await.1);
    let who: Vec<&str> = spoken.split(' ').collect();
    assert!(who.windows(2).all(|pair| graph().allow(&name(pair[0]), &name(pair[1]))), "{spoken}");
}

// Item 90: the role of the prompt is settable, and nothing else of the request changes by it.
#[tokio::test]
async fn the_role_of_the_prompt_changes_only_the_role_of_the_prompt() {
    let replies = r#"[{"sel": "Coder"}]"#;
    let (_, user) = selected(1, replies, |selector| selector).await;
    let (_, system) = selected(1, replies, |selector| selector.role(PromptRole::System)).await;
    assert_eq!((&user[0].system, &user[0].params), (&system[0].system, &system[0].params));
    let (user, system) = (sent(&user[0].entries), sent(&system[0].entries));
    assert_eq!(user[..user.len() - 1], system[..system.len() - 1]);
    assert_eq!(user[1].strip_prefix("user: ").unwrap(), system[1].strip_prefix("system: ").unwrap());
}

// Trap T36: a selector's model that fails loses nothing, and the run can be resumed.
#[tokio::test]
async fn a_choice_that_fails_is_made_again_when_the_run_is_resumed() {
    let replies = r#"[{"sel": "Bob"}, {"sel": {"error": {"message": "the line broke"}}}, {"sel": "Cid"}]"#;
    let selector = Selector::new("sel", script(replies)).unwrap();
    let chat = begun_by_ann(
        group_chat(with_termination(Group::select_by_name(name("sel")), max_turns(2)))
            .private_agent(selector),
    );
    let mut log = log().await;
    let error = chat.run_in(&mut log, "hi").await.unwrap_err();
    assert!(error.to_string().contains("the line broke"), "{error}");
    let failed = log.events().await;
    assert!(matches!(&failed.last().unwrap().body, Body::Failed { who, .. } if *who == "sel"));
    assert_eq!(speakers(&failed), "Ann Bob");
    chat.resume(&mut log).await.unwrap();
    assert_eq!(speakers(&log.events().await), "Ann Bob Cid");
}

// A selector that is not in the chat is a configuration error.
#[tokio::test]
async fn a_missing_selector_is_an_error() {
    let chat = group_chat(Group::select_by_name(name("sel"))).build().unwrap();
    let error = chat.run_in(&mut log().await, "hi").await.unwrap_err();
    assert_eq!(error.to_string(), "the policy of `group` gives a turn to `sel`, who is not a participant");
}
