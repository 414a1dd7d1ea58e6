//! The copies of a folder, over failures and later processes.

use std::fs;

use tempfile::tempdir;
use tokio::time::advance;

use super::*;

const COPY: &str = SnapshotKind::Store.file();
const AT: &str = "2026-02-03T04:05:06.000Z";

fn good(revision: u64) -> Versioned {
    Versioned {
        revision,
        text: format!(r#"{{"flags":{{}},"n":{revision}.0}}"#),
    }
}

#[tokio::test]
async fn the_next_process_with_the_same_store_reads_the_last_copy() {
    let folder = tempdir().unwrap();
    let mut copies = SnapshotDir::open(SnapshotKind::Store, folder.path(), "here".to_owned());
    assert_eq!(copies.read(), None);
    copies.note(&Versioned::default(), AT.to_owned());
    copies.flush().await;
    assert_eq!(copies.read(), None);
    copies.note(&good(1), AT.to_owned());
    copies.flush().await;
    copies.note(&good(2), AT.to_owned());
    copies.flush().await;
    let expected = SnapshotContents {
        state: good(2),
        at: AT.to_owned(),
    };
    assert_eq!(copies.read(), Some(expected.clone()));
    // A folder has one owner, so a second process keeps no copy.
    let mut second = SnapshotDir::open(SnapshotKind::Store, folder.path(), "here".to_owned());
    second.note(&good(7), AT.to_owned());
    second.flush().await;
    assert_eq!(second.read(), None);
    drop(copies);
    let next = SnapshotDir::open(SnapshotKind::Store, folder.path(), "here".to_owned());
    assert_eq!(next.read(), Some(expected));
    drop(next);
    let other = SnapshotDir::open(SnapshotKind::Store, folder.path(), "elsewhere".to_owned());
    assert_eq!(other.read(), None);
}

#[tokio::test]
async fn a_damaged_copy_is_set_aside_and_replaced_by_the_next_one() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join(COPY), r#"{"version":1,"#).unwrap();
    let mut copies = SnapshotDir::open(SnapshotKind::Store, folder.path(), "here".to_owned());
    assert_eq!(copies.read(), None);
    assert!(folder.path().join(format!("{COPY}.damaged-1")).exists());
    copies.note(&good(1), AT.to_owned());
    copies.flush().await;
    assert_eq!(copies.read().unwrap().state, good(1));
}

#[tokio::test(start_paused = true)]
async fn a_failed_copy_is_written_again_after_a_pause() {
    let folder = tempdir().unwrap();
    let mut copies = SnapshotDir::open(SnapshotKind::Source, folder.path(), "here".to_owned());
    let name = SnapshotKind::Source.file();
    // A folder in the place of the unfinished file, so that no copy can be written.
    let obstacle = folder.path().join(format!("{name}.new"));
    fs::create_dir(&obstacle).unwrap();
    copies.note(&good(1), AT.to_owned());
    copies.flush().await;
    assert!(copies.is_failing);
    copies.tend().await;
    assert!(copies.work.is_idle(), "the pause has not passed");
    advance(RETRY).await;
    copies.tend().await;
    assert!(!copies.work.is_idle(), "the pause has passed");
    copies.flush().await;
    assert!(copies.is_failing);
    fs::remove_dir(&obstacle).unwrap();
    advance(RETRY).await;
    copies.tend().await;
    copies.flush().await;
    assert!(!copies.is_failing);
    assert_eq!(copies.read().unwrap().state, good(1));
    // Nothing is left to write.
    advance(RETRY).await;
    copies.tend().await;
    assert!(copies.work.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_later_state_replaces_the_one_of_a_failed_copy() {
    let folder = tempdir().unwrap();
    let mut copies = SnapshotDir::open(SnapshotKind::Store, folder.path(), "here".to_owned());
    let obstacle = folder.path().join(format!("{COPY}.new"));
    fs::create_dir(&obstacle).unwrap();
    copies.note(&good(1), AT.to_owned());
    copies.flush().await;
    fs::remove_dir(&obstacle).unwrap();
    copies.note(&good(2), AT.to_owned());
    copies.tend().await;
    copies.flush().await;
    assert_eq!(copies.read().unwrap().state, good(2));
    // A state is not written again once the store is another one.
    fs::create_dir(&obstacle).unwrap();
    copies.note(&good(3), AT.to_owned());
    copies.tend().await;
    assert!(copies.identify("elsewhere".to_owned()));
    copies.flush().await;
    advance(RETRY).await;
    copies.tend().await;
    assert!(copies.work.is_idle());
}
