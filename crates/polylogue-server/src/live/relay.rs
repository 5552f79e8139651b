//! One conversation, from its holder to one who follows it.

use std::time::Duration;

use polylogue_core::{LogId, Subscription, Update};
use polylogue_runtime::Runtime;
use polylogue_wire::stream::ReplyDelta;
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep};

use super::pieces::{OrderedDelta, PieceOrder};
use super::wire::{FRAME_BYTES, Of, Sent, line_of};

/// How long a conversation that is claimed may take until it is open.
const OPENING: Duration = Duration::from_secs(10);

/// How often it is looked whether it is.
const LOOK: Duration = Duration::from_millis(10);

/// The most replies of which it is said that an event ends them, which are few: a line has a bound.
const ENDS: usize = 64;

/// Sends what happens in a conversation until it ends here, or `lines` is closed. Of a slow reader pieces are dropped, not kept.
pub(super) async fn relay(runtime: Runtime, id: LogId, number: u64, lines: Sender<Vec<u8>>) {
    if let Some(mut updates) = opened(&runtime, &id).await {
        let mut order = PieceOrder::new(updates.next_seq());
        // The pieces that come now are of replies after it, which a follower shows once it has read it.
        if let Some(seq) = updates.next_seq().checked_sub(1) {
            let news = Of::Stored { seq, ends: Vec::new() };
            if lines.send(line_of(&Sent { number, news })).await.is_err() {
                return;
            }
        }
        while let Some(update) = updates.next().await {
            let line = of_update(&mut order, update).and_then(|news| within(&mut order, number, news));
            if let Some(line) = line
                && lines.send(line).await.is_err()
            {
                return;
            }
        }
    }
    // The reader may have gone.
    let _ = lines.send(line_of(&Sent { number, news: Of::Ended })).await;
}

/// Its updates, once this process has opened it.
async fn opened(runtime: &Runtime, id: &LogId) -> Option<Subscription> {
    let begun = Instant::now();
    loop {
        if let Some(updates) = runtime.subscribe(id).await {
            return Some(updates);
        }
        if begun.elapsed() > OPENING {
            return None;
        }
        sleep(LOOK).await;
    }
}

fn of_update(order: &mut PieceOrder, update: Update) -> Option<Of> {
    match update {
        Update::Event(event) => {
            let mut ends = order.event(&event);
            // Followers notice the end of others by the next pieces.
            ends.truncate(ENDS);
            Some(Of::Stored { seq: event.seq, ends })
        }
        Update::Delta { chat: at, who, delta } => {
            let piece = ReplyDelta::of(&at, &who, &delta)?;
            let (after, nth) = order.place(&at, &who, &delta)?;
            Some(Of::Piece(OrderedDelta { after, nth, piece }))
        }
        Update::Missed { .. } => {
            order.lose_pieces();
            Some(Of::Missed)
        }
        _ => None,
    }
}

/// The line, unless it is too long: then the reply is not shown any further.
fn within(order: &mut PieceOrder, number: u64, news: Of) -> Option<Vec<u8>> {
    let line = line_of(&Sent { number, news: news.clone() });
    match news {
        Of::Piece(OrderedDelta { piece, .. }) if line.len() > FRAME_BYTES => {
            order.forget(&piece.chat, &piece.who);
            None
        }
        _ => Some(line),
    }
}
