//! What a token may spend in a day: the last part of S37.

use std::time::Duration;

use polylogue_core::{Allowance, Budget, Error, Limits, LogId, Money, Store as _, StoreError};
use polylogue_runtime::Runtime;
use polylogue_server::{DailyBudget, NewToken, ServerLimits, remove_conversation, tokens_at};
use polylogue_test::server::{Answer, Playbook};
use serde_json::{Value, json};

use crate::client::{Request, Response};
use crate::conversations::{begin, begin_until, events, until};
use crate::world::{World, generous, place};

const PATH: &str = "/api/v1/conversations";

/// The text of a new token with a budget.
fn token(world: &World, per_day: DailyBudget) -> String {
    let new = NewToken { per_day, ..NewToken::local("bounded") };
    world.tokens().create(new).unwrap().1.reveal().to_owned()
}

async fn post(world: &World, token: &str, path: &str, body: &Value) -> Response {
    Request::new("POST", path).token(token).json(body).send(world.address).await
}

fn is_spent(response: &Response) {
    assert_eq!(response.status, 429, "{}", response.body);
    assert_eq!(response.problem()["type"], "/problems/budget-spent");
    assert_eq!(response.header("x-should-retry"), Some("false"));
    let wait: u64 = response.header("retry-after").unwrap().parse().unwrap();
    assert!(wait <= 24 * 60 * 60, "{wait}");
}

/// Tokens for one call and not for two, of a model that could take up to `next`: what it asks of its longest reply is lowered to what is
/// still useful.
fn enough_for_one(next: u64) -> u64 {
    const LONGEST_REPLY: u64 = 16_384;
    next - LONGEST_REPLY + Limits::USEFUL_OUTPUT + 10
}

/// Tokens for one call of the team `long` and not for two.
async fn tokens_for_one_call(world: &World) -> u64 {
    enough_for_one(first_call(world).await)
}

/// What the first call of the team `long` could take.
async fn first_call(world: &World) -> u64 {
    let probe = token(world, DailyBudget { tokens: Some(1), ..DailyBudget::default() });
    let (_, closed) = stopped(world, &probe).await;
    let detail = closed["ended"]["detail"].as_str().unwrap();
    detail.rsplit(' ').next().unwrap().trim_end_matches(')').parse().unwrap()
}

/// Begins a run that its token stops. Returns its id, and what the server says of it.
async fn stopped(world: &World, token: &str) -> (String, Value) {
    let begun = post(world, token, PATH, &json!({"team": "long"})).await;
    assert_eq!(begun.status, 201, "{}", begun.body);
    let id = begun.json()["id"].as_str().unwrap().to_owned();
    let closed = until(world, &id, "closed").await;
    assert_eq!(closed["ended"]["word"], "budget", "{closed}");
    (id, closed)
}

#[tokio::test]
async fn s37_the_tokens_of_a_day_are_reserved_counted_across_restarts_and_then_refused() {
    let world = World::with_model("more", generous()).await;
    let bounded =
        async |tokens: u64| token(&world, DailyBudget { tokens: Some(tokens), ..DailyBudget::default() });
    // Less than what one call could take: it says so itself, and how much that is.
    let (_, closed) = stopped(&world, &bounded(1).await).await;
    let detail = closed["ended"]["detail"].as_str().unwrap();
    let said = "the daily budget of the token has reached the limit of 1 token (0 used, and the next call could take up to ";
    let next: u64 = detail.strip_prefix(said).unwrap().trim_end_matches(')').parse().unwrap();
    assert_eq!((closed["turns"].as_u64(), world.model_requests().len()), (Some(0), 0), "it was not asked");
    // Enough for one call, and not for all.
    let bounded = bounded(enough_for_one(next)).await;
    let (id, closed) = stopped(&world, &bounded).await;
    assert!((1..12).contains(&closed["turns"].as_u64().unwrap()), "{closed}");
    let refused = async |world: &World| {
        is_spent(&post(world, &bounded, PATH, &json!({"team": "long"})).await);
        is_spent(&post(world, &bounded, &format!("{PATH}/{id}/resume"), &json!({})).await);
        is_spent(&post(world, &bounded, &format!("{PATH}/{id}/messages"), &json!({"text": "x"})).await);
        is_spent(&post(world, &bounded, &format!("{PATH}/{id}/fork"), &json!({"run": true})).await);
        let body = json!({"model": "long", "messages": [{"role": "user", "content": "x"}]});
        let chat = post(world, &bounded, "/v1/chat/completions", &body).await;
        is_spent(&chat);
        assert_eq!(chat.json()["error"]["code"], "budget_spent");
    };
    refused(&world).await;
    let before = events(&world, &id).await;
    let world = world.restart().await;
    // What is left is again too little, which the first call finds.
    assert_eq!(stopped(&world, &bounded).await.1["turns"], 0);
    refused(&world).await;
    assert_eq!(events(&world, &id).await, before, "nothing was sent into it");
    // Another token continues it, and pays.
    assert_eq!(world.post(&format!("{PATH}/{id}/resume"), &json!({})).await.status, 202);
    let is_of_token = |closed: &Value| closed["ended"]["detail"].as_str().unwrap().contains("the token");
    while is_of_token(&until(&world, &id, "closed").await) {}
}

