//! `[rollout.store]`, as the files say it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use crate::config::problem::Spanned;
use crate::config::raw::RawClientTls;

/// `[rollout.store]`: the server that many replicas share.
#[derive(Debug, Clone, PartialEq)]
pub struct RawStore {
    /// `url`, with the password of `password_file`.
    pub url: Spanned<StoreUrl>,
    /// `password_file`, resolved against the folder of the main file.
    pub password_file: Option<Spanned<PathBuf>>,
    /// `tls`: only where `url` asks for TLS.
    pub tls: Option<RawClientTls>,
    /// `prefix`: what the keys begin with.
    pub prefix: Spanned<String>,
    /// `timeout`: not zero.
    pub timeout: Spanned<Duration>,
    /// `replica`: what this process is called among the others; the name of the host unless said.
    pub replica: Spanned<String>,
}

/// The address of a shared store. It may hold a password, which its `Debug` does not show.
#[derive(Clone)]
pub struct StoreUrl {
    text: String,
    server: ConnectionInfo,
}

/// Why a text is no address of a shared store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreUrlError {
    /// It asks for TLS to whoever answers.
    Unverified,
    /// It is no address of Redis or Valkey.
    Shape,
}

impl StoreUrl {
    /// Reads `redis://`, `valkey://` and `redis+unix://` addresses, and `rediss://` and `valkeys://` of TLS.
    ///
    /// # Errors
    /// [`StoreUrlError`], which says nothing of the text, since that may hold a password.
    pub fn parse(text: &str) -> Result<StoreUrl, StoreUrlError> {
        // TLS is this program's own, so what reads the rest of the address is shown the same one without it.
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

    /// The server, with credentials and the number of the database.
    #[must_use]
    pub fn server(&self) -> &ConnectionInfo {
        &self.server
    }

    /// Whether connections to it are of TLS.
    #[must_use]
    pub fn is_secured(&self) -> bool {
        self.text
            .split_once(':')
            .is_some_and(|(scheme, _)| is_secured(scheme))
    }

    /// The host whose certificate is asked for; empty for a socket in the file system.
    #[must_use]
    pub fn host(&self) -> &str {
        let ConnectionAddr::Tcp(host, _) = self.server.addr() else {
            return "";
        };
        host
    }

    /// The password, if there is one.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        self.server.redis_settings().password()
    }

    /// The same server with a password.
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
