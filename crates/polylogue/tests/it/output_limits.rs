//! A call whose longest reply does not fit into what is left of a limit is sent with a lower output limit. A reply that this cuts
//! off ends the run at that limit, and no level spends more than it may.

mod crowd;
mod server;

use std::sync::Arc;

use polylogue::{AnyModel, Assistant, Chat, Function, Limits, Log, Status, parallel, sequential};
use polylogue_core::{
    Act, Allowance, AnyAgent, Body, Budget, CutReply, DeltaSink, Event, FinishReason, LimitOverrides, Model,
    ModelError, Money, OnLimit, OutputLimit, Params, Part, RaiseTerms, Reply, Request, RunOutcome,
    StopReason, Usage,
};

use self::server::{LONGEST, Server};
use crate::common::{log_of, name, reason, run_or_resume};

fn cents(amount: u64) -> Money {
    Money { picodollars: amount * 10_000_000_000 }
}

fn spend(most: u64) -> Allowance {
    Allowance { cost: Some(cents(most)), ..Allowance::default() }
}

fn tokens(most: u64) -> Allowance {
    Allowance { tokens: Some(most), ..Allowance::default() }
}

fn agent(who: &str, server: &Server) -> Assistant {
    Assistant::new(who, AnyModel::new(server.clone())).unwrap()
}

/// One turn of Ann, and one of Bob.
fn pair(server: &Server) -> polylogue_core::ChatBuilder {
    Chat::builder("pair")
        .participant(agent("Ann", server))
        .participant(agent("Bob", server))
        .policy(sequential())
}

/// The calls whose limits were lowered.
async fn lowered(log: &Log) -> Vec<OutputLimit> {
    let of = |event: &Arc<Event>| match &event.body {
        Body::OutputLimited(limit) => Some(limit.clone()),
        _ => None,
    };
    log.events().await.iter().filter_map(of).collect()
}

/// Runs the pair, whose limits are `set`, with replies of 300 tokens. Returns the output limits that were sent, and what leaves
/// no more.
async fn run_with(
    set: impl Fn(polylogue_core::ChatBuilder, Log) -> (Chat, Log),
) -> (Vec<Option<u32>>, String) {
    let server = Server::wanting(300);
    let (chat, mut log) = set(pair(&server), Log::in_memory());
    let status = chat.run_in(&mut log, "go").await.unwrap().status;
    assert_eq!(reason(&status).outcome(), RunOutcome::Done, "{status:?}");
    assert_eq!(log.reserved(), Money::default());
    let lowered = lowered(&log).await;
    let sent = server.limits();
    let logged: Vec<u32> = lowered.iter().map(|limit| limit.tokens as u32).collect();
    assert_eq!(sent.iter().flatten().copied().collect::<Vec<_>>(), logged, "what is logged is what is sent");
    let of: Vec<String> = lowered.iter().map(ToString::to_string).collect();
    (sent, of.join("; ").replace("tokens: no more is left of ", ""))
}

