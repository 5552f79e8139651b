//! One conversation at a time: its CPU next to that of the library, and the time to its first token.

use std::time::{Duration, Instant};

use polylogue_client::wire::conversation::{Conversation, ConversationState, NewConversation};
use polylogue_client::{Client, TailItem};
use polylogue_http::{Key, Proxies};

use super::host::Host;
use crate::child::{cost, measure_library};
use crate::job::{RUNS, Result};
use crate::scripted::shape;
use crate::table;

/// How often the time to the first token is taken.
const FIRST: usize = 50;

pub(super) async fn report() -> Result<()> {
    let (calls, _) = shape("quick")?;
    let (mut library, mut server, mut watched) = (f64::MAX, f64::MAX, f64::MAX);
    let mut host = Host::start()?;
    let client = client(&host)?;
    run(&client, calls, false).await?;
    for _ in 0..RUNS {
        library = library.min(cost(measure_library()?)?.cpu_us);
        for (is_watched, least) in [(false, &mut server), (true, &mut watched)] {
            host.cost()?;
            run(&client, calls, is_watched).await?;
            *least = least.min(host.cost()?.cpu_us);
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a few hundred calls")]
    let row = |name: &str, cpu: f64| {
        vec![name.to_owned(), format!("{:.0} µs", cpu / calls as f64), format!("{:.2}", cpu / library)]
    };
    let rows = [
        row("library, log in SQLite", library),
        row("server, no one watches", server),
        row("server, with a tail", watched),
    ];
    table::print(
        &format!("CPU per call of one chat of {calls} scripted calls"),
        &["", "CPU", "ratio"],
        &rows,
    );
    first_token(&client).await
}

pub(super) fn client(host: &Host) -> Result<Client> {
    let token = Key::new(&host.ready.token).ok_or("the token is blank")?;
    Ok(Client::new(&host.ready.url, &token, &Proxies::none())?)
}

pub(super) fn new(team: &str) -> NewConversation {
    NewConversation { team: team.to_owned(), ..NewConversation::default() }
}

/// Runs a chat of so many calls to its end.
async fn run(client: &Client, calls: u64, is_watched: bool) -> Result<()> {
    let Conversation { id, .. } = client.begin(&new("quick")).await?;
    if is_watched {
        let mut tail = client.tail(&id, 0);
        while tail.next().await?.is_some() {}
    }
    loop {
        let about = client.conversation(&id).await?;
        if about.state == ConversationState::Closed {
            return match about.usage.calls == calls {
                true => Ok(()),
                false => {
                    Err(format!("the chat ended after {} calls: {:?}", about.usage.calls, about.ended).into())
                }
            };
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The time from the request that begins a conversation to the first piece of a reply in its tail, above what the model takes.
async fn first_token(client: &Client) -> Result<()> {
    let (_, delay) = shape("first")?;
    let mut added = Vec::new();
    for _ in 0..FIRST {
        let begun = Instant::now();
        let Conversation { id, .. } = client.begin(&new("first")).await?;
        let mut tail = client.tail(&id, 0);
        while let Some(item) = tail.next().await? {
            if matches!(item, TailItem::Delta { .. }) {
                let above = begun.elapsed().checked_sub(Duration::from_millis(delay));
                added.push(above.ok_or("the model replied before it was to")?);
                break;
            }
        }
    }
    if added.len() < FIRST {
        return Err("a conversation had no piece of a reply".into());
    }
    added.sort_unstable();
    let at = |share: usize| added.get((FIRST * share / 100).min(FIRST - 1)).copied().unwrap_or_default();
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let row = ["time above the model's".to_owned(), ms(at(0)), ms(at(50)), ms(at(99))];
    table::print(
        "First token of a new conversation through the server",
        &["", "least", "median", "p99"],
        &[row.to_vec()],
    );
    Ok(())
}
