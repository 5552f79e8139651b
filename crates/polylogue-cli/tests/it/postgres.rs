//! Conversations in Postgres, which several machines share: here, several homes of the user.

use std::time::Duration;

use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::Server;
use rustix::process::Signal;

use crate::home::{Home, KEY, of_type, serve, shipped, until};
use crate::models::{TALK, talk};

/// A password that is shown nowhere.
const PASSWORD: &str = "s3cret-4711";

fn home(url: &str) -> Home {
    Home::new().var("POLYLOGUE_STORE", url)
}

/// A server on which the user `ann` has a password.
fn with_password() -> Option<PostgresServer> {
    let server = PostgresServer::start()?;
    let _ = server.sql(&format!(
        "CREATE ROLE ann LOGIN PASSWORD '{PASSWORD}'; GRANT CREATE ON DATABASE polylogue TO ann"
    ));
    let rules = "host all polylogue 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(server.data().join("pg_hba.conf"), rules).unwrap();
    let _ = server.sql("SELECT pg_reload_conf()");
    Some(server)
}

#[test]
fn a_conversation_continues_on_another_machine() {
    let Some(server) = PostgresServer::start() else { return };
    let (here, there) = (home(&server.url()), home(&server.url()));
    here.run(&["run", &shipped("student-teacher"), "--max-turns", "2"]).exits(3);
    let id = here.id();
    there.run(&["resume", "last", "--max-turns", "2"]).exits(3);
    let events = here.run(&["show", &id, "--json"]).ok().lines();
    let turns = events.iter().filter(|event| event["type"] == "message").count();
    assert_eq!(turns, 4);
    assert_eq!(there.run(&["verify"]).ok().err, "");
    let listed = there.run(&["runs"]).ok().out;
    assert!(listed.contains("student-teacher") && listed.contains("4 turns"), "{listed}");
    let last = events.iter().rposition(|event| event["type"] == "message").unwrap();
    there.run(&["fork", &id, "--at", &last.to_string()]).ok();
    assert_eq!(here.listed().len(), 2);
    here.run(&["rm", &id]).ok();
    assert_eq!(there.listed().len(), 1);
    assert_eq!(server.sql("SELECT count(DISTINCT log) FROM polylogue.events"), "1");
}

#[test]
fn a_conversation_whose_process_was_killed_continues_after_its_lease() {
    let Some(server) = PostgresServer::start() else { return };
    let (slow, quick) = (serve(talk().latency(Duration::from_secs(3600))), serve(talk()));
    let home = |model: &Server| {
        home(&server.url()).var("OPENAI_API_KEY", KEY).var("OPENAI_BASE_URL", &model.base_url())
    };
    let (here, there) = (home(&slow), home(&quick));
    here.file("team.yaml", TALK);
    let running = here.start(&["run", "team.yaml", "--model", "openai:test"]);
    until("it has begun", || !there.listed().is_empty());
    running.signal(Signal::KILL);
    let id = there.id();
    let busy = there.run(&["resume", &id]).exits(1);
    assert!(busy.err.contains("whose lease expires in"), "{}", busy.err);
    let _ = server.sql("UPDATE polylogue.logs SET lease = now() - interval '5 seconds'");
    let busy = there.run(&["resume", &id]).exits(1);
    assert!(busy.err.contains("whose lease has expired") && busy.err.contains("--take-over"), "{}", busy.err);
    let _ = server.sql("UPDATE polylogue.logs SET lease = now() - interval '65 seconds'");
    there.run(&["resume", &id]).ok();
    assert_eq!(of_type(&there.events(), "closed").len(), 1);
}