#[tokio::test]
async fn each_kind_of_limit_lowers_the_output_of_a_call_to_what_is_left() {
    let cost = |amount| Limits { cost: Some(cents(amount)), ..Limits::default() };
    let of_run = run_with(|chat, log| (chat.build().unwrap(), log.limits(cost(4_500)))).await;
    assert_eq!(of_run, (vec![None, None], String::new()), "the second call fits, too: the first took less");
    let of_run = run_with(|chat, log| (chat.build().unwrap(), log.limits(cost(4_100)))).await;
    assert_eq!(of_run, (vec![None, Some(3_800)], "3800 the limit of $41.00".into()));
    let of_agent = |chat: polylogue_core::ChatBuilder, log: Log| {
        (chat.build().unwrap(), log.agent_limits([(name("Bob"), spend(900))]))
    };
    let of_agent = run_with(of_agent).await;
    assert_eq!(
        of_agent,
        (vec![None, Some(900)], "900 the limit of $9.00 of the agent `Bob`".replace("9.0000", "9.00"))
    );
    let of_chat = run_with(|chat, log| (chat.limits(spend(800)).build().unwrap(), log)).await;
    let text = "800 the limit of $8.00 of the chat `pair`; 500 the limit of $8.00 of the chat `pair`";
    assert_eq!(of_chat, (vec![Some(800), Some(500)], text.into()));
    for of in ["batch", "process"] {
        let budget = Budget::new(of, cents(700));
        let shared = run_with(|chat, log| (chat.build().unwrap(), log.budget(budget.clone()))).await;
        let text = format!("700 the limit of $7.00 of the {of}; 400 the limit of $7.00 of the {of}");
        assert_eq!(shared, (vec![Some(700), Some(400)], text));
        assert_eq!((budget.reserved(), budget.used().cost), (Money::default(), cents(600)));
    }
    // The tightest one counts, and is named.
    let budget = Budget::new("batch", cents(700));
    let several = |chat: polylogue_core::ChatBuilder, log: Log| {
        let log = log.limits(cost(900)).budget(budget.clone()).agent_limits([(name("Ann"), spend(600))]);
        (chat.limits(tokens(100_000)).build().unwrap(), log)
    };
    let text = "600 the limit of $6.00 of the agent `Ann`; 400 the limit of $7.00 of the batch";
    assert_eq!(run_with(several).await, (vec![Some(600), Some(400)], text.into()));
}

#[tokio::test]
async fn limits_on_tokens_leave_room_for_the_request() {
    let server = Server::wanting(300);
    let limits = |most| Limits { tokens: Some(most), ..Limits::default() };
    // What the request takes at most is in the error of a call that cannot be lowered.
    let mut log = Log::in_memory().limits(limits(1));
    let status = pair(&server).build().unwrap().run_in(&mut log, "go").await.unwrap().status;
    let StopReason::Tokens { next: Some(next), .. } = reason(&status) else { panic!("{status:?}") };
    let input = next - LONGEST;
    let of_run = run_with(|chat, log| (chat.build().unwrap(), log.limits(limits(3_000)))).await;
    let first = u32::try_from(3_000 - input).unwrap();
    assert_eq!(of_run.0[0], Some(first));
    // The request of the second has the reply of the first; the first took 305 tokens.
    assert!(of_run.0[1].is_some_and(|second| second < first - 305 && second > first - 400), "{of_run:?}");
    for owner in [true, false] {
        let of_owner = run_with(|chat, log| match owner {
            true => (chat.limits(tokens(3_000)).build().unwrap(), log),
            false => (chat.build().unwrap(), log.budget(Budget::new("batch", tokens(3_000)))),
        });
        assert_eq!(of_owner.await.0[0], Some(first));
    }
}

#[tokio::test]
async fn what_is_left_must_be_useful() {
    let run = async |left: u64, params: Params| {
        let server = Server::wanting(100);
        let ann = agent("Ann", &server).params(params);
        let chat = Chat::builder("one").participant(ann).policy(sequential()).build().unwrap();
        let mut log = Log::in_memory().limits(Limits { cost: Some(cents(left)), ..Limits::default() });
        let status = chat.run_in(&mut log, "go").await.unwrap().status;
        (reason(&status).clone(), server.limits())
    };
    let (limit, spent) = (cents(255), Money::default());
    let refused = |next| StopReason::Cost { limit, spent, next: Some(cents(next)), cut: None };
    assert_eq!(run(255, Params::default()).await, (refused(LONGEST), vec![]));
    assert_eq!(run(256, Params::default()).await.1, [Some(256)]);
    // A limit of its own that is lower than that is sent unchanged, and what leaves less refuses the call.
    let own = |most| Params { max_tokens: Some(most), ..Params::default() };
    assert_eq!(run(255, own(300)).await, (refused(300), vec![]));
    assert_eq!(run(255, own(200)).await.1, [Some(200)]);
    let short = StopReason::Cost { limit: cents(199), spent, next: Some(cents(200)), cut: None };
    assert_eq!(run(199, own(200)).await, (short, vec![]));
    // A limit in an extra field, which is what the server takes, is not lowered.
    struct Fixed(Server);
    impl Model for Fixed {
        fn name(&self) -> &str {
            "test:fixed"
        }
        async fn complete(&self, _: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
            panic!("it does not fit")
        }
        fn cost(&self, usage: &Usage) -> Option<Money> {
            self.0.cost(usage)
        }
        fn max_output(&self, _: &Params) -> Option<u64> {
            Some(LONGEST)
        }
    }
    let fixed = Assistant::new("Ann", AnyModel::new(Fixed(Server::wanting(1)))).unwrap();
    let chat = Chat::builder("one").participant(fixed).policy(sequential()).build().unwrap();
    let mut log = Log::in_memory().limits(Limits { cost: Some(cents(3_000)), ..Limits::default() });
    let status = chat.run_in(&mut log, "go").await.unwrap().status;
    assert!(matches!(reason(&status), StopReason::Cost { next: Some(_), cut: None, .. }), "{status:?}");
    assert!(lowered(&log).await.is_empty());
}

