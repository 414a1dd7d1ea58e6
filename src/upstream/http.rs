//! An HTTP upstream within one worker: its plan, and its connection pool.
//!
//! Used by `gateway`, `mcp` and `upstream`.

use std::rc::Rc;

use dualgauge_model::plan::UpstreamPlan;
use dualgauge_net::tls_config::Alpn;
use dualgauge_net::{ConnectionPool, Connector, PoolSettings, Tasks};
use dualgauge_transport::load_balancing::AddressPlan;

/// An HTTP server as an upstream.
#[derive(Debug)]
pub struct HttpUpstream {
    plan: UpstreamPlan,
    pool: Rc<ConnectionPool>,
}

impl HttpUpstream {
    /// Creates an upstream without connections.
    #[must_use]
    pub fn new(plan: UpstreamPlan, tasks: Tasks) -> HttpUpstream {
        HttpUpstream {
            pool: Rc::new(ConnectionPool::new(settings(&plan), tasks)),
            plan,
        }
    }

    /// Returns the plan of the upstream.
    #[must_use]
    pub fn plan(&self) -> &UpstreamPlan {
        &self.plan
    }

    /// Returns the connection pool.
    #[must_use]
    pub fn pool(&self) -> &Rc<ConnectionPool> {
        &self.pool
    }
}

fn settings(plan: &UpstreamPlan) -> PoolSettings {
    PoolSettings {
        name: plan.name.clone(),
        addresses: std::iter::once(plan.address())
            .chain(plan.more.iter().cloned())
            .collect(),
        tls: plan.tls.clone(),
        authority: plan.authority.as_str().to_owned(),
        host: plan.authority.host().cloned(),
        load_balancing: load_balancing(plan),
        http2: plan.http2,
        timeout: plan.timeout,
        connect_timeout: plan.connect_timeout,
        keep_alive: plan.keep_alive,
        max_age: plan.max_age,
        connections: plan.connections,
        queue: plan.queue,
    }
}

/// Returns the load balancing of a plan, with health checks below the base path.
fn load_balancing(plan: &UpstreamPlan) -> AddressPlan {
    let mut watch = plan.watch.clone();
    if let Some(check) = &mut watch.check
        && let Ok(path) = check.path.parse()
    {
        check.path = plan.uri_with_base(path).to_string();
    }
    watch
}

/// Returns a connector to the first address of a plan.
pub(super) fn connector(plan: &UpstreamPlan, alpn: Alpn) -> Connector {
    Connector::new(&plan.address(), plan.tls.as_deref(), alpn)
}
