//! A heap tailored by Heapwright as the global allocator of a program, std or not.
//!
//! ```ignore
//! use app_heap::{Heap, Spin};
//!
//! #[global_allocator]
//! static HEAP: Heap<Spin, 65536> = Heap::new(Spin::new());
//! ```
#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::hint::spin_loop;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, Ordering};

/// What lets one call of the heap in at a time.
///
/// # Safety
///
/// Between `acquire` and `release` no other thread, interrupt or core may return from `acquire`; neither may allocate.
pub unsafe trait Lock {
    /// The interrupt state, passed to `release`.
    type Key;
    /// Waits for the lock.
    fn acquire(&self) -> Self::Key;
    /// Gives the lock back.
    fn release(&self, key: Self::Key);
}

/// A lock that waits by spinning: for threads of an operating system, and for several cores. Where one thread may keep
/// another from running, and where interrupts allocate, take one that masks interrupts.
pub struct Spin(AtomicBool);

impl Spin {
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }
}

impl Default for Spin {
    fn default() -> Self {
        Self::new()
    }
}

unsafe impl Lock for Spin {
    type Key = ();

    fn acquire(&self) {
        while self
            .0
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            spin_loop();
        }
    }

    fn release(&self, (): ()) {
        self.0.store(false, Ordering::Release);
    }
}

#[repr(C)]
struct Raw {
    _private: [u8; 0],
}

/// The result of `Heap::statistics`, in bytes unless noted otherwise.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// In blocks that are handed out, headers included.
    pub used: u32,
    /// Number of blocks handed out.
    pub used_blocks: u32,
    /// In free and cached blocks, headers included.
    pub unused: u32,
    /// Payload of the largest free block, or of the memory above the last block.
    pub largest_free: u32,
    /// All memory that blocks have ever covered, control data included.
    pub peak: u32,
    /// Number of requests that were refused.
    pub refused: u32,
    /// Number of wrong pointers ignored; 0 where the recipe asks for no checks.
    pub misused: u32,
}

extern "C" {
    fn app_rust_init(arena: *mut u8, bytes: usize) -> *mut Raw;
    fn app_rust_alloc(heap: *mut Raw, alignment: usize, size: usize) -> *mut u8;
    fn app_rust_realloc(
        heap: *mut Raw,
        pointer: *mut u8,
        alignment: usize,
        had: usize,
        size: usize,
    ) -> *mut u8;
    fn app_rust_statistics(heap: *mut Raw, statistics: *mut Statistics);
    fn app_free(heap: *mut Raw, pointer: *mut u8);
    fn app_check(heap: *mut Raw) -> i32;
}

/// A heap with its arena of `BYTES` bytes, which the first call makes.
#[repr(C, align(16))]
pub struct Heap<L: Lock, const BYTES: usize> {
    arena: UnsafeCell<[u8; BYTES]>,
    heap: UnsafeCell<*mut Raw>,
    lock: L,
}

// SAFETY: the lock lets one call at a time reach the cells.
unsafe impl<L: Lock, const BYTES: usize> Sync for Heap<L, BYTES> {}

impl<L: Lock, const BYTES: usize> Heap<L, BYTES> {
    pub const fn new(lock: L) -> Self {
        Self {
            arena: UnsafeCell::new([0; BYTES]),
            heap: UnsafeCell::new(null_mut()),
            lock,
        }
    }

    /// Counts what the heap holds; all 0 where the arena is too small for the heap's own data. O(blocks).
    pub fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::default();
        self.with(|heap| {
            if !heap.is_null() {
                // SAFETY: the heap is whole, and this call has the lock.
                unsafe { app_rust_statistics(heap, &mut statistics) }
            }
        });
        statistics
    }

    /// Whether every invariant of the heap's data holds. O(blocks).
    pub fn is_whole(&self) -> bool {
        // SAFETY: as above.
        self.with(|heap| !heap.is_null() && unsafe { app_check(heap) } == 0)
    }

    fn with<R>(&self, call: impl FnOnce(*mut Raw) -> R) -> R {
        let key = self.lock.acquire();
        // SAFETY: the lock is held, and no other code has a reference to the arena.
        let result = unsafe {
            if (*self.heap.get()).is_null() {
                *self.heap.get() = app_rust_init(self.arena.get().cast(), BYTES);
            }
            call(*self.heap.get())
        };
        self.lock.release(key);
        result
    }
}

// SAFETY: the heap hands out disjoint memory, aligned as asked for, and panics nowhere.
unsafe impl<L: Lock, const BYTES: usize> GlobalAlloc for Heap<L, BYTES> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.with(|heap| {
            if heap.is_null() {
                return null_mut();
            }
            unsafe { app_rust_alloc(heap, layout.align(), layout.size()) }
        })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, _: Layout) {
        self.with(|heap| unsafe { app_free(heap, pointer) });
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.with(|heap| unsafe {
            app_rust_realloc(heap, pointer, layout.align(), layout.size(), size)
        })
    }
}