#[tokio::test]
async fn a_reply_of_unknown_length_gets_a_limit_when_little_is_left() {
    let run = async |left: u64| {
        let server = Server { is_known: false, ..Server::wanting(300) };
        let chat = pair(&server).build().unwrap();
        let mut log = Log::in_memory().limits(Limits { cost: Some(cents(left)), ..Limits::default() });
        chat.run_in(&mut log, "go").await.unwrap();
        server.limits()
    };
    assert_eq!(run(10_000).await, [None, None]);
    assert_eq!(run(4_200).await, [None, Some(3_900)], "from 4,096 tokens on");
    assert_eq!(run(600).await, [Some(600), Some(300)]);
}

#[tokio::test]
async fn a_reply_that_is_cut_off_ends_the_run_at_the_limit_and_continues_under_a_higher_one() {
    let server = Server::wanting(700);
    let chat = pair(&server).build().unwrap();
    let limits = |most| Limits { cost: Some(cents(most)), ..Limits::default() };
    let mut log = Log::in_memory().limits(limits(500));
    let status = chat.run_in(&mut log, "go").await.unwrap().status;
    assert_eq!(server.limits(), [Some(500)]);
    let cut = Some(CutReply { who: name("Ann"), tokens: 500 });
    let (limit, spent) = (cents(500), cents(500));
    assert_eq!(reason(&status), &StopReason::Cost { limit, spent, next: None, cut });
    assert_eq!(
        reason(&status).to_string(),
        "the limit of $5.00 ($5.00 spent; the reply of Ann was cut off at 500 tokens, all that was left)"
    );
    assert_eq!(reason(&status).outcome(), RunOutcome::Budget);
    assert_eq!(log.reserved(), Money::default());
    let none = LimitOverrides::default();
    assert!(chat.ends_again(&log, &limits(500), none).await.unwrap().is_some());
    // Its turn is open: the rest of the reply follows.
    assert!(chat.ends_again(&log, &limits(9_000), none).await.unwrap().is_none());
    log.reopen().await.unwrap();
    let mut log = log.limits(limits(20_000));
    let status = chat.resume(&mut log).await.unwrap().status;
    assert_eq!(reason(&status).outcome(), RunOutcome::Done, "{status:?}");
    assert_eq!(server.limits(), [Some(500), None, None]);
    let messages = log.transcript().await.unwrap();
    let first = messages.messages().find(|line| line.message.from == name("Ann")).unwrap();
    assert_eq!(first.message.text(), "wordword");
}

