//! `[rollout.store]` Used by `compile::tls`, `decode::store` and `replica`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use super::identity::RawClientTls;
use crate::config::problem::Spanned;

/// `[rollout.store]`: the shared store of replicas.
#[derive(Debug, Clone, PartialEq)]
pub struct RawStore {
    /// `url`, with the password of `password_file`.
    pub url: Spanned<StoreUrl>,
    /// `password_file`, resolved against the folder of the main file.
    pub password_file: Option<Spanned<PathBuf>>,
    /// `tls`: only if `url` requires TLS.
    pub tls: Option<RawClientTls>,
    /// `prefix` of all keys.
    pub prefix: Spanned<String>,
    /// `timeout`: not zero.
    pub timeout: Spanned<Duration>,
    /// `replica`: the name of this process; by default the host name.
    pub replica: Spanned<String>,
}

/// The address of a shared store. It may contain a password, which `Debug` does not show.
#[derive(Clone)]
pub struct StoreUrl {
    text: String,
    server: ConnectionInfo,
}

/// The reason why a text is not the address of a shared store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreUrlError {
    /// It requests TLS without verification of the server.
    Unverified,
    /// It is not an address of Redis or Valkey.
    Shape,
}

impl StoreUrl {
    /// Parses `redis://`, `valkey://` and `redis+unix://` addresses, and with TLS `rediss://` and `valkeys://`.
    ///
    /// # Errors
    /// [`StoreUrlError`], which does not contain the text: it may contain a password.
    pub fn parse(text: &str) -> Result<StoreUrl, StoreUrlError> {
        // The proxy does TLS itself, so the redis library parses the same address without it.
        let plain = match text.split_once(':') {
            Some((scheme, rest)) if is_secured(scheme) => {
                if rest.contains('#') {
                    return Err(StoreUrlError::Unverified);
                }
                format!("redis:{rest}")
            }
            Some(_) | None => text.to_owned(),
        };
        let server = plain
            .into_connection_info()
            .map_err(|_| StoreUrlError::Shape)?;
        if server.redis_settings().db() < 0 {
            return Err(StoreUrlError::Shape);
        }
        Ok(StoreUrl {
            text: text.to_owned(),
            server,
        })
    }

    /// Returns the server, with credentials and database number.
    #[must_use]
    pub fn server(&self) -> &ConnectionInfo {
        &self.server
    }

    /// Returns whether connections use TLS.
    #[must_use]
    pub fn is_secured(&self) -> bool {
        self.text
            .split_once(':')
            .is_some_and(|(scheme, _)| is_secured(scheme))
    }

    /// Returns the host that the certificate must name; empty for a Unix socket.
    #[must_use]
    pub fn host(&self) -> &str {
        let ConnectionAddr::Tcp(host, _) = self.server.addr() else {
            return "";
        };
        host
    }

    /// Returns the password, if any.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        self.server.redis_settings().password()
    }

    /// Returns the same server with a password.
    #[must_use]
    pub fn with_password(self, password: &str) -> StoreUrl {
        let settings = self.server.redis_settings().clone();
        StoreUrl {
            text: self.text,
            server: self
                .server
                .set_redis_settings(settings.set_password(password)),
        }
    }
}

fn is_secured(scheme: &str) -> bool {
    scheme == "rediss" || scheme == "valkeys"
}

impl PartialEq for StoreUrl {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.password() == other.password()
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.server.redis_settings();
        f.debug_struct("StoreUrl")
            .field("address", &self.server.addr().to_string())
            .field("database", &settings.db())
            .field("username", &settings.username())
            .field("password", &settings.password().map(|_| "***"))
            .finish_non_exhaustive()
    }
}
