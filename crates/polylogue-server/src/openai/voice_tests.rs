//! What clients see of random teams, with parallel turns and chats within turns: live, and of the finished log.

use polylogue_core::{
    Audience, Body, Delta, Digest, Event, FinishReason, Message, ModelReply, Name, Part, Path, StopReason,
    Timestamp, TurnRequest,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};

use super::chunks::Chunks;
use super::document::Head;
use super::line::without_broken;
use super::outcome::Outcome;
use super::voice::{Voice, content_of};
use crate::chat_options::ChatShow;
use crate::projection::{Frame, Projection};
use crate::waiting::SentText;

/// What one turn does before it ends.
#[derive(Debug, Clone)]
struct Act {
    is_private: bool,
    /// Replies with a call of a tool.
    narrates: usize,
    /// Whether its last reply breaks off and begins again with other words.
    restarts: bool,
    nested: Option<Box<ChatPlan>>,
    ends: Ends,
}

#[derive(Debug, Clone, Copy)]
enum Ends {
    Says,
    SaysSomethingElse,
    Passes,
}

/// The steps of a chat: turns that begin together.
#[derive(Debug, Clone)]
struct ChatPlan(Vec<Vec<Act>>);

fn chat(depth: u32) -> BoxedStrategy<ChatPlan> {
    let nested = match depth {
        0 => Just(None).boxed(),
        depth => {
            prop_oneof![3 => Just(None), 1 => chat(depth - 1).prop_map(|chat| Some(Box::new(chat)))].boxed()
        }
    };
    let ends =
        prop_oneof![4 => Just(Ends::Says), 1 => Just(Ends::SaysSomethingElse), 1 => Just(Ends::Passes)];
    let rare = prop::bool::weighted(0.2);
    let act = (rare, 0..2_usize, prop::bool::weighted(0.2), nested, ends).prop_map(
        |(is_private, narrates, restarts, nested, ends)| Act { is_private, narrates, restarts, nested, ends },
    );
    prop::collection::vec(prop::collection::vec(act, 1..4), 1..3).prop_map(ChatPlan).boxed()
}

/// Something that happens.
#[allow(clippy::large_enum_variant, reason = "a few hundred at a time")]
#[derive(Debug, Clone)]
enum Happening {
    Event(Path, Body),
    Piece(Path, Name, Delta),
}

/// Plays plans, with parallel turns mixed at random.
struct Player {
    random: u64,
    words: usize,
    restarts: bool,
}

impl Player {
    fn random(&mut self, below: usize) -> usize {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.random >> 33).unwrap() % below
    }

    /// Words that name who says them.
    fn text(&mut self, at: &Path, who: &Name) -> String {
        let count = 1 + self.random(6);
        let tag = format!("{}{who}", at.as_str().replace('/', "_"));
        let mut text = String::new();
        for _ in 0..count {
            self.words += 1;
            let space = [" ", "\n", "\n\n", " "][self.random(4)];
            text += &format!("w{}@{tag}{space}", self.words);
        }
        text
    }

    fn chat(&mut self, at: &Path, ChatPlan(steps): &ChatPlan) -> Vec<Happening> {
        let mut all = Vec::new();
        let mut turns = 0;
        for step in steps {
            let names: Vec<Name> =
                (0..step.len()).map(|nth| Name::new(["Ann", "Bob", "Cleo"][nth]).unwrap()).collect();
            let request = |(who, act): (&Name, &Act)| match act.is_private {
                true => TurnRequest::private(who.clone(), "Privately?"),
                false => TurnRequest::to_all(who.clone()),
            };
            let requests = names.iter().zip(step).map(request).collect();
            all.push(Happening::Event(at.clone(), Body::TurnStarted { turns: requests }));
            turns += 1;
            let mut ends = Vec::new();
            let mut lanes: Vec<Vec<Happening>> = Vec::new();
            for (who, act) in names.iter().zip(step) {
                let (mut lane, end) = self.turn((at, who, turns), act);
                lane.reverse();
                lanes.push(lane);
                ends.push(Happening::Event(at.clone(), end));
            }
            while lanes.iter().any(|lane| !lane.is_empty()) {
                let lane = self.random(lanes.len());
                all.extend(lanes[lane].pop());
            }
            all.extend(ends);
        }
        all
    }

    fn turn(&mut self, (at, who, turn): (&Path, &Name, u64), act: &Act) -> (Vec<Happening>, Body) {
        let mut all = Vec::new();
        for _ in 0..act.narrates {
            let text = self.text(at, who);
            self.reply((at, who), &text, false, &mut all);
        }
        if let Some(nested) = &act.nested {
            all.extend(self.chat(&at.child(who, turn), nested));
        }
        let text = self.text(at, who);
        let to = if act.is_private { Audience::private() } else { Audience::All };
        let message = |text: &str| Body::Message(Message::new(who.clone(), text).to(to));
        let end = match act.ends {
            Ends::Passes => Body::Passed { who: who.clone() },
            Ends::Says => message(&text),
            Ends::SaysSomethingElse => message(&self.text(at, who)),
        };
        self.reply((at, who), &text, act.restarts, &mut all);
        (all, end)
    }

    fn reply(&mut self, (at, who): (&Path, &Name), text: &str, restarts: bool, all: &mut Vec<Happening>) {
        let piece = |delta| Happening::Piece(at.clone(), who.clone(), delta);
        if restarts {
            self.restarts = true;
            let other = self.text(at, who);
            all.extend(other.split_inclusive(' ').map(|word| piece(Delta::Text(word.into()))));
            all.push(piece(Delta::Restart));
        }
        all.extend(text.split_inclusive(' ').map(|word| piece(Delta::Text(word.into()))));
        all.push(Happening::Event(at.clone(), replied(who, text, FinishReason::Stop)));
    }
}

