//! The login of a link: the call that is sent before any other, and its effect on the link.
//!
//! Law: no call of a caller is written to a link before its login has succeeded.

use std::time::Duration;

use bytes::Bytes;

use super::link_machine::LinkMachine;
use super::login::LoginOwner;
use super::state::{LinkState, WriteState};
use super::{LinkFault, RequestError};
use crate::jsonrpc::{self, ResponseReply, parse_response};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::rope::Rope;

impl LinkMachine {
    /// Starts the login of a link that is open and has completed its handshake, or declares the link ready.
    pub(super) fn log_in(&mut self, now: Duration, by: Duration) {
        match self.settings.login {
            Some(_) => self.state = LinkState::LoggingIn { id: None, by },
            None => self.ready(now),
        }
    }

    /// Writes the login call, once the messages of the handshake are written. Returns true if it has been written now.
    pub(super) fn write_login(&mut self) -> bool {
        let LinkState::LoggingIn { id: None, by } = self.state else {
            return false;
        };
        let Some(login) = self.settings.login.clone() else {
            return false;
        };
        let id = self.next_id();
        let message = jsonrpc::request(id, &login.method, Rope::from(login.params), &[]);
        self.state = LinkState::LoggingIn { id: Some(id), by };
        self.write(message.into_bytes(), WriteState::Busy);
        true
    }

    /// Handles the server's response to the login. Its text is never kept: it may repeat the credentials.
    pub(super) fn logged_in(&mut self, now: Duration, message: &Bytes) {
        let answer = parse_response(message, self.settings.depth);
        match answer.map(|answer| answer.reply) {
            Ok(ResponseReply::Result(result)) => match self.refusal(&result) {
                None => {
                    self.counts.logins.ok += 1;
                    self.login_error = None;
                    self.ready(now);
                }
                Some(why) => self.login_refused(why.to_owned()),
            },
            Ok(ResponseReply::Error(error)) => {
                self.login_refused(format!("it answered with the error {}", error.code));
            }
            Err(_) => self.login_refused("its response is not valid".to_owned()),
        }
    }

    /// Returns the reason why a result refuses the login, if it does.
    fn refusal(&self, result: &Json) -> Option<&'static str> {
        let login = self.settings.login.as_ref();
        match login.and_then(|login| login.expect.as_ref()) {
            Some(expect) if expect.admits(result, self.settings.depth) => None,
            Some(_) => Some("its result does not match `expect`"),
            None if result.as_bytes() == b"false" => Some("its result is `false`"),
            None => None,
        }
    }

    /// Closes the link because the server refused the login.
    pub(super) fn login_refused(&mut self, why: String) {
        self.counts.logins.refused += 1;
        let login = self.settings.login.as_ref();
        self.login_error = Some(match login.map(|login| login.whose) {
            Some(LoginOwner::Caller) => RequestError::Unauthenticated,
            Some(LoginOwner::Proxy) | None => RequestError::LoginFailed,
        });
        self.close(LinkFault::LoginRefused(why));
    }

    /// Closes the link because the login got no response in time.
    pub(super) fn login_late(&mut self) {
        self.counts.logins.timeout += 1;
        self.login_error = Some(RequestError::LoginFailed);
        self.close(LinkFault::LoginLate);
    }

    /// Records that the link broke during its login, or could not be opened.
    pub(super) fn login_cut(&mut self) {
        match self.state {
            LinkState::LoggingIn { .. } => {
                self.counts.logins.cut += 1;
                self.login_error = Some(RequestError::LoginFailed);
            }
            LinkState::Opening(_) => self.login_error = None,
            LinkState::Down(_)
            | LinkState::Greeting { .. }
            | LinkState::Ready(_)
            | LinkState::Leaving(_)
            | LinkState::Closing => {}
        }
    }

    /// Returns true if a response with the id `spelled`, or an error without a usable id, is the response to the login:
    /// the server has no other request to answer. An error about `notifications/initialized` breaks the protocol.
    pub(super) fn is_about_login(&self, spelled: Option<u64>) -> bool {
        match (self.state, spelled) {
            (LinkState::LoggingIn { id: Some(id), .. }, Some(spelled)) => id == spelled,
            (LinkState::LoggingIn { id: Some(_), .. }, None) => true,
            (_, _) => false,
        }
    }

    /// Returns true if the server has refused a login with the credentials of a caller: further attempts are of no use.
    #[must_use]
    pub fn is_unauthenticated(&self) -> bool {
        self.login_error == Some(RequestError::Unauthenticated)
    }

    /// Returns the error of requests that no link has taken.
    pub(super) fn unsent_error(&self) -> RequestError {
        self.login_error.unwrap_or(RequestError::Unreachable)
    }
}
