//! Which versions of its team a conversation can continue with.

use polylogue_core::BoundException;
use polylogue_runtime::{Error, OpenOptions};

use crate::conversations::world;

/// The conversation of `before`, run to its end or to its first failure, and the name of who is missing in `after`.
async fn missing_in(before: &str, after: &str) -> Option<String> {
    let (before, after) = (world(before).await, world(after).await);
    let conversation = before.runtime.begin(&before.team.run()).await.unwrap();
    // Some of them fail.
    drop(conversation.run().await);
    match before.runtime.check_version(conversation.id(), &after.team).await {
        Ok(()) => None,
        Err(Error::BadMove { who, .. }) => Some(who.to_string()),
        Err(error) => panic!("{error}"),
    }
}

fn team(chat: &str, script: &str) -> String {
    format!(
        "name: talk\ntask: Count.\nagents: [{{name: Ann}}, {{name: Bob}}, {{name: Law}}]\nchat: {{{chat}}}\nscript: [{script}]\n"
    )
}

#[tokio::test]
async fn the_selector_of_a_group_may_have_an_open_turn() {
    let group = "participants: [Ann, Bob], pattern: {group: {select: model}}, stop: {max_turns: 2}";
    let fails = team(group, "{talk_selector: {error: {status: 401, message: No.}}}");
    let works = team(group, "{talk_selector: Ann}, {Ann: one}, {talk_selector: Bob}, {Bob: two}");
    assert_eq!(missing_in(&fails, &works).await, None);
    let other = team("participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 2}", "{Ann: one}");
    assert_eq!(missing_in(&fails, &other).await.as_deref(), Some("talk_selector"));
}

/// A person is asked in a chat within the conversation.
#[tokio::test]
async fn who_takes_part_in_a_chat_with_an_open_turn_is_needed() {
    let desk = |participants: &str, also: &str| {
        format!(
            "
name: talk
task: Count.
agents: [{{name: Ann}}, {{name: Bob}}, {{name: Pat, human: true}}{also}]
chat: {{participants: [desk], pattern: sequential}}
chats: [{{name: desk, description: A desk., participants: [{participants}], pattern: sequential}}]
script: [{{Ann: one}}, {{Bob: two}}]
"
        )
    };
    let before = desk("Ann, Pat, Bob", "");
    assert_eq!(missing_in(&before, &desk("Ann, Pat, Bob", ", {name: Law}")).await, None);
    for who in ["Ann", "Bob", "Pat"] {
        let renamed = before.replace(who, "Law");
        assert_eq!(missing_in(&before, &renamed).await.as_deref(), Some(who));
    }
}

#[tokio::test]
async fn who_has_joined_is_needed() {
    let chat = "participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 4}";
    let late = format!("{chat}, late_joiners: [{{who: Law, when: {{says: legal}}}}]");
    for (said, missing) in [("legal", Some("Law")), ("fine", None)] {
        let script = format!("{{Ann: {said}}}, {{Bob: one}}, {{Law: two}}, {{Ann: three}}, {{Bob: four}}");
        let before = team(&late, &script);
        assert_eq!(missing_in(&before, &team(chat, &script)).await.as_deref(), missing, "{said}");
        assert_eq!(missing_in(&before, &before).await, None, "{said}");
    }
}

/// In the process that changes the team, and in the next one.
#[tokio::test]
async fn the_bound_applies_after_harmless_changes_alone() {
    let version = |description: &str, system: &str| {
        format!(
            "
name: talk
description: {description}
task: Count.
agents: [{{name: Ann, system: {system}}}, {{name: Pat, human: true}}]
chat: {{participants: [Ann, Pat], pattern: round_robin, stop: {{max_turns: 4}}}}
script: [{{Ann: one}}, {{Ann: two}}]
"
        )
    };
    let first = world(&version("Two.", "Be brief.")).await;
    let harmless = world(&version("A pair.", "Be brief.")).await;
    let other = world(&version("A pair.", "Be long.")).await;
    let conversation = first.runtime.begin(&first.team.run()).await.unwrap();
    let (id, bound) = (conversation.id().clone(), conversation.bound());
    assert!(bound.is_some_and(|bound| bound.calls.is_some()), "{bound:?}");
    conversation.run().await.unwrap();
    conversation.release().await.unwrap();
    drop(conversation);
    let mut last = &first.team;
    for (version, is_harmless_version, exception) in
        [(&harmless.team, true, None), (&other.team, false, Some(BoundException::TeamChanged))]
    {
        let options = OpenOptions { is_harmless_version, ..OpenOptions::default() };
        let conversation = first.runtime.open_version(&id, (version, None), options).await.unwrap();
        conversation.change_team(version, last.team().changes_to(version.team())).unwrap();
        conversation.resume(None).await.unwrap();
        assert_eq!(conversation.bound() == bound, is_harmless_version);
        conversation.release().await.unwrap();
        drop(conversation);
        let next = first.runtime.open(&id, version, OpenOptions::default()).await.unwrap();
        assert_eq!((next.bound(), next.bound_exception().await), (bound, exception));
        next.release().await.unwrap();
        last = version;
    }
}
