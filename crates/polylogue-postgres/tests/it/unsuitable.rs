//! W48 and parts of W20 and W21: databases that cannot be used, and how that is said.

use std::sync::Arc;

use polylogue_core::{ListQuery, Meta, Store, StoreError};
use polylogue_postgres::{Address, Postgres};
use polylogue_test::postgres::PostgresServer;

use crate::support::{id, open, opened, some};

async fn refusal(store: &Postgres) -> StoreError {
    let listed = store.list(&ListQuery::default()).await.unwrap_err();
    assert_eq!(store.create(&id("a"), &Meta::default()).await, Err(listed.clone()));
    assert_eq!(store.check().await.unwrap_err(), listed);
    listed
}

#[tokio::test]
async fn a_database_that_would_lose_events_is_refused() {
    for (setting, why) in [
        ("fsync=off", "`fsync` is off: a crash of its machine would lose or damage conversations"),
        ("full_page_writes=off", "`full_page_writes` is off"),
        (
            "synchronous_commit=off",
            "`synchronous_commit` is off: a crash of it would lose acknowledged events",
        ),
    ] {
        let Some(server) = PostgresServer::start_with(&[setting]) else { return };
        let error = refusal(&open(&server)).await;
        assert!(matches!(error, StoreError::Unsuitable { .. }) && error.to_string().contains(why), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("= on")), "{error:?}");
        assert_eq!(server.sql("SELECT to_regnamespace('polylogue') IS NULL"), "t", "nothing was made");
    }
}

/// W48. Of a commit that waits for no standby, or not until it has synchronized, a failover knows nothing.
#[tokio::test]
async fn a_commit_that_does_not_wait_for_a_synchronous_standby_is_refused() {
    let settings = ["synchronous_standby_names=standby", "synchronous_commit=local"];
    let Some(server) = PostgresServer::start_with(&settings) else { return };
    for commit in ["local", "remote_write"] {
        let _ = server.sql(&format!("ALTER ROLE CURRENT_USER SET synchronous_commit = {commit}"));
        let error = refusal(&open(&server)).await;
        let why =
            format!("`synchronous_commit` is {commit}: a failover to its synchronous standby would lose");
        assert!(
            matches!(error, StoreError::Unsuitable { .. }) && error.to_string().contains(&why),
            "{error}"
        );
        assert!(error.hint().is_some_and(|hint| hint.contains("= on")), "{error:?}");
    }
    assert_eq!(server.sql("SELECT to_regnamespace('polylogue') IS NULL"), "t", "nothing was made");
}

#[tokio::test]
async fn a_database_that_cannot_be_reached_is_an_error_at_once() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("postgres://ann:s3cret@127.0.0.1:{port}/chats");
    let error = refusal(&Postgres::open(Address::parse(&address).unwrap()).unwrap()).await;
    let StoreError::Unreachable { place, why } = &error else { panic!("{error:?}") };
    assert_eq!(place, &format!("postgres://ann@127.0.0.1:{port}/chats"));
    assert!(why.contains("refused") && error.hint().is_some(), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("s3cret"));
}

/// The first one that is free is used. Who has none learns that it is not the address that is wrong.
#[tokio::test]
async fn a_database_that_takes_no_more_connections_says_so() {
    let Some(server) = PostgresServer::start() else { return };
    open(&server).check().await.unwrap();
    let _ = server.sql("CREATE ROLE ann LOGIN CONNECTION LIMIT 0");
    let of_ann = server.url().replace("polylogue@", "ann@");
    let error = refusal(&Postgres::open(Address::parse(&of_ann).unwrap()).unwrap()).await;
    let StoreError::Unreachable { why, .. } = &error else { panic!("{error:?}") };
    assert!(why.starts_with("it takes no more connections: too many connections"), "{why}");
    assert!(error.hint().unwrap().contains("takes more connections"), "{error:?}");
}

