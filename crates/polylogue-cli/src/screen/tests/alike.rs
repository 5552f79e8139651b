//! Whatever shows a conversation, and however its signals come in: each message once, in order.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::screen::document::shown;
use crate::screen::picture::Pictures;

/// What one turn does.
#[derive(Debug, Clone)]
enum Act {
    Say { streamed: bool, words: usize },
    Call { narrates: bool },
    Nested { words: usize },
    Pass,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (any::<bool>(), 1..30_usize).prop_map(|(streamed, words)| Act::Say { streamed, words }),
        any::<bool>().prop_map(|narrates| Act::Call { narrates }),
        (1..9_usize).prop_map(|words| Act::Nested { words }),
        Just(Act::Pass),
    ]
}

/// A log and the pieces of replies between its events; every word in it is said once.
#[derive(Default)]
struct Script {
    signals: Vec<Update>,
    words: Vec<String>,
    /// What was said last: the summary of its chat.
    last: String,
    seq: u64,
}

impl Script {
    fn of(acts: &[Act]) -> Self {
        let mut script = Self::default();
        let root = Path::root();
        let first = script.text(2);
        script.event(&root, opened(&["A", "B"], "user", &first));
        for (nth, act) in acts.iter().enumerate() {
            let who = if nth % 2 == 0 { "A" } else { "B" };
            script.event(&root, turn_started(who));
            script.act(who, nth, act);
        }
        let summary = closed(&script.last);
        script.event(&root, summary);
        script
    }

    fn text(&mut self, words: usize) -> String {
        let from = self.words.len();
        self.words.extend((from..from + words).map(|nth| format!("w{nth}.")));
        self.last = self.words[from..].join(" ");
        self.last.clone()
    }

    fn event(&mut self, at: &Path, body: Body) {
        let event =
            Event { seq: self.seq, chat: at.clone(), time: Timestamp(0), ran_ms: 0, inbox: None, body };
        self.seq += 1;
        self.signals.push(Update::Event(Arc::new(event)));
    }

    fn says(&mut self, at: &Path, who: &str, streamed: bool, words: usize) {
        let text = self.text(words);
        for piece in text.split_inclusive(' ').filter(|_| streamed) {
            let delta = Delta::Text(piece.into());
            self.signals.push(Update::Delta { chat: at.clone(), who: name(who), delta });
        }
        self.event(at, sampled(who, vec![Part::text(text.clone())]));
        self.event(at, said(who, &text));
    }

    fn act(&mut self, who: &str, nth: usize, act: &Act) {
        let root = Path::root();
        match act {
            Act::Say { streamed, words } => self.says(&root, who, *streamed, *words),
            Act::Call { narrates } => {
                let text = if *narrates { self.text(3) } else { String::new() };
                let call = ToolCall { id: format!("c{nth}"), tool: "add".into(), args: json!({}) };
                self.event(&root, sampled(who, vec![Part::text(text), Part::ToolCall(call.clone())]));
                self.event(&root, called(who, &call.id, "add", call.args));
                self.event(&root, returned(who, &format!("c{nth}"), ToolResult::done("3")));
                self.says(&root, who, true, 4);
            }
            Act::Nested { words } => {
                let inner = root.child(&name(who), u64::try_from(nth).unwrap());
                let task = self.text(1);
                self.event(&inner, opened(&["C", "D"], who, &task));
                self.event(&inner, turn_started("C"));
                self.says(&inner, "C", true, *words);
                let summary = closed(&self.last);
                self.event(&inner, summary);
                self.says(&root, who, false, 2);
            }
            Act::Pass => self.event(&root, Body::Passed { who: name(who) }),
        }
    }

    fn events(&self) -> Vec<Event> {
        let event = |signal: &Update| match signal {
            Update::Event(event) => Some((**event).clone()),
            _ => None,
        };
        self.signals.iter().filter_map(event).collect()
    }
}

/// The words that were said, in the order in which they stand there.
fn words(text: &str) -> Vec<String> {
    let number = |word: &str| word.strip_prefix('w')?.strip_suffix('.')?.parse::<u32>().ok();
    let is_said = |word: &&str| number(word).is_some();
    text.split_whitespace().filter(is_said).map(str::to_owned).collect()
}

/// What a screen shows that hears every signal, or loses those that `is_lost` names and reads their events again.
fn played(settings: Settings, script: &Script, rows: usize, is_lost: &dyn Fn(usize) -> bool) -> String {
    let mut stage = Stage::new(settings, 60, rows);
    let (events, mut lost) = (script.events(), 0);
    for (nth, signal) in script.signals.iter().enumerate() {
        if is_lost(nth) && nth + 1 < script.signals.len() {
            lost += 1;
            continue;
        }
        if std::mem::take(&mut lost) > 0 {
            hear(&mut stage, &Update::Missed { updates: 1, seq: 0 }, &events);
        }
        hear(&mut stage, signal, &events);
        stage.wait(40);
    }
    stage.screen.end(&ending()).unwrap();
    if settings.looks.live { stage.scrolls() } else { stage.written.text() }
}

fn hear(stage: &mut Stage, signal: &Update, events: &[Event]) {
    if let Flow::Reread(from) = stage.screen.update(signal).unwrap() {
        for event in events.iter().skip(usize::try_from(from).unwrap()) {
            stage.screen.reread(event).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

    #[test]
    fn live_reread_plain_and_show_tell_each_message_once_and_in_order(
        acts in prop::collection::vec(act(), 0..8), rows in 6..40_usize, losses in any::<u64>(),
    ) {
        let script = Script::of(&acts);
        let all = |_: usize| false;
        prop_assert_eq!(words(&played(LIVE, &script, rows, &all)), &script.words[..], "live");
        prop_assert_eq!(words(&played(PLAIN, &script, rows, &all)), &script.words[..], "plain");
        let some = |nth: usize| losses >> (nth % 64) & 1 == 1;
        prop_assert_eq!(words(&played(PLAIN, &script, rows, &some)), &script.words[..], "read again, plain");
        // On a screen that nothing has left permanently, replies that were torn are erased and shown when they are whole.
        prop_assert_eq!(words(&played(LIVE, &script, 200, &some)), &script.words[..], "read again, live");
        let whole = shown(&script.events(), Format::WHOLE, Pictures::default());
        prop_assert_eq!(words(&whole), &script.words[..], "show");
        let verbose = played(Settings { verbose: true, thoughts: true, ..PLAIN }, &script, rows, &all);
        prop_assert_eq!(verbose.split("\n\ndone: ").next(), whole.split("\ndone: ").next().map(str::trim_end), "verbose, but for why it ended");
    }
}
