//! The way of a line from the thread that says it to the thread that writes it.
//!
//! A thread that serves calls keeps its lines until it has nothing else to do, for half a second at most, or until they are
//! many: one hand-over stands for all calls of a turn, and no call wakes another thread. Other threads hand over each line at
//! once. The writer rests a moment after each write, so that it is woken a few hundred times a second and not for each call.
//!
//! Laws: nobody waits for the writer, but for a moment at the end; what waits has a bound in bytes; what finds no room is
//! dropped, whole lines at a time, and counted.

use std::cell::RefCell;
use std::io::{self, Write};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::time::timeout;

/// What a thread keeps at most before it hands over.
const KEPT: usize = 16 * 1024;

/// How long a thread keeps a line at most, whatever it has to do.
const KEPT_FOR: Duration = Duration::from_millis(500);

/// The most room that is kept for further lines.
const ROOM: usize = 4 * KEPT;

/// How long the writer rests after it has written.
const REST: Duration = Duration::from_millis(5);

/// How long the end of the program waits for the last lines.
const PATIENCE: Duration = Duration::from_secs(1);

thread_local! {
    static KEEPING: RefCell<ThreadBuffer> = const { RefCell::new(ThreadBuffer::Nothing) };
}

/// What a thread does with its lines.
enum ThreadBuffer {
    /// Each is handed over at once.
    Nothing,
    /// They are kept until [`hand_over`].
    Lines(Option<BufferedLines>),
}

/// Lines that a thread has said. Dropped, they are handed over.
struct BufferedLines {
    queue: Queue,
    lines: LogBatch,
}

/// Lines, and how many.
#[derive(Debug, Default)]
struct LogBatch {
    bytes: Vec<u8>,
    count: u64,
}

impl LogBatch {
    /// Takes another's lines, and leaves it room in their place.
    fn take(&mut self, more: &mut LogBatch) {
        if self.count == 0 {
            std::mem::swap(self, more);
        } else {
            self.bytes.extend_from_slice(&more.bytes);
            self.count += more.count;
        }
        more.clear();
    }

    /// Forgets them, and keeps their room for others.
    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(ROOM);
        self.count = 0;
    }
}

/// Lets this thread keep its lines; whoever runs it calls [`hand_over`] whenever it is about to wait, and serves within
/// [`handing_over`].
pub fn keep_lines() {
    KEEPING.with_borrow_mut(|keeping| {
        if let ThreadBuffer::Nothing = keeping {
            *keeping = ThreadBuffer::Lines(None);
        }
    });
}

/// Hands over what this thread has kept.
pub fn hand_over() {
    KEEPING.with_borrow_mut(|keeping| {
        if let ThreadBuffer::Lines(Some(kept)) = keeping {
            kept.hand_over();
        }
    });
}

/// Serves, and hands over in between what this thread has kept: one that always has something to do never waits.
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

/// Where lines wait for the writer.
#[derive(Debug, Clone)]
pub(super) struct Queue(Arc<QueueState>);

#[derive(Debug)]
struct QueueState {
    /// The most bytes that wait.
    most: usize,
    waiting: Mutex<Pending>,
    /// The writer waits for lines, or for the end.
    written: Condvar,
    /// The end waits for the writer.
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
    /// Waits for lines.
    #[default]
    Idle,
    /// Will look for lines by itself.
    Busy,
    /// Has written the last one.
    Done,
}

impl QueueState {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        // A panic elsewhere leaves lines that are as good as before.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// A queue of so many bytes, and the thread that writes what comes out of it.
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

    /// Takes one line, which has its end.
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

    /// How many lines wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> u64 {
        self.0.lock().lines.count
    }

    /// How many lines found no room.
    pub(super) fn dropped(&self) -> u64 {
        self.0.lock().dropped
    }
}

/// Writes until the end has come and nothing waits. Whoever counts what calls execute knows the thread by this function, which
/// stays one.
#[inline(never)]
fn write(shared: &QueueState, mut writer: impl Write) {
    let mut waiting = shared.lock();
    let mut lines = LogBatch::default();
    loop {
        lines.take(&mut waiting.lines);
        if lines.count > 0 {
            waiting.writer = Writer::Busy;
            drop(waiting);
            // There is nowhere to complain of standard error but standard error.
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

/// Dropped, it lets the writer write what waits and end, and waits a moment for that.
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
        // A terminal that takes nothing keeps the writer; the program ends without it.
        if !late.timed_out()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}
