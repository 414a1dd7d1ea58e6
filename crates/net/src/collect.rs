//! Bodies read completely, within a limit.

use std::io::{Error, ErrorKind};

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;

use super::error::is_malformed;
use super::{BodyCopy, BodyReadError, BudgetExhausted, IncomingBody, MemoryBudget};
use dualgauge_transport::upload_rate::MinimumRate;
use dualgauge_transport::wire::Violation;

/// The reason why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The body is longer than the limit in bytes.
    #[error("the body is longer than {0} bytes")]
    TooLarge(usize),
    /// The memory budget of all bodies is exhausted.
    #[error(transparent)]
    NoRoom(#[from] BudgetExhausted),
    /// The body ended early.
    #[error("the body broke off")]
    Cut(#[source] BodyReadError),
}

impl CollectError {
    /// Returns true when the received bytes are not valid HTTP, rather than incomplete.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        let CollectError::Cut(BodyReadError::Broken(error)) = self else {
            return false;
        };
        // hyper reports a malformed chunk as an I/O error: its parse errors cover heads only.
        let io = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<Error>());
        is_malformed(error)
            || io.is_some_and(|io| {
                matches!(io.kind(), ErrorKind::InvalidInput | ErrorKind::InvalidData)
            })
    }
}

/// Reads a complete body. A declared length beyond the limit is rejected before any read, so that a client which
/// waits for `100 Continue` never gets one.
///
/// # Errors
/// [`CollectError`]; cancel-safe only in that a dropped body closes its connection.
pub async fn collect_all(body: IncomingBody, limit: usize) -> Result<Bytes, CollectError> {
    read(body, limit, |_| Ok(())).await
}

/// Reads a complete body and charges it to `memory` as it arrives, until the last slice of it is dropped.
///
/// # Errors
/// As [`collect_all`], and [`CollectError::NoRoom`].
pub async fn collect_accounted(
    mut body: IncomingBody,
    limit: usize,
    memory: &MemoryBudget,
) -> Result<Bytes, CollectError> {
    if let Some(taken) = take_accounted(&mut body, limit, memory) {
        return taken;
    }
    let mut held = memory.new_reservation();
    let whole = read(body, limit, |bytes| Ok(held.grow(bytes)?)).await?;
    Ok(held.attach_to(whole))
}

/// Takes and charges a body that is in memory already; `None` for any other.
fn take_accounted(
    body: &mut IncomingBody,
    limit: usize,
    memory: &MemoryBudget,
) -> Option<Result<Bytes, CollectError>> {
    let whole = body.take_complete()?;
    if whole.len() > limit {
        return Some(Err(CollectError::TooLarge(limit)));
    }
    let mut held = memory.new_reservation();
    let grown = held.grow(whole.len());
    Some(
        grown
            .map(|()| held.attach_to(whole))
            .map_err(CollectError::NoRoom),
    )
}

/// Reads a complete body and charges it to a copy's budget as it arrives.
///
/// # Errors
/// As [`collect_all`]; an exhausted budget is reported as [`CollectError::TooLarge`].
pub async fn collect_budgeted(
    body: IncomingBody,
    limit: usize,
    copy: &BodyCopy,
) -> Result<Bytes, CollectError> {
    let charge = |bytes| match copy.charge(bytes) {
        true => Ok(()),
        false => Err(CollectError::TooLarge(limit)),
    };
    read(body, limit, charge).await
}

async fn read(
    mut body: IncomingBody,
    limit: usize,
    mut keeps: impl FnMut(usize) -> Result<(), CollectError>,
) -> Result<Bytes, CollectError> {
    let announced = body.size_hint().lower();
    if announced > limit as u64 {
        return Err(CollectError::TooLarge(limit));
    }
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(CollectError::Cut)?.into_data() else {
            continue;
        };
        if first.len() + joined.len() + data.len() > limit {
            return Err(CollectError::TooLarge(limit));
        }
        keeps(data.len())?;
        if first.is_empty() && joined.is_empty() {
            // The common case: a single frame, which is not copied.
            first = data;
            continue;
        }
        if joined.is_empty() {
            let expected = usize::try_from(announced).unwrap_or(limit).min(limit);
            joined.reserve(expected.max(first.len() + data.len()));
            joined.extend_from_slice(&std::mem::take(&mut first));
        }
        joined.extend_from_slice(&data);
    }
    Ok(if joined.is_empty() {
        first
    } else {
        joined.freeze()
    })
}

/// The reason why the body of a request ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadBreak {
    /// The client ended it, or its connection broke.
    Cut,
    /// The request inspector rejected it.
    Refused(Violation),
    /// The client sent below this rate.
    TooSlow(MinimumRate),
    /// The client was slow while other calls waited for a connection to the upstream.
    Contended,
}

impl UploadBreak {
    /// Returns the reason for a read error.
    #[must_use]
    pub fn new(torn: &BodyReadError) -> UploadBreak {
        match torn {
            BodyReadError::Broken(error) => {
                find_violation(error).map_or(UploadBreak::Cut, UploadBreak::Refused)
            }
            BodyReadError::Unended => UploadBreak::Cut,
            BodyReadError::TooSlow(rate) => UploadBreak::TooSlow(*rate),
        }
    }
}

fn find_violation(error: &hyper::Error) -> Option<Violation> {
    let io = std::error::Error::source(error)?.downcast_ref::<std::io::Error>()?;
    io.get_ref()?.downcast_ref::<Violation>().copied()
}