#[tokio::test]
async fn what_a_token_made_spends_is_spent_of_the_budget_of_its_maker() {
    let world = World::with_model("more", generous()).await;
    let tokens = Some(tokens_for_one_call(&world).await);
    let maker = token(&world, DailyBudget { tokens, ..DailyBudget::default() });
    let make = async |name: &str| {
        let body = json!({"name": name, "scopes": ["read", "run"]});
        post(&world, &maker, "/api/v1/tokens", &body).await.json()["token"].as_str().unwrap().to_owned()
    };
    let (first, second) = (make("first").await, make("second").await);
    assert!(stopped(&world, &first).await.1["turns"].as_u64().unwrap() >= 1);
    // Too little is left for the other one, which has spent nothing itself, and for the maker.
    assert_eq!(stopped(&world, &second).await.1["turns"], 0);
    for token in [&first, &second, &maker] {
        is_spent(&post(&world, token, PATH, &json!({"team": "long"})).await);
    }
    let world = world.restart().await;
    assert_eq!(stopped(&world, &second).await.1["turns"], 0, "counted across a restart");
}

#[tokio::test]
async fn a_list_of_tokens_has_what_each_has_spent_today_and_the_day_of_its_last_use() {
    let world = World::with_model("more", generous()).await;
    let tokens = Some(tokens_for_one_call(&world).await);
    let bounded = token(&world, DailyBudget { tokens, ..DailyBudget::default() });
    let listed = async |world: &World| {
        let all = world.get("/api/v1/tokens").await.json()["tokens"].as_array().unwrap().clone();
        let of = |name: &str| all.iter().rev().find(|token| token["name"] == name).unwrap().clone();
        [of("bounded"), of("first")]
    };
    let [before, own] = listed(&world).await;
    assert_eq!(
        (&before["last_used_ms"], &before["usage_today"]),
        (&Value::Null, &json!({"cost": 0, "tokens": 0}))
    );
    let day = own["last_used_ms"].as_u64().unwrap();
    assert_eq!((day % (24 * 60 * 60 * 1000), &own["usage_today"]), (0, &Value::Null), "it has no budget");
    let (id, _) = stopped(&world, &bounded).await;
    let usage = world.get(&format!("{PATH}/{id}")).await.json()["usage"].clone();
    let used = usage["input"].as_u64().unwrap() + usage["output"].as_u64().unwrap();
    let [after, _] = listed(&world).await;
    assert_eq!(after["usage_today"], json!({"cost": usage["cost"], "tokens": used}));
    assert!(used > 0 && usage["cost"].as_u64() > Some(0), "{usage}");
    assert!(after["last_used_ms"].as_u64() >= Some(day), "{after}");
    // Counted from the log.
    let world = world.restart().await;
    assert_eq!(listed(&world).await[0]["usage_today"], after["usage_today"]);
}

#[tokio::test]
async fn all_conversations_of_a_server_share_its_budget_next_to_those_of_tokens() {
    let most = Allowance { calls: Some(5), ..Allowance::default() };
    let world = World::with_budget("more", Budget::new("process", most)).await;
    let rich = token(&world, DailyBudget { cost: Some(Money::dollars(1.0)), ..DailyBudget::default() });
    let begun = post(&world, &rich, PATH, &json!({"team": "long"})).await;
    let closed = until(&world, begun.json()["id"].as_str().unwrap(), "closed").await;
    assert_eq!(closed["ended"]["detail"], "the process has reached the limit of 5 model calls", "{closed}");
    // The token is not refused: its own budget has enough left.
    let again = post(&world, &rich, PATH, &json!({"team": "long"})).await;
    assert_eq!(again.status, 201, "{}", again.body);
    let closed = until(&world, again.json()["id"].as_str().unwrap(), "closed").await;
    assert_eq!((&closed["turns"], world.model_requests().len()), (&json!(0), 5), "{closed}");
}

