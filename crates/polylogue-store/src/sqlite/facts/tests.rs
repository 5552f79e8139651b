//! Tests of a memory in a database.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use polylogue_core::{LogId, Meta, Money, Name, Store as _, Timestamp};
use polylogue_memory::Source;
use proptest::prelude::*;

use super::*;

struct Fixture {
    _dir: tempfile::TempDir,
    place: std::path::PathBuf,
    facts: Facts,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("chats.db");
    Fixture { facts: Facts::open(&place).unwrap(), place, _dir: dir }
}

fn scope(text: &str) -> Scope {
    Scope::new(text).unwrap()
}

fn note(whose: &str, call: &str, text: &str) -> Note {
    let source = Source { conversation: LogId::new("monday").unwrap(), call: call.into() };
    let by = Name::new("Ann").unwrap();
    Note { scope: scope(whose), text: text.into(), by, time: Timestamp(7), source }
}

/// The texts that are found in `whose` memory.
async fn found(facts: &Facts, whose: &str, query: &str) -> Vec<String> {
    let query = Query { scope: scope(whose), text: query.into(), limit: 10 };
    facts.recall(&query).await.unwrap().facts.into_iter().map(|fact| fact.text).collect()
}

async fn keep(facts: &Facts, whose: &str, texts: &[&str]) {
    for text in texts {
        facts.remember(&note(whose, text, text)).await.unwrap();
    }
}

#[tokio::test]
async fn facts_are_found_by_their_words_in_any_form_the_best_first() {
    let Fixture { facts, _dir, .. } = fixture();
    let texts = [
        "Ann likes green tea.",
        "The café in Zürich opens at nine.",
        "Bob's green car is a green van.",
        "東京都に住んでいる",
        "Иван живёт в Москве",
    ];
    keep(&facts, "team", &texts).await;
    assert_eq!(found(&facts, "team", "Which TEA did Ann like?").await, ["Ann likes green tea."]);
    assert_eq!(found(&facts, "team", "cafe zurich opening").await, [texts[1]]);
    assert_eq!(found(&facts, "team", "green").await[0], texts[2], "said twice counts more");
    assert_eq!(found(&facts, "team", "東京").await, [texts[3]]);
    assert_eq!(found(&facts, "team", "京東").await, Vec::<String>::new());
    assert_eq!(found(&facts, "team", "МОСКВЕ").await, [texts[4]]);
    assert_eq!(found(&facts, "team", "nothing of the kind").await, Vec::<String>::new());
}