#[tokio::test]
async fn a_cut_off_reply_that_is_the_last_one_does_not_end_the_run_as_done() {
    let server = Server::wanting(700);
    // It chose its limit, so that its replies are not continued.
    let own = Params { max_tokens: Some(2_000), ..Params::default() };
    let only = || agent("Ann", &server).params(own.clone());
    let chat = || Chat::builder("one").participant(only()).policy(sequential()).build().unwrap();
    let mut log = Log::in_memory().limits(Limits { cost: Some(cents(500)), ..Limits::default() });
    let result = chat().run_in(&mut log, "go").await.unwrap();
    let Status::Closed { reason, summary } = &result.status else { panic!("{result:?}") };
    assert!(matches!(reason, StopReason::Cost { cut: Some(_), .. }), "{reason}");
    assert_eq!(&**summary, "word", "what there is of it is the result");
    let message = result.events().iter().find_map(|event| match &event.body {
        Body::Message(message) => Some(message.clone()),
        _ => None,
    });
    assert!(message.unwrap().parts.contains(&Part::Cut(FinishReason::Length)));
    // One that ends by itself at the same length does not.
    let server = Server::wanting(500);
    let ann = agent("Ann", &server).params(own.clone());
    let whole = Chat::builder("one").participant(ann).policy(sequential()).build().unwrap();
    let mut log = Log::in_memory().limits(Limits { cost: Some(cents(500)), ..Limits::default() });
    let status = whole.run_in(&mut log, "go").await.unwrap().status;
    assert_eq!((status_outcome(&status), server.limits()), (RunOutcome::Done, vec![Some(500)]));
    // And one that is cut off at the agent's own limit neither.
    let server = Server::wanting(3_000);
    let ann = agent("Ann", &server).params(own);
    let whole = Chat::builder("one").participant(ann).policy(sequential()).build().unwrap();
    let mut log = Log::in_memory().limits(Limits { cost: Some(cents(2_000)), ..Limits::default() });
    let status = whole.run_in(&mut log, "go").await.unwrap().status;
    assert_eq!((status_outcome(&status), server.limits()), (RunOutcome::Done, vec![Some(2_000)]));
}

fn status_outcome(status: &Status) -> RunOutcome {
    reason(status).outcome()
}

#[tokio::test]
async fn a_nested_chat_ends_where_its_own_limit_cuts_a_reply_off_and_the_outer_one_continues() {
    let server = Server::wanting(700);
    let inner = Chat::builder("inner").participant(agent("Ann", &server)).limits(spend(500));
    let inner = inner.policy(sequential()).build().unwrap();
    let chat =
        Chat::builder("outer").participant(inner).participant(agent("Bob", &server)).policy(sequential());
    let chat = chat.build().unwrap();
    for own in [true, false] {
        let mut log = Log::in_memory();
        if !own {
            log = log.agent_limits([(name("Bob"), spend(400))]);
        }
        let status = chat.run_in(&mut log, "go").await.unwrap().status;
        let events = log.events().await;
        let inner = events.iter().find_map(|event| match &event.body {
            Body::Closed { reason, .. } if !event.chat.is_root() => Some(reason.to_string()),
            _ => None,
        });
        let text = "the chat `inner` has reached the limit of $5.00 ($5.00 spent; the reply of Ann was cut off at 500 tokens, \
                    all that was left)";
        assert_eq!(inner.unwrap(), text);
        let expected = if own { RunOutcome::Done } else { RunOutcome::Budget };
        assert_eq!(status_outcome(&status), expected, "{status:?}");
    }
}

#[tokio::test]
async fn a_person_is_asked_before_a_reply_is_shortened() {
    let server = Server::wanting(300);
    let chat = pair(&server).build().unwrap();
    let ask = |ceiling| {
        let raise = RaiseTerms { ceiling: spend(ceiling), ..RaiseTerms::default() };
        Limits { cost: Some(cents(500)), on_limit: OnLimit::Ask, raise, ..Limits::default() }
    };
    let status = chat.run_in(&mut Log::in_memory().limits(ask(9_000)), "go").await.unwrap().status;
    assert!(matches!(status, Status::Waiting(_)), "{status:?}");
    assert!(server.sent().is_empty());
    // At the ceiling no answer would help.
    let status = chat.run_in(&mut Log::in_memory().limits(ask(500)), "go").await.unwrap().status;
    assert_eq!(server.limits(), [Some(500)]);
    assert!(matches!(reason(&status), StopReason::Cost { next: Some(_), .. }), "{status:?}");
    // At the limit of an agent, too.
    let limits = Limits { on_limit: OnLimit::Ask, ..Limits::default() };
    let mut log = Log::in_memory().limits(limits).agent_limits([(name("Ann"), spend(500))]);
    let status = chat.run_in(&mut log, "go").await.unwrap().status;
    assert!(matches!(status, Status::Waiting(_)), "{status:?}");
    assert_eq!(server.limits().len(), 1);
}