#[tokio::test]
async fn under_a_limit_on_cost_models_of_unknown_price_are_refused_before_a_call() {
    const UNPRICED: &str = "
name: unpriced
task: Talk.
agents: [{name: Ann, model: 'openai:unpriced'}]
chat: {participants: [Ann], stop: {max_turns: 2}}
";
    let playbook = Playbook::new(|_, _| Answer::text("more"));
    let world = World::with_playbook("unpriced", UNPRICED, playbook).await;
    let is_refused = |response: &Response| {
        assert_eq!(response.status, 400, "{}", response.body);
        let why = "openai:unpriced: there is a limit on cost, but its price is unknown";
        assert!(response.body.contains(why), "{}", response.body);
    };
    let limited = json!({"team": "unpriced", "limits": {"cost": 1_000_000_000_000_u64}});
    is_refused(&post(&world, &world.token, PATH, &limited).await);
    let cost = Some(Money::dollars(1.0));
    let bounded = token(&world, DailyBudget { cost, ..DailyBudget::default() });
    is_refused(&post(&world, &bounded, PATH, &json!({"team": "unpriced"})).await);
    let chat = json!({"model": "unpriced", "messages": [{"role": "user", "content": "x"}]});
    is_refused(&post(&world, &bounded, "/v1/chat/completions", &chat).await);
    let listed = world.get(PATH).await.json();
    assert_eq!((world.model_requests().len(), &listed["conversations"]), (0, &json!([])), "{listed}");
    // Without a limit on cost it runs, and it is not continued under one.
    let id = begin_until(&world, "unpriced", "closed").await;
    is_refused(&post(&world, &bounded, &format!("{PATH}/{id}/resume"), &json!({})).await);
    let more = json!({"limits": {"cost": 1_000_000_000_000_u64}});
    is_refused(&post(&world, &world.token, &format!("{PATH}/{id}/resume"), &more).await);
    assert_eq!(world.model_requests().len(), 2);
}

#[tokio::test]
async fn s37_no_call_is_made_that_the_money_of_the_day_cannot_pay() {
    let world = World::with_model("more", generous()).await;
    let all = begin(&world, &json!({"team": "long"})).await;
    let spent = until(&world, &all, "closed").await["usage"].clone();
    let (cost, calls) = (spent["cost"].as_u64().unwrap(), spent["calls"].as_u64().unwrap());
    assert!(cost > 0 && calls > 3, "{spent}");
    let made = world.model_requests().len();
    // Less than what one call could cost.
    let none = token(&world, DailyBudget { cost: Some(Money { picodollars: 1 }), ..DailyBudget::default() });
    let id =
        post(&world, &none, PATH, &json!({"team": "long"})).await.json()["id"].as_str().unwrap().to_owned();
    let refused = until(&world, &id, "closed").await;
    assert_eq!(refused["ended"]["word"], "budget", "{refused}");
    assert_eq!(world.model_requests().len(), made, "it was not asked");
    is_spent(&post(&world, &none, PATH, &json!({"team": "long"})).await);
    // Enough for both: a run that is begun and continued is counted once.
    let enough = Money::dollars(1.0);
    let rich = token(&world, DailyBudget { cost: Some(enough), ..DailyBudget::default() });
    let id =
        post(&world, &rich, PATH, &json!({"team": "long"})).await.json()["id"].as_str().unwrap().to_owned();
    until(&world, &id, "closed").await;
    let world = world.restart().await;
    let again = post(&world, &rich, PATH, &json!({"team": "long"})).await;
    assert_eq!(again.status, 201, "{}", again.body);
}

#[tokio::test]
async fn a_token_makes_none_that_may_spend_more() {
    let world = World::new().await;
    let per_day = DailyBudget { cost: Some(Money::dollars(2.0)), tokens: None };
    let bounded = token(&world, per_day);
    let make = async |per_day: Value| {
        let body = json!({"name": "x", "scopes": ["run"], "per_day": per_day});
        post(&world, &bounded, "/api/v1/tokens", &body).await
    };
    let more = make(json!({"cost": 3_000_000_000_000_u64})).await;
    assert_eq!((more.status, &more.problem()["errors"][0]["pointer"]), (403, &json!("/per_day")));
    let less = make(json!({"cost": 1, "tokens": 5})).await;
    assert_eq!((less.status, &less.json()["per_day"]), (201, &json!({"cost": 1, "tokens": 5})));
    let same = make(json!({})).await;
    assert_eq!(same.json()["per_day"], json!({"cost": 2_000_000_000_000_u64}), "that of the token");
    assert_eq!(make(json!({"dollars": 1})).await.status, 400);
}