#[tokio::test]
async fn before_the_first_fact_there_is_nothing_and_no_table() {
    let Fixture { facts, place, _dir } = fixture();
    assert!(found(&facts, "team", "tea").await.is_empty());
    assert!(facts.list(None, 10).await.unwrap().is_empty() && facts.scopes().await.unwrap().is_empty());
    assert_eq!(facts.fact(1).await.unwrap(), None);
    assert!(!facts.forget(&scope("team"), 1).await.unwrap());
    let tables = rusqlite::Connection::open(&place).unwrap();
    let count = "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'fact%'";
    assert_eq!(tables.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[tokio::test]
async fn the_same_call_writes_one_fact_and_a_scope_sees_its_own() {
    let Fixture { facts, _dir, .. } = fixture();
    let first = facts.remember(&note("team", "c1", " Tea. ")).await.unwrap();
    assert_eq!((first.id, first.text.as_str()), (1, "Tea."));
    assert_eq!(facts.remember(&note("team", "c1", "Coffee.")).await.unwrap(), first);
    assert_eq!(facts.remember(&note("team", "c2", "Tea.")).await.unwrap(), first, "said again");
    let other = facts.remember(&note("user eve", "c1", "Tea with milk.")).await.unwrap();
    assert_eq!(other.id, 2);
    assert_eq!(found(&facts, "team", "tea coffee").await, ["Tea."]);
    assert_eq!(found(&facts, "user eve", "tea").await, ["Tea with milk."]);
    assert!(!facts.forget(&scope("team"), 2).await.unwrap(), "it is not theirs");
    assert_eq!(facts.list(None, 10).await.unwrap(), [other.clone(), first.clone()]);
    assert_eq!(facts.list(Some(&scope("team")), 10).await.unwrap(), [first]);
    assert_eq!(facts.list(None, 1).await.unwrap(), [other]);
    assert_eq!(facts.scopes().await.unwrap(), [scope("team"), scope("user eve")]);
    assert_eq!(facts.fact(2).await.unwrap().unwrap().scope, scope("user eve"));
}

#[tokio::test]
async fn what_is_forgotten_stays_forgotten_and_its_number_is_not_given_again() {
    let Fixture { facts, place, _dir } = fixture();
    keep(&facts, "team", &["Secret tea."]).await;
    // Forgetting twice is forgetting once, and says the same.
    assert!(facts.forget(&scope("team"), 1).await.unwrap());
    assert!(facts.forget(&scope("team"), 1).await.unwrap());
    assert!(!facts.forget(&scope("team"), 4711).await.unwrap());
    assert!(found(&facts, "team", "tea").await.is_empty());
    assert!(facts.list(None, 10).await.unwrap().is_empty() && facts.scopes().await.unwrap().is_empty());
    assert_eq!(facts.fact(1).await.unwrap(), None);
    // The call that wrote it is made again, after a crash.
    assert_eq!(facts.remember(&note("team", "Secret tea.", "Secret tea.")).await.unwrap().id, 1);
    assert!(found(&facts, "team", "tea").await.is_empty());
    assert_eq!(facts.remember(&note("team", "c2", "More tea.")).await.unwrap().id, 2);
    let texts = rusqlite::Connection::open(&place).unwrap();
    let left = texts.query_row("SELECT text FROM facts WHERE nr = 1", [], |row| row.get::<_, String>(0));
    assert_eq!(left.unwrap(), "");
}

#[tokio::test]
async fn texts_that_are_no_facts_are_refused() {
    let Fixture { facts, _dir, .. } = fixture();
    for text in ["", " \n", &"x".repeat(Note::MAX_CHARS + 1)] {
        let refused = facts.remember(&note("team", "c", text)).await.unwrap_err();
        assert!(matches!(refused, MemoryError::Refused(_)), "{refused}");
    }
    facts.remember(&note("team", "c", &"é".repeat(Note::MAX_CHARS))).await.unwrap();
    assert!(Scope::new(" ").is_err() && Scope::new("a\nb").is_err() && Scope::new(&"x".repeat(201)).is_err());
}

#[tokio::test]
async fn facts_outlive_the_process_and_the_conversation_and_leave_logs_alone() {
    let Fixture { facts, place, _dir } = fixture();
    let logs = Sqlite::open(&place).unwrap();
    let claim = logs.create(&LogId::new("monday").unwrap(), &Meta::default()).await.unwrap();
    keep(&facts, "team", &["Tea."]).await;
    logs.release(claim).await.unwrap();
    drop(facts);
    logs.remove(&LogId::new("monday").unwrap()).await.unwrap();
    assert_eq!(logs.list_intact().await.unwrap(), (Vec::new(), None));
    assert_eq!(found(&Facts::open(&place).unwrap(), "team", "tea").await, ["Tea."]);
}

#[tokio::test]
async fn many_write_at_once_and_every_fact_is_kept_once() {
    let Fixture { facts, place, _dir } = fixture();
    let second = Facts::open(&place).unwrap();
    let both = [&facts, &second];
    // Each is written twice, through different connections.
    let notes: Vec<Note> =
        (0..50).map(|n| note("team", &format!("c{}", n / 2), &format!("{n} teas"))).collect();
    let writes = notes.iter().enumerate().map(|(n, note)| both[n % 2].remember(note));
    let kept = futures_util::future::join_all(writes).await;
    assert!(kept.iter().all(Result::is_ok), "{kept:?}");
    assert_eq!(facts.list(None, 100).await.unwrap().len(), 25);
}

/// Makes vectors of what it knows to mean the same: the first dimension is drinks, the second vehicles.
#[derive(Clone)]
struct Senses {
    name: &'static str,
    length: usize,
    asked: Arc<Mutex<Vec<usize>>>,
    purposes: Arc<Mutex<Vec<EmbedPurpose>>>,
    fails: Arc<AtomicBool>,
}

impl Senses {
    fn new(name: &'static str, length: usize) -> Self {
        Self { name, length, asked: Arc::default(), purposes: Arc::default(), fails: Arc::default() }
    }

    fn asked(&self) -> Vec<usize> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Embed for Senses {
    fn name(&self) -> &str {
        self.name
    }

    async fn embed(&self, texts: &[String], purpose: EmbedPurpose) -> Result<Embedded, ModelError> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(ModelError::new(ModelErrorKind::Connection, self.name, "no server answers"));
        }
        self.asked.lock().unwrap().push(texts.len());
        self.purposes.lock().unwrap().push(purpose);
        let sense = |text: &String, words: &[&str]| {
            let count = words.iter().filter(|word| text.to_lowercase().contains(*word)).count();
            f32::from(u8::try_from(count).unwrap())
        };
        let vector = |text: &String| {
            let mut vector = vec![0.0; self.length];
            vector[0] = sense(text, &["tea", "drink", "coffee", "beverage"]);
            vector[1] = sense(text, &["car", "van", "drive", "vehicle"]);
            vector
        };
        let usage = Usage { input: Some(texts.len() as u64), ..Usage::default() };
        Ok(Embedded { vectors: texts.iter().map(vector).collect(), usage, cost: Some(Money::dollars(0.5)) })
    }
}

#[tokio::test]
async fn facts_are_found_by_what_they_mean_and_embedded_once() {
    let Fixture { facts, place, _dir } = fixture();
    let model = Senses::new("toy:two", 2);
    let facts = facts.embedded_by(model.clone());
    keep(&facts, "team", &["Ann likes tea.", "Bob has a van.", "It rained."]).await;
    // No word is the same. What has nothing to do with it stands at the end, if anywhere.
    assert_eq!(found(&facts, "team", "favorite beverage").await, ["Ann likes tea."]);
    assert_eq!(model.asked(), [1, 3]);
    assert_eq!(*model.purposes.lock().unwrap(), [EmbedPurpose::Search, EmbedPurpose::Store]);
    let query = Query { scope: scope("team"), text: "Who can drive?".into(), limit: 1 };
    let recalled = facts.recall(&query).await.unwrap();
    assert_eq!(recalled.facts[0].text, "Bob has a van.");
    let used = recalled.used.unwrap();
    assert_eq!((&*used.model, used.usage.input, used.cost), ("toy:two", Some(1), Some(Money::dollars(0.5))));
    assert_eq!(recalled.missed, None);
    assert_eq!(model.asked(), [1], "vectors are kept");
    let table = rusqlite::Connection::open(&place).unwrap();
    let row = "SELECT model, dimension, vector FROM fact_vectors WHERE fact = 1";
    let row = table.query_row(row, [], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?))
    });
    // 1.0 and 0.0, the lowest byte first.
    assert_eq!(row.unwrap(), ("toy:two".into(), 2, vec![0, 0, 0x80, 0x3f, 0, 0, 0, 0]));
}

