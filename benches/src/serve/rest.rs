//! Many conversations that wait for people, each with a live tail, of which some are answered: what a quiet crowd costs, and how long an
//! answer takes in it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use polylogue_client::Client;
use polylogue_client::wire::conversation::Conversation;
use polylogue_http::{HeaderMap, Method, Transport};
use tokio::sync::{Semaphore, watch};

use super::crowd::{Checked, transport};
use super::host::Host;
use super::single::{client, new};
use crate::job::Result;
use crate::table;

/// How many are begun at the same time.
const BEGINNING: usize = 32;

/// How long answers are measured.
const MEASURED: Duration = Duration::from_secs(20);

/// Answers in a second, of all conversations together.
const RATES: [u32; 3] = [20, 100, 300];

/// How many answers a second are sent; 0 before the first and after the last.
type Rate = watch::Receiver<u32>;

pub(super) async fn report(conversations: usize) -> Result<()> {
    let mut host = Host::start()?;
    let (client, transport) = (client(&host)?, transport(&host)?);
    let permits = Semaphore::new(BEGINNING);
    let (rate, rates) = watch::channel(0);
    let (waiting, mut all_wait) = watch::channel(0_usize);
    let (added, mut times) = tokio::sync::mpsc::unbounded_channel();
    let mut tails = FuturesUnordered::new();
    for number in 0..conversations {
        let one = One { client: &client, transport: &transport, permits: &permits, number, conversations };
        tails.push(one.follow(rates.clone(), &waiting, added.clone()));
    }
    drop(added);
    let measuring = async {
        let begun = Instant::now();
        all_wait.wait_for(|waiting| *waiting == conversations).await?;
        let began_in = begun.elapsed();
        host.cost()?;
        let mut rows = Vec::new();
        for per_second in RATES {
            tokio::time::sleep(Duration::from_secs(1)).await;
            while times.try_recv().is_ok() {}
            host.cost()?;
            rate.send_replace(per_second);
            tokio::time::sleep(MEASURED).await;
            rate.send_replace(0);
            let cost = host.cost()?;
            let mut taken = Vec::new();
            while let Ok(time) = times.try_recv() {
                taken.push(time);
            }
            rows.push(row(per_second, taken, &cost));
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>((began_in, rows))
    };
    let following = async {
        while let Some(ended) = tails.next().await {
            ended?;
        }
        Err::<(), Box<dyn std::error::Error + Send + Sync>>("all tails have ended".into())
    };
    let (began_in, rows) = tokio::select! {
        measured = measuring => measured?,
        failed = following => return failed,
    };
    let title = format!(
        "{conversations} conversations that wait for people, each with a tail (begun in {:.0} s): an answer, a call of 500 ms, and its reply in the \
         tail. No event was lost or came twice.",
        began_in.as_secs_f64()
    );
    table::print(&title, &["answers/s", "answered", "median", "p99", "CPU of the server", "memory"], &rows);
    Ok(())
}

fn row(per_second: u32, mut taken: Vec<Duration>, cost: &crate::job::Cost) -> Vec<String> {
    taken.sort_unstable();
    let at = |share: usize| taken.get(taken.len() * share / 100);
    let ms = |share| at(share).map_or("?".to_owned(), |time| format!("{:.1} ms", time.as_secs_f64() * 1e3));
    vec![
        per_second.to_string(),
        taken.len().to_string(),
        ms(50),
        ms(99),
        format!("{:.0} %", cost.cpu_us / cost.wall_us * 100.0),
        cost.peak_kib.map_or("?".to_owned(), |kib| format!("{} MiB", kib / 1024)),
    ]
}

/// A conversation.
struct One<'c> {
    client: &'c Client,
    transport: &'c Transport,
    permits: &'c Semaphore,
    number: usize,
    conversations: usize,
}

impl One<'_> {
    /// Follows it, and answers its questions at its share of the rate.
    async fn follow(
        self,
        mut rates: Rate,
        waiting: &watch::Sender<usize>,
        added: tokio::sync::mpsc::UnboundedSender<Duration>,
    ) -> Result<()> {
        let permit = self.permits.acquire().await?;
        let Conversation { id, .. } = self.client.begin(&new("asks")).await?;
        let url = format!("{}/api/v1/conversations/{id}/events", self.client.url()).parse()?;
        let mut response =
            self.transport.ask(Method::GET, Some(&url), HeaderMap::new(), Bytes::new()).await?;
        let (mut tail, mut permit, mut turn) = (Checked::default(), Some(permit), 0);
        loop {
            let question = tail.question.take();
            if question.is_some() && permit.take().is_some() {
                waiting.send_modify(|waiting| *waiting += 1);
            }
            if let Some(question) = question {
                self.wait(&mut rates, turn).await?;
                turn += 1;
                tail.last = Some(Instant::now());
                self.client.answer(&id, question, "Go on.").await?;
            }
            while tail.question.is_none() {
                let bytes = response.chunk().await?.ok_or("a tail has ended")?;
                tail.feed(&bytes)?;
            }
            for time in tail.added.drain(..) {
                let _ = added.send(time);
            }
        }
    }

    /// Waits for its time to answer: each conversation has its place in a round in which all of them answer once, moved a bit each time.
    async fn wait(&self, rates: &mut Rate, turn: usize) -> Result<()> {
        loop {
            let rate = *rates.wait_for(|rate| *rate > 0).await?;
            #[expect(clippy::cast_precision_loss, reason = "counts of conversations")]
            let round = Duration::from_secs_f64(self.conversations as f64 / f64::from(rate));
            let place = (self.number * 7_919 + turn * 104_729) % self.conversations.max(1);
            #[expect(clippy::cast_precision_loss, reason = "counts of conversations")]
            let share = place as f64 / self.conversations.max(1) as f64;
            tokio::select! {
                () = tokio::time::sleep(round.mul_f64(share)) => return Ok(()),
                changed = rates.changed() => changed?,
            }
        }
    }
}
