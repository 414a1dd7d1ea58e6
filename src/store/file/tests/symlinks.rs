//! Files of the state folder that are symlinks.

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::tempdir;

use super::{at, open, report};
use crate::store::error::chain;
use crate::store::file::FileStore;

#[test]
fn a_symlink_stays_a_symlink_and_its_target_is_replaced() {
    let (folder, target) = (tempdir().unwrap(), tempdir().unwrap());
    let rollout = target.path().join("target.json");
    symlink(&rollout, folder.path().join("rollout.json")).unwrap();
    // A relative symlink to another symlink.
    symlink("next", folder.path().join("watch.json")).unwrap();
    symlink(target.path().join("watch.json"), folder.path().join("next")).unwrap();

    // The targets do not exist yet.
    let mut store = open(&folder);
    assert_eq!(store.commit(0, "[1]").unwrap(), 1);
    assert_eq!(store.commit(1, "[1,2]").unwrap(), 2);
    store.exchange(&report("own", 3)).unwrap();
    drop(store);
    for name in ["rollout.json", "watch.json"] {
        let path = folder.path().join(name);
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink(), "{name}");
    }
    assert!(fs::read_to_string(&rollout).unwrap().contains('2'));
    assert_eq!(open(&folder).read(0).unwrap(), Some(at(2, "[1,2]")));

    // Unfinished files are removed, and damaged ones renamed.
    fs::write(target.path().join("target.json.new"), "[").unwrap();
    fs::write(target.path().join("watch.json"), "{").unwrap();
    drop(open(&folder));
    let mut names: Vec<_> = fs::read_dir(target.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["target.json", "watch.json.damaged-1"]);
}

#[test]
fn a_symlink_cycle_is_refused_with_the_reason() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("rollout.json");
    symlink("rollout.json", &path).unwrap();
    let error = FileStore::open(folder.path()).unwrap_err();
    let message = chain(&error);
    assert!(message.contains("rollout.json"), "{message}");
    assert!(message.contains("too many symlinks"), "{message}");
}
