//! Memory of our own that is about to be used, had in one piece.

/// Makes the pages of the heap that a start will touch at once: made one by
/// one, as they are touched, they take a tenth of a start. Nothing depends on
/// it, and nothing is done where the allocator is not the one of glibc.
#[cfg(target_env = "gnu")]
pub fn prepare_heap() {
    /// What a start takes of the heap.
    const OF_A_START: usize = 384 * 1024;
    const POPULATE_WRITE: libc::c_int = 23;
    let growth = libc::c_int::try_from(OF_A_START).unwrap_or(0);
    // SAFETY: sets by how much the heap grows at a time, and takes no pointer.
    if unsafe { libc::mallopt(libc::M_TOP_PAD, growth) } == 0 {
        return;
    }
    // Has it grow, if it did not yet.
    drop(std::hint::black_box(vec![0_u8; 256]));
    // SAFETY: moves the end of the heap by nothing, and tells where it is.
    let end = unsafe { libc::sbrk(0) }.addr();
    let start = end.saturating_sub(OF_A_START) & !0xfff;
    // SAFETY: populating makes pages and changes no byte of them; where the
    // range is not all there, as with a heap elsewhere, it fails.
    let _ = unsafe {
        libc::madvise(
            std::ptr::without_provenance_mut(start),
            end.saturating_sub(start),
            POPULATE_WRITE,
        )
    };
}

/// Nothing where the allocator is not the one of glibc.
#[cfg(not(target_env = "gnu"))]
pub fn prepare_heap() {}

#[cfg(test)]
mod tests {
    #[test]
    fn the_heap_works_as_before() {
        super::prepare_heap();
        let all: Vec<Vec<u8>> = (0..200_u8).map(|fill| vec![fill; 4000]).collect();
        let is_whole =
            |(fill, part): (usize, &Vec<u8>)| part.iter().all(|at| usize::from(*at) == fill);
        assert!(all.iter().enumerate().all(is_whole));
    }
}
