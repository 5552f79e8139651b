//! Lagent's examples, as teams that ship.

use polylogue_team::Overrides;

use crate::shipped::stage::{Played, files, play, team};

async fn played(name: &str) -> Played {
    let file = files().into_iter().find(|file| file.file_stem().is_some_and(|stem| stem == name)).unwrap();
    play(&team(&file, &Overrides::default())).await
}

#[tokio::test(start_paused = true)]
async fn a_bot_with_three_words_is_sent_its_system_text_and_the_question() {
    let played = played("fixed-answer").await;
    let [asked] = &played.asked[..] else { panic!("it is asked once") };
    assert_eq!(
        (&*asked.system, asked.roles()),
        ("你的回答只能从“典”，“孝”，“急”三个字中选一个。", "u".into())
    );
    assert_eq!((asked.texts(), &*played.summary), (vec!["今天的天气情况怎么样".to_owned()], "急"));
}

#[tokio::test(start_paused = true)]
async fn an_example_stands_between_the_system_text_and_the_conversation_and_is_no_part_of_it() {
    let played = played("few-shot").await;
    let [asked] = &played.asked[..] else { panic!("it is asked once") };
    assert_eq!(
        (asked.roles(), asked.texts()),
        ("uau".into(), vec!["今天天气".into(), "【晴】".into(), "昨天天气".into()])
    );
    assert_eq!(played.said(""), [("user".into(), "昨天天气".into()), ("Weather".into(), "【雨】".into())]);
}

#[tokio::test(start_paused = true)]
async fn a_philosopher_thinks_aloud_at_a_pace() {
    let played = played("philosopher").await;
    assert_eq!(played.asked[0].system, "你是一个哲学家。");
    assert!(played.summary.contains("eudaimonia"), "{}", played.summary);
}

#[tokio::test(start_paused = true)]
async fn three_rounds_of_criticism_are_seven_calls_and_only_the_critic_reads_the_prefix() {
    let played = played("blogger").await;
    assert_eq!(played.asked.len(), 7);
    let prefix = "Reflect and provide criticism on the following writing.";
    assert!(played.asked_of("critic").iter().all(|asked| asked.texts().last().unwrap().starts_with(prefix)));
    assert!(played.asked_of("writer").iter().all(|asked| !asked.texts().concat().contains(prefix)));
    let roles: Vec<String> = played.asked_of("writer").iter().map(|asked| asked.roles()).collect();
    assert_eq!(roles, ["u", "uau", "uauau", "uauauau"]);
}

#[tokio::test(start_paused = true)]
async fn two_roles_of_a_society_read_each_other_as_user_and_only_what_is_theirs() {
    let played = played("society").await;
    let roles = |who| played.asked_of(who).iter().map(|asked| asked.roles()).collect::<Vec<_>>();
    assert_eq!(roles("Instructor"), ["u", "uau", "uauau", "uauauau", "uauauauau"]);
    assert_eq!(roles("Solver"), ["u", "uau", "uauau", "uauauat", "uauauatau"]);
    let opening = "Now give me your instructions";
    assert_eq!(played.said("").iter().filter(|(_, text)| text.starts_with(opening)).count(), 1);
    assert!(played.asked_of("Solver").iter().all(|asked| !asked.texts().concat().contains(opening)));
}

#[tokio::test(start_paused = true)]
async fn five_ways_to_reason_come_to_the_same_answer() {
    let played = played("ways-to-reason").await;
    let answers = played.said("");
    assert_eq!(answers.len(), 1 + 5, "{answers:?}");
    for (who, answer) in &answers[1..] {
        assert!(answer.contains("11:40"), "{who}: {answer}");
    }
}
