//! The rooms of header maps: a call that is translated needs one more than the HTTP library keeps, and leaves one.

use std::cell::RefCell;

use http::HeaderMap;

/// How many are kept: of as many calls as are begun in one turn of a worker, each finds one.
const MOST: usize = 64;

/// The most fields that a room has place for. A larger one was for an unusual head.
const LARGEST: usize = 24;

/// The rooms that one worker keeps.
#[derive(Debug, Default)]
pub(super) struct Rooms(RefCell<Vec<HeaderMap>>);

impl Rooms {
    /// An empty map, most of the time with the room of another one.
    pub(super) fn take(&self) -> HeaderMap {
        self.0.borrow_mut().pop().unwrap_or_default()
    }

    /// Keeps the room of a map, and nothing that is in it.
    pub(super) fn keep(&self, mut headers: HeaderMap) {
        let mut rooms = self.0.borrow_mut();
        if rooms.len() < MOST && (1..=LARGEST).contains(&headers.capacity()) {
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

    #[test]
    fn a_room_is_empty_and_had_again() {
        let rooms = Rooms::default();
        let mut headers = HeaderMap::with_capacity(12);
        headers.append(SET_COOKIE, HeaderValue::from_static("one=1"));
        headers.append(SET_COOKIE, HeaderValue::from_static("two=2"));
        headers.append(ACCEPT, HeaderValue::from_static("*/*"));
        rooms.keep(headers);
        let headers = rooms.take();
        assert_eq!((headers.len(), headers.capacity()), (0, 12));
        assert_eq!(rooms.take().capacity(), 0);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let rooms = Rooms::default();
        for headers in [HeaderMap::new(), HeaderMap::with_capacity(1000)] {
            rooms.keep(headers);
            assert_eq!(rooms.take().capacity(), 0);
        }
        for _ in 0..2 * MOST {
            rooms.keep(HeaderMap::with_capacity(LARGEST));
        }
        assert_eq!(rooms.0.borrow().len(), MOST);
    }
}
