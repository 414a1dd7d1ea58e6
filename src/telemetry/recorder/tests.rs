use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::*;
use dualgauge_patterns::side::Side;
use dualgauge_recording::recording::{Reader, RecordedBody, RecordedRequest, RecordedTime};

/// A recorder whose thread ends with it.
struct Running(Recorder, Option<JoinHandle<()>>);

impl Running {
    fn start() -> Running {
        let (recorder, thread) = Recorder::open();
        Running(recorder, Some(thread::spawn(|| thread.run())))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.close();
        if let Some(thread) = self.1.take() {
            thread.join().unwrap();
        }
    }
}

fn settings(directory: &Path) -> RecordingSettings {
    RecordingSettings {
        source: RecordingSource::Command,
        directory: directory.to_owned(),
        sample: Percent::ALL,
        bodies: RecordedBodies::Omitted,
        limits: RecordLimits {
            file_size: 2_000,
            files: 3,
            total_size: 100_000,
            time: None,
        },
    }
}

fn call(target: &str) -> EndedCall {
    let target = target.to_owned();
    Box::new(move || RecordedCall {
        time: RecordedTime::default(),
        side: Side::Rest,
        route: None,
        client: None,
        stage: None,
        reason: "default".into(),
        request: RecordedRequest {
            method: "GET".into(),
            target,
            headers: Vec::new(),
            body: RecordedBody::Empty,
        },
        response: None,
        redacted: Vec::new(),
        complete: false,
    })
}

/// The contents of the recordings of a folder, in order.
fn recordings(directory: &Path) -> Vec<Vec<u8>> {
    let files = fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// The targets of the calls of a recording.
fn targets(file: &[u8]) -> Vec<String> {
    let mut reader = Reader::new();
    reader.push(file);
    let mut targets = Vec::new();
    while let Some(call) = reader.next_call().unwrap() {
        targets.push(call.request.target);
    }
    reader.finish().unwrap();
    targets
}

#[tokio::test]
async fn a_recording_has_the_calls_between_its_start_and_its_stop() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("new/recordings");
    let running = Running::start();
    let recorder = &running.0;
    assert_eq!(recorder.active(), None);
    recorder.offer(0, 1, call("/before"));
    recorder.start(settings(&directory)).await.unwrap();
    let active = ActiveRecording {
        sample: Percent::ALL,
        bodies: RecordedBodies::Omitted,
        generation: 1,
    };
    assert_eq!(recorder.active(), Some(active));
    let again = recorder.start(settings(&directory)).await.unwrap_err();
    assert_eq!(again.to_string(), "a recording is running already");
    recorder.offer(1, 1, call("/1"));
    recorder.offer(1, 1, call("/2"));
    let stopped = recorder.stop(StopReason::Command).await.unwrap();
    recorder.offer(1, 1, call("/after"));
    assert_eq!((stopped.calls, stopped.dropped), (2, 0));
    assert_eq!(
        stopped.stopped.as_ref().unwrap().reason,
        StopReason::Command
    );
    assert_eq!(recorder.stop(StopReason::Command).await, None);
    let files = recordings(&directory);
    assert_eq!(targets(&files[0]), ["/1", "/2"]);
    assert_eq!(stopped.bytes, files[0].len() as u64);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    assert_eq!(mode(&directory.join(&stopped.file)), 0o600);
    let counts = recorder.counts();
    assert_eq!((counts.recorded, counts.bytes), (2, stopped.bytes));
    assert_eq!(counts.stops, [1, 0, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn files_are_rotated_and_the_oldest_deleted() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.jsonl"), "mine").unwrap();
    let running = Running::start();
    running.0.start(settings(folder.path())).await.unwrap();
    for number in 0..100 {
        running.0.offer(1, 1, call(&format!("/{number}")));
    }
    let stopped = running.0.stop(StopReason::Command).await.unwrap();
    assert_eq!(stopped.calls, 100);
    assert!(stopped.files > 3, "{stopped:?}");
    let files = recordings(folder.path());
    assert_eq!(
        files.len(),
        4,
        "three recordings, and a file of another program"
    );
    assert_eq!(files[0], b"mine");
    assert!(files[1..].iter().all(|file| file.len() <= 2_000));
    let targets: Vec<_> = files[1..].iter().flat_map(|file| targets(file)).collect();
    let first = 100 - targets.len();
    let expected: Vec<_> = (first..100).map(|number| format!("/{number}")).collect();
    assert_eq!(targets, expected);
}

#[tokio::test]
async fn a_recording_stops_at_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start();
    let mut settings = settings(folder.path());
    settings.limits.total_size = 3_000;
    running.0.start(settings).await.unwrap();
    for number in 0..100 {
        running.0.offer(1, 1, call(&format!("/{number}")));
    }
    // It has stopped by then.
    assert_eq!(running.0.stop(StopReason::Command).await, None);
    let status = running.0.status().unwrap();
    assert_eq!(status.stopped.unwrap().reason, StopReason::Size);
    assert!((2_500..=3_000).contains(&status.bytes), "{}", status.bytes);
    assert_eq!(running.0.active(), None);
}

#[tokio::test]
async fn a_recording_stops_at_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start();
    let mut settings = settings(folder.path());
    settings.limits.time = Some(Duration::ZERO);
    let started = running.0.start(settings).await.unwrap();
    assert!(started.ends.is_some());
    // The thread checks the time after each command.
    assert_eq!(running.0.stop(StopReason::Command).await, None);
    let status = running.0.status().unwrap();
    assert_eq!(status.stopped.unwrap().reason, StopReason::Time);
}

