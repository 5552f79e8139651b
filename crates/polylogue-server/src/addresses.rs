//! How much of each address is open at the same time: its connections, or its requests where a trusted proxy has the connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use http_body_util::BodyExt as _;

/// Counts what is open of each address.
pub(crate) struct Addresses {
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
    most: usize,
}

/// One that is open, until it is dropped.
pub(crate) struct Entered {
    address: IpAddr,
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Addresses {
    pub(crate) fn new(most: usize) -> Self {
        Self { open: Arc::default(), most }
    }

    /// One more of `address`, unless there are as many as it can have.
    pub(crate) fn enter(&self, address: IpAddr) -> Option<Entered> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.get(&address).copied().unwrap_or_default();
        if count >= self.most {
            return None;
        }
        open.insert(address, count + 1);
        Some(Entered { address, open: Arc::clone(&self.open) })
    }
}

impl Entered {
    /// A body that has it open until it is sent, or its client is gone.
    pub(crate) fn until_sent(self, body: Body) -> Body {
        Body::new(body.map_err(move |error| {
            // It is dropped with the body.
            let _held = &self;
            error
        }))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_of_an_address_are_open_as_it_can_have() {
        let addresses = Addresses::new(2);
        let [one, other]: [IpAddr; 2] = ["203.0.113.9", "::1"].map(|text| text.parse().unwrap());
        let first = addresses.enter(one).unwrap();
        let _second = addresses.enter(one).unwrap();
        assert!(addresses.enter(one).is_none() && addresses.enter(other).is_some());
        drop(first);
        assert!(addresses.enter(one).is_some(), "there is room again");
        assert_eq!(addresses.open.lock().unwrap().len(), 1, "what has nothing open is not remembered");
    }
}
