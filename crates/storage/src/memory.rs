//! Memory that was freed, back to the operating system.

/// Has the allocator give back the whole pages of what was freed. glibc's keeps most of what was freed on threads other than the first, for ever: after a
/// load or many indexing batches several times what is in use. Takes about a millisecond for ten megabytes, during which other threads may wait to
/// allocate: for quiet moments. Does nothing where the allocator is not glibc's.
pub fn give_back_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes no pointers, and may be called on any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
