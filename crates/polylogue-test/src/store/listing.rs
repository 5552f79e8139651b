//! Logs are listed.

use polylogue_core::{AnyStore, Listing, LogId, Meta, Parent, Store, Timestamp};

use super::{Report, Verdict, begin, done, id, meta, same, some};

pub(super) async fn check(make: &impl Fn() -> AnyStore, report: &mut Report) {
    report.check("an empty store lists nothing", empty(make())).await;
    report.check("logs are listed newest first, with their length and last event", listed(make())).await;
    report.check("the list follows what happens", follows(make())).await;
    report.check("every legal id and title is kept", ids(make())).await;
}

async fn list(store: &AnyStore) -> Result<Vec<Listing>, String> {
    done("list", store.list().await)
}

async fn empty(store: AnyStore) -> Verdict {
    same("the list", &list(&store).await?, &Vec::new())
}

async fn listed(store: AnyStore) -> Verdict {
    let mut wanted = Vec::new();
    let other = id("a")?;
    for (name, created, events) in [("b", 20, 3), ("d", 40, 0), ("a", 10, 1), ("c", 30, 2)] {
        let parent = (name == "c").then(|| Parent { id: other.clone(), event: 1 });
        let (id, meta) = (id(name)?, Meta { parent, ..meta(&format!("title of {name}"), created) });
        let claim = done("create", store.create(&id, &meta).await)?;
        let batch = some(0, events);
        done("append", store.append(&claim, &batch).await)?;
        let last = batch.last().map(|event| polylogue_core::Event::clone(event));
        same("its meta", &done("meta", store.meta(&id).await)?, &meta)?;
        let Meta { title, created, team, parent } = meta;
        let has_team = !team.is_null();
        wanted.push(Listing { id, title, created, has_team, parent, events, last, is_damaged: false });
    }
    wanted.sort_by_key(|listing| std::cmp::Reverse(listing.created));
    same("the list", &list(&store).await?, &wanted)
}

async fn follows(store: AnyStore) -> Verdict {
    let (a, b) = (begin(&store, "a").await?, begin(&store, "b").await?);
    done("append", store.append(&a, &some(0, 2)).await)?;
    done("append", store.append(&a, &some(2, 3)).await)?;
    let find = |listings: Vec<Listing>, id: &LogId| listings.into_iter().find(|listing| listing.id == *id);
    let found = find(list(&store).await?, &a.id).ok_or("the log is not in the list")?;
    same("its length", &found.events, &3)?;
    same("its last event", &found.last.map(|event| event.seq), &Some(2))?;
    done("release", store.release(b.clone()).await)?;
    done("remove", store.remove(&b.id).await)?;
    same("the removed log in the list", &find(list(&store).await?, &b.id), &None)
}

async fn ids(store: AnyStore) -> Verdict {
    let long = "x".repeat(64);
    let titles = ["", "\0", "\"quoted\" \\ 'so'", "two\nlines", "翻译 👩‍👩‍👧", &"long ".repeat(2000), "%s $1 ?1"];
    let names = ["-", "_", "0", "A-b_3", &long, "-rf", "con"];
    for (created, (name, title)) in (0..).zip(names.iter().zip(titles)) {
        let meta = Meta { title: title.into(), created: Timestamp(created), ..Meta::default() };
        let claim = done("create", store.create(&id(name)?, &meta).await)?;
        done("append", store.append(&claim, &some(0, 1)).await)?;
        same("its meta", &done("meta", store.meta(&claim.id).await)?, &meta)?;
    }
    let mut found: Vec<String> = list(&store).await?.iter().map(|listing| listing.id.to_string()).collect();
    found.reverse();
    same("the ids", &found, &names.iter().map(ToString::to_string).collect())
}