#[test]
fn the_password_of_a_store_is_shown_nowhere() {
    let Some(server) = with_password() else { return };
    let url = |login: &str| format!("postgres://{login}@127.0.0.1:{}/polylogue", server.port());
    let secret = url(&format!("ann:{PASSWORD}"));
    // In a command line, every user of the machine can read it.
    let home = Home::new();
    for args in [&["--store", &secret, "runs"][..], &["runs", &format!("--store={secret}")]] {
        let refused = home.run(args).exits(2);
        assert!(refused.err.contains("other users of this machine can read"), "{}", refused.err);
        assert!(refused.err.contains("`PGPASSWORD`") && !refused.err.contains(PASSWORD), "{}", refused.err);
    }
    // The ways in which it is given.
    let by_variable = self::home(&secret);
    let by_password = self::home(&url("ann")).var("PGPASSWORD", PASSWORD);
    let by_file = self::home(&url("ann"));
    by_file.file(".pgpass", &format!("127.0.0.1:*:polylogue:ann:{PASSWORD}\n"));
    let open = by_file.run(&["runs"]).exits(2);
    assert!(open.err.contains("can be read by others") && open.err.contains("chmod 600"), "{}", open.err);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(by_file.path(".pgpass"), mode).unwrap();
    for home in [&by_variable, &by_password, &by_file] {
        let run = home.run(&["run", &shipped("writer-critic"), "--max-turns", "1", "-v"]).exits(3);
        let doctor = home.run(&["doctor"]).ok();
        assert!(doctor.out.contains(&format!("in {} (Postgres, format 10)", url("ann"))), "{}", doctor.out);
        let nothing = home.run(&["runs", "--team", "nosuch"]).ok();
        assert!(nothing.err.contains(&url("ann")), "{}", nothing.err);
        for ran in [run, doctor, nothing] {
            assert!(!format!("{} {}", ran.out, ran.err).contains(PASSWORD), "{} {}", ran.out, ran.err);
        }
    }
    // Nothing of it is stored.
    let found = server.sql("SELECT count(*) FROM polylogue.events WHERE json LIKE '%s3cret%'");
    assert_eq!(found, "0");
    let wrong = self::home(&url("ann")).var("PGPASSWORD", "wr0ng").run(&["runs"]);
    assert!(
        wrong.err.contains("password authentication failed") && !wrong.err.contains("wr0ng"),
        "{}",
        wrong.err
    );
}

#[test]
fn a_store_that_cannot_be_used_is_an_error_with_a_hint() {
    let cases = [
        ("postgres://ann@127.0.0.1:1/chats", 1, "cannot be reached", "check that it runs"),
        ("postgres://ann:a@b@host/chats", 2, "its host is not a name", "%40"),
        ("postgres://ann@host/chats?sslmode=prefer", 2, "`sslmode`", "sslmode=require"),
        // No file of this name is made.
        ("mysql://ann:s3cret@host/chats", 2, "an address that begins with `mysql:`", "postgres://"),
        ("Postgres://ann:s3cret@host/chats", 2, "an address that begins with `Postgres:`", "postgres://"),
        ("postgres:chats", 2, "an address that begins with `postgres:`", "postgres://"),
        ("http://127.0.0.1:8787", 2, "an address that begins with `http:`", "`--server`"),
    ];
    for (url, exit, why, hint) in cases {
        for args in [&["runs"][..], &["run", &shipped("writer-critic")], &["doctor"]] {
            let refused = home(url).run(args).exits(exit);
            assert!(
                refused.err.contains(why) && refused.err.contains(hint) && !refused.err.contains("s3cret"),
                "{url} {args:?}: {}",
                refused.err
            );
        }
    }
    let memory = home("postgres://ann@127.0.0.1:1/chats").run(&["memory", "list"]);
    assert!(memory.err.contains("keeps conversations in Postgres, which have no memory"), "{}", memory.err);
}

/// A list of all conversations would read this one, and fail.
#[test]
fn doctor_counts_conversations_without_listing_them() {
    let Some(server) = PostgresServer::start() else { return };
    let home = home(&server.url());
    home.run(&["run", &shipped("writer-critic"), "--max-turns", "1"]).exits(3);
    let _ = server.sql("UPDATE polylogue.logs SET id = 'no id'");
    let doctor = home.run(&["doctor"]).ok().out;
    assert!(doctor.contains(&format!("\nconversations\n  1 in {}", server.url())), "{doctor}");
}

