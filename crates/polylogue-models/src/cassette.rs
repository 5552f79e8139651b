//! Recording model calls to a file, and replaying them without a network.
//!
//! A cassette is a file of JSON lines: a header with the format version, then one line for each finished model call.
//! It contains whole requests and replies, and no keys, since requests have none. Lines are linked by checksums like
//! the events of a log: a line that was changed, lost or moved is an error, and so are all lines after it.
//!
//! ```
//! # use polylogue_core::{Entry, Model, Name, Origin, Params, Path, Request, EncodeCache};
//! use polylogue_models::{Cassette, Recorder, Recording, Script, ScriptStep};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("hello.jsonl");
//! # let (at, who, params, wire) = (Path::root(), Name::new("Greeter")?, Params::default(), EncodeCache::default());
//! # let entries = [Entry::user("hello")];
//! # let origin = Origin::new(&at, &who, 0);
//! # let request = Request { origin, system: None, entries: &entries, tools: &[], params: &params, encoded: &wire, reserved: None };
//! let model = Script::new([ScriptStep::say(Name::new("Greeter")?, "Good morning")]).model("demo");
//! let cassette = Cassette::create(&file)?;
//! let recorded = Recorder::new(model, &cassette).complete(&request, &mut ()).await?;
//!
//! let replayer = Recording::open(&file)?.model("script:demo");
//! assert_eq!(replayer.complete(&request, &mut ()).await?, recorded);
//! # Ok(())
//! # }
//! ```

mod difference;
mod error;
mod line;
mod read;
mod recorder;
mod recording;

pub use error::CassetteError;
pub use recorder::{Cassette, Recorder};
pub use recording::{Recording, Replayer};
