//! A typed client of `polylogue serve`.
//!
//! | you want to | use |
//! |---|---|
//! | connect | [`Client::new`] with the address and a token |
//! | begin a conversation, and follow it | [`Client::begin`], [`Client::tail`] |
//! | list, find and read conversations | [`Client::list`], [`Client::find`], [`Client::events`] |
//! | answer, send, stop, resume, fork | the methods of these names |
//! | list and read the files that agents have written | [`Client::files`], [`Client::file`] |
//! | see what models were sent, and when | [`Client::view`], [`Client::calls`] |
//! | see what workers run, and what waits for them | [`Client::cluster`] |
//!
//! Documents and bodies are the types of [`wire`], which the server uses, too. A [`Tail`] has every stored event once and in order, over
//! lost connections and restarts of the server.
//!
//! ```no_run
//! use polylogue_client::wire::conversation::NewConversation;
//! use polylogue_client::{Client, TailItem};
//! use polylogue_http::{Key, Proxies};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let token = Key::new(&std::env::var("POLYLOGUE_TOKEN")?).ok_or("no token")?;
//! let client = Client::new("http://127.0.0.1:8787", &token, &Proxies::none())?;
//! let new = NewConversation { team: "writer-critic".into(), ..NewConversation::default() };
//! let conversation = client.begin(&new).await?;
//! let mut tail = client.tail(&conversation.id, 0);
//! while let Some(item) = tail.next().await? {
//!     if let TailItem::Event(event) = item {
//!         println!("{} {:?}", event.seq, event.body);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod client;
mod connection;
mod error;
mod filter;
mod frames;
mod request;
mod tail;

pub use client::Client;
pub use error::ClientError;
pub use filter::ListFilter;
pub use tail::{Tail, TailItem};

pub use polylogue_wire as wire;
