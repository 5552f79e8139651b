//! The teams of stored conversations that run: those with the same stored document share one, which is prepared once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

/// How long conversations join one: keys, certificates and programs of the machine may change, and count from then on.
const JOINED: Duration = Duration::from_secs(60);

/// What a stored document is found by.
#[derive(Clone, Copy)]
pub(crate) struct Digests {
    /// Of the whole document.
    pub(crate) whole: [u8; 32],
    /// Without the task, if documents that differ in it can share a team.
    pub(crate) for_any_task: Option<[u8; 32]>,
}

/// Prepared teams of one tenant by the digests of their documents. They are kept by those who use them, so nothing runs for a team of
/// which no conversation runs.
pub(crate) struct StoredTeams<T>(Mutex<HashMap<[u8; 32], Arc<Place<T>>>>);

/// Those of documents that are the same but for their tasks. Locked while one is prepared, so that those who come meanwhile wait for it.
type Place<T> = tokio::sync::Mutex<Vec<StoredTeam<T>>>;

struct StoredTeam<T> {
    team: Weak<T>,
    since: Instant,
    document: [u8; 32],
    is_for_any_task: bool,
}

impl<T> StoredTeam<T> {
    fn is_used(&self) -> bool {
        self.team.strong_count() > 0 && self.since.elapsed() < JOINED
    }

    /// Whether it is that of a document.
    fn is_of(&self, digests: Digests) -> bool {
        self.document == digests.whole || self.is_for_any_task && digests.for_any_task.is_some()
    }
}

impl<T> Default for StoredTeams<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> StoredTeams<T> {
    fn all(&self) -> MutexGuard<'_, HashMap<[u8; 32], Arc<Place<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The team of the document with these `digests`: the one that others use, or a new one, and whether that is for any task.
    pub(crate) async fn get<E>(
        &self,
        digests: Digests,
        preparing: impl Future<Output = Result<(T, bool), E>>,
    ) -> Result<Arc<T>, E> {
        let place = self.place(digests.for_any_task.unwrap_or(digests.whole));
        let mut known = place.lock().await;
        known.retain(StoredTeam::is_used);
        let shared = known.iter().find(|known| known.is_of(digests));
        if let Some(team) = shared.and_then(|known| known.team.upgrade()) {
            return Ok(team);
        }
        let (team, is_for_any_task) = preparing.await?;
        let team = Arc::new(team);
        let (since, document) = (Instant::now(), digests.whole);
        known.push(StoredTeam { team: Arc::downgrade(&team), since, document, is_for_any_task });
        Ok(team)
    }

    fn place(&self, digest: [u8; 32]) -> Arc<Place<T>> {
        let mut all = self.all();
        // Before it grows: looking at all of them each time would cost as many looks as there are.
        if all.len() == all.capacity() {
            all.retain(|_, place| is_used(place));
        }
        Arc::clone(all.entry(digest).or_default())
    }

    /// Prepares each team again for the conversations that run next.
    pub(crate) fn forget(&self) {
        self.all().clear();
    }
}

/// Whether a conversation uses one of them, or waits for one.
fn is_used<T>(place: &Arc<Place<T>>) -> bool {
    let uses = |known: &Vec<StoredTeam<T>>| known.iter().any(StoredTeam::is_used);
    Arc::strong_count(place) > 1 || place.try_lock().map_or(true, |known| uses(&known))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const ONE: Digests = Digests { whole: [1; 32], for_any_task: None };
    const OTHER: Digests = Digests { whole: [2; 32], for_any_task: None };

    /// A team that is for any task if its number is even.
    async fn prepared(teams: &StoredTeams<u32>, digests: Digests, number: u32) -> Arc<u32> {
        teams.get(digests, async { Ok::<_, Infallible>((number, number.is_multiple_of(2))) }).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_team_is_shared_while_it_is_used_and_not_for_long() {
        let teams = StoredTeams::default();
        let first = prepared(&teams, ONE, 1).await;
        assert_eq!(*prepared(&teams, ONE, 2).await, 1);
        assert_eq!(*prepared(&teams, OTHER, 3).await, 3, "another document is another team");
        tokio::time::advance(JOINED).await;
        assert_eq!(*prepared(&teams, ONE, 4).await, 4, "it was prepared too long ago");
        drop(first);
        assert_eq!(*prepared(&teams, ONE, 5).await, 5, "it was used no more");
        let used = prepared(&teams, ONE, 6).await;
        teams.forget();
        assert_eq!((*used, *prepared(&teams, ONE, 7).await), (6, 7));
    }

    #[tokio::test]
    async fn documents_that_differ_in_the_task_share_a_team_that_is_for_any() {
        let of = |document: u8| Digests { whole: [document; 32], for_any_task: Some([9; 32]) };
        let teams = StoredTeams::default();
        let own = prepared(&teams, of(1), 1).await;
        assert_eq!(*prepared(&teams, of(1), 2).await, 1, "the same document");
        let shared = prepared(&teams, of(2), 2).await;
        assert_eq!((*own, *shared), (1, 2), "the first is for its own task only");
        assert_eq!(*prepared(&teams, of(3), 3).await, 2);
        let sealed = Digests { for_any_task: None, ..of(4) };
        assert_eq!(*prepared(&teams, sealed, 5).await, 5);
    }

    #[tokio::test]
    async fn those_who_come_at_the_same_time_wait_for_one() {
        let teams = StoredTeams::default();
        let (ready, is_ready) = tokio::sync::oneshot::channel::<()>();
        let slow = teams.get(ONE, async {
            is_ready.await.unwrap();
            Ok::<_, Infallible>((1, false))
        });
        let joined = async {
            tokio::task::yield_now().await;
            let joining = teams.get(ONE, async { Ok::<_, Infallible>((2, false)) });
            ready.send(()).unwrap();
            joining.await
        };
        let (slow, joined) = tokio::join!(slow, joined);
        assert!(Arc::ptr_eq(&slow.unwrap(), &joined.unwrap()));
    }

    #[tokio::test]
    async fn a_failure_is_no_team_and_unused_ones_are_forgotten() {
        let teams = StoredTeams::default();
        assert_eq!(teams.get(ONE, async { Err("no model") }).await, Err("no model"));
        let used = prepared(&teams, ONE, 1).await;
        for number in 2..200_u8 {
            drop(prepared(&teams, Digests { whole: [number; 32], for_any_task: None }, 0).await);
        }
        assert!(teams.all().len() < 100, "{}", teams.all().len());
        assert!(Arc::ptr_eq(&used, &prepared(&teams, ONE, 2).await));
    }
}