/// W48: what would fail at the first write, though all of it can be read.
#[test]
fn doctor_finds_a_database_that_cannot_be_written() {
    let Some(server) = PostgresServer::start() else { return };
    let home = home(&server.url());
    home.run(&["doctor"]).ok();
    // As Postgres reports a full disk, and tables of a later version.
    let full = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
        END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON polylogue.nodes FOR EACH ROW EXECUTE FUNCTION refuse()";
    let later = "UPDATE polylogue.format SET format = format + 1";
    for (sql, why) in [(full, "no space is left on the disk"), (later, "this version knows up to")] {
        let _ = server.sql(sql);
        let doctor = home.run(&["doctor"]).exits(1);
        assert!(doctor.out.ends_with("\n  cannot be written\n"), "{}", doctor.out);
        assert!(doctor.err.contains(why) && doctor.err.contains("hint: "), "{}", doctor.err);
    }
}

/// Its conversations begin on a server.
#[test]
fn a_tenant_without_conversations_is_named() {
    let Some(server) = PostgresServer::start() else { return };
    let home = home(&server.url());
    home.run(&["run", &shipped("writer-critic"), "-q"]).ok();
    let none = home.run(&["show", "last", "--tenant", "acme"]).exits(2);
    assert!(none.err.contains("the tenant `acme` has no conversations"), "{}", none.err);
    assert!(none.err.contains("hint: ") && none.err.contains("NAME --tenant acme"), "{}", none.err);
    let listed = home.run(&["runs", "--tenant", "acme"]).ok();
    assert!(listed.err.starts_with("no conversations of the tenant `acme` found"), "{}", listed.err);
}

#[test]
fn what_is_no_database_is_not_migrated() {
    let refused = Home::new().run(&["migrate"]).exits(2);
    assert!(refused.err.contains("is no Postgres database"), "{}", refused.err);
    assert!(refused.err.contains("`--store postgres://USER@HOST/DATABASE`"), "{}", refused.err);
}

/// A worker would ask for conversations without an end, and a server would not run what is handed over.
#[test]
fn a_worker_does_not_begin_where_its_user_may_only_read() {
    let Some(server) = PostgresServer::start() else { return };
    home(&server.url()).run(&["doctor"]).ok();
    let _ = server.sql("CREATE ROLE bob LOGIN; GRANT USAGE ON SCHEMA polylogue TO bob; GRANT SELECT ON ALL TABLES IN SCHEMA polylogue TO bob");
    let home = home(&server.url().replace("polylogue@", "bob@"));
    home.run(&["runs"]).ok();
    let served = shipped("writer-critic");
    for args in [&["worker"][..], &["serve", &served, "--offline", "--worker", "--listen", "127.0.0.1:0"]] {
        let refused = home.run(args);
        let has_hint = refused
            .err
            .contains("hint: let its user create the schema `polylogue` once, or grant it the rights");
        assert!(refused.err.contains("permission denied") && has_hint, "{args:?}: {}", refused.err);
    }
}

/// It is found at once, not waited for as a database that is away, and a worker does not begin.
#[test]
fn a_database_that_is_read_only_is_an_error_with_a_hint() {
    let Some(server) = PostgresServer::start() else { return };
    let _ = server.sql("ALTER ROLE CURRENT_USER SET default_transaction_read_only = on");
    for args in [&["run", &shipped("writer-critic")][..], &["doctor"], &["worker"]] {
        let refused = home(&server.url()).run(args);
        let has_hint = refused.err.contains("hint: `ALTER ROLE ... RESET default_transaction_read_only`");
        assert!(refused.err.contains("it is read-only") && has_hint, "{args:?}: {}", refused.err);
    }
}
