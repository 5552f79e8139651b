//! Budgets that processes share: what counts of a process that has died.

use polylogue_core::{Allowance, CountedUsage, Meta, Money, Store as _};
use polylogue_postgres::{Address, LogUsage, PostgresBudgets};
use polylogue_test::postgres::PostgresServer;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::support::{id, opened};

/// Two processes that have drawn: `gone`, two calls of tokens that were limited, and `other`, before tokens were.
const DRAWN: &str = r#"UPDATE polylogue.budgets SET calls = 1, tokens = 1000, drawn_calls = 3, drawn_tokens = 20100, pieces = '{
        "gone": {"number": 3, "calls": 2, "tokens": 20000, "cost": 0, "until": 99999999999, "most": {"calls": null, "tokens": 40000, "cost": null}},
        "other": {"number": 1, "calls": 1, "tokens": 100, "cost": 0, "until": 99999999999, "most": {"calls": null, "tokens": null, "cost": null}}}';
    INSERT INTO polylogue.budget_logs(budget, tenant, log, before_calls, before_tokens, before_cost, calls, tokens, node) VALUES
        ('team', 'local', 'a', 0, 0, 0, 1, 1000, 'gone'), ('team', 'local', 'b', 0, 0, 0, 0, 0, 'gone'),
        ('team', 'local', 'c', 0, 0, 0, 0, 0, 'gone'), ('team', 'local', 'd', 0, 0, 0, 0, 0, 'other')"#;

