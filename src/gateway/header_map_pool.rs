//! A pool of header maps. A translated call needs one map more than the HTTP library pools; most calls return the map of
//! their request head.
//!
//! Used by `worker`.

use std::cell::RefCell;

use http::{HeaderMap, Version, request};

/// Capacity of the pool, enough for all calls that a worker starts in one turn.
const CAPACITY: usize = 64;

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
        let is_poolable = headers.len() <= LARGEST && (1..=LARGEST).contains(&headers.capacity());
        let mut pool = self.0.borrow_mut();
        if pool.len() < CAPACITY && is_poolable && version != Version::HTTP_2 {
            headers.clear();
            pool.push(headers);
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
    fn a_pooled_map_is_empty_and_reused() {
        let pool = HeaderMapPool::default();
        let mut headers = HeaderMap::with_capacity(12);
        headers.append(SET_COOKIE, HeaderValue::from_static("one=1"));
        headers.append(SET_COOKIE, HeaderValue::from_static("two=2"));
        headers.append(ACCEPT, HeaderValue::from_static("*/*"));
        pool.put(head(headers));
        let headers = pool.take();
        assert_eq!((headers.len(), headers.capacity()), (0, 12));
        assert_eq!(pool.take().capacity(), 0);
    }

    #[test]
    fn the_pool_is_bounded() {
        let pool = HeaderMapPool::default();
        let mut repeated = HeaderMap::with_capacity(12);
        for _ in 0..1000 {
            repeated.append(ACCEPT, HeaderValue::from_static("*/*"));
        }
        let mut http_2 = head(HeaderMap::with_capacity(12));
        http_2.version = Version::HTTP_2;
        let large = HeaderMap::with_capacity(1000);
        for rejected in [head(HeaderMap::new()), head(large), head(repeated), http_2] {
            pool.put(rejected);
            assert_eq!(pool.take().capacity(), 0);
        }
        for _ in 0..2 * CAPACITY {
            pool.put(head(HeaderMap::with_capacity(LARGEST)));
        }
        assert_eq!(pool.0.borrow().len(), CAPACITY);
    }
}