#[tokio::test]
async fn a_folder_that_is_gone_stops_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recordings");
    let running = Running::start();
    running.0.start(settings(&directory)).await.unwrap();
    fs::remove_dir_all(&directory).unwrap();
    for number in 0..100 {
        running.0.offer(1, 1, call(&format!("/{number}")));
    }
    assert_eq!(running.0.stop(StopReason::Command).await, None);
    let end = running.0.status().unwrap().stopped.unwrap();
    assert_eq!(end.reason, StopReason::Error);
    assert!(
        end.error.unwrap().contains("No such file"),
        "the error of the system"
    );
    fs::write(&directory, "").unwrap();
    let refused = running.0.start(settings(&directory)).await.unwrap_err();
    assert!(matches!(refused, StartRefused::File { .. }), "{refused}");
}

#[tokio::test]
async fn a_full_queue_drops_calls() {
    let (recorder, thread) = Recorder::open();
    for _ in 0..MAX_CALLS + 2 {
        recorder.offer(1, 1, call("/"));
    }
    assert_eq!(recorder.counts().dropped, 2);
    let (recorder, _thread) = Recorder::open();
    recorder.offer(1, MAX_BYTES, call("/"));
    recorder.offer(1, 1, call("/"));
    assert_eq!(recorder.counts().dropped, 1);
    drop(thread);
}

#[tokio::test]
async fn a_call_of_an_earlier_recording_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start();
    let recorder = &running.0;
    recorder.start(settings(folder.path())).await.unwrap();
    let first = recorder.active().unwrap().generation;
    recorder.stop(StopReason::Command).await.unwrap();
    recorder.start(settings(folder.path())).await.unwrap();
    let second = recorder.active().unwrap().generation;
    assert_ne!(first, second);
    recorder.offer(first, 1, call("/first"));
    recorder.offer(second, 1, call("/second"));
    let stopped = recorder.stop(StopReason::Command).await.unwrap();
    assert_eq!((stopped.calls, stopped.dropped), (1, 0));
    assert_eq!(recorder.counts().dropped, 1);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_disk_refuses_commands_after_a_time() {
    let folder = tempfile::tempdir().unwrap();
    // The thread does not run, as if it waited for the disk.
    let (recorder, thread) = Recorder::open();
    let refused = recorder.start(settings(folder.path())).await.unwrap_err();
    assert!(
        matches!(refused, StartRefused::TimedOut { .. }),
        "{refused}"
    );
    assert_eq!(recorder.stop(StopReason::Command).await, None);
    recorder.close();
    thread.run();
    assert_eq!(
        recorder.status(),
        None,
        "a refused recording does not start later"
    );
}

#[tokio::test]
async fn a_thread_that_ended_refuses_commands() {
    let folder = tempfile::tempdir().unwrap();
    let (recorder, thread) = Recorder::open();
    recorder.offer(1, 1, call("/"));
    drop(thread);
    let refused = recorder.start(settings(folder.path())).await.unwrap_err();
    assert!(matches!(refused, StartRefused::Ending), "{refused}");
    recorder.offer(1, 1, call("/"));
    assert_eq!(recorder.counts().dropped, 2);
    assert_eq!(recorder.active(), None);
}

#[test]
fn recordings_of_the_same_millisecond_have_different_files() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..50 {
        files::RecordingFiles::create(folder.path(), settings(folder.path()).limits).unwrap();
    }
}

#[tokio::test]
async fn a_file_that_another_process_writes_stays() {
    let folder = tempfile::tempdir().unwrap();
    let [written, ended] = [
        "recording-20200101T000000Z-0-0001.jsonl",
        "recording-20200102T000000Z-0-0002.jsonl",
    ];
    let file = fs::File::create(folder.path().join(written)).unwrap();
    file.lock().unwrap();
    fs::write(folder.path().join(ended), "other").unwrap();
    let running = Running::start();
    let mut settings = settings(folder.path());
    settings.limits.files = 1;
    running.0.start(settings).await.unwrap();
    assert!(folder.path().join(written).exists());
    assert!(!folder.path().join(ended).exists());
}
