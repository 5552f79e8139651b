//! Workers: claims, guards, drains, and the simulation of many of them on virtual time.

mod broken;
mod faults;
mod later;
mod running;
mod simulated;
mod world;
