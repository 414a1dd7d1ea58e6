//! Floor 4: what stands on sockets.

pub mod wire;
