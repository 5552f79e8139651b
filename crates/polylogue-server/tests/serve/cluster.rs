//! What workers run and what waits for them: the route, the typed client, the page.

use std::time::Duration;

use polylogue_core::{
    Allowance, AnyQueue, Due, Features, LeaseNumber, LogId, MAX_TRIES, Meta, Money, Queue as _, QueueState,
    Store as _, WorkerInfo,
};
use polylogue_runtime::database::DatabaseAddress;
use polylogue_runtime::{Runtime, StoreLocation};
use polylogue_server::{Scope, ServerOptions};
use polylogue_store::parts::this_process;
use polylogue_test::postgres::PostgresServer;
use serde_json::{Value, json};

use crate::client::Request;
use crate::page_browser::{browser_of, check_clean, picture};
use crate::page_views::{VIOLATIONS, axe, resize, show};
use crate::typed::client;
use crate::world::{World, generous, loopback, place};

const PATH: &str = "/api/v1/cluster";

/// Why a conversation is parked: text that is no markup.
const WHY: &str = "the model `<b>x</b>` refuses";

/// A server, and another process with the same database.
struct Cluster {
    world: World,
    queue: AnyQueue,
    database: PostgresServer,
}

impl Cluster {
    /// With a worker, a budget, and a conversation in each state but `lost`.
    async fn new() -> Option<Self> {
        let database = PostgresServer::start()?;
        let dir = tempfile::tempdir().unwrap();
        let address = DatabaseAddress::parse(&database.url()).unwrap();
        let place = StoreLocation::postgres(address, place(dir.path()).path());
        let options = ServerOptions { limits: generous(), ..ServerOptions::new(loopback(), place.clone()) };
        let world = World::start(dir, options).await;
        let queue = Runtime::open_at(place.clone()).unwrap().queue().unwrap();
        let cluster = Self { world, queue, database };
        cluster.park().await;
        cluster.hold("held").await;
        cluster.schedule("ready", Due::Now, "gpu").await;
        cluster.schedule("timed", Due::After(Duration::from_secs(3600)), "").await;
        let info = WorkerInfo {
            offers: Features::parse("browser").unwrap(),
            at_once: 7,
            address: Some("10.0.0.7:9100".into()),
        };
        cluster.queue.announce(Some(&info)).await.unwrap();
        let limits = Allowance { cost: Some(Money::dollars(20.0)), ..Allowance::default() };
        let paying = Runtime::open_at(place).unwrap();
        paying.with_shared_budgets(&[("research".into(), limits)]).await.unwrap();
        Some(cluster)
    }

    async fn hold(&self, id: &str) -> polylogue_core::Claim {
        self.queue.store().create(&LogId::new(id).unwrap(), &Meta::default()).await.unwrap()
    }

    async fn schedule(&self, id: &str, due: Due, needs: &str) {
        let claim = self.hold(id).await;
        self.queue.store().release(claim).await.unwrap();
        let needs = Features::parse(needs).unwrap();
        self.queue.schedule(&LogId::new(id).unwrap(), due, Some(&needs)).await.unwrap();
    }

