//! A key is reserved for one request, whichever store asks first.

use futures_util::future::join_all;
use polylogue_core::{AnyStore, Store};

use super::support::{Report, Verdict, done, same};

pub(super) async fn check(make: &impl Fn() -> AnyStore, report: &mut Report) {
    report.check("a key belongs to the request that has reserved it", reserved(make())).await;
    report.check("of several requests at once, one reserves a key", crowd(&[make()], "key")).await;
}

pub(super) async fn check_reopened(open: &impl Fn() -> AnyStore, report: &mut Report) {
    report.check("a reserved key is reserved when the place is opened again", kept(open)).await;
    let stores = [open(), open()];
    report.check("of requests to several stores at once, one reserves a key", crowd(&stores, "shared")).await;
}

/// The request that has the key, after `request` has asked for it.
async fn holder(store: &AnyStore, key: &str, request: &str) -> Result<String, String> {
    done("reserve_key", store.reserve_key(key, request).await)
}

async fn reserved(store: AnyStore) -> Verdict {
    let keys = ["key", "other key", "two\n\u{0}", ""];
    for key in keys {
        let request = format!("first of {key}");
        for _ in 0..2 {
            same("the request that reserves a key", &holder(&store, key, &request).await?, &request)?;
        }
    }
    for key in keys {
        let first = format!("first of {key}");
        same("the request that has a key", &holder(&store, key, "second").await?, &first)?;
        same("also later", &holder(&store, key, &first).await?, &first)?;
    }
    Ok(())
}

/// Each request goes to one of the stores, in turn.
async fn crowd(stores: &[AnyStore], key: &str) -> Verdict {
    let requests: Vec<String> = (0..32).map(|nth| format!("request {nth}")).collect();
    let asked =
        requests.iter().zip(stores.iter().cycle()).map(|(request, store)| holder(store, key, request));
    let found = join_all(asked).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let first = found.first().cloned().unwrap_or_default();
    if !requests.contains(&first) {
        return Err(format!("the key belongs to no request: {first}"));
    }
    same("the request that has the key", &found, &vec![first; requests.len()])
}

async fn kept(open: &impl Fn() -> AnyStore) -> Verdict {
    let store = open();
    same("the request that reserves a key", &holder(&store, "kept", "first").await?, &"first".to_owned())?;
    drop(store);
    same("the request that has a key", &holder(&open(), "kept", "second").await?, &"first".to_owned())
}
