//! The teams that solve tasks end as their names say, and each side knows what it is to know.

use std::path::Path;

use expect_test::{Expect, expect};
use polylogue::Transcript;
use polylogue::tasks::{GroupSolveResult, History};
use polylogue_core::{Body, Path as At};
use polylogue_core::{Chooser, ViewOptions};
use polylogue_team::{Overrides, Team};

use crate::shipped::stage::{Played, name, play, team};

fn shipped(name: &str, overrides: &Overrides) -> Team {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../teams");
    team(&folder.join(format!("{name}.yaml")), overrides)
}

async fn played(team: &str) -> Played {
    play(&shipped(team, &Overrides::default())).await
}

fn transcript(played: &Played) -> Transcript {
    Transcript::from_events(&At::root(), &played.events).unwrap()
}

/// What `who` knows, as the document on dual chats prints it.
fn history(played: &Played, who: &str) -> String {
    History::from_transcript(&transcript(played), &name(who)).to_string()
}

/// Who spoke in the talk, in order, and whose tasks were complete at its end.
fn course(played: &Played) -> (Vec<String>, Vec<String>) {
    let is_of_talk = |turn: &&polylogue_core::TurnRequest| {
        turn.choice.as_ref().is_some_and(|choice| choice.by == Chooser::Order)
    };
    let turns = played.events.iter().filter_map(|event| match &event.body {
        Body::TurnStarted { turns } => turns.iter().find(is_of_talk).map(|turn| turn.who.to_string()),
        _ => None,
    });
    let complete = GroupSolveResult::from_transcript(&transcript(played)).complete;
    (turns.collect(), complete.iter().map(|done| format!("{} in {}", done.who, done.iteration)).collect())
}

