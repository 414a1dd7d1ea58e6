//! Hot restart: the successor of this process is the same program with the same arguments and this process's sockets.
//!
//! The successor reports over a socket pair that it serves. Until then this process serves as well, and continues if
//! the successor fails. Connections wait in sockets that both processes have, so none is lost either way.
//!
//! Used by `bound_addresses`, `run`, `signals` and `cli`.

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram as StdDatagram;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use tokio::net::UnixDatagram;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::inherited_sockets::{ADMIN, CALLS, PREDECESSOR};
use crate::config::load::SOFT_NOFILE;

/// The time limit for the successor to serve.
const PATIENCE: Duration = Duration::from_secs(60);
/// The first file descriptor of sd_listen_fds(3).
const FIRST: i32 = 3;
const SERVING: &[u8] = b"serving";

/// The reason why there is no successor.
#[derive(Debug, thiserror::Error)]
pub(super) enum RestartError {
    /// The process could not be started.
    #[error("it could not be started: {0}")]
    Start(#[from] io::Error),
    /// The process exited.
    #[error("it ended before it served: {0}")]
    Ended(ExitStatus),
    /// The process did not serve in time.
    #[error("it did not serve within {PATIENCE:?}")]
    Late,
    /// The process sent an unexpected message.
    #[error("it sent an unexpected message")]
    Odd,
}

/// The sockets and settings that are passed to the successor.
#[derive(Debug)]
pub(super) struct PassedSockets {
    pub(super) calls: Vec<TcpListener>,
    pub(super) admin: TcpListener,
    /// The soft limit of open files that this process was started with, if it has changed.
    pub(super) open_files: Option<u64>,
}

/// A successor that does not serve yet.
#[derive(Debug)]
pub(super) struct Successor {
    child: Child,
    word: UnixDatagram,
}

impl Successor {
    /// Starts the process.
    pub(super) fn start(sockets: &PassedSockets) -> Result<Successor, RestartError> {
        let (own, theirs) = StdDatagram::pair()?;
        own.set_nonblocking(true)?;
        let word = UnixDatagram::from_std(own)?;
        let mut given: Vec<(&str, OwnedFd)> = Vec::new();
        for listener in &sockets.calls {
            given.push((CALLS, listener.try_clone()?.into()));
        }
        given.push((ADMIN, sockets.admin.try_clone()?.into()));
        given.push((PREDECESSOR, theirs.into()));
        let names: Vec<_> = given.iter().map(|(name, _)| *name).collect();
        let mut arguments = std::env::args_os();
        let program = arguments
            .next()
            .unwrap_or_else(|| OsString::from("dualgauge"));
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        set_environment(&mut command, &names, sockets.open_files);
        let mappings = (FIRST..)
            .zip(given)
            .map(|(child_fd, (_, parent_fd))| FdMapping {
                parent_fd,
                child_fd,
            });
        command
            .fd_mappings(mappings.collect())
            .map_err(io::Error::other)?;
        let child = command.spawn()?;
        Ok(Successor { child, word })
    }

    /// Returns the process id.
    pub(super) fn process(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the successor serves; cancel-safe.
    pub(super) async fn serves(&mut self) -> Result<(), RestartError> {
        let mut received = [0; 16];
        let word = async {
            // Both branches are cancel-safe.
            tokio::select! {
                biased;
                length = self.word.recv(&mut received) => match length {
                    Ok(length) if received.get(..length) == Some(SERVING) => Ok(()),
                    Ok(_) => Err(RestartError::Odd),
                    Err(error) => Err(RestartError::Start(error)),
                },
                ended = self.child.wait() => match ended {
                    Ok(status) => Err(RestartError::Ended(status)),
                    Err(error) => Err(RestartError::Start(error)),
                },
            }
        };
        timeout(PATIENCE, word)
            .await
            .unwrap_or(Err(RestartError::Late))
    }

    /// Kills the successor and waits for its end.
    pub(super) async fn give_up(mut self) {
        // Fails only if the process has exited already.
        let _ = self.child.kill().await;
    }
}

/// Sets the variables that announce the sockets of these names to the successor.
fn set_environment(command: &mut Command, names: &[&str], open_files: Option<u64>) {
    command
        .env("LISTEN_FDS", names.len().to_string())
        .env("LISTEN_FDNAMES", names.join(":"))
        // These variables name this process.
        .env_remove("LISTEN_PID")
        .env_remove("WATCHDOG_PID");
    match open_files {
        Some(limit) => command.env(SOFT_NOFILE, limit.to_string()),
        None => command.env_remove(SOFT_NOFILE),
    };
}

/// Reports to the predecessor that this process serves.
pub(super) fn tell(predecessor: &StdDatagram) -> io::Result<()> {
    predecessor.send(SERVING).map(drop)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    /// Another version of the program reads these bytes: they must not change.
    #[test]
    fn the_protocol_between_two_processes_is_stable() {
        let names = [CALLS, CALLS, ADMIN, PREDECESSOR];
        let variables = |open_files| {
            let mut command = Command::new("dualgauge");
            set_environment(&mut command, &names, open_files);
            let text = |text: &OsStr| text.to_str().unwrap().to_owned();
            let all = command.as_std().get_envs();
            let mut all: Vec<_> = all
                .map(|(name, value)| (text(name), value.map(text)))
                .collect();
            all.sort();
            all
        };
        let expected = |open_files: Option<&str>| {
            [
                ("LISTEN_FDNAMES", Some("listen:listen:admin:predecessor")),
                ("LISTEN_FDS", Some("4")),
                ("LISTEN_PID", None),
                ("PREDECESSOR_SOFT_NOFILE", open_files),
                ("WATCHDOG_PID", None),
            ]
            .map(|(name, value)| (name.to_owned(), value.map(str::to_owned)))
        };
        assert_eq!(variables(Some(1024)), expected(Some("1024")));
        assert_eq!(variables(None), expected(None));
        assert_eq!(FIRST, 3);
        let (successor, predecessor) = StdDatagram::pair().unwrap();
        tell(&successor).unwrap();
        let mut received = [0; 16];
        let length = predecessor.recv(&mut received).unwrap();
        assert_eq!(received.get(..length), Some(&b"serving"[..]));
    }
}
