//! Allocators of crates with C's calls, one a feature: those that are written in C or C++ bring their own.

#[cfg(feature = "libmimalloc-sys")]
pub use libmimalloc_sys::*;
#[cfg(feature = "rpmalloc-sys")]
pub use rpmalloc_sys::*;
#[cfg(feature = "snmalloc-sys")]
pub use snmalloc_sys::*;

/// A two-level segregated fit in safe constant time; the instance lies at the start of the arena.
#[cfg(feature = "rlsf")]
mod rlsf_calls {
    use core::{alloc::Layout, mem::size_of, ptr, ptr::NonNull};

    const ALIGN: usize = 8;
    type Heap = rlsf::Tlsf<'static, u32, u32, 28, 32>;

    #[no_mangle]
    unsafe extern "C" fn rival_init(memory: *mut u8, bytes: usize) -> *mut Heap {
        let heap = memory.cast::<Heap>();
        if bytes <= size_of::<Heap>() {
            return ptr::null_mut();
        }
        heap.write(Heap::new());
        let rest = ptr::slice_from_raw_parts_mut(memory.add(size_of::<Heap>()), bytes - size_of::<Heap>());
        (*heap).insert_free_block_ptr(NonNull::new_unchecked(rest));
        heap
    }

    #[no_mangle]
    unsafe extern "C" fn rival_malloc(heap: *mut Heap, size: usize) -> *mut u8 {
        let layout = Layout::from_size_align_unchecked(size, ALIGN);
        (*heap).allocate(layout).map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    #[no_mangle]
    unsafe extern "C" fn rival_free(heap: *mut Heap, pointer: *mut u8) {
        (*heap).deallocate(NonNull::new_unchecked(pointer), ALIGN);
    }
}

/// Talc wants an object's size when it is freed, which C does not tell: a word before each object keeps it.
#[cfg(feature = "talc")]
mod talc_calls {
    use core::{alloc::Layout, mem::size_of, ptr};
    use talc::{base::Talc, source::Manual, DefaultBinning};

    const WORD: usize = size_of::<usize>();
    type Heap = Talc<Manual, DefaultBinning>;

    #[no_mangle]
    unsafe extern "C" fn rival_init(memory: *mut u8, bytes: usize) -> *mut Heap {
        let heap = memory.cast::<Heap>();
        if bytes <= size_of::<Heap>() {
            return ptr::null_mut();
        }
        heap.write(Heap::new(Manual));
        match (*heap).claim(memory.add(size_of::<Heap>()), bytes - size_of::<Heap>()) {
            Some(_) => heap,
            None => ptr::null_mut(),
        }
    }

    #[no_mangle]
    unsafe extern "C" fn rival_malloc(heap: *mut Heap, size: usize) -> *mut u8 {
        let layout = Layout::from_size_align_unchecked(size + WORD, WORD);
        match (*heap).allocate(layout) {
            Some(base) => {
                base.cast::<usize>().write(size + WORD);
                base.as_ptr().add(WORD)
            }
            None => ptr::null_mut(),
        }
    }

    #[no_mangle]
    unsafe extern "C" fn rival_free(heap: *mut Heap, pointer: *mut u8) {
        let base = pointer.sub(WORD);
        (*heap).deallocate(base, Layout::from_size_align_unchecked(base.cast::<usize>().read(), WORD));
    }
}