/// What is used and drawn of the budget, and what is left of the pieces of both.
fn standing(server: &PostgresServer) -> String {
    let sql = "SELECT calls, tokens, drawn_calls, drawn_tokens, pieces -> 'gone' ->> 'tokens', pieces -> 'other' ->> 'tokens'
        FROM polylogue.budgets";
    server.sql(sql).trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_calls_are_paid_from_what_their_process_had_drawn_and_count_no_more() {
    let Some(server) = PostgresServer::start() else { return };
    pays_for_lost_calls(&server).await;
}

/// On a server without budgets.
pub(crate) async fn pays_for_lost_calls(server: &PostgresServer) {
    let budgets = PostgresBudgets::open(Address::parse(&server.url()).unwrap(), "local").unwrap();
    budgets.set("team", Allowance { tokens: Some(40_000), ..Allowance::default() }).await.unwrap();
    let _ = server.sql(DRAWN);
    let team = budgets.budget("team").await.unwrap().unwrap();
    let usage = |(calls, tokens)| CountedUsage { calls, tokens, cost: Money::default() };
    let pay = async |log: &str, used: (u64, u64), lost: (u64, u64)| {
        let (log, usage) = (id(log), LogUsage { used: usage(used), lost: usage(lost) });
        budgets.pay(("team", &team.for_log(&log)), &log, Some(usage)).await.unwrap();
        standing(server)
    };
    // 200 tokens of a call that was not reported, and a call that may have been in flight.
    assert_eq!(pay("a", (3, 11_200), (1, 10_000)).await, "3|11200|1|9900|9800|100");
    // Two more may have been, and no more was drawn than for one of them.
    assert_eq!(pay("b", (1, 10_000), (1, 10_000)).await, "4|21000|1|100|0|100");
    assert_eq!(pay("c", (1, 10_000), (1, 10_000)).await, "5|21000|1|100|0|100");
    assert_eq!(pay("c", (1, 10_000), (1, 10_000)).await, "5|21000|1|100|0|100", "repeated");
    assert_eq!(pay("c", (2, 10_500), (0, 0)).await, "6|21500|1|100|0|100", "what it uses then counts");
    // What did not limit the calls in flight bounds nothing.
    assert_eq!(pay("d", (1, 10_000), (1, 10_000)).await, "7|31500|0|0|0|0");
    // What is left of a piece is returned with the next log that is opened.
    let _ = server.sql(
        "UPDATE polylogue.budgets SET drawn_tokens = 50, pieces = jsonb_set(pieces, '{gone}', '{\"tokens\": 50, \"until\": 0}')",
    );
    assert_eq!(pay("c", (2, 10_500), (0, 0)).await, "7|31500|0|0||0");
    // What cannot be returned keeps no log from being paid.
    let _ = server.sql(
        "UPDATE polylogue.budgets SET drawn_tokens = 50, pieces = jsonb_set(pieces, '{gone}', '{\"tokens\": 50, \"until\": 0}');
        INSERT INTO polylogue.budget_logs(budget, tenant, log, before_calls, before_tokens, before_cost, node)
            VALUES ('team', 'local', 'not an id', 0, 0, 0, 'gone')",
    );
    assert_eq!(pay("c", (3, 11_000), (0, 0)).await, "8|32000|0|50|50|0");
}

/// Waits until another statement waits for what this transaction has locked; at most for about a minute.
const AWAITED: &str = "DO $$ BEGIN FOR nth IN 1..6000 LOOP
        EXIT WHEN EXISTS (SELECT FROM pg_locks WHERE NOT granted);
        PERFORM pg_sleep(0.01);
    END LOOP; END $$";

/// Executes `change` in a transaction that is committed when what `counts` does waits for it.
fn while_changed<T>(server: &PostgresServer, change: &str, counts: impl FnOnce() -> T) -> T {
    let script = format!("BEGIN; {change}; SELECT pg_advisory_xact_lock(1); {AWAITED}; COMMIT");
    std::thread::scope(|threads| {
        let changed = threads.spawn(|| server.sql(&script));
        while server.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "0" {
            assert!(!changed.is_finished(), "it has locked nothing");
        }
        let counted = counts();
        changed.join().unwrap();
        counted
    })
}

/// W31: its process reports that a log is over, or another one begins to run it, while it is counted again.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_changes_hands_while_it_is_counted_again_is_counted_for_the_process_that_has_it() {
    let Some((server, store)) = opened() else { return };
    let budgets = PostgresBudgets::open(Address::parse(&server.url()).unwrap(), "local").unwrap();
    budgets.set("team", Allowance::default()).await.unwrap();
    for name in ["a", "b"] {
        let claim = store.create(&id(name), &Meta::default()).await.unwrap();
        store.release(claim).await.unwrap();
    }
    let standing =
        || server.sql("SELECT log, calls, coalesce(node, '-') FROM polylogue.budget_logs ORDER BY log");
    // Both logs have used nothing, and something else was counted.
    let _ = server.sql(
        "INSERT INTO polylogue.budget_logs(budget, tenant, log, before_calls, before_tokens, before_cost, calls, node) VALUES
            ('team', 'local', 'a', 0, 0, 0, 7, 'one'), ('team', 'local', 'b', 0, 0, 0, 7, NULL)",
    );
    let recount = || {
        let recounted = Handle::current().block_on(budgets.recount("team"));
        recounted.unwrap().unwrap()
    };
    let over = "UPDATE polylogue.budget_logs SET node = NULL WHERE log = 'a'";
    let counted = block_in_place(|| while_changed(&server, over, recount));
    assert_eq!((counted.counted, counted.running, counted.after.calls), (2, 0, 0), "{counted:?}");
    assert_eq!(standing(), "a|0|-\nb|0|-");
    let _ = server.sql("UPDATE polylogue.budget_logs SET calls = 7");
    let runs = "UPDATE polylogue.budget_logs SET node = 'two' WHERE log = 'b';
        UPDATE polylogue.logs SET holder = 'two', lease = now() + interval '1 hour' WHERE id = 'b'";
    let counted = block_in_place(|| while_changed(&server, runs, recount));
    assert_eq!((counted.counted, counted.running, counted.after.calls), (1, 1, 7), "{counted:?}");
    assert_eq!(standing(), "a|0|-\nb|7|two", "its process reports what it uses");
}
