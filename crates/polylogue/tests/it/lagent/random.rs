//! Sessions at random: calls, calls that fail, resets, loads and new processes in any order leave what a list of messages for each
//! agent would hold, and models are sent that.

use polylogue::agents::session::{Forget, State};
use polylogue::{AnyModel, Session};
use polylogue_core::{
    AnyStore, DeltaSink, LogId, Model, ModelError, ModelErrorKind, Reply, Request, text_of,
};
use polylogue_store::Memory;
use polylogue_test::random::Random;

use crate::lagent::parts::Blogger;

/// Says who it is, how much it was sent and what was last; fails when that names it.
struct Echo;

impl Model for Echo {
    fn name(&self) -> &'static str {
        "test:echo"
    }
    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let who = request.origin.who;
        let last =
            request.entries.last().map(|entry| text_of(entry.parts()).into_owned()).unwrap_or_default();
        if last.contains(&format!("fail {who}")) {
            return Err(ModelError::new(ModelErrorKind::Unavailable, self.name(), "as scripted"));
        }
        Ok(Reply::new(said(who.as_str(), request.entries.len(), &last)))
    }
}

fn said(who: &str, sent: usize, last: &str) -> String {
    format!("{who}{sent}<{last}>")
}

/// What each should remember: under `memory`, `writer.memory` and `critic.memory`.
#[derive(Clone, Default, PartialEq, Debug)]
struct Expected([Vec<String>; 3]);

const KEYS: [&str; 3] = ["memory", "writer.memory", "critic.memory"];

impl Expected {
    fn ask(&mut self, nth: usize, who: &str, text: &str) -> Option<String> {
        if text.contains(&format!("fail {who}")) {
            return None;
        }
        let reply = said(who, self.0[nth].len() + 1, text);
        self.0[nth].extend([text.to_owned(), reply.clone()]);
        Some(reply)
    }

    /// What a call gives, which leaves nothing when it fails.
    fn call(&mut self, text: &str) -> Option<String> {
        let mut after = self.clone();
        let draft = after.ask(1, "writer", text)?;
        let criticism = after.ask(2, "critic", &draft)?;
        let post = after.ask(1, "writer", &criticism)?;
        after.0[0].extend([text.to_owned(), post.clone()]);
        *self = after;
        Some(post)
    }

    fn of(state: &State) -> Self {
        let texts =
            |key: &str| state.get(key).unwrap().iter().map(|message| message.text().into_owned()).collect();
        assert_eq!(state.keys().collect::<Vec<_>>(), KEYS);
        Self(KEYS.map(texts))
    }
}

async fn play(seed: u64) -> [usize; 6] {
    let (mut random, mut done) = (Random::new(seed), [0; 6]);
    let (store, id) = (AnyStore::new(Memory::new()), || LogId::new("random").unwrap());
    let blogger = Blogger::new("blogger", &AnyModel::new(Echo), 1);
    let mut session = Session::create(store.clone(), id()).await.unwrap();
    let mut expected = Expected::default();
    let mut kept = (session.state(&blogger).await.unwrap(), expected.clone());
    for nth in 0..14 {
        let step = random.index(6);
        done[step] += 1;
        match step {
            0 | 1 => {
                let fails = ["", "", "fail writer", "fail critic"][random.index(4)];
                let text = format!("t{nth} {fails}");
                let came = session.call(&blogger, &*text).await;
                assert_eq!(came.ok().map(|reply| reply.text().into_owned()), expected.call(&text));
            }
            2 => {
                let which = random.index(4);
                let forget =
                    [Forget::Own, Forget::SubAgent("writer"), Forget::SubAgent("critic"), Forget::All][which];
                session.reset(&blogger, forget).await.unwrap();
                match which {
                    3 => expected = Expected::default(),
                    which => expected.0[which].clear(),
                }
            }
            3 => kept = (session.state(&blogger).await.unwrap(), expected.clone()),
            4 => {
                session.load(&blogger, &kept.0).await.unwrap();
                expected = kept.1.clone();
            }
            _ => {
                session.into_log().release().await.unwrap();
                session = Session::open(store.clone(), id()).await.unwrap();
            }
        }
        assert_eq!(Expected::of(&session.state(&blogger).await.unwrap()), expected, "{seed}, step {nth}");
    }
    done
}

/// L12, L17, L18, L19.
#[tokio::test]
async fn random_sessions_remember_their_finished_calls() {
    let mut done = [0; 6];
    for seed in 0..300 {
        let steps = play(seed).await;
        done.iter_mut().zip(steps).for_each(|(sum, count)| *sum += count);
    }
    assert!(done.iter().all(|count| *count > 100), "{done:?}");
}
