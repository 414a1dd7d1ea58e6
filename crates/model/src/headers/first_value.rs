//! The lookup of a field among few.

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Most heads have no more fields than this.
const FEW: usize = 16;

/// Returns the first value of a field. With few fields, a scan is cheaper than a hash lookup.
#[must_use]
pub fn first_value<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    if headers.len() > FEW {
        return headers.get(name);
    }
    let mut fields = headers.iter();
    fields.find(|(own, _)| *own == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_value_of_a_field_is_the_one_that_a_search_finds(
            names in prop::collection::vec("[ab]{1,3}|host|te", 0..2 * FEW),
            name in "[ab]{1,3}|host|te",
        ) {
            let mut headers = HeaderMap::new();
            for (place, name) in names.iter().enumerate() {
                let name = HeaderName::try_from(name).unwrap();
                headers.append(name, place.into());
            }
            let name = HeaderName::try_from(name).unwrap();
            prop_assert_eq!(first_value(&headers, &name), headers.get(&name));
        }
    }
}
