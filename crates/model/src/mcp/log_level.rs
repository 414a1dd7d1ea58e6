//! Log levels (MCP, "Logging"): of a session in revisions with sessions, of a request in stateless ones.
//!
//! Law: a client of a stateless revision receives no log message that it did not ask for.
//!
//! Used by `mcp`, `gateway` and `upstream`.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use bytes::Bytes;
use memchr::memmem;

use super::outgoing::McpMessage;
use super::result::ClientRevision;
use crate::jsonrpc::{self, Call};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::rope::Rope;

/// The member of `_meta` with the level of a request.
pub(super) const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
/// The method of log messages.
const MESSAGE: &str = "notifications/message";

/// The request that sets the level of a session.
pub const SET_LEVEL: &str = "logging/setLevel";

/// A log level, the least severe first (RFC 5424).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// `debug`
    Debug,
    /// `info`
    Info,
    /// `notice`
    Notice,
    /// `warning`
    Warning,
    /// `error`
    Error,
    /// `critical`
    Critical,
    /// `alert`
    Alert,
    /// `emergency`
    Emergency,
}

impl LogLevel {
    /// All levels, the least severe first.
    pub const ALL: [LogLevel; 8] = [
        LogLevel::Debug,
        LogLevel::Info,
        LogLevel::Notice,
        LogLevel::Warning,
        LogLevel::Error,
        LogLevel::Critical,
        LogLevel::Alert,
        LogLevel::Emergency,
    ];

    /// Returns the word of the protocol.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Notice => "notice",
            LogLevel::Warning => "warning",
            LogLevel::Error => "error",
            LogLevel::Critical => "critical",
            LogLevel::Alert => "alert",
            LogLevel::Emergency => "emergency",
        }
    }

    fn from_json(json: &Json) -> Option<LogLevel> {
        let word = json.text()?.ok()?;
        LogLevel::ALL
            .into_iter()
            .find(|level| level.as_str() == word)
    }

    /// Returns the level in the params of `logging/setLevel`.
    #[must_use]
    pub fn of_params(params: Option<&Json>) -> Option<LogLevel> {
        LogLevel::from_json(&params?.member("level")?)
    }

    /// Returns the level that a request asks for in `_meta`.
    #[must_use]
    pub fn of_request(params: Option<&Json>) -> Option<LogLevel> {
        let params = params?;
        // Fast path: most requests ask for none.
        memchr::memmem::find(params.as_bytes(), LEVEL_KEY.as_bytes())?;
        LogLevel::from_json(&params.member("_meta")?.member(LEVEL_KEY)?)
    }

    /// Returns the level that a whole message asks for in `_meta`.
    #[must_use]
    pub fn of_message(message: &Bytes, depth: u16) -> Option<LogLevel> {
        memchr::memmem::find(message, LEVEL_KEY.as_bytes())?;
        let whole = Json::parse(message.clone(), depth).ok()?;
        LogLevel::of_request(whole.member("params").as_ref())
    }
}

/// The log levels of sessions. Beyond its capacity it forgets the session that was set first.
#[derive(Debug)]
pub struct SessionLevels<K> {
    capacity: usize,
    levels: HashMap<K, LogLevel>,
    /// The sessions in the order in which they were set first.
    order: VecDeque<K>,
}

