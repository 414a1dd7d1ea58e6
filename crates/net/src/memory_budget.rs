//! The memory budget of all complete bodies of the process.
//!
//! The bytes carry their reservation, which is released with the last slice of them. No thread ever waits here:
//! without space, the caller gets an error. Law: each reservation is released exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use dualgauge_patterns::schema::MemoryShare;

/// The memory budget of the process. Clones share the same budget.
#[derive(Debug, Clone, Default)]
pub struct MemoryBudget(Arc<BudgetState>);

#[derive(Debug, Default)]
struct BudgetState {
    limit: AtomicUsize,
    reserved: AtomicUsize,
}

/// The error when the budget is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the limit of buffered body bytes is reached")]
pub struct BudgetExhausted;

/// A part of the budget, released on drop.
#[derive(Debug)]
pub struct Reservation {
    memory: MemoryBudget,
    bytes: usize,
}

/// Bytes with their reservation.
struct AccountedBytes {
    bytes: Bytes,
    _held: Reservation,
}

impl AsRef<[u8]> for AccountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl MemoryBudget {
    /// Creates a budget of `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> MemoryBudget {
        let memory = MemoryBudget::default();
        memory.set_limit(limit);
        memory
    }

    /// Sets the limit. Reservations beyond it are kept.
    pub fn set_limit(&self, limit: usize) {
        self.0.limit.store(limit, Ordering::Relaxed);
    }

    /// Returns the reserved bytes.
    #[must_use]
    pub fn reserved(&self) -> usize {
        self.0.reserved.load(Ordering::Relaxed)
    }

    /// Returns the limit in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.limit.load(Ordering::Relaxed)
    }

    /// Creates an empty reservation that can grow.
    #[must_use]
    pub fn new_reservation(&self) -> Reservation {
        Reservation {
            memory: self.clone(),
            bytes: 0,
        }
    }

    /// Returns the same bytes, reserved until the last slice is dropped.
    ///
    /// # Errors
    /// [`BudgetExhausted`]
    pub fn account(&self, bytes: Bytes) -> Result<Bytes, BudgetExhausted> {
        let mut reservation = self.new_reservation();
        reservation.grow(bytes.len())?;
        Ok(reservation.attach_to(bytes))
    }

    /// Returns the same bytes, reserved even beyond the limit: they are in memory already, and a response that has
    /// begun is not rejected.
    #[must_use]
    pub fn carry(&self, bytes: Bytes) -> Bytes {
        self.0.reserved.fetch_add(bytes.len(), Ordering::Relaxed);
        let reservation = Reservation {
            memory: self.clone(),
            bytes: bytes.len(),
        };
        reservation.attach_to(bytes)
    }
}

/// Validations charge their memory to the same budget.
impl MemoryShare for MemoryBudget {
    fn take(&self, bytes: usize) -> bool {
        self.0.take(bytes).is_ok()
    }

    fn release(&self, bytes: usize) {
        self.0.reserved.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl BudgetState {
    fn take(&self, bytes: usize) -> Result<(), BudgetExhausted> {
        let before = self.reserved.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.limit.load(Ordering::Relaxed) {
            self.reserved.fetch_sub(bytes, Ordering::Relaxed);
            return Err(BudgetExhausted);
        }
        Ok(())
    }
}

impl Reservation {
    /// Reserves `bytes` more.
    ///
    /// # Errors
    /// [`BudgetExhausted`]; the reservation stays as it was.
    pub fn grow(&mut self, bytes: usize) -> Result<(), BudgetExhausted> {
        self.memory.0.take(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Reserves `bytes` in all.
    ///
    /// # Errors
    /// [`BudgetExhausted`]; the reservation stays as it was.
    pub fn resize(&mut self, bytes: usize) -> Result<(), BudgetExhausted> {
        if bytes > self.bytes {
            return self.grow(bytes - self.bytes);
        }
        self.shrink_to(bytes);
        Ok(())
    }

    /// Releases all but `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let released = self.bytes.saturating_sub(bytes);
        if released > 0 {
            self.memory.release(released);
            self.bytes -= released;
        }
    }

    /// Attaches the reservation to its bytes.
    #[must_use]
    pub fn attach_to(self, bytes: Bytes) -> Bytes {
        if bytes.is_empty() {
            return bytes;
        }
        Bytes::from_owner(AccountedBytes { bytes, _held: self })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory
            .0
            .reserved
            .fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_stay_reserved_until_their_last_piece_is_dropped() {
        let memory = MemoryBudget::new(10);
        let whole = memory.account(Bytes::from_static(b"0123456")).unwrap();
        let piece = whole.slice(2..4);
        drop(whole);
        assert_eq!((memory.reserved(), &piece[..]), (7, &b"23"[..]));
        assert_eq!(
            memory.account(Bytes::from_static(b"four")),
            Err(BudgetExhausted)
        );
        assert_eq!(memory.reserved(), 7);
        drop(piece);
        assert_eq!(memory.reserved(), 0);
        let three = memory.account(Bytes::from_static(b"0123456789"));
        assert!(three.is_ok());
    }

    #[test]
    fn the_reservation_of_a_body_that_broke_off_is_released() {
        let memory = MemoryBudget::new(10);
        let mut reservation = memory.new_reservation();
        reservation.grow(6).unwrap();
        assert_eq!(reservation.grow(5), Err(BudgetExhausted));
        assert_eq!(memory.reserved(), 6);
        drop(reservation);
        assert_eq!(memory.reserved(), 0);
    }

    #[test]
    fn a_reservation_changes_its_size() {
        let memory = MemoryBudget::new(10);
        let mut reservation = memory.new_reservation();
        reservation.resize(8).unwrap();
        reservation.resize(3).unwrap();
        assert_eq!(memory.reserved(), 3);
        reservation.shrink_to(5);
        assert_eq!(reservation.resize(11), Err(BudgetExhausted));
        assert_eq!(memory.reserved(), 3);
        drop(reservation);
        assert_eq!(memory.reserved(), 0);
    }

    #[test]
    fn carried_bytes_count_beyond_the_limit() {
        let memory = MemoryBudget::new(4);
        let carried = memory.carry(Bytes::from_static(b"0123456789"));
        assert_eq!((memory.reserved(), carried.len()), (10, 10));
        assert_eq!(
            memory.account(Bytes::from_static(b"1")),
            Err(BudgetExhausted)
        );
        drop(carried);
        assert_eq!(memory.reserved(), 0);
    }

    #[test]
    fn a_smaller_limit_revokes_nothing() {
        let memory = MemoryBudget::new(10);
        let accounted = memory.account(Bytes::from_static(b"0123456789"));
        memory.set_limit(4);
        assert_eq!(
            memory.account(Bytes::from_static(b"1")),
            Err(BudgetExhausted)
        );
        drop(accounted);
        assert!(memory.account(Bytes::from_static(b"1234")).is_ok());
    }

    proptest! {
        #[test]
        fn the_total_is_the_sum_of_live_reservations_and_within_the_limit(
            limit in 0usize..100,
            steps in prop::collection::vec((any::<bool>(), 0usize..40), 0..40),
        ) {
            let memory = MemoryBudget::new(limit);
            let mut accounted: Vec<Bytes> = Vec::new();
            for (takes, size) in steps {
                if takes {
                    accounted.extend(memory.account(Bytes::from(vec![0; size])));
                } else if !accounted.is_empty() {
                    accounted.swap_remove(size % accounted.len());
                }
                let sum: usize = accounted.iter().map(Bytes::len).sum();
                prop_assert_eq!(memory.reserved(), sum);
                prop_assert!(sum <= limit);
            }
        }
    }
}
