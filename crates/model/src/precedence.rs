//! Declared orders: which of several routes or rows come first. Used by `route` and `outcome`.

/// Returns everything that comes before an element, directly or not. `direct` has the direct predecessors of each.
pub(crate) fn reached(direct: &[Vec<usize>], element: usize) -> Vec<usize> {
    let mut found = direct[element].clone();
    let mut at = 0;
    while let Some(next) = found.get(at) {
        for front in &direct[*next] {
            if !found.contains(front) {
                found.push(*front);
            }
        }
        at += 1;
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns a shortest cycle through an element, which is its first and its last one.
pub(crate) fn cycle(direct: &[Vec<usize>], element: usize) -> Vec<usize> {
    let mut trail: Vec<(usize, Option<usize>)> = vec![(element, None)];
    let mut at = 0;
    while let Some((here, _)) = trail.get(at).copied() {
        for front in &direct[here] {
            if *front == element {
                let mut chain = vec![element];
                let mut back = Some(at);
                while let Some(index) = back {
                    chain.push(trail[index].0);
                    back = trail[index].1;
                }
                chain.reverse();
                return chain;
            }
            if trail.iter().all(|(known, _)| known != front) {
                trail.push((*front, Some(at)));
            }
        }
        at += 1;
    }
    vec![element]
}