    async fn park(&self) {
        self.schedule("parked", Due::Now, "").await;
        for _ in 0..MAX_TRIES {
            let mut claims = self.queue.claim_due(1, &Features::none(), &[], LeaseNumber::ALL).await.unwrap();
            self.queue.release_failed(claims.remove(0), Due::Now, WHY).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_client_sees_workers_budgets_and_what_waits_for_them() {
    let Some(cluster) = Cluster::new().await else { return };
    let world = &cluster.world;
    let found = client(world).cluster(None).await.unwrap();
    let states: Vec<(&str, QueueState)> =
        found.conversations.iter().map(|queued| (queued.id.as_str(), queued.state)).collect();
    assert_eq!(
        states,
        [
            ("parked", QueueState::Parked),
            ("ready", QueueState::Ready),
            ("held", QueueState::Held),
            ("timed", QueueState::Timed)
        ]
    );
    let of = |id: &str| found.conversations.iter().find(|queued| queued.id.as_str() == id).unwrap();
    assert_eq!((of("parked").tries, of("parked").why.as_deref()), (u64::from(MAX_TRIES), Some(WHY)));
    assert_eq!(
        (of("ready").needs.as_slice(), of("ready").missing.as_slice()),
        (&["gpu".into()][..], &["gpu".into()][..])
    );
    assert_eq!(of("held").holder, Some(this_process()));
    assert!(of("timed").overdue_ms.is_some_and(|ms| ms < -3_000_000), "{:?}", of("timed"));
    let counts = QueueState::ALL.map(|state| found.counts.of(state));
    assert_eq!((counts, found.counts.all()), ([0, 1, 1, 1, 1], 4));
    assert!(found.overdue_seconds >= 0.0 && found.overdue_seconds < 600.0, "{}", found.overdue_seconds);
    let [worker] = found.workers.as_slice() else { panic!("{:?}", found.workers) };
    assert_eq!(
        (worker.at_once, worker.offers.as_slice(), &worker.address),
        (7, &["browser".into()][..], &None)
    );
    assert_eq!(worker.worker, this_process());
    let [budget] = found.budgets.as_slice() else { panic!("{:?}", found.budgets) };
    assert_eq!((budget.budget.as_str(), budget.limits.cost), ("research", Some(Money::dollars(20.0))));
    // The first ones, and counts of all.
    let first = client(world).cluster(Some(1)).await.unwrap();
    assert_eq!((first.conversations.len(), first.counts), (1, found.counts));
    for wrong in ["x", "0"] {
        assert_eq!(world.get(&format!("{PATH}?limit={wrong}")).await.status, 400, "{wrong}");
    }
    assert!(!world.get(PATH).await.body.contains("10.0.0.7"), "an address is shown");
}

#[tokio::test]
async fn monitoring_reads_what_the_processes_of_a_database_share() {
    let Some(cluster) = Cluster::new().await else { return };
    let world = &cluster.world;
    // As after a 429, and with a model server of four slots.
    let _ = cluster.database.sql(
        "INSERT INTO polylogue.rate_limits(provider, account, model, blocked_until, requests, refusals)
            VALUES('openai', 'a', 'test', now() + interval '1 hour', 7, 2);
        INSERT INTO polylogue.slots(provider, account, slot, until)
            SELECT 'local', 'a', n, CASE n WHEN 0 THEN now() + interval '1 hour' ELSE 'epoch' END FROM generate_series(0, 3) n;
        INSERT INTO polylogue.budgets(name, max_cost, cost, drawn_cost, pieces) VALUES('apart', 20e12, 3.5e12, 0.25e12, '{\"a\": {\"cost\": 2e11}, \"b\": {\"cost\": 5e10}}');
        INSERT INTO polylogue.budget_logs(budget, tenant, log, before_calls, before_tokens, before_cost)
            VALUES('apart', 'local', 'held', 0, 0, 0);
        INSERT INTO polylogue.budgets(name, max_tokens) VALUES('@token:1:20000', 5);
        UPDATE polylogue.logs SET due = now() - interval '1 hour', takeovers = 3 WHERE id = 'ready';
        UPDATE polylogue.logs SET lost_events = 4, takeovers = 2 WHERE id = 'held'",
    );
    let text = world.get("/metrics").await.body;
    for sample in [
        "budget_limit{budget=\"research\",of=\"dollars\"} 20.0",
        "budget_limit{budget=\"apart\",of=\"dollars\"} 20.0",
        "budget_used{budget=\"apart\",of=\"dollars\"} 3.5",
        "budget_drawn{budget=\"apart\",of=\"dollars\"} 0.25",
        "budget_processes{budget=\"apart\"} 2",
        "budget_conversations{budget=\"apart\"} 1",
        "limit_wait_seconds{provider=\"openai\",model=\"test\"} 3",
        "limit_requests_total{provider=\"openai\",model=\"test\"} 7",
        "limit_refusals_total{provider=\"openai\",model=\"test\"} 2",
        "limit_slots{provider=\"local\",model=\"\"} 4",
        "limit_slots_taken{provider=\"local\",model=\"\"} 1",
        "cluster_unserved{needs=\"gpu\"} 1",
        "cluster_conversations{state=\"parked\"} 1",
        "cluster_failing{state=\"parked\"} 1",
        "cluster_failing{state=\"ready\"} 0",
        concat!("cluster_workers{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
        "cluster_places 7",
        "cluster_overdue_seconds 36",
        "cluster_takeovers 5",
        "cluster_lost_events 4",
        "cluster_places_taken 1",
        "database_bytes{table=\"blobs\"} ",
    ] {
        assert!(text.contains(&format!("polylogue_{sample}")), "{sample}: {text}");
    }
    assert!(
        !text.contains("budget_limit{budget=\"research\",of=\"tokens\"}"),
        "it has no such limit: {text}"
    );
    assert!(!text.contains("@token"), "days of tokens are not told: {text}");
    // The budgets and models of the command line are none of other tenants.
    let (_, other) = world.new_token("other", &[Scope::Metrics]);
    let text = Request::new("GET", "/metrics").token(&other).send(world.address).await.body;
    for part in ["budget", "limit_", "database_bytes"] {
        assert!(text.contains("polylogue_cluster_conversations") && !text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn others_see_nothing_of_it_and_a_store_that_is_no_queue_says_so() {
    let Some(cluster) = Cluster::new().await else { return };
    let world = &cluster.world;
    let (_, other) = world.new_token("other", &Scope::ALL);
    let found = Request::new("GET", PATH).token(&other).send(world.address).await;
    assert_eq!(found.status, 200, "{}", found.body);
    for list in ["workers", "budgets", "conversations"] {
        assert_eq!(found.json()[list], json!([]), "{list}");
    }
    let made = json!({"name": "n", "scopes": ["read"], "teams": ["talk"]});
    let of_talk = world.post("/api/v1/tokens", &made).await.json()["token"].as_str().unwrap().to_owned();
    let get = async |path: &str| Request::new("GET", path).token(&of_talk).send(world.address).await;
    assert_eq!(get(PATH).await.status, 403);
    assert_eq!(get("/api/v1/session").await.json()["has_cluster"], false);
    assert_eq!(world.get("/api/v1/session").await.json()["has_cluster"], true);

    let dir = tempfile::tempdir().unwrap();
    // A folder of JSON lines.
    let folder = StoreLocation::new(format!("{}/", place(dir.path()).path().display()));
    let options = ServerOptions { limits: generous(), ..ServerOptions::new(loopback(), folder) };
    let world = World::start(dir, options).await;
    let refused = world.get(PATH).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    let hint = refused.problem()["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("--store"), "{hint}");
    let Some(mut browser) = browser_of(&world).await else { return };
    let views = "[...document.querySelectorAll('nav a')].map((it) => it.textContent).join()";
    assert_eq!(browser.eval(views).await, "Runs,New run,Teams,Compare");
    check_clean(&browser, &world);
}

#[tokio::test]
async fn the_page_shows_the_cluster_and_follows_it() {
    let Some(cluster) = Cluster::new().await else { return };
    let world = &cluster.world;
    let Some(mut browser) = browser_of(world).await else { return };
    let _ = cluster.database.sql(
        "INSERT INTO polylogue.budgets(name, max_tokens, tokens, drawn_tokens, pieces) VALUES('apart', 500, 12, 3, '{\"a\": {\"tokens\": 3}}')",
    );
    browser.press("Cluster").await;
    browser.until("document.querySelectorAll('.cluster-part').length === 3").await;
    let shown = browser.text().await;
    for text in [
        WHY,
        "no worker offers gpu",
        "polylogue resume parked --detach",
        "Resume",
        "runs 1 of 7",
        "$0 of $20.00",
        "12 of 500 tokens (3 drawn)",
        "1 process",
        "continues in 59 min",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let counts = "[...document.querySelectorAll('dd[data-state]')].map((it) => it.textContent).join()";
    assert_eq!(browser.eval(counts).await, "0,1,1,1,1");
    // Without a reload.
    cluster.hold("second").await;
    browser.until("document.querySelector('dd[data-state=held]').textContent === '2'").await;
    let Some(axe) = axe() else { return };
    browser.eval(&format!("{axe};0")).await;
    for (theme, width) in [("light", 1440), ("dark", 1440), ("light", 320), ("dark", 320)] {
        resize(&mut browser, width).await;
        browser.eval(&format!("document.documentElement.dataset.theme = '{theme}'")).await;
        assert_eq!(browser.eval(VIOLATIONS).await, Value::Array(Vec::new()), "{theme} {width}");
        let over = browser.eval("document.documentElement.scrollWidth - innerWidth").await;
        assert!(over.as_f64() <= Some(0.0), "{over} pixels too wide for {width}");
        picture(&mut browser, &format!("cluster-{theme}-{width}")).await;
    }
    // A conversation has its address there.
    browser.press("parkedparked").await;
    browser.until("location.hash === '#/runs/parked'").await;
    show(&mut browser, "#/cluster").await;
    browser.until("document.querySelector('nav a[aria-current]').textContent === 'Cluster'").await;
    check_clean(&browser, world);
}