impl<K: Copy + Eq + Hash> SessionLevels<K> {
    /// Creates a table without sessions.
    #[must_use]
    pub fn new(capacity: usize) -> SessionLevels<K> {
        SessionLevels {
            capacity,
            levels: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Sets the level of a session.
    pub fn set(&mut self, session: K, level: LogLevel) {
        if self.levels.insert(session, level).is_some() {
            return;
        }
        self.order.push_back(session);
        if self.order.len() > self.capacity
            && let Some(first) = self.order.pop_front()
        {
            self.levels.remove(&first);
        }
    }

    /// Returns the level of a session, if it was set.
    #[must_use]
    pub fn get(&self, session: &K) -> Option<LogLevel> {
        self.levels.get(session).copied()
    }
}

/// The level of a session that several callers share, as far as it is known. A stateless client names a level with each
/// request; the session gets the most verbose of them, and each caller only what it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionLogLevel {
    /// True if the server has log messages.
    is_supported: bool,
    level: Option<LogLevel>,
}

impl SessionLogLevel {
    /// Creates the level of a session from the server's response to `initialize`.
    #[must_use]
    pub fn greeted(response: &Bytes, depth: u16) -> SessionLogLevel {
        let result = Json::parse(response.clone(), depth).ok();
        let capabilities = result.and_then(|whole| whole.member("result")?.member("capabilities"));
        SessionLogLevel {
            is_supported: capabilities.is_some_and(|all| all.has("logging")),
            level: None,
        }
    }

    /// Returns true if a message may need a level: the server has log messages, and the message names a level.
    #[must_use]
    pub fn concerns(&self, text: &[u8]) -> bool {
        let names = [LEVEL_KEY.as_bytes(), SET_LEVEL.as_bytes()];
        self.is_supported && names.iter().any(|name| memmem::find(text, name).is_some())
    }

    /// Returns the request that sets the level which a message needs, if that is below the session's. Its id is 0.
    pub fn before(&mut self, message: &McpMessage, text: &Bytes, depth: u16) -> Option<Bytes> {
        let McpMessage::Call { method, .. } = message else {
            return None;
        };
        if method == SET_LEVEL {
            let whole = Json::parse(text.clone(), depth).ok();
            let params = whole.and_then(|whole| whole.member("params"));
            self.level = LogLevel::of_params(params.as_ref()).or(self.level);
            return None;
        }
        let wanted = LogLevel::of_message(text, depth).filter(|_| self.is_supported)?;
        if self.level.is_some_and(|level| level <= wanted) {
            return None;
        }
        self.level = Some(wanted);
        let params = format!(r#"{{"level":"{}"}}"#, wanted.as_str());
        let params = Rope::from(Bytes::from(params));
        Some(jsonrpc::request(0, SET_LEVEL, params, &[]).into_bytes())
    }
}

/// The log messages of its own call that a caller receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFilter {
    /// All: the server applies the level of the session.
    #[default]
    All,
    /// Those of this level and above.
    AtLeast(LogLevel),
    /// None: the client did not ask for any.
    Nothing,
}

impl LogFilter {
    /// Returns the filter of a client's call.
    #[must_use]
    pub fn of_call(client: ClientRevision, call: &Call) -> LogFilter {
        match (client, LogLevel::of_request(call.params.as_ref())) {
            (ClientRevision::Sessions, _) => LogFilter::All,
            (ClientRevision::Stateless, Some(level)) => LogFilter::AtLeast(level),
            (ClientRevision::Stateless, None) => LogFilter::Nothing,
        }
    }

