//! Mutexes whose holder may have panicked: what they guard is used as it was left.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for a mutex.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
