//! The rooms of header maps: a call that is translated needs one more than the HTTP library keeps, and most leave that of
//! their own head.

use std::cell::RefCell;

use http::{HeaderMap, Version, request};

/// How many are kept: so many that each call which a worker begins in one turn finds one.
const MOST: usize = 64;

/// The most fields that a head may have had, and that its room has place for. A larger one is unusual.
const LARGEST: usize = 24;

/// The rooms that one worker keeps.
#[derive(Debug, Default)]
pub(super) struct HeaderMapPool(RefCell<Vec<HeaderMap>>);

impl HeaderMapPool {
    /// An empty map, most of the time with the room of another one.
    pub(super) fn take(&self) -> HeaderMap {
        self.0.borrow_mut().pop().unwrap_or_default()
    }

    /// Keeps the room of a head, and nothing that was in it. That of HTTP/2 is not kept: it may have had many more fields
    /// than are left in it.
    pub(super) fn put(&self, head: Box<request::Parts>) {
        let (version, mut headers) = (head.version, head.headers);
        let is_usual = headers.len() <= LARGEST && (1..=LARGEST).contains(&headers.capacity());
        let mut rooms = self.0.borrow_mut();
        if rooms.len() < MOST && is_usual && version != Version::HTTP_2 {
            headers.clear();
            rooms.push(headers);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::{ACCEPT, SET_COOKIE};

    use super::*;

    fn head(headers: HeaderMap) -> Box<request::Parts> {
        let mut head = request::Request::new(()).into_parts().0;
        head.headers = headers;
        Box::new(head)
    }

    #[test]
    fn a_room_is_empty_and_had_again() {
        let rooms = HeaderMapPool::default();
        let mut headers = HeaderMap::with_capacity(12);
        headers.append(SET_COOKIE, HeaderValue::from_static("one=1"));
        headers.append(SET_COOKIE, HeaderValue::from_static("two=2"));
        headers.append(ACCEPT, HeaderValue::from_static("*/*"));
        rooms.put(head(headers));
        let headers = rooms.take();
        assert_eq!((headers.len(), headers.capacity()), (0, 12));
        assert_eq!(rooms.take().capacity(), 0);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let rooms = HeaderMapPool::default();
        let mut often = HeaderMap::with_capacity(12);
        for _ in 0..1000 {
            often.append(ACCEPT, HeaderValue::from_static("*/*"));
        }
        let mut of_http_2 = head(HeaderMap::with_capacity(12));
        of_http_2.version = Version::HTTP_2;
        let large = HeaderMap::with_capacity(1000);
        for unusual in [head(HeaderMap::new()), head(large), head(often), of_http_2] {
            rooms.put(unusual);
            assert_eq!(rooms.take().capacity(), 0);
        }
        for _ in 0..2 * MOST {
            rooms.put(head(HeaderMap::with_capacity(LARGEST)));
        }
        assert_eq!(rooms.0.borrow().len(), MOST);
    }
}
