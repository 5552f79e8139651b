//! Property tests of seals: they are sent again after exactly what they were made after, and nowhere else.

use std::collections::HashMap;

use super::*;
use crate::{RawArguments, Seal, Seals, SealsSent};

const TEXT: &str = "reasons of ";

/// What a provider that binds its seals would compare: everything before a message, as it was sent.
fn sent_before(view: &View, sent: &SealsSent, index: usize) -> Vec<String> {
    let shown = |(at, entry): (usize, &Entry)| match entry.unsealed() {
        Some(plain) if !sent.contains(at) => format!("{plain:?}"),
        _ => format!("{entry:?}"),
    };
    view.entries().iter().enumerate().take(index).map(shown).collect()
}

/// A run of a chat whose models seal their replies.
struct Sealed {
    options: ViewOptions,
    /// Whether agents change their models.
    switches: bool,
    views: Vec<View>,
    replies: usize,
    /// What was sent before each sealed reply, by the data of the seal.
    before: HashMap<String, Vec<String>>,
    /// The log.
    log: Vec<Event>,
}

impl Sealed {
    fn new(options: ViewOptions, switches: bool) -> Self {
        let views = (0..3).map(|me| View::new(name(me), options.clone())).collect();
        Self { options, switches, views, replies: 0, before: HashMap::new(), log: Vec::new() }
    }

    /// The model that the agent uses now.
    fn by(&self) -> String {
        if self.switches && self.replies % 5 > 2 { "w:two".into() } else { "w:one".into() }
    }

    fn sent(&self, view: &View) -> SealsSent {
        let mut sent = SealsSent::new(self.by(), Some("s"), &[]);
        sent.extend(view.entries());
        sent
    }

    fn see(&mut self, mut event: Event) {
        if let Body::ModelReplied(reply) = &mut event.body {
            self.seal(reply);
        }
        self.views.iter_mut().for_each(|view| view.see(&event));
        self.log.push(event);
    }

    fn seal(&mut self, reply: &mut ModelReply) {
        self.replies += 1;
        let me = NAMES.iter().position(|other| *other == reply.who.as_str()).unwrap();
        let view = &self.views[me];
        // The generator lets models reply where none is called, and twice to the same request.
        if check(view).is_err() || !view.pending.parts.is_empty() {
            return;
        }
        let sent = self.sent(view);
        let data = format!("{}-{}", reply.who, self.replies);
        self.before.insert(data.clone(), sent_before(view, &sent, view.entries().len()));
        let thought = Part::Thought(format!("{TEXT}{}", reply.who).into());
        let seal = Seal::new(0, &thought, json!(data));
        reply.parts.insert(0, thought);
        let (by, before) = (Arc::clone(sent.by()), sent.before(view.entries()));
        let seals = Some(Seals { by, before, key: None, parts: vec![seal] });
        reply.verbatim = Some(Arc::new(Verbatim { seals, ..Verbatim::default() }));
    }

    /// Checks what a provider would: returns how many sealed entries there are, and how many of them are sent.
    fn check(&self, me: usize) -> Result<(usize, usize), String> {
        let view = &self.views[me];
        let most =
            view.entries().iter().map(Entry::most_tokens).fold(InputTokens::default(), InputTokens::and);
        if view.most_tokens() != most {
            return Err(format!("{:?} tokens at most instead of {most:?}", view.most_tokens()));
        }
        let (sent, mut sealed) = (self.sent(view), 0);
        self.check_extended(view, &sent)?;
        for (at, entry) in view.entries().iter().enumerate() {
            let Entry::Assistant { parts, verbatim: Some(verbatim) } = entry else { continue };
            let Some(seals) = &verbatim.seals else { continue };
            sealed += 1;
            let mine = format!("{TEXT}{}", NAMES[me]);
            let is_mine = |part: &Part| !matches!(part, Part::Thought(text) if **text != *mine);
            if !parts.iter().all(is_mine) {
                return Err(format!("another agent's thoughts in {entry:?}"));
            }
            let Some(seal) = seals.parts.first().filter(|_| sent.contains(at)) else { continue };
            if *seals.by != *self.by() {
                return Err(format!("another model's seal is sent: {entry:?}"));
            }
            let was = &self.before[seal.data.as_str().unwrap()];
            if *was != sent_before(view, &sent, at) {
                return Err(format!("the seal {seal:?} is sent after something else"));
            }
        }
        let count = (0..view.entries().len()).filter(|at| sent.contains(*at)).count();
        Ok((sealed, count))
    }

    /// Checks that deciding on one entry after the other is as good as deciding on all at once.
    fn check_extended(&self, view: &View, sent: &SealsSent) -> Result<(), String> {
        let (entries, mut extended) = (view.entries(), SealsSent::new(self.by(), Some("s"), &[]));
        (0..=entries.len()).for_each(|count| extended.extend(&entries[..count]));
        let is_same = (0..entries.len()).all(|at| extended.contains(at) == sent.contains(at))
            && extended.before(entries) == sent.before(entries);
        if is_same { Ok(()) } else { Err(format!("{extended:?} is not {sent:?}")) }
    }

    /// Whether a process that reads the log so far decides the same.
    fn is_same_elsewhere(&self, me: usize) -> bool {
        let mut again = View::new(name(me), self.options.clone());
        self.log.iter().for_each(|event| again.see(event));
        self.sent(&again) == self.sent(&self.views[me])
    }
}

