//! The queue of lines from the logging threads to the writer thread.
//!
//! A worker thread buffers its lines until it is idle, for half a second at most, or until the buffer is full: one
//! transfer serves all calls of a turn, and no call wakes another thread. Other threads transfer each line at once. The
//! writer pauses briefly after each write, so that it is woken a few hundred times a second rather than for each call.
//!
//! Laws: no thread waits for the writer, except briefly at the end of the program; the queue is bounded in bytes; what
//! exceeds it is dropped, in whole lines, and counted.

use std::cell::RefCell;
use std::io::{self, Write};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::time::timeout;

/// The buffer size of a thread at which it transfers its lines.
const KEPT: usize = 16 * 1024;

/// The maximum time for which a thread buffers a line.
const KEPT_FOR: Duration = Duration::from_millis(500);

/// The maximum capacity that is kept for further lines.
const ROOM: usize = 4 * KEPT;

/// The pause of the writer after a write.
const REST: Duration = Duration::from_millis(5);

/// The time for which the end of the program waits for the last lines.
const PATIENCE: Duration = Duration::from_secs(1);

thread_local! {
    static KEEPING: RefCell<ThreadBuffer> = const { RefCell::new(ThreadBuffer::Nothing) };
}

/// The buffering of a thread.
enum ThreadBuffer {
    /// Each line is transferred at once.
    Nothing,
    /// Lines are buffered until [`hand_over`].
    Lines(Option<BufferedLines>),
}

/// The buffered lines of a thread. Dropping them transfers them.
struct BufferedLines {
    queue: Queue,
    lines: LogBatch,
}

/// Lines and their number.
#[derive(Debug, Default)]
struct LogBatch {
    bytes: Vec<u8>,
    count: u64,
}

impl LogBatch {
    /// Moves the lines of `more` into this batch, and leaves `more` empty with capacity.
    fn take(&mut self, more: &mut LogBatch) {
        if self.count == 0 {
            std::mem::swap(self, more);
        } else {
            self.bytes.extend_from_slice(&more.bytes);
            self.count += more.count;
        }
        more.clear();
    }

    /// Removes the lines and keeps the capacity.
    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(ROOM);
        self.count = 0;
    }
}

/// Enables buffering for this thread. Its runtime must call [`hand_over`] before it waits, and run within
/// [`handing_over`].
pub fn keep_lines() {
    KEEPING.with_borrow_mut(|keeping| {
        if let ThreadBuffer::Nothing = keeping {
            *keeping = ThreadBuffer::Lines(None);
        }
    });
}

/// Transfers the buffered lines of this thread.
pub fn hand_over() {
    KEEPING.with_borrow_mut(|keeping| {
        if let ThreadBuffer::Lines(Some(kept)) = keeping {
            kept.hand_over();
        }
    });
}

/// Runs a future and transfers the buffered lines regularly, since a busy thread may never wait.
pub async fn handing_over<F: Future>(serving: F) -> F::Output {
    let mut serving = pin!(serving);
    loop {
        if let Ok(served) = timeout(KEPT_FOR, serving.as_mut()).await {
            return served;
        }
        hand_over();
    }
}

impl BufferedLines {
    fn hand_over(&mut self) {
        if self.lines.count > 0 {
            self.queue.push(&mut self.lines);
        }
    }
}

impl Drop for BufferedLines {
    fn drop(&mut self) {
        self.hand_over();
    }
}

/// The queue to the writer thread.
#[derive(Debug, Clone)]
pub(super) struct Queue(Arc<QueueState>);

#[derive(Debug)]
struct QueueState {
    /// The capacity in bytes.
    most: usize,
    waiting: Mutex<Pending>,
    /// Notifies the writer of lines, or of the end.
    written: Condvar,
    /// Notifies the end of the program that the writer is done.
    done: Condvar,
}

#[derive(Debug, Default)]
struct Pending {
    lines: LogBatch,
    dropped: u64,
    writer: Writer,
    ended: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// Waiting for lines.
    #[default]
    Idle,
    /// Going to check for lines without being notified.
    Busy,
    /// Done: the last line is written.
    Done,
}

