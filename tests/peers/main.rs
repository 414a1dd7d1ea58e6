//! Real clients, servers and tools, which `.ci/install-peers` installs. The tests are ignored unless they are asked for.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a peer that does not do as the test says fails the test"
)]

mod conformance;
mod eras;
mod installed;
mod originals;
mod processes;