    /// Returns true if a notification with this method passes. A log message without a known level passes if any does.
    #[must_use]
    pub fn passes(self, method: &str, notification: &Bytes, depth: u16) -> bool {
        let least = match self {
            _ if method != MESSAGE => return true,
            LogFilter::All => return true,
            LogFilter::Nothing => return false,
            LogFilter::AtLeast(least) => least,
        };
        let whole = Json::parse(notification.clone(), depth).ok();
        let params = whole.and_then(|whole| whole.member("params"));
        LogLevel::of_params(params.as_ref()).is_none_or(|level| level >= least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(level: &str) -> Bytes {
        format!(r#"{{"jsonrpc":"2.0","method":"{MESSAGE}","params":{{"level":{level}}}}}"#).into()
    }

    #[test]
    fn a_filter_passes_the_levels_from_its_own_up() {
        for (number, least) in LogLevel::ALL.into_iter().enumerate() {
            for (other, level) in LogLevel::ALL.into_iter().enumerate() {
                let message = logged(&format!("\"{}\"", level.as_str()));
                let passes = LogFilter::AtLeast(least).passes(MESSAGE, &message, 8);
                assert_eq!(passes, other >= number, "{least:?} {level:?}");
                assert!(LogFilter::All.passes(MESSAGE, &message, 8));
                assert!(!LogFilter::Nothing.passes(MESSAGE, &message, 8));
            }
        }
        let unknown = logged("\"loud\"");
        assert!(LogFilter::AtLeast(LogLevel::Error).passes(MESSAGE, &unknown, 8));
        assert!(LogFilter::Nothing.passes("notifications/progress", &unknown, 8));
    }

    #[test]
    fn a_shared_session_gets_the_most_verbose_level_once() {
        let greeting = |capabilities: &str| {
            format!(r#"{{"id":1,"result":{{"capabilities":{capabilities}}}}}"#)
        };
        let with_level = |level: &str| {
            format!(r#"{{"id":2,"method":"m","params":{{"_meta":{{"{LEVEL_KEY}":"{level}"}}}}}}"#)
        };
        let set = |level: &str| {
            format!(r#"{{"id":3,"method":"{SET_LEVEL}","params":{{"level":"{level}"}}}}"#)
        };
        let mut session = SessionLogLevel::greeted(&greeting(r#"{"logging":{}}"#).into(), 8);
        for (text, sent) in [
            (r#"{"id":2,"method":"m"}"#.to_owned(), None),
            (with_level("info"), Some("info")),
            (with_level("warning"), None),
            (with_level("debug"), Some("debug")),
            (set("error"), None),
            (with_level("info"), Some("info")),
            (with_level("loud"), None),
        ] {
            let text = Bytes::from(text);
            let wanted = sent.map(|level| {
                format!(r#"{{"jsonrpc":"2.0","id":0,"method":"{SET_LEVEL}","params":{{"level":"{level}"}}}}"#)
            });
            let got = session.before(&McpMessage::new(&text, 8), &text, 8);
            assert_eq!(got, wanted.map(Bytes::from), "{text:?}");
        }
        let mut without = SessionLogLevel::greeted(&greeting("{}").into(), 8);
        let text = Bytes::from(with_level("info"));
        assert_eq!(without.before(&McpMessage::new(&text, 8), &text, 8), None);
    }

    #[test]
    fn a_table_of_levels_forgets_the_oldest_session() {
        let mut levels = SessionLevels::new(2);
        levels.set(1, LogLevel::Info);
        levels.set(2, LogLevel::Error);
        levels.set(1, LogLevel::Debug);
        assert_eq!(levels.get(&1), Some(LogLevel::Debug));
        levels.set(3, LogLevel::Alert);
        let all = [1, 2, 3].map(|session| levels.get(&session));
        assert_eq!(all, [None, Some(LogLevel::Error), Some(LogLevel::Alert)]);
    }

    #[test]
    fn a_level_is_read_where_its_revision_has_it() {
        let params = |text: &'static str| Some(Json::literal(text));
        let of_session = params(r#"{"level":"info"}"#);
        assert_eq!(
            LogLevel::of_params(of_session.as_ref()),
            Some(LogLevel::Info)
        );
        assert_eq!(LogLevel::of_request(of_session.as_ref()), None);
        let of_request =
            params(r#"{"_meta":{"io.modelcontextprotocol/logLevel":"emergency"},"level":1}"#);
        let emergency = Some(LogLevel::Emergency);
        assert_eq!(LogLevel::of_request(of_request.as_ref()), emergency);
        assert_eq!(LogLevel::of_params(of_request.as_ref()), None);
        let unknown = params(r#"{"_meta":{"io.modelcontextprotocol/logLevel":"loud"}}"#);
        assert_eq!(LogLevel::of_request(unknown.as_ref()), None);
    }
}
