//! The SQL of the documentation, on a database in which each statement has something to find.

use std::fs;

use polylogue_test::postgres::PostgresServer;

use crate::commands::TALK;
use crate::place::Place;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

/// The statements of a page: those of its blocks of SQL, and those in its text.
fn statements(page: &str) -> Vec<&str> {
    let blocks = page.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next());
    let in_text = page.split('`').filter(|code| code.starts_with("SELECT "));
    let all = blocks.flat_map(|block| block.split(';')).chain(in_text);
    all.map(str::trim).filter(|sql| !sql.is_empty()).collect()
}

#[test]
fn each_statement_of_the_documentation_finds_what_there_is() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    let newest = || place.run(&["runs", "--json"], 0).lines()[0]["id"].as_str().unwrap().to_owned();
    place.run(&["run", "team.yaml"], 0);
    place.run(&["archive", &newest()], 0);
    place.run(&["run", "team.yaml", "--budget-calls", "team=9"], 0);
    let ended = newest();
    // One that waits, and one that a process runs.
    place.detach(&["team.yaml"]);
    let runs = place.detach(&["team.yaml"]);
    let _ = server.sql(&format!(
        "UPDATE polylogue.logs SET holder = 'another', lease = now() + interval '1 hour', lost_events = 1 WHERE id = '{runs}';
        INSERT INTO polylogue.rate_limits(provider, account, model) VALUES ('openai', 'a', 'b')"
    ));
    let pages = fs::read_dir(DOCS).unwrap().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for path in pages.filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let page = fs::read_to_string(&path).unwrap();
        for statement in statements(&page) {
            let found = server.sql(&statement.replace("'ID'", &format!("'{ended}'")));
            assert!(!found.is_empty(), "{}: {statement}", path.display());
            count += 1;
        }
    }
    assert!(count >= 9, "{count} statements are found");
}