#[tokio::test]
async fn databases_that_other_versions_and_programs_made_are_refused() {
    let Some(server) = PostgresServer::start() else { return };
    let _ = server.sql("CREATE SCHEMA polylogue; CREATE TABLE polylogue.others(x int)");
    assert!(matches!(refusal(&open(&server)).await, StoreError::Foreign { .. }));
    let _ = server.sql("DROP TABLE polylogue.others");
    // An empty schema, as an administrator makes it.
    let store = open(&server);
    let claim = store.create(&id("a"), &Meta::default()).await.unwrap();
    store.append(&claim, &some(0, 2)).await.unwrap();
    drop(store);
    let becomes = |format: u64, oldest_reader: u64| {
        server.sql(&format!("UPDATE polylogue.format SET format = {format}, oldest_reader = {oldest_reader}"))
    };
    let (this, later) = (Postgres::FORMAT, Postgres::FORMAT + 1);
    let _ = becomes(later, later);
    let newer = refusal(&open(&server)).await;
    assert!(
        matches!(newer, StoreError::Newer { found, known, .. } if (found, known) == (later, this)),
        "{newer:?}"
    );
    let _ = becomes(1, 1);
    let older = refusal(&open(&server)).await;
    assert!(matches!(older, StoreError::Older { found: 1, known, .. } if known == this), "{older:?}");
    // A newer one that this version can read is not written.
    let _ = becomes(later, this);
    let store = open(&server);
    assert_eq!(store.read(&id("a"), 0).await.unwrap().len(), 2);
    for refused in [store.claim(&id("a")).await.map(drop), store.remove(&id("a")).await] {
        assert!(matches!(refused, Err(StoreError::Newer { found, .. }) if found == later), "{refused:?}");
    }
}

/// A standby has no logs of its own, and may lag behind.
#[tokio::test]
async fn a_replica_is_refused_and_an_asynchronous_standby_is_warned_of() {
    let Some((server, store)) = opened() else { return };
    store.create(&id("a"), &Meta::default()).await.unwrap();
    let asynchronous = |warnings: Vec<String>| {
        warnings.iter().any(|said| said.starts_with("a standby follows asynchronously: "))
    };
    assert!(!asynchronous(store.check().await.unwrap()), "there is no standby");
    let standby = server.standby();
    let error = refusal(&open(&standby)).await;
    assert!(error.to_string().contains("it is a replica"), "{error}");
    assert!(error.hint().unwrap().contains("name the primary"), "{error:?}");
    server.wait_for_standby(false);
    assert!(asynchronous(store.check().await.unwrap()));
    // A user who may not see how standbys follow.
    let _ = server.sql("CREATE ROLE ann LOGIN; GRANT CREATE ON DATABASE polylogue TO ann; GRANT ALL ON SCHEMA polylogue TO ann; GRANT ALL ON ALL TABLES IN SCHEMA polylogue TO ann");
    let of_ann = server.url().replace("polylogue@", "ann@");
    let of_ann = Postgres::open(Address::parse(&of_ann).unwrap()).unwrap();
    assert!(asynchronous(of_ann.check().await.unwrap()));
    server.wait_for_standby(true);
    assert!(!asynchronous(store.check().await.unwrap()));
    assert!(!asynchronous(of_ann.check().await.unwrap()));
    // Of both, the primary is found.
    let both =
        format!("postgres://polylogue@127.0.0.1:{},127.0.0.1:{}/polylogue", standby.port(), server.port());
    let both = Postgres::open(Address::parse(&both).unwrap()).unwrap();
    assert_eq!(both.list(&ListQuery::default()).await.unwrap().logs.len(), 1);
}

/// Nothing can be written, and no other host is to be found: it is no lost connection, which would be waited for.
#[tokio::test]
async fn a_primary_that_is_read_only_is_refused_also_by_who_is_connected() {
    let Some((server, store)) = opened() else { return };
    store.create(&id("a"), &Meta::default()).await.unwrap();
    let read_only = |error: &StoreError| {
        let hint = error.hint().unwrap_or_default();
        matches!(error, StoreError::Unsuitable { .. })
            && error.to_string().contains("it is read-only")
            && hint.contains("RESET default_transaction_read_only")
    };
    // Of the configuration, which reaches a session a moment later.
    let _ = server.sql("ALTER SYSTEM SET default_transaction_read_only = on");
    let _ = server.sql("SELECT pg_reload_conf()");
    let mut number = 0;
    let error = loop {
        number += 1;
        if let Err(error) = store.create(&id(&format!("b{number}")), &Meta::default()).await {
            break error;
        }
    };
    assert!(read_only(&error), "{error:?}");
    assert_eq!(store.check().await.unwrap_err(), error);
    drop(store);
    let _ = server.sql("ALTER SYSTEM RESET default_transaction_read_only");
    let _ = server.sql("SELECT pg_reload_conf()");
    while server.sql("SHOW default_transaction_read_only") != "off" {}
    open(&server).create(&id("c"), &Meta::default()).await.unwrap();
    // Of the user.
    let _ = server.sql("ALTER ROLE CURRENT_USER SET default_transaction_read_only = on");
    let error = refusal(&open(&server)).await;
    assert!(read_only(&error), "{error:?}");
}

