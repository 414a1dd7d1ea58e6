//! The queue of lines from the logging threads to the writer thread.
//!
//! A worker thread buffers its lines until it is idle, for half a second at most, or until the buffer is full: one
//! transfer serves all calls of a turn, and no call wakes another thread. Other threads transfer each line at once. The
//! writer pauses briefly after each write, so that it is woken a few hundred times a second rather than for each call.
//!
//! Laws: no thread waits for the writer, except briefly at the end of the program; the queue is bounded in bytes; what
//! exceeds it is dropped, in whole lines, and counted.
//!
//! Used by `log::format`.

use std::cell::RefCell;
use std::io::{self, Write};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::time::timeout;

/// The buffer size of a thread at which it transfers its lines.
const BUFFER_SIZE: usize = 16 * 1024;

/// The maximum time for which a thread buffers a line.
const MAX_BUFFER_TIME: Duration = Duration::from_millis(500);

/// The maximum capacity that is kept for further lines.
const MAX_RETAINED: usize = 4 * BUFFER_SIZE;

/// The pause of the writer after a write.
const WRITE_PAUSE: Duration = Duration::from_millis(5);

/// The time for which the end of the program waits for the last lines.
const END_TIMEOUT: Duration = Duration::from_secs(1);

thread_local! {
    static BUFFER: RefCell<ThreadBuffer> = const { RefCell::new(ThreadBuffer::Disabled) };
}

/// The buffering of a thread.
enum ThreadBuffer {
    /// Each line is transferred at once.
    Disabled,
    /// Lines are buffered until [`flush_lines`].
    Enabled(Option<BufferedLines>),
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
        self.bytes.shrink_to(MAX_RETAINED);
        self.count = 0;
    }
}

/// Enables buffering for this thread. Its runtime must call [`flush_lines`] before it waits, and run within
/// [`flushing_lines`].
pub fn buffer_lines() {
    BUFFER.with_borrow_mut(|buffer| {
        if let ThreadBuffer::Disabled = buffer {
            *buffer = ThreadBuffer::Enabled(None);
        }
    });
}

/// Transfers the buffered lines of this thread.
pub fn flush_lines() {
    BUFFER.with_borrow_mut(|buffer| {
        if let ThreadBuffer::Enabled(Some(buffered)) = buffer {
            buffered.flush_lines();
        }
    });
}

/// Runs a future and transfers the buffered lines regularly, since a busy thread may never wait.
pub async fn flushing_lines<F: Future>(serving: F) -> F::Output {
    let mut serving = pin!(serving);
    loop {
        if let Ok(served) = timeout(MAX_BUFFER_TIME, serving.as_mut()).await {
            return served;
        }
        flush_lines();
    }
}

impl BufferedLines {
    fn flush_lines(&mut self) {
        if self.lines.count > 0 {
            self.queue.push(&mut self.lines);
        }
    }
}

impl Drop for BufferedLines {
    fn drop(&mut self) {
        self.flush_lines();
    }
}

/// The queue to the writer thread.
#[derive(Debug, Clone)]
pub(super) struct Queue(Arc<QueueState>);

#[derive(Debug)]
struct QueueState {
    /// The capacity in bytes.
    capacity: usize,
    pending: Mutex<Pending>,
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
    /// True while lines are kept. At the end they are discarded.
    is_held: bool,
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
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Creates a queue of `capacity` bytes and starts its writer thread.
    pub(super) fn new(
        writer: impl Write + Send + 'static,
        capacity: usize,
    ) -> io::Result<(Queue, WriterGuard)> {
        let queue = Queue(Arc::new(QueueState {
            capacity,
            pending: Mutex::default(),
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
        let mut pending = self.0.lock();
        if pending.lines.bytes.len() + more.bytes.len() > self.0.capacity {
            pending.dropped += more.count;
            return more.clear();
        }
        pending.lines.take(more);
        if pending.writer == Writer::Idle {
            pending.writer = Writer::Busy;
            drop(pending);
            self.0.written.notify_one();
        }
    }

    /// Queues one line, including its line break.
    pub(super) fn queue_line(&self, line: &str) {
        BUFFER.with_borrow_mut(|buffer| match buffer {
            ThreadBuffer::Disabled => self.push(&mut LogBatch {
                bytes: line.as_bytes().to_vec(),
                count: 1,
            }),
            ThreadBuffer::Enabled(buffered) => {
                let buffered = buffered.get_or_insert_with(|| BufferedLines {
                    queue: self.clone(),
                    lines: LogBatch::default(),
                });
                buffered.lines.bytes.extend_from_slice(line.as_bytes());
                buffered.lines.count += 1;
                if buffered.lines.bytes.len() >= BUFFER_SIZE {
                    buffered.flush_lines();
                }
            }
        });
    }

    /// Keeps lines until [`Queue::release`]; if the program ends before, they are discarded.
    pub(super) fn hold(&self) {
        self.0.lock().is_held = true;
    }

    /// Writes the kept lines, and those that follow.
    pub(super) fn release(&self) {
        self.0.lock().is_held = false;
        self.0.written.notify_one();
    }

    /// Returns the number of queued lines.
    #[cfg(test)]
    pub(super) fn pending(&self) -> u64 {
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
    let mut pending = shared.lock();
    let mut lines = LogBatch::default();
    loop {
        match (pending.is_held, pending.ended) {
            (false, _) => lines.take(&mut pending.lines),
            (true, true) => pending.lines.clear(),
            (true, false) => {}
        }
        if lines.count > 0 {
            pending.writer = Writer::Busy;
            drop(pending);
            // An error of standard error can be reported nowhere.
            let _ = writer.write_all(&lines.bytes).and_then(|()| writer.flush());
            lines.clear();
            let paused = shared
                .written
                .wait_timeout_while(shared.lock(), WRITE_PAUSE, |pending| !pending.ended);
            pending = paused.unwrap_or_else(PoisonError::into_inner).0;
        } else if pending.ended {
            break;
        } else {
            pending.writer = Writer::Idle;
            let is_idle = |pending: &mut Pending| {
                (pending.lines.count == 0 || pending.is_held) && !pending.ended
            };
            let notified = shared.written.wait_while(pending, is_idle);
            pending = notified.unwrap_or_else(PoisonError::into_inner);
        }
    }
    pending.writer = Writer::Done;
    drop(pending);
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
        flush_lines();
        let mut pending = self.shared.lock();
        pending.ended = true;
        self.shared.written.notify_all();
        let is_writing = |pending: &mut Pending| pending.writer != Writer::Done;
        let waited = self
            .shared
            .done
            .wait_timeout_while(pending, END_TIMEOUT, is_writing);
        let (pending, late) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(pending);
        // A terminal that does not read blocks the writer; the program ends without it.
        if !late.timed_out()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}