proptest! {
    #[test]
    fn a_seal_is_sent_after_exactly_what_it_was_made_after(
        opening in opening(), participants in 1..=3usize, moves in moves(), window in 1..12usize,
        forget_private_turns in any::<bool>(), is_window in any::<bool>(), switches in any::<bool>(),
    ) {
        let window = if is_window { Window::Messages(window) } else { Window::All };
        let options = ViewOptions { window, forget_private_turns, ..ViewOptions::default() };
        let mut run = Sealed::new(options, switches);
        for event in events(&opening, participants, &moves) {
            let called = (0..3).find(|me| is_called_after(&event.body, &name(*me)));
            run.see(event);
            if let Some(me) = called {
                prop_assert_eq!(check(&run.views[me]), Ok(()), "{:#?}", run.views[me].entries());
                prop_assert!(run.check(me).is_ok(), "{:?}", run.check(me));
                prop_assert!(run.is_same_elsewhere(me));
            }
        }
    }

    #[test]
    fn as_long_as_nothing_is_rewritten_every_seal_is_sent(
        opening in opening(), participants in 1..=3usize, moves in moves(),
    ) {
        let is_kept = |event: &Event| !matches!(event.body, Body::Cleared { .. } | Body::Remembered { .. });
        let mut run = Sealed::new(ViewOptions::default(), false);
        for event in events(&opening, participants, &moves).into_iter().filter(is_kept) {
            let called = (0..3).find(|me| is_called_after(&event.body, &name(*me)));
            run.see(event);
            if let Some(me) = called {
                let (sealed, sent) = run.check(me).unwrap();
                prop_assert_eq!(sealed, sent);
            }
        }
    }
}

/// A reply with a sealed thought, as the only one of its turn.
fn sealed_reply(run: &Sealed, text: &str) -> Body {
    let mut ids = 0;
    let reply = Reply {
        text: text.into(),
        thought: false,
        calls: 0,
        answered: 0,
        prompted: false,
        asks_others: false,
        clears: None,
    };
    assert_eq!(run.log.last().map(|event| event.seq + 1), Some(run.log.len() as u64));
    model_replied(&name(0), &reply, &mut ids).remove(0)
}

fn run_of(steps: impl IntoIterator<Item = Body>) -> Sealed {
    let mut run = Sealed::new(ViewOptions::default(), false);
    let opening = Opening { participants: vec![name(0), name(1)], ..Opening::default() };
    for body in std::iter::once(Body::Opened(opening)).chain(steps) {
        let event =
            |seq, body| Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body };
        run.see(event(run.log.len() as u64, body));
    }
    run
}

#[test]
fn a_message_that_is_another_text_than_the_reply_has_no_seal_and_no_thoughts() {
    for (said_text, count) in [("yes", 1), ("YES", 0)] {
        let mut run = run_of([turn_started(0)]);
        let reply = sealed_reply(&run, "yes");
        for body in [reply, said(0, vec![Part::text(said_text)]), turn_started(0)] {
            let seq = run.log.len() as u64;
            run.see(Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body });
        }
        assert_eq!(run.check(0), Ok((count, count)), "{said_text}");
        assert!(!run.views.iter().skip(1).any(|view| format!("{:?}", view.entries()).contains(TEXT)));
    }
}

#[test]
fn what_goes_back_with_a_reply_counts_in_its_request() {
    let call = ToolCall { id: "c".into(), tool: "t".into(), args: json!({"a": 1}) };
    let parts = vec![Part::Thought("".into()), Part::text("hm"), Part::ToolCall(call)];
    let seal = Seal::new(0, &parts[0], json!("x".repeat(5_000)));
    let before = SealsSent::new("w:m", None, &[]).before(&[]);
    let seals = Seals { by: "w:m".into(), before, key: None, parts: vec![seal] };
    // Six bytes more than the value has.
    let arguments = vec![RawArguments { part: 2, text: r#"{"a":      1}"#.into() }];
    let entry = |verbatim: Option<Verbatim>| Entry::Assistant {
        parts: parts.clone(),
        verbatim: verbatim.map(Arc::new),
    };
    let tokens = |entry: &Entry| entry.most_tokens().all;
    let (plain, sealed) =
        (entry(None), entry(Some(Verbatim { arguments, seals: Some(seals), ..Verbatim::default() })));
    assert_eq!(tokens(&sealed), tokens(&plain) + 5_002 + 6);
    assert_eq!(tokens(&sealed.unsealed().unwrap()), tokens(&plain) + 6);
}

#[test]
fn refused_seals_are_gone_with_their_thoughts() {
    let mut run = run_of([turn_started(0)]);
    let reply = sealed_reply(&run, "yes");
    let refused = Body::SealsRefused { who: name(0), model: "m".into(), why: "bad".into() };
    for body in [reply, said(0, vec![Part::text("yes")]), turn_started(0), refused] {
        let seq = run.log.len() as u64;
        run.see(Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body });
    }
    assert_eq!(run.check(0), Ok((0, 0)));
    assert_eq!(run.views[0].entries()[1], Entry::assistant("yes"));
    let (all, digest) = (&run.views[0], |view: &View| view.digest("m", None, &[], &Params::default()));
    let mut plain = View::new(name(0), ViewOptions::default());
    plain.push_text(BEGIN);
    plain.push_own(vec![Part::text("yes")]);
    plain.push_text(CONTINUE);
    assert_eq!((all.entries(), digest(all)), (plain.entries(), digest(&plain)));
}
