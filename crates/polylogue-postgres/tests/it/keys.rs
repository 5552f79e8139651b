//! Keys that are reserved for requests, until the reservation ends.

use polylogue_core::Store as _;
use polylogue_test::postgres::PostgresServer;

use crate::support::open;

#[tokio::test]
async fn keys_are_reserved_for_a_time_by_tenant_and_removed_after_it() {
    let Some(server) = PostgresServer::start() else { return };
    let (store, other) = (open(&server), open(&server).of_tenant("other").unwrap());
    for key in ["a", "b", "c"] {
        assert_eq!(store.reserve_key(key, "first").await.unwrap(), "first");
    }
    assert_eq!(other.reserve_key("a", "of another tenant").await.unwrap(), "of another tenant");
    let days = server
        .sql("SELECT DISTINCT round(extract(epoch FROM until - now()) / 3600) FROM polylogue.reserved_keys");
    assert_eq!(days, "24");
    let _ = server
        .sql("UPDATE polylogue.reserved_keys SET until = now() - interval '1 second' WHERE key <> '\"c\"'");
    assert_eq!(store.reserve_key("a", "second").await.unwrap(), "second");
    assert_eq!(store.reserve_key("c", "second").await.unwrap(), "first");
    let left = server
        .sql("SELECT string_agg(tenant || key || request, ' ' ORDER BY key) FROM polylogue.reserved_keys");
    assert_eq!(left, r#"local"a""second" local"c""first""#);
}
