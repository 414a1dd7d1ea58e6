//! Frames of a simulated client and server.

/// A frame that a client writes.
pub(super) fn command(kind: u64, id: &str, subject: u64) -> String {
    match kind {
        0 => format!(
            r#"{{"command":"get_file","request_id":"{id}","payload":{{"path":"s{subject}"}}}}"#
        ),
        1 => format!(
            r#"{{"command":"watch","request_id":"{id}","payload":{{"session_id":"s{subject}"}}}}"#
        ),
        2 => format!(r#"{{"command":"unwatch","request_id":"{id}"}}"#),
        _ => format!(
            r#"{{"command":"run","request_id":"{id}","payload":{{"prompt":"s{subject}","mode":"m{subject}"}}}}"#
        ),
    }
}

pub(super) fn error(id: &str, serial: u64) -> String {
    format!(
        r#"{{"event":"error","request_id":"{id}","payload":{{"code":"X","message":"of {serial}","request_id":"{id}"}}}}"#
    )
}

pub(super) fn file(id: &str, subject: u64, serial: u64) -> String {
    format!(
        r#"{{"event":"file","request_id":"{id}","payload":{{"path":"s{subject}","content":"of {serial}"}}}}"#
    )
}

pub(super) fn watched(subject: u64) -> String {
    format!(r#"{{"event":"watched","payload":{{"session_id":"s{subject}","watching":true}}}}"#)
}

pub(super) fn unwatched() -> String {
    r#"{"event":"unwatched","payload":{"session_id":"s"}}"#.to_owned()
}