impl QueueState {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        // The lines are consistent even after a panic elsewhere.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Creates a queue of `most` bytes and starts its writer thread.
    pub(super) fn new(
        writer: impl Write + Send + 'static,
        most: usize,
    ) -> io::Result<(Queue, WriterGuard)> {
        let queue = Queue(Arc::new(QueueState {
            most,
            waiting: Mutex::default(),
            written: Condvar::new(),
            done: Condvar::new(),
        }));
        let shared = queue.0.clone();
        let thread = thread::Builder::new().name("log".to_owned());
        let thread = thread.spawn(move || write(&shared, writer))?;
        let flush = WriterGuard {
            shared: queue.0.clone(),
            thread: Some(thread),
        };
        Ok((queue, flush))
    }

    fn push(&self, more: &mut LogBatch) {
        let mut waiting = self.0.lock();
        if waiting.lines.bytes.len() + more.bytes.len() > self.0.most {
            waiting.dropped += more.count;
            return more.clear();
        }
        waiting.lines.take(more);
        if waiting.writer == Writer::Idle {
            waiting.writer = Writer::Busy;
            drop(waiting);
            self.0.written.notify_one();
        }
    }

    /// Takes one line, including its line break.
    pub(super) fn offer(&self, line: &str) {
        KEEPING.with_borrow_mut(|keeping| match keeping {
            ThreadBuffer::Nothing => self.push(&mut LogBatch {
                bytes: line.as_bytes().to_vec(),
                count: 1,
            }),
            ThreadBuffer::Lines(kept) => {
                let kept = kept.get_or_insert_with(|| BufferedLines {
                    queue: self.clone(),
                    lines: LogBatch::default(),
                });
                kept.lines.bytes.extend_from_slice(line.as_bytes());
                kept.lines.count += 1;
                if kept.lines.bytes.len() >= KEPT {
                    kept.hand_over();
                }
            }
        });
    }

    /// Returns the number of queued lines.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> u64 {
        self.0.lock().lines.count
    }

    /// Returns the number of dropped lines.
    pub(super) fn dropped(&self) -> u64 {
        self.0.lock().dropped
    }
}

/// Writes lines until the end is signalled and the queue is empty. Profiles identify the thread by this function, so it
/// must not be inlined.
#[inline(never)]
fn write(shared: &QueueState, mut writer: impl Write) {
    let mut waiting = shared.lock();
    let mut lines = LogBatch::default();
    loop {
        lines.take(&mut waiting.lines);
        if lines.count > 0 {
            waiting.writer = Writer::Busy;
            drop(waiting);
            // An error of standard error can be reported nowhere.
            let _ = writer.write_all(&lines.bytes).and_then(|()| writer.flush());
            lines.clear();
            let rested = shared
                .written
                .wait_timeout_while(shared.lock(), REST, |waiting| !waiting.ended);
            waiting = rested.unwrap_or_else(PoisonError::into_inner).0;
        } else if waiting.ended {
            break;
        } else {
            waiting.writer = Writer::Idle;
            let come = |waiting: &mut Pending| waiting.lines.count == 0 && !waiting.ended;
            let woken = shared.written.wait_while(waiting, come);
            waiting = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
    waiting.writer = Writer::Done;
    drop(waiting);
    shared.done.notify_all();
}

/// Dropping it lets the writer write the queued lines and end, and waits briefly for that.
#[derive(Debug)]
pub(super) struct WriterGuard {
    shared: Arc<QueueState>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for WriterGuard {
    fn drop(&mut self) {
        hand_over();
        let mut waiting = self.shared.lock();
        waiting.ended = true;
        self.shared.written.notify_all();
        let writes = |waiting: &mut Pending| waiting.writer != Writer::Done;
        let waited = self
            .shared
            .done
            .wait_timeout_while(waiting, PATIENCE, writes);
        let (waiting, late) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(waiting);
        // A terminal that does not read blocks the writer; the program ends without it.
        if !late.timed_out()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}