#[tokio::test(start_paused = true)]
async fn every_end_mode_ends_as_its_name_says() {
    let (g, k) = ("Guesser", "Keeper");
    for (team, speakers, complete) in [
        ("guess-iterations", vec![g, k, g, k, g, k], vec![]),
        ("guess-first", vec![g, k, g, k, g, k], vec!["Keeper in 3"]),
        ("guess-last-chat", vec![g, k, g, k, g], vec!["Keeper in 2"]),
        ("guess-last-group", vec![g, k, g, k, g, k], vec!["Keeper in 2"]),
        ("guess-all", vec![g, k, g, k, g], vec!["Keeper in 2", "Guesser in 3"]),
    ] {
        let (spoke, done) = course(&played(team).await);
        assert_eq!((spoke, done), (strings(&speakers), strings(&complete)), "{team}");
    }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn the_secret_stays_with_its_author() {
    for (team, secret) in [("guess-first", "The secret number is: 2"), ("guess-high-low", "**14**")] {
        let played = played(team).await;
        let (knows, other) = if team == "guess-first" { ("Keeper", "Guesser") } else { ("Master", "Player") };
        assert!(history(&played, knows).contains(secret));
        assert!(!history(&played, other).contains(secret), "{team}");
    }
}

#[track_caller]
fn check(history: &str, expected: &Expect) {
    let short: Vec<String> = history.lines().map(|line| line.chars().take(72).collect()).collect();
    expected.assert_eq(&short.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn both_points_of_view_of_a_guess_are_as_the_document_shows_them() {
    let played = played("guess-last-chat").await;
    check(
        &history(&played, "Keeper"),
        &expect![[r#"
        [user]:
        You must choose a number between 1 and 3. It will be referred to as the 

        [assistant]:
        2

        [user]:
        You will receive guesses. If the guessed number is the secret number say

        [assistant]:
        I understand. Enter your guess, and I will check whether it is the secre

        [user]:
        Okay, my guess is 1.

        [assistant]:
        Unfortunately, 1 is not the secret number. Please try again.

        [user]:
        My apologies. Then it is 2.

        [assistant]:
        Congratulations! 2 is the secret number. You won
    "#]],
    );
    check(
        &history(&played, "Guesser"),
        &expect![[r#"
        [user]:
        You must find a secret number from 1 to 3. Propose one number at a time.

        [assistant]:
        I propose the number 2. Is that your secret number?

        [user]:
        What is your guess?

        [assistant]:
        Okay, my guess is 1.

        [user]:
        Unfortunately, 1 is not the secret number. Please try again.

        [assistant]:
        My apologies. Then it is 2.

        [user]:
        Congratulations! 2 is the secret number. You won

        [assistant]:
        Thank you! I am glad that we found it together. Have a great day!
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_called_by_text_leaves_the_five_messages_of_the_document() {
    let played = played("guess-high-low").await;
    check(
        &history(&played, "Master"),
        &expect![[r#"
            [user]:
            Your task is to generate a secret random number between 1 and 20. Output

            [assistant]:
            The secret random number is: **14**

            [user]:
            A player will try to guess the number you generated. Respond to each gue

            [assistant]:
            I can use the tool 'high_low' related to the task to solve it correctly.

            [user]:
            Output the tool 'high_low' as valid JSON.

            [assistant]:
            {"secret_number":14,"guessed_number":20}

            [user]:
            The secret number is lower than the guessed number.

            [user]:
            I'll start by guessing 11. What's the feedback?

            [assistant]:
            I can use the tool 'high_low' related to the task to solve it correctly.

            [user]:
            Output the tool 'high_low' as valid JSON.

            [assistant]:
            {"secret_number":14,"guessed_number":11}

            [user]:
            The secret number is higher than the guessed number.

            [user]:
            Higher, so I try 17. What's the feedback?

            [assistant]:
            I can use the tool 'high_low' related to the task to solve it correctly.

            [user]:
            Output the tool 'high_low' as valid JSON.

            [assistant]:
            {"secret_number":14,"guessed_number":17}

            [user]:
            The secret number is lower than the guessed number.

            [user]:
            Lower. Between 11 and 17 I take 14.

            [assistant]:
            I can use the tool 'high_low' related to the task to solve it correctly.

            [user]:
            Output the tool 'high_low' as valid JSON.

            [assistant]:
            {"secret_number":14,"guessed_number":14}

            [user]:
            The secret number is equal to the guessed number. You won !
        "#]],
    );
    // What the player hears is what the tool returned, and no word of how it was called.
    check(
        &history(&played, "Player"),
        &expect![[r#"
        [user]:
        Your task is to guess a number between 1 and 20. You will receive feedba

        [assistant]:
        I'll start by guessing 11. What's the feedback?

        [user]:
        The secret number is higher than the guessed number.

        [assistant]:
        Higher, so I try 17. What's the feedback?

        [user]:
        The secret number is lower than the guessed number.

        [assistant]:
        Lower. Between 11 and 17 I take 14.

        [user]:
        The secret number is equal to the guessed number. You won !

        [assistant]:
        Yay! I found it with three guesses.
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn the_processor_compares_and_no_model_does() {
    let played = played("guess-high-low").await;
    let returned =
        played.events.iter().filter(|event| matches!(event.body, Body::ToolReturned { .. })).count();
    assert_eq!(returned, 4);
}

#[tokio::test(start_paused = true)]
async fn what_is_done_by_text_asks_a_model_for_nothing_but_text() {
    for team in ["guess-high-low", "bill"] {
        for asked in played(team).await.asked {
            assert!(asked.for_text && !asked.roles().contains('t'), "{team}: {asked:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn reflections_stay_with_the_solver_and_decisions_are_dropped() {
    let played = played("bat-and-ball").await;
    let (solver, critic) = (history(&played, "Solver"), history(&played, "Critic"));
    assert!(
        solver.contains("In your opinion, what objectives")
            && solver.contains("I should write both sentences")
    );
    assert!(!critic.contains("objectives from your initial task") && !critic.contains("I should write both"));
    for history in [&solver, &critic] {
        assert!(!history.contains("in one word"), "{history}");
        // Each knows the other's task and answer as its own.
        assert!(history.contains("[user]:\nWhat do you think of the reasoning?"), "{history}");
        assert!(history.contains("[assistant]:\nThe ball costs 10 cents"), "{history}");
    }
    // The reflection was there when the solver was asked again.
    let asked = played.asked_of("Solver");
    let last = asked.last().unwrap().texts();
    assert!(last.iter().any(|text| text.contains("I should write both sentences as equations")), "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_message_of_a_talk_is_copied_or_given_and_goes_to_its_owner() {
    let copied = played("number-list").await;
    let shown = "[user]:\nMy list is empty: []. Please give me the first numbers!";
    assert!(history(&copied, "Giver").contains(shown));
    assert_eq!(course(&copied).0.first().map(String::as_str), Some("Giver"));

    let overrides =
        Overrides { vars: [("begin".into(), "The list is empty.".into())].into(), ..Overrides::default() };
    let mut given = shipped("number-list-shift", &overrides);
    // The script expects the word of the file.
    given.script = serde_json::from_str(
        &serde_json::to_string(&given.script).unwrap().replace("Let's go.", "The list is empty."),
    )
    .unwrap();
    let given = play(&given).await;
    assert!(history(&given, "Keeper").contains("[user]:\nThe list is empty."));
    assert!(!history(&given, "Giver").contains("The list is empty."));
    assert_eq!(course(&given).0.first().map(String::as_str), Some("Keeper"));
}

#[tokio::test(start_paused = true)]
async fn what_each_side_knows_is_what_its_model_was_sent() {
    for team in ["guess-first", "guess-high-low", "counting", "number-list", "bat-and-ball", "amusement-park"]
    {
        let team = shipped(team, &Overrides::default());
        let played = play(&team).await;
        let chat = transcript(&played);
        for who in team.chat.participants.iter().map(|name| name.as_str()) {
            let options = ViewOptions { forget_private_turns: true, ..ViewOptions::default() };
            let knows = History::through(&chat, &name(who), options).entries;
            // The last turn alone was not sent to anyone yet: its words, or the trace of its tool.
            let begins = |asked: &crate::shipped::stage::Asked| {
                asked.entries.iter().zip(&knows).take_while(|(sent, known)| sent == known).count()
            };
            let most = played.asked_of(who).into_iter().map(begins).max().unwrap();
            assert!(most + 4 >= knows.len(), "{}: {who} was sent {most} of {}", team.name, knows.len());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_has_not_the_form_is_repaired_apart() {
    let played = played("bill").await;
    let said = played.said("");
    let value: serde_json::Value = serde_json::from_str(&said[0].1).unwrap();
    assert_eq!(value["total"], 12.2);
    let repair =
        played.asked.iter().find(|asked| asked.texts().concat().contains("What is wrong with it")).unwrap();
    assert_eq!(repair.entries.len(), 1, "only schema, last output and error");
    let clerk = history(&played, "Clerk");
    assert!(!clerk.contains("12.20 euros\"}") && !clerk.contains("There is a tool"), "{clerk}");
}
