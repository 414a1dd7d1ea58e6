//! Connections to the servers behind the proxy, the bodies that go there, and the tasks that serve them.
//!
//! A transport knows connections, frames and deadlines; it knows no route and no flag. Laws: a call is sent
//! twice only when nothing of the first one was sent, or when its effect allows it; a connection goes back
//! to the pool only after a whole answer to a whole request.

mod body;
mod http;
mod read;
mod tap;
mod tasks;

pub use body::{Body, BodyFault, Progress, Upload};
pub use http::{Exchange, HttpUpstream, Lease, Permit, Repeat, UpstreamError};
pub use read::{ReadFault, read_charged, read_whole, violation_of};
pub use tap::{Budget, Missing, Tap};
pub use tasks::Tasks;
