//! The published vectors of the bucket function are what the function says.

use super::*;

const PAGE: &str = include_str!("../../../../../docs/explanation/rollout.md");

/// `flag | key | murmur3 | bucket`, the texts as JSON strings in backticks.
fn rows() -> Vec<(String, String, u32, u32)> {
    let lines = PAGE
        .lines()
        .skip_while(|line| !line.starts_with("| flag | key | murmur3"));
    let lines = lines.skip(2).take_while(|line| line.starts_with('|'));
    let text = |cell: &str| serde_json::from_str::<String>(cell.trim_matches('`')).unwrap();
    lines
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let [flag, key, hash, bucket] = cells[..] else {
                panic!("{line}");
            };
            let hash = u32::from_str_radix(hash.trim_matches('`').trim_start_matches("0x"), 16);
            (
                text(flag),
                text(key),
                hash.unwrap(),
                bucket.parse().unwrap(),
            )
        })
        .collect()
}

#[test]
fn the_published_vectors_hold() {
    let rows = rows();
    assert!(rows.len() >= 12, "only {} rows were found", rows.len());
    for (flag, key, hash, place) in rows {
        assert_eq!(
            murmur3(format!("{flag}:{key}").as_bytes()),
            hash,
            "{flag}:{key}"
        );
        assert_eq!(bucket(&flag, &key).get(), place, "{flag}:{key}");
    }
}