/// W48. Most tables are not needed before a conversation is under way.
#[tokio::test]
async fn a_schema_that_lacks_a_table_or_a_right_is_refused_before_it_is_needed() {
    let Some((server, store)) = opened() else { return };
    store.create(&id("a"), &Meta::default()).await.unwrap();
    let tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'polylogue' AND tablename <> 'format'";
    let tables = server.sql(tables);
    for table in tables.lines() {
        let _ = server.sql(&format!("ALTER TABLE polylogue.{table} RENAME TO gone"));
        let error = store.check().await.unwrap_err();
        let why = format!("the table `polylogue.{table}` does not exist");
        assert!(
            matches!(error, StoreError::Unsuitable { .. }) && error.to_string().contains(&why),
            "{error}"
        );
        assert!(error.hint().is_some_and(|hint| hint.contains("backup")), "{error:?}");
        let _ = server.sql(&format!("ALTER TABLE polylogue.gone RENAME TO {table}"));
    }
    store.check().await.unwrap();
    let _ = server.sql(
        "CREATE ROLE ann LOGIN; GRANT USAGE ON SCHEMA polylogue TO ann;
        GRANT ALL ON ALL TABLES IN SCHEMA polylogue TO ann; GRANT ALL ON ALL SEQUENCES IN SCHEMA polylogue TO ann",
    );
    let of_ann = server.url().replace("polylogue@", "ann@");
    let of_ann = Postgres::open(Address::parse(&of_ann).unwrap()).unwrap();
    of_ann.check_writable().await.unwrap();
    let rights = tables.lines().map(|table| (table, "DELETE", "TABLE"));
    for (name, right, kind) in rights.chain([("leases", "USAGE", "SEQUENCE")]) {
        let _ = server.sql(&format!("REVOKE ALL ON {kind} polylogue.{name} FROM ann"));
        if kind == "TABLE" {
            let _ = server.sql(&format!("GRANT SELECT, INSERT, UPDATE ON polylogue.{name} TO ann"));
        }
        let error = of_ann.check_writable().await.unwrap_err();
        let why = format!("permission denied: its user lacks {right} on `polylogue.{name}`");
        assert!(
            matches!(error, StoreError::Unsuitable { .. }) && error.to_string().contains(&why),
            "{error}"
        );
        assert!(error.hint().is_some_and(|hint| hint.contains("GRANT ALL")), "{error:?}");
        let _ = server.sql(&format!("GRANT ALL ON {kind} polylogue.{name} TO ann"));
    }
    of_ann.check_writable().await.unwrap();
}

#[tokio::test]
async fn many_stores_make_the_tables_at_once() {
    const STORES: usize = 8;
    let Some(server) = PostgresServer::start() else { return };
    let server = Arc::new(server);
    // Holds the lock of those that make tables until all stores wait for it: each has seen that there are none.
    let wait = format!(
        "SET statement_timeout = '60s'; DO $$ BEGIN PERFORM pg_advisory_xact_lock(5787213827046133840);
            WHILE (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted) < {STORES} LOOP
                PERFORM pg_sleep(0.01);
            END LOOP;
        END $$"
    );
    let lock_server = Arc::clone(&server);
    let lock = tokio::task::spawn_blocking(move || lock_server.sql(&wait));
    while server.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "0" {
        assert!(!lock.is_finished(), "it holds the lock");
    }
    let stores: Vec<Postgres> = (0..STORES).map(|_| open(&server)).collect();
    let ids: Vec<_> = (0..STORES).map(|nth| id(&nth.to_string())).collect();
    let meta = Meta::default();
    let created = stores.iter().zip(&ids).map(|(store, id)| store.create(id, &meta));
    for created in futures_util::future::join_all(created).await {
        created.unwrap();
    }
    let _ = lock.await.unwrap();
    assert_eq!(server.sql("SELECT count(*) FROM polylogue.format"), "1");
    assert_eq!(server.sql("SELECT count(*) FROM polylogue.logs"), STORES.to_string());
}

