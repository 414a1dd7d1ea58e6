//! A pool of header maps. A translated call needs one more than the HTTP library pools, and most calls return the map
//! of their own head.

use std::cell::RefCell;

use http::{HeaderMap, Version, request};

/// Capacity of the pool, enough for all calls that a worker starts in one turn.
const MOST: usize = 64;

/// The largest map that is pooled, in fields and in capacity; larger heads are rare.
const LARGEST: usize = 24;

/// The pooled header maps of one worker.
#[derive(Debug, Default)]
pub(super) struct HeaderMapPool(RefCell<Vec<HeaderMap>>);

impl HeaderMapPool {
    /// Returns an empty map, usually with the allocation of a previous one.
    pub(super) fn take(&self) -> HeaderMap {
        self.0.borrow_mut().pop().unwrap_or_default()
    }

    /// Clears the header map of a head and adds it to the pool. Maps of HTTP/2 are not pooled: they may have held many
    /// more fields than are left.
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
