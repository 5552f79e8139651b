//! The methods of queues, for queues of any type.

use std::pin::Pin;

use super::claim::{Claim, LeaseNumber};
use super::due::{Due, Heartbeat, ParkedLog};
use super::features::Features;
use super::overview::{QueueOverview, WorkerInfo};
use crate::{LogId, StoreError};

pub(super) type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Passes the methods of a queue to a macro that writes each of them.
macro_rules! queue_methods {
    ($write:ident) => {
        $write! {
            claim_due(room: val usize, offers: by Features, except: by [LogId], ended: val LeaseNumber) -> Vec<Claim>;
            last_lease() -> LeaseNumber;
            release_until(claim: val Claim, due: val Due) -> ();
            release_at_rest(claim: val Claim, due: val Due) -> ();
            release_failed(claim: val Claim, due: val Due, why: by str) -> ();
            release_to_others(claim: val Claim, why: by str) -> ();
            schedule(id: by LogId, due: val Due, needs: maybe Features) -> ();
            set_needs(id: by LogId, needs: by Features) -> ();
            needs(id: by LogId) -> Features;
            is_queued(id: by LogId) -> bool;
            continue_if_lost(claim: by Claim) -> ();
            heartbeat(claims: by [Claim]) -> Vec<Heartbeat>;
            parked() -> Vec<ParkedLog>;
            announce(worker: maybe WorkerInfo) -> ();
            overview(most: val usize) -> QueueOverview;
        }
    };
}

/// The type of an argument: by value, by reference, or a reference if there is one.
macro_rules! argument {
    ($($life:lifetime)? val $ty:ty) => { $ty };
    ($($life:lifetime)? by $ty:ty) => { &$($life)? $ty };
    ($($life:lifetime)? maybe $ty:ty) => { Option<&$($life)? $ty> };
}

macro_rules! dyn_queue {
    ($($name:ident($($arg:ident: $kind:ident $ty:ty),*) -> $out:ty;)*) => {
        /// A [`Queue`](super::Queue) of any type: what [`Store::as_queue`](super::Store::as_queue) returns. Every queue is one.
        pub trait DynQueue: Send + Sync {
            $(
                #[doc = concat!("[`Queue::", stringify!($name), "`](super::Queue::", stringify!($name), ").")]
                fn $name<'a>(&'a self, $($arg: argument!('a $kind $ty)),*) -> Boxed<'a, $out>;
            )*
        }
    };
}

queue_methods!(dyn_queue);

pub(super) use {argument, queue_methods};
