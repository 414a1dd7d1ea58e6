//! The settings of a connection pool.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

use dualgauge_transport::load_balancing::AddressPlan;
use dualgauge_transport::multiplexing::Multiplexing;
use dualgauge_transport::tls::ClientTls;

/// The settings of a pool.
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// The name of the server in logs and errors.
    pub name: String,
    /// The addresses, as `host:port`; at least one.
    pub addresses: Vec<String>,
    /// TLS to the server; `None` for plain connections.
    pub tls: Option<Arc<ClientTls>>,
    /// The `:authority` of requests that name none.
    pub authority: String,
    /// The `Host` of health checks; without it the server counts as unhealthy.
    pub host: Option<HeaderValue>,
    /// Load balancing and health checks of the addresses.
    pub load_balancing: AddressPlan,
    /// The use of HTTP/2.
    pub http2: Multiplexing,
    /// The timeout of a call. A shared connection whose call is dropped after this time takes no further calls.
    pub timeout: Duration,
    /// The timeout for opening a connection.
    pub connect_timeout: Duration,
    /// The time for which an idle connection is kept.
    pub keep_alive: Duration,
    /// The maximum age of a connection; it then takes no further calls.
    pub max_age: Option<Duration>,
    /// The maximum number of concurrent calls.
    pub connections: usize,
    /// The maximum number of calls that wait for a permit.
    pub queue: usize,
}
