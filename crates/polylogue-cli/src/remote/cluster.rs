//! `cluster` of a server.

use super::named_server::Remote;
use crate::args::worker::Cluster;
use crate::commands::cluster::show;
use crate::error::{CliError, Exit};

pub(super) async fn run(args: &Cluster, remote: &Remote) -> Result<Exit, CliError> {
    let limit = u64::try_from(args.limit).unwrap_or(u64::MAX);
    show(&remote.client.cluster(Some(limit)).await?, args.json, &remote.place)
}