/// Embeds two texts in a request, and fails so with those about poison.
struct Pairs(Senses, ModelErrorKind);

impl Embed for Pairs {
    fn name(&self) -> &str {
        Embed::name(&self.0)
    }

    async fn embed(&self, texts: &[String], purpose: EmbedPurpose) -> Result<Embedded, ModelError> {
        if texts.iter().any(|text| text.contains("poison")) {
            return Err(ModelError::new(self.1, Embed::name(&self.0), "no poison"));
        }
        self.0.embed(texts, purpose).await
    }

    fn batch(&self, texts: &[String], _: EmbedPurpose) -> usize {
        texts.len().min(2)
    }
}

#[tokio::test]
async fn vectors_are_kept_as_soon_as_they_are_paid() {
    let Fixture { facts, place, _dir } = fixture();
    let model = Senses::new("toy:two", 2);
    let facts = facts.embedded_by(Pairs(model.clone(), ModelErrorKind::Connection));
    // The newest are embedded first.
    keep(&facts, "team", &["It is poison.", "It rained.", "Ann likes tea.", "Bob has a van."]).await;
    let query = Query { scope: scope("team"), text: "favorite drink".into(), limit: 5 };
    for asked in [&[1_usize, 2][..], &[1]] {
        let recalled = facts.recall(&query).await.unwrap();
        let missed = recalled.missed.unwrap();
        assert!(missed.starts_with("some facts were looked for by words only: "), "{missed}");
        assert!(missed.contains("no poison"), "{missed}");
        let texts: Vec<&str> = recalled.facts.iter().map(|fact| &*fact.text).collect();
        assert_eq!(texts, ["Ann likes tea."], "what has a vector is found by meaning");
        assert_eq!(model.asked(), asked, "the query, and facts without a vector");
    }
    let table = rusqlite::Connection::open(&place).unwrap();
    let count = table.query_row("SELECT count(*) FROM fact_vectors", [], |row| row.get::<_, i64>(0));
    assert_eq!(count.unwrap(), 2);
}