/// W44: the process that makes the tables dies at any of their statements. The next one finds nothing, and makes all of them.
#[tokio::test]
async fn tables_whose_maker_was_killed_at_any_statement_are_made_by_the_next_one() {
    let Some(server) = PostgresServer::start() else { return };
    // Ends the session after so many statements that make something. A sequence counts on when a transaction is undone.
    let _ = server.sql(
        "CREATE SEQUENCE made; CREATE SEQUENCE last START 1000000;
        CREATE FUNCTION die() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('made') = (SELECT last_value FROM last) THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
        END $$;
        CREATE EVENT TRIGGER die ON ddl_command_end EXECUTE FUNCTION die()",
    );
    drop(open(&server).create(&id("a"), &Meta::default()).await.unwrap());
    let statements: u32 = server.sql("SELECT last_value FROM made").parse().unwrap();
    assert!(statements > 20, "{statements} statements");
    let tables = || {
        server.sql("SELECT count(*) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'polylogue'")
    };
    let (all, mut killed) = (tables(), 0);
    for last in 1..=statements {
        let _ = server.sql("DROP SCHEMA polylogue CASCADE");
        let _ = server.sql(&format!("SELECT setval('last', {last}), setval('made', 1, false)"));
        killed += u32::from(open(&server).list(&ListQuery::default()).await.is_err());
        assert!(
            ["0", &all].contains(&tables().as_str()),
            "statement {last} leaves {} of {all} tables",
            tables()
        );
        let store = open(&server);
        store
            .create(&id("a"), &Meta::default())
            .await
            .unwrap_or_else(|error| panic!("statement {last}: {error}"));
        assert_eq!(tables(), all);
        let made: u32 = server.sql("SELECT last_value FROM made").parse().unwrap();
        assert!(made > statements, "statement {last}: {made} statements, so no session was killed");
    }
    println!("{statements} statements, {killed} seen as lost");
}

#[tokio::test]
async fn missing_rights_and_wrong_passwords_are_errors_of_configuration() {
    let Some(server) = PostgresServer::start() else { return };
    let _ = server
        .sql("CREATE ROLE ann LOGIN PASSWORD 's3cret'; REVOKE CREATE ON DATABASE polylogue FROM PUBLIC");
    let of = |user: &str, database: &str| {
        let url = server
            .url()
            .replace("polylogue@", &format!("{user}@"))
            .replace("/polylogue", &format!("/{database}"));
        Postgres::open(Address::parse(&url).unwrap()).unwrap()
    };
    let denied = refusal(&of("ann", "polylogue")).await;
    assert!(denied.to_string().contains("permission denied"), "{denied}");
    assert!(denied.hint().unwrap().contains("the schema `polylogue`"), "{denied:?}");
    let missing = refusal(&of("ann", "nowhere")).await;
    assert!(missing.to_string().contains("\"nowhere\" does not exist"), "{missing}");
    assert!(missing.hint().unwrap().contains("createdb"));
    // With passwords asked for.
    let rules = "host all polylogue 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(server.data().join("pg_hba.conf"), rules).unwrap();
    let _ = server.sql("SELECT pg_reload_conf()");
    let _ = server.sql("GRANT CREATE ON DATABASE polylogue TO ann");
    let none = refusal(&of("ann", "polylogue")).await;
    assert!(none.hint().unwrap().contains("PGPASSWORD"), "{none:?}");
    let wrong = refusal(&of("ann:wr0ng", "polylogue")).await;
    assert!(wrong.to_string().contains("password authentication failed"), "{wrong}");
    assert!(!format!("{wrong:?} {wrong}").contains("wr0ng"));
    let right = of("ann:s3cret", "polylogue");
    right.create(&id("a"), &Meta::default()).await.unwrap();
    // An encrypted connection is not replaced by a plain one.
    let url = format!("postgres://ann:s3cret@127.0.0.1:{}/polylogue?sslmode=require", server.port());
    let plain = refusal(&Postgres::open(Address::parse(&url).unwrap()).unwrap()).await;
    assert!(plain.to_string().to_lowercase().contains("tls"), "{plain}");
}
