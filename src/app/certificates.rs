//! TLS of the listener, as the plan in force has it: one for all workers, so that a client that comes again is known to
//! each of them.

use std::cell::RefCell;
use std::sync::Arc;

use tokio_rustls::rustls::ServerConfig;

use crate::config::compile::tls::{self, TlsFault};
use crate::domain::plan::Plan;
use crate::domain::tls::ServerTls;

/// What new connections are taken in with; borrowed only between awaits.
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
            config: plan.tls.as_deref().map(tls::server).transpose()?,
        })
    }
}

impl Certificates {
    /// Those of the first plan.
    ///
    /// # Errors
    /// [`TlsFault`], for no plan that was compiled.
    pub(super) fn from_plan(plan: &Plan) -> Result<Certificates, TlsFault> {
        KnownCertificates::from_plan(plan).map(|known| Certificates(RefCell::new(known)))
    }

    /// What connections are taken in with from now on. Where nothing has changed it is the same, and with it what
    /// clients may take up again.
    pub(super) fn follow(&self, plan: &Plan) -> Option<Arc<ServerConfig>> {
        let mut known = self.0.borrow_mut();
        if known.tls != plan.tls {
            match KnownCertificates::from_plan(plan) {
                Ok(next) => {
                    *known = next;
                    tracing::info!(
                        "new connections are taken in with the new files of `listen.tls`"
                    );
                }
                Err(fault) => {
                    tracing::error!(%fault, "what was shown to clients before is shown to them still");
                }
            }
        }
        known.config.clone()
    }
}
