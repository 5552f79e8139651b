//! What stores are made of, for implementers of further ones: serialized batches, linked events, names of holders, a clock for leases,
//! inbox messages, archives.

pub use crate::batch::Batch;
pub use crate::claims::{ClaimGuard, this_process, with_lease};
pub use crate::clock::uptime;
pub use crate::intact::{EventCollector, EventError, EventRow, parse_event};
pub use crate::message::parse_message;
pub use crate::packed::{StoredRow, packed, packed_blob, unpacked, unpacked_blob};
pub use crate::sealed::{first_link, sealed, unsealed};