fn replied(who: &Name, text: &str, finish: FinishReason) -> Body {
    let request = Digest::try_from("0".repeat(32)).unwrap();
    let reply = ModelReply::new(who.clone(), "m", request, vec![Part::text(text)]);
    Body::ModelReplied(ModelReply { finish, ..reply })
}

fn chunks(show: ChatShow) -> Chunks {
    let head = Head { id: "c".into(), created: 7, model: "m".into(), conversation: "log".into() };
    let (voice, outcome, sent) = (Voice::new(show, false), Outcome::default(), SentText::default());
    Chunks { head, usage: false, is_kept_alive_by_chunks: false, voice, outcome, sent }
}

/// The joined texts of the deltas with this name. Every other chunk of a list is checked by the way.
fn joined(frames: &[Frame], name: &str) -> String {
    let mut text = String::new();
    for frame in frames.iter().filter(|frame| frame.data != "[DONE]") {
        let chunk: Value = serde_json::from_str(&frame.data).unwrap();
        assert_eq!((&chunk["id"], &chunk["created"], &chunk["model"]), (&json!("c"), &json!(7), &json!("m")));
        assert!(chunk["choices"][0].get("finish_reason").is_some(), "{chunk}");
        let piece = chunk["choices"][0]["delta"].get(name).map(|piece| piece.as_str().unwrap());
        assert_ne!(piece, Some(""), "no piece is empty");
        text += piece.unwrap_or_default();
    }
    text
}

/// What happens as frames; pieces only if they are received.
fn frames(show: ChatShow, all: &[Happening], is_received: impl Fn(usize) -> bool) -> Vec<Frame> {
    let mut chunks = chunks(show);
    let mut frames = Vec::new();
    let mut seq = 0;
    for (nth, happening) in all.iter().enumerate() {
        match happening {
            Happening::Event(at, body) => {
                frames.extend(chunks.entry(&event(seq, at, body)));
                seq += 1;
            }
            Happening::Piece(at, who, delta) if is_received(nth) => {
                frames.extend(chunks.delta(at, who, delta))
            }
            Happening::Piece(at, who, _) => chunks.lost_pieces(Some((at, who))),
        }
    }
    frames.extend(chunks.rest(&json!({"state": "closed"})).unwrap());
    frames
}

fn event(seq: u64, at: &Path, body: &Body) -> Event {
    Event { seq, chat: at.clone(), time: Timestamp(0), ran_ms: 0, inbox: None, body: body.clone() }
}

