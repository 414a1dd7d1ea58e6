//! The laws of the reader, for tests and fuzz targets.

use super::entry::HarCall;
use super::read::read;
use super::write::Writer;

/// Checks any bytes: the calls that were read are written and read alike.
///
/// # Panics
///
/// Panics if a law does not hold.
pub fn check_any_file(data: &[u8]) {
    let Ok(found) = read(data) else { return };
    let calls: Vec<HarCall> = found.into_iter().filter_map(Result::ok).collect();
    let (mut writer, mut written) = Writer::begin("http://law.example", "law", "1");
    for found in &calls {
        written.extend(writer.entry(&found.call));
    }
    written.extend(writer.end());
    let again: Result<Vec<_>, _> = read(&written).unwrap_or_default().into_iter().collect();
    let again: Vec<_> = again.unwrap_or_default();
    let of = |calls: &[HarCall]| -> Vec<_> { calls.iter().map(|one| one.call.clone()).collect() };
    assert_eq!(of(&again), of(&calls), "written and read again");
}
