//! The `retry` field of a server-sent event. Used by `mcp::post`.

use std::time::Duration;

/// Returns the delay that the server asks for before a broken stream is resumed (WHATWG HTML §9.2.6).
pub(super) fn retry(event: &[u8]) -> Option<Duration> {
    let lines = event.split(|byte| matches!(byte, b'\r' | b'\n'));
    let value = lines
        .filter_map(|line| line.strip_prefix(b"retry:"))
        .next_back()?;
    let value = std::str::from_utf8(value).ok()?;
    let value = value.strip_prefix(' ').unwrap_or(value);
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let millis = digits.then(|| value.parse().unwrap_or(u64::MAX))?;
    Some(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_set_the_retry_delay_of_a_stream() {
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
