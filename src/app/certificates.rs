//! The TLS configuration of the listener under the plan in force. All workers share one, so that each of them can
//! resume the TLS session of a returning client.
//!
//! Used by `run`.

use std::cell::RefCell;
use std::sync::Arc;

use tokio_rustls::rustls::ServerConfig;

use dualgauge_model::plan::Plan;
use dualgauge_net::tls_config::{self, TlsFault};
use dualgauge_transport::tls::ServerTls;

/// The TLS configuration for new connections; borrowed only between awaits.
#[derive(Debug)]
pub(super) struct Certificates(RefCell<KnownCertificates>);

#[derive(Debug, Clone)]
struct KnownCertificates {
    tls: Option<Arc<ServerTls>>,
    config: Option<Arc<ServerConfig>>,
}

impl KnownCertificates {
    fn from_plan(plan: &Plan) -> Result<KnownCertificates, TlsFault> {
        Ok(KnownCertificates {
            tls: plan.tls.clone(),
            config: plan.tls.as_deref().map(tls_config::server).transpose()?,
        })
    }
}

impl Certificates {
    /// Loads the configuration of the first plan.
    ///
    /// # Errors
    /// Returns a [`TlsFault`], but never for a compiled plan.
    pub(super) fn from_plan(plan: &Plan) -> Result<Certificates, TlsFault> {
        KnownCertificates::from_plan(plan).map(|known| Certificates(RefCell::new(known)))
    }

    /// Returns the configuration for connections from now on. If nothing has changed it is the same one, so that
    /// clients can resume their sessions.
    pub(super) fn follow(&self, plan: &Plan) -> Option<Arc<ServerConfig>> {
        let mut known = self.0.borrow_mut();
        if known.tls != plan.tls {
            match KnownCertificates::from_plan(plan) {
                Ok(next) => {
                    *known = next;
                    tracing::info!("new connections use the new files of `listen.tls`");
                }
                Err(fault) => {
                    tracing::error!(%fault, "`listen.tls` cannot be reloaded; the previous files stay in use");
                }
            }
        }
        known.config.clone()
    }
}