#[tokio::test]
async fn a_text_that_the_model_refuses_keeps_no_other_one_from_its_vector() {
    for kind in [ModelErrorKind::Config, ModelErrorKind::ContentFiltered] {
        let Fixture { facts, _dir, .. } = fixture();
        let model = Senses::new("toy:two", 2);
        let facts = facts.embedded_by(Pairs(model.clone(), kind));
        keep(&facts, "team", &["It is poison.", "It rained.", "Ann likes tea.", "Bob has a van."]).await;
        let query = Query { scope: scope("team"), text: "favorite drink".into(), limit: 5 };
        let recalled = facts.recall(&query).await.unwrap();
        assert_eq!(recalled.facts[0].text, "Ann likes tea.", "by its meaning");
        let missed = recalled.missed.unwrap();
        assert!(missed.starts_with("fact 1 was") && missed.contains("no poison"), "{missed}");
        assert_eq!(model.asked(), [1, 2, 1], "the query, the newest two, and one without the refused one");
        // It is named once, and not sent again.
        assert_eq!(facts.recall(&query).await.unwrap().missed, None);
        assert_eq!(model.asked(), [1]);
        assert_eq!(found(&facts, "team", "poison").await, ["It is poison."], "by its word");
    }
}

#[tokio::test]
async fn facts_that_the_model_refuses_keep_no_later_request_from_being_sent() {
    let Fixture { facts, _dir, .. } = fixture();
    let model = Senses::new("toy:two", 2);
    let facts = facts.embedded_by(Pairs(model.clone(), ModelErrorKind::ContentFiltered));
    keep(&facts, "team", &["Ann likes tea."]).await;
    // With both halves of each pair, more refusals than one search looks into.
    let refused: Vec<String> = (0..40).map(|n| format!("It is poison {n}.")).collect();
    keep(&facts, "team", &refused.iter().map(|text| &**text).collect::<Vec<_>>()).await;
    let query = Query { scope: scope("team"), text: "favorite drink".into(), limit: 5 };
    for _ in 0..4 {
        let recalled = facts.recall(&query).await.unwrap();
        assert_eq!(recalled.facts.len(), 1, "what was kept first is found by its meaning");
    }
    assert_eq!(model.asked(), [1, 1, 1, 1, 1], "four queries and one fact");
    assert_eq!(facts.recall(&query).await.unwrap().missed, None, "each was named");
}

/// Refuses texts about poison, and does not reach its server with those about storms.
struct Storms(Pairs);

impl Embed for Storms {
    fn name(&self) -> &str {
        Embed::name(&self.0)
    }

    async fn embed(&self, texts: &[String], purpose: EmbedPurpose) -> Result<Embedded, ModelError> {
        if texts.len() == 1 && texts.iter().any(|text| text.contains("storm")) {
            return Err(ModelError::new(
                ModelErrorKind::Connection,
                Embed::name(&self.0),
                "no server answers",
            ));
        }
        self.0.embed(texts, purpose).await
    }

    fn batch(&self, texts: &[String], purpose: EmbedPurpose) -> usize {
        self.0.batch(texts, purpose)
    }
}

#[tokio::test]
async fn a_fact_that_the_model_refuses_is_named_and_left_out_also_if_a_later_request_fails() {
    let Fixture { facts, _dir, .. } = fixture();
    let model = Senses::new("toy:two", 2);
    let facts = facts.embedded_by(Storms(Pairs(model.clone(), ModelErrorKind::ContentFiltered)));
    keep(&facts, "team", &["A storm came.", "It is poison."]).await;
    let query = Query { scope: scope("team"), text: "favorite drink".into(), limit: 5 };
    let missed = facts.recall(&query).await.unwrap().missed.unwrap();
    assert!(missed.starts_with("fact 2 was looked for by words only: "), "{missed}");
    assert!(missed.contains("; some facts were looked for by words only: "), "{missed}");
    assert!(facts.forget(&scope("team"), 1).await.unwrap());
    assert_eq!(facts.recall(&query).await.unwrap().missed, None);
}