#[tokio::test]
async fn a_log_that_is_cut_anywhere_ends_in_the_same_way_without_a_further_call() {
    let limits = Limits { cost: Some(cents(500)), ..Limits::default() };
    let run = async |events: &[Arc<Event>]| {
        let server = Server::wanting(700);
        let chat = pair(&server).build().unwrap();
        let mut log = log_of(events).await.limits(limits);
        (run_or_resume(&chat, &mut log, "go").await.unwrap(), server.sent().len())
    };
    let (whole, _) = run(&[]).await;
    let bodies = |events: &[Arc<Event>]| events.iter().map(|event| event.body.clone()).collect::<Vec<_>>();
    let place = |is: fn(&Body) -> bool| whole.events().iter().position(|event| is(&event.body)).unwrap();
    let begun = place(|body| matches!(body, Body::TurnStarted { .. }));
    let limited = place(|body| matches!(body, Body::OutputLimited(_)));
    let replied = place(|body| matches!(body, Body::ModelReplied(_)));
    assert_eq!((limited, replied), (begun + 1, begun + 2));
    for end in 1..=whole.events().len() {
        let (again, calls) = run(&whole.events()[..end]).await;
        let charged = again.events().iter().find_map(|event| match &event.body {
            Body::Charged(charge) => charge.cost,
            _ => None,
        });
        assert_eq!(status_outcome(&again.status), RunOutcome::Budget, "cut at {end}");
        if end > begun && end <= replied {
            // The call may have been in flight: it counts with its longest reply, or with the lowered limit, which was all that was left. More
            // did not fit.
            assert_eq!((calls, charged), (0, Some(cents(500))), "cut at {end}");
        } else {
            let made = u64::from(end <= begun) as usize;
            assert_eq!((calls, charged), (made, None), "cut at {end}");
            assert_eq!(bodies(again.events()), bodies(whole.events()), "cut at {end}");
        }
    }
}

#[tokio::test]
async fn a_call_of_another_agent_after_a_reply_that_was_cut_off_is_not_sent() {
    let run = async |events: &[Arc<Event>]| {
        let server = Server::wanting(LONGEST);
        let most = |tokens| Params { max_tokens: Some(tokens), ..Params::default() };
        // Its request takes much less than it could, so that the limit leaves enough for a short call.
        let writer = agent("Writer", &server).system("x".repeat(2_000)).params(most(LONGEST as u32));
        let helper = AnyAgent::new(agent("Helper", &server).params(most(300)));
        let host = Function::calling("Host", [helper.clone()], move |turn| {
            let helper = helper.clone();
            Box::pin(async move {
                for _ in 0..32 {
                    tokio::task::yield_now().await;
                }
                Ok(Act::Say(turn.ask(&helper, "Well?").await?.parts))
            })
        });
        let chat = Chat::builder("both").participant(writer).participant(host.unwrap()).policy(parallel());
        let chat = chat.build().unwrap();
        let limits = Limits { tokens: Some(6_000), ..Limits::default() };
        let mut log = log_of(events).await.limits(limits);
        (run_or_resume(&chat, &mut log, "go").await.unwrap(), server.sent().len())
    };
    let (whole, calls) = run(&[]).await;
    let why = reason(&whole.status);
    assert!(matches!(why, StopReason::Tokens { cut: Some(cut), .. } if cut.who == name("Writer")), "{why}");
    assert_eq!(calls, 1);
    let place = |is: fn(&Body) -> bool| whole.events().iter().position(|event| is(&event.body)).unwrap();
    let replied = place(|body| matches!(body, Body::ModelReplied(_)));
    assert!(place(|body| matches!(body, Body::Reopened { .. })) > replied);
    for end in replied + 1..=whole.events().len() {
        let (again, calls) = run(&whole.events()[..end]).await;
        assert_eq!((reason(&again.status), calls), (why, 0), "cut at {end}");
    }
}
