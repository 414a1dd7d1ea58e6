//! The `retry` field of a server-sent event.

use std::time::Duration;

/// Returns the delay that the server asks for before a broken stream is resumed (WHATWG HTML §9.2.6).
pub(super) fn retry(event: &[u8]) -> Option<Duration> {
    let lines = event.split(|byte| matches!(byte, b'\r' | b'\n'));
    let said = lines
        .filter_map(|line| line.strip_prefix(b"retry:"))
        .next_back()?;
    let said = std::str::from_utf8(said).ok()?;
    let said = said.strip_prefix(' ').unwrap_or(said);
    let digits = !said.is_empty() && said.bytes().all(|byte| byte.is_ascii_digit());
    let millis = digits.then(|| said.parse().unwrap_or(u64::MAX))?;
    Some(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_say_how_long_a_stream_rests() {
        assert_eq!(
            retry(b"id: 1\r\nretry: 250\r\ndata:\r\n\r\n"),
            Some(Duration::from_millis(250))
        );
        for text in [
            "data: retry: 1\n\n",
            "retry: x\n\n",
            "retry:\n\n",
            "retry: -1\n\n",
        ] {
            assert_eq!(retry(text.as_bytes()), None, "{text}");
        }
    }
}
