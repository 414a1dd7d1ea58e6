//! Bounded work on the blocking pool of tokio. Used by `gateway::offload` and `server::admin`.

use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{JoinError, spawn_blocking};

/// Runs `work` on the blocking pool and returns its result. Work that has started runs to its end, even if the caller is
/// gone, and keeps the permit until then.
///
/// # Errors
///
/// Fails if the work panics, or if the runtime shuts down before it starts.
pub async fn run_blocking<T: Send + 'static>(
    permit: OwnedSemaphorePermit,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the caller waits for it, and the permit bounds the number of these tasks"
    )]
    let running = spawn_blocking(move || {
        let result = work();
        drop(permit);
        result
    });
    running.await
}