#[tokio::test]
async fn what_was_spent_stays_spent_when_a_token_or_a_conversation_is_gone() {
    let world = World::with_model("more", generous()).await;
    let tokens = Some(tokens_for_one_call(&world).await);
    let bounded = || token(&world, DailyBudget { tokens, ..DailyBudget::default() });
    let (own, maker, other) = (bounded(), bounded(), bounded());
    let (id, closed) = stopped(&world, &own).await;
    assert!(closed["turns"].as_u64() >= Some(1), "{closed}");
    // Another program removes one, next to the server, as `polylogue rm` does.
    let (removed, closed) = stopped(&world, &other).await;
    assert!(closed["turns"].as_u64() >= Some(1), "{closed}");
    let (store, removed) = (world.store().await, LogId::new(&removed).unwrap());
    while let Err(error) = store.remove(&removed).await {
        assert!(matches!(error, StoreError::Busy { .. }), "{error}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(store);
    // Its run may be just leaving it.
    while world.send(world.request("DELETE", &format!("{PATH}/{id}"))).await.status != 200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let child = json!({"name": "child", "scopes": ["read", "run"]});
    let child = post(&world, &maker, "/api/v1/tokens", &child).await.json();
    let (_, closed) = stopped(&world, child["token"].as_str().unwrap()).await;
    assert!(closed["turns"].as_u64() >= Some(1), "{closed}");
    assert!(world.tokens().revoke(child["id"].as_str().unwrap(), |_| true).unwrap());
    let world = world.restart().await;
    for token in [&own, &maker, &other] {
        assert_eq!(stopped(&world, token).await.1["turns"], 0, "what is left is too little");
    }
}

/// Forgets what the runs of these conversations have used, as a server that is killed has not noted it.
async fn forget_settled(world: &World, ids: &[&str]) {
    let file = tokens_at(&place(world.dir.path())).with_file_name("spending.jsonl");
    fn is_settled(line: &str, id: &str) -> bool {
        line.contains(id) && line.contains("\"used\"")
    }
    // It is noted after the conversation is closed.
    let text = loop {
        let text = std::fs::read_to_string(&file).unwrap();
        if ids.iter().all(|id| text.lines().any(|line| is_settled(line, id))) {
            break text;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let left = text.lines().filter(|line| !ids.iter().any(|id| is_settled(line, id)));
    std::fs::write(&file, left.fold(String::new(), |text, line| text + line + "\n")).unwrap();
}

#[tokio::test]
async fn what_a_killed_server_has_spent_stays_spent_when_the_conversation_is_removed_before_the_next_start() {
    let world = World::with_model("more", generous()).await;
    let tokens = Some(tokens_for_one_call(&world).await);
    let bounded = || token(&world, DailyBudget { tokens, ..DailyBudget::default() });
    let (by_program, by_request) = (bounded(), bounded());
    let mut ids = Vec::new();
    for token in [&by_program, &by_request] {
        let (id, closed) = stopped(&world, token).await;
        assert!(closed["turns"].as_u64() >= Some(1), "{closed}");
        ids.push(id);
    }
    forget_settled(&world, &[&ids[0], &ids[1]]).await;
    // As `polylogue rm` does. Its run may be just leaving it.
    let (runtime, removed) =
        (Runtime::open_at(place(world.dir.path())).unwrap(), LogId::new(&ids[0]).unwrap());
    while let Err(error) = remove_conversation(&runtime, &removed).await {
        let is_busy = matches!(error, polylogue_runtime::Error::Run(Error::Store(StoreError::Busy { .. })));
        assert!(is_busy, "{error}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(runtime);
    // Another server with the same store would do this, too.
    while world.send(world.request("DELETE", &format!("{PATH}/{}", ids[1]))).await.status != 200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let world = world.restart().await;
    for token in [&by_program, &by_request] {
        assert_eq!(stopped(&world, token).await.1["turns"], 0, "what is left is too little");
    }
}

#[tokio::test]
async fn a_run_of_a_token_that_was_revoked_continues_after_a_restart_within_its_budget() {
    // The call in flight is aborted, and counts at what it could have taken.
    let limits = ServerLimits { stop_time: Duration::from_millis(1), ..generous() };
    let (gate, world) = World::gated("more", limits, 0).await;
    let first = first_call(&world).await;
    let tokens = first + enough_for_one(first);
    let per_day = DailyBudget { tokens: Some(tokens), ..DailyBudget::default() };
    let (token, text) = world.tokens().create(NewToken { per_day, ..NewToken::local("bounded") }).unwrap();
    let begun = post(&world, text.reveal(), PATH, &json!({"team": "long"})).await;
    let id = begun.json()["id"].as_str().unwrap().to_owned();
    while world.model_requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    world.tokens().revoke(&token.id, |_| true).unwrap();
    let world = world.restart().await;
    gate.lift();
    // What is left is enough for one call, and not for all.
    let closed = until(&world, &id, "closed").await;
    assert_eq!(closed["ended"]["word"], "budget", "{closed}");
    let detail = closed["ended"]["detail"].as_str().unwrap();
    assert!(
        detail
            .starts_with(&format!("the daily budget of the token has reached the limit of {tokens} tokens")),
        "{closed}"
    );
    let turns = closed["turns"].as_u64().unwrap();
    assert!((1..12).contains(&turns), "{closed}");
    assert_eq!(world.model_requests().len() as u64, 1 + turns, "{closed}");
}
