//! The share of a limit that one peer may use.
//!
//! One peer may take slots freely until four of five are taken. Of the remaining fifth it may take at most half of the
//! slots that other peers left free. So one peer never takes all of them, and a later peer finds a slot.
//!
//! Used by `gateway::peers`.

/// Returns the size of the last fifth of a limit; zero for small limits.
const fn rest_of(limit: usize) -> usize {
    limit / 5
}

/// Returns whether a peer that holds `own` of the `taken` slots may take one more.
#[must_use]
pub fn may_take(limit: usize, taken: usize, own: usize) -> bool {
    let rest = rest_of(limit);
    let Some(beyond) = taken.checked_sub(limit - rest) else {
        return true;
    };
    // All slots of the peer count, regardless of when it took them.
    let own = own.min(beyond);
    let left = rest.saturating_sub(beyond - own);
    rest == 0 || own < left.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lets each peer in turn take all slots that it may; returns the number of slots of each.
    fn fill(limit: usize, peers: usize) -> Vec<usize> {
        let mut held = vec![0; peers];
        for peer in 0..peers {
            while held.iter().sum::<usize>() < limit
                && may_take(limit, held.iter().sum(), held[peer])
            {
                held[peer] += 1;
            }
        }
        held
    }

    #[test]
    fn one_peer_takes_four_of_five_and_half_of_the_rest() {
        assert_eq!(fill(10_000, 1), [9_000]);
        assert_eq!(fill(100, 5), [90, 5, 3, 1, 1]);
        assert_eq!(fill(10, 2), [9, 1]);
        assert_eq!(fill(4, 1), [4], "too small for a rest");
    }

    proptest! {
        #[test]
        fn a_second_peer_gets_a_connection(limit in 10..20_000_usize) {
            let held = fill(limit, 2);
            prop_assert!(held[1] > 0, "{held:?}");
            prop_assert!(held[0] <= limit - limit / 10);
        }

        #[test]
        fn no_peer_is_refused_below_four_fifths(limit in 1..9_999_usize, part in 0..100_usize) {
            let taken = (limit - limit / 5) * part / 100;
            prop_assert!(may_take(limit, taken, taken));
        }
    }
}