#[tokio::test]
async fn facts_that_the_model_refuses_take_the_place_of_no_other_in_later_searches() {
    let Fixture { facts, place, _dir } = fixture();
    let facts = facts.embedded_by(Senses::new("toy:two", 2));
    keep(&facts, "team", &["Ann likes tea."]).await;
    let table = rusqlite::Connection::open(&place).unwrap();
    // As many as are embedded in one search.
    let insert = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 1001)
        INSERT INTO facts(nr, scope, text, author, time_ms, conversation, call)
        SELECT i, 'team', 'It is poison ' || i, 'Ann', 7, 'monday', 'p' || i FROM n";
    assert_eq!(table.execute(insert, []).unwrap(), Facts::MAX_EMBEDDED);
    facts.refused().extend(2..=1001_u64);
    assert_eq!(found(&facts, "team", "favorite drink").await, ["Ann likes tea."]);
}

#[tokio::test]
async fn another_model_and_another_length_make_vectors_again() {
    let Fixture { facts, place, _dir } = fixture();
    let (first, second) = (Senses::new("toy:two", 2), Senses::new("toy:three", 3));
    let facts = facts.embedded_by(first.clone());
    keep(&facts, "team", &["Tea.", "Van."]).await;
    found(&facts, "team", "drink").await;
    assert_eq!(first.asked(), [1, 2]);
    let facts = facts.embedded_by(second.clone());
    assert_eq!(found(&facts, "team", "drink").await, ["Tea."]);
    assert_eq!(second.asked(), [1, 2]);
    // The first is chosen again: its vectors are still there.
    let facts = facts.embedded_by(first.clone());
    found(&facts, "team", "drink").await;
    assert_eq!(first.asked(), [1]);
    // A model of the same name that makes other vectors.
    let longer = Senses::new("toy:two", 5);
    let facts = facts.embedded_by(longer.clone());
    assert_eq!(found(&facts, "team", "drink").await, ["Tea."]);
    assert_eq!(longer.asked(), [1, 2]);
    // A vector that was damaged is made again.
    let table = rusqlite::Connection::open(&place).unwrap();
    table.execute("UPDATE fact_vectors SET vector = x'00' WHERE fact = 1 AND model = 'toy:two'", []).unwrap();
    found(&facts, "team", "drink").await;
    assert_eq!(longer.asked(), [1, 1]);
}

#[tokio::test]
async fn when_the_model_fails_words_are_searched_and_the_reason_is_reported() {
    let Fixture { facts, _dir, .. } = fixture();
    let model = Senses::new("toy:two", 2);
    model.fails.store(true, Ordering::Relaxed);
    let facts = facts.embedded_by(model.clone());
    keep(&facts, "team", &["Ann likes tea."]).await;
    let query = Query { scope: scope("team"), text: "tea".into(), limit: 5 };
    let recalled = facts.recall(&query).await.unwrap();
    assert_eq!(recalled.facts.len(), 1);
    let missed = recalled.missed.unwrap();
    assert!(missed.starts_with("looked for by words only: "), "{missed}");
    assert!(missed.contains("no server answers"), "{missed}");
    // Numbers that are none.
    model.fails.store(false, Ordering::Relaxed);
    let broken = Endless;
    let facts = facts.embedded_by(broken);
    let recalled = facts.recall(&query).await.unwrap();
    assert_eq!(recalled.facts.len(), 1);
    assert!(recalled.missed.unwrap().contains("no proper vectors"));
}

/// Makes vectors of no finite numbers.
struct Endless;

impl Embed for Endless {
    fn name(&self) -> &str {
        "toy:endless"
    }
    async fn embed(&self, texts: &[String], _: EmbedPurpose) -> Result<Embedded, ModelError> {
        Ok(Embedded { vectors: vec![vec![f32::INFINITY]; texts.len()], usage: Usage::default(), cost: None })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is kept is found by its own words, and whatever is asked is answered.
    #[test]
    fn any_text_is_a_fact_and_any_text_a_query(text in any::<String>(), query in any::<String>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let Fixture { facts, _dir, .. } = fixture();
            keep(&facts, "other", &["Of another scope."]).await;
            let kept = facts.remember(&note("team", "c1", &text)).await;
            prop_assert_eq!(kept.is_ok(), !text.trim().is_empty());
            found(&facts, "team", &query).await;
            if text.chars().any(|c| c.is_ascii_alphanumeric()) {
                prop_assert_eq!(found(&facts, "team", &text).await, [text.trim()]);
            }
            Ok(())
        })?;
    }
}