/// A line has words of one participant alone, and that is the one that the paragraph names.
fn check_lines(text: &str) {
    let mut speaker = String::new();
    for line in text.lines() {
        if let Some((name, _)) = line.strip_prefix("**").and_then(|line| line.split_once(":** ")) {
            speaker = name.to_owned();
        }
        for word in line.split_whitespace().filter(|word| word.starts_with('w') && word.contains('@')) {
            assert!(word.ends_with(&speaker), "{speaker}: {line}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, rng_seed: RngSeed::Fixed(11), ..ProptestConfig::default() })]

    #[test]
    fn s48_s63_live_frames_are_those_of_the_finished_log_and_mix_no_participants(
        plan in chat(2), random in any::<u64>(), lost in any::<u64>(),
    ) {
        let mut player = Player { random, words: 0, restarts: false };
        let mut all = player.chat(&Path::root(), &plan);
        all.push(Happening::Event(Path::root(), Body::Closed { reason: StopReason::Finished, summary: "The result.".into() }));
        for (show, name) in [(ChatShow::Result, "reasoning_content"), (ChatShow::Transcript, "content")] {
            let stored = joined(&frames(show, &all, |_| false), name);
            check_lines(&stored);
            let live = joined(&frames(show, &all, |_| true), name);
            check_lines(&live);
            prop_assert_eq!(without_broken(&live), &stored[..]);
            if !player.restarts {
                prop_assert_eq!(&live, &stored, "nothing is corrected that was right");
            }
            // Of a client that was too slow for some pieces.
            let slow = joined(&frames(show, &all, |nth| lost >> (nth % 64) & 1 == 0), name);
            check_lines(&slow);
            prop_assert_eq!(without_broken(&slow), &stored[..]);
            let log: Vec<&Happening> = all.iter().filter(|one| matches!(one, Happening::Event(..))).collect();
            let events: Vec<Event> = log.iter().enumerate().filter_map(|(seq, one)| match one {
                Happening::Event(at, body) => Some(event(seq as u64, at, body)),
                Happening::Piece(..) => None,
            }).collect();
            let content = content_of(show, &events, "The result.");
            let expected = if show == ChatShow::Transcript { stored.trim_end() } else { "The result." };
            prop_assert_eq!(content, expected);
            // Every public message is there.
            for event in &events {
                if let Body::Message(message) = &event.body && event.chat.is_root() && !message.to.is_private() {
                    prop_assert!(stored.contains(message.to_text().trim()), "{}", stored);
                }
            }
        }
        let silent = frames(ChatShow::None, &all, |_| true);
        prop_assert_eq!(joined(&silent, "reasoning_content") + &joined(&silent, "content"), "The result.");
    }
}

#[test]
fn a_team_of_one_streams_its_reply_as_the_content() {
    let who = Name::new("Ann").unwrap();
    let mut player = Player { random: 1, words: 0, restarts: false };
    let mut all = vec![Happening::Event(
        Path::root(),
        Body::TurnStarted { turns: vec![TurnRequest::to_all(who.clone())] },
    )];
    player.reply((&Path::root(), &who), "One two three. ", false, &mut all);
    let mut chunks = chunks(ChatShow::Result);
    chunks.voice = Voice::new(ChatShow::Result, true);
    let mut contents = Vec::new();
    let mut pieces = |frames: Vec<Frame>| {
        contents.extend(frames.iter().map(|frame| joined(std::slice::from_ref(frame), "content")))
    };
    for (seq, happening) in all.iter().enumerate() {
        pieces(match happening {
            Happening::Event(at, body) => chunks.entry(&event(seq as u64, at, body)),
            Happening::Piece(at, who, delta) => chunks.delta(at, who, delta),
        });
    }
    let said = Body::Message(Message::new(who, "One two three. "));
    let closed = Body::Closed { reason: StopReason::Finished, summary: "One two three. ".into() };
    for (seq, body) in [said, closed].iter().enumerate() {
        pieces(chunks.entry(&event(9 + seq as u64, &Path::root(), body)));
    }
    pieces(
        chunks
            .rest(&json!({"state": "closed"}))
            .unwrap()
            .into_iter()
            .filter(|frame| frame.data != "[DONE]")
            .collect(),
    );
    contents.retain(|piece| !piece.is_empty());
    assert_eq!(contents, ["One", " two", " three."]);
}

/// A reply with a call that cannot be parsed, and the one that is asked for then.
fn asked_again(who: &Name) -> Vec<Happening> {
    let event = |body| Happening::Event(Path::root(), body);
    let piece = |delta| Happening::Piece(Path::root(), who.clone(), delta);
    let mut all = vec![
        event(Body::TurnStarted { turns: vec![TurnRequest::to_all(who.clone())] }),
        piece(Delta::Text("Half".into())),
        piece(Delta::Restart),
        event(replied(who, "Half", FinishReason::Malformed)),
    ];
    let mut player = Player { random: 1, words: 0, restarts: false };
    player.reply((&Path::root(), who), "One two.", false, &mut all);
    all.push(event(Body::Message(Message::new(who.clone(), "One two."))));
    all.push(event(Body::Closed { reason: StopReason::Finished, summary: "One two.".into() }));
    all
}

#[test]
fn a_reply_that_is_asked_for_again_is_not_said() {
    let all = asked_again(&Name::new("Ann").unwrap());
    for (show, name) in [(ChatShow::Result, "reasoning_content"), (ChatShow::Transcript, "content")] {
        for is_received in [false, true] {
            let text = joined(&frames(show, &all, |_| is_received), name);
            assert_eq!(without_broken(&text).trim_end(), "**Ann:** One two.", "{show:?}");
        }
    }
    let mut only = Voice::new(ChatShow::Result, true);
    let mut pieces = Vec::new();
    for (seq, happening) in all.iter().enumerate() {
        pieces.extend(match happening {
            Happening::Event(at, body) => only.entry(&event(seq as u64, at, body)),
            Happening::Piece(at, who, delta) => only.delta(at, who, delta),
        });
    }
    pieces.extend(only.finish("One two."));
    let text: String = pieces.into_iter().map(|(_, text)| text).collect();
    let broken = "[The 4 characters before this do not count: the reply broke off.]";
    assert_eq!(text, format!("Half\n\n{broken}\n\nOne two."));
}
