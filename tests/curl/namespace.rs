//! A network and mounts of a test's own.

#![expect(unsafe_code, reason = "there is no safe call for it; the block says why it is sound")]

/// Gives this thread, and what is started from it, a network and mounts of its own; false
/// where that is not allowed.
pub fn own_network_and_mounts() -> bool {
    // SAFETY: a plain system call; what it changes is this thread's only.
    unsafe { libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS) == 0 }
}
