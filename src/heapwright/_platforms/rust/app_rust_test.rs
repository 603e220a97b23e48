//! Whether the collections of alloc live in app_heap, each in its thread, and keep what is theirs.

use std::alloc::{alloc, alloc_zeroed, dealloc, realloc, Layout};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{mpsc, Arc};
use std::thread;

use app_heap::{Heap, Spin};

#[global_allocator]
static HEAP: Heap<Spin, { 32 << 20 }> = Heap::new(Spin::new());

fn churn(mut seed: u32) {
    let mut hashed: HashMap<u32, String> = HashMap::new();
    let mut sorted: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut queue: VecDeque<Box<[u8; 100]>> = VecDeque::new();
    for i in 0..20_000 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let key = seed >> 22;
        match hashed.remove(&key) {
            Some(text) => assert!(text.chars().all(|c| c as u32 == 'a' as u32 + key % 26)),
            None => {
                let letter = char::from_u32('a' as u32 + key % 26).unwrap();
                hashed.insert(
                    key,
                    std::iter::repeat(letter)
                        .take((seed >> 8) as usize % 200)
                        .collect(),
                );
            }
        }
        sorted.entry(key % 64).or_default().push(i);
        queue.push_back(Box::new([i as u8; 100]));
        if queue.len() > 200 {
            assert!(queue
                .pop_front()
                .unwrap()
                .iter()
                .all(|&byte| byte == (i - 200) as u8));
        }
    }
    assert_eq!(sorted.values().map(Vec::len).sum::<usize>(), 20_000);
    assert!(sorted
        .values()
        .all(|list| list.windows(2).all(|pair| pair[0] < pair[1])));
}

#[test]
fn collections_keep_what_is_theirs_in_several_threads() {
    let threads: Vec<_> = (0..4)
        .map(|seed| thread::spawn(move || churn(seed)))
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(HEAP.is_whole());
}

#[test]
fn what_one_thread_makes_another_frees() {
    let (send, receive) = mpsc::channel::<Arc<Vec<usize>>>();
    let consumer = thread::spawn(move || receive.iter().map(|list| list.len()).sum::<usize>());
    for i in 0..20_000 {
        send.send(Arc::new(vec![i; i % 50])).unwrap();
    }
    drop(send);
    assert_eq!(consumer.join().unwrap(), (0..20_000).map(|i| i % 50).sum());
}

#[test]
fn every_alignment_is_kept() {
    for align in (0..=16).map(|bits| 1_usize << bits) {
        let layout = Layout::from_size_align(3 * align, align).unwrap();
        unsafe {
            let kept = alloc(Layout::new::<u64>());
            let mut pointer = alloc(layout);
            assert!(!pointer.is_null() && pointer as usize % align == 0);
            pointer.write_bytes(7, 3 * align);
            pointer = realloc(pointer, layout, 5 * align);
            assert!(!pointer.is_null() && pointer as usize % align == 0);
            assert!((0..3 * align).all(|i| *pointer.add(i) == 7));
            dealloc(pointer, Layout::from_size_align(5 * align, align).unwrap());
            dealloc(kept, Layout::new::<u64>());
        }
    }
}

#[test]
fn what_is_freed_is_used_again() {
    for i in 0..1000 {
        let list = vec![i as u8; 100_000];
        assert_eq!(list[99_999], i as u8);
    }
}

#[test]
fn zeroed_memory_is_zero() {
    let layout = Layout::array::<u8>(5000).unwrap();
    for _ in 0..100 {
        unsafe {
            let pointer = alloc_zeroed(layout);
            assert!((0..5000).all(|i| *pointer.add(i) == 0));
            pointer.write_bytes(0xff, 5000);
            dealloc(pointer, layout);
        }
    }
}

#[test]
fn too_large_a_request_is_refused() {
    let refused = HEAP.statistics().refused;
    assert!(Vec::<u8>::new().try_reserve(64 << 20).is_err());
    let mut list = vec![1_u8; 1000];
    assert!(list.try_reserve(64 << 20).is_err());
    assert!(list.iter().all(|&byte| byte == 1));
    assert!(HEAP.statistics().refused >= refused + 2);
}

#[test]
fn a_program_lives_in_the_heap() {
    let list: Vec<u8> = Vec::with_capacity(1 << 20);
    let statistics = HEAP.statistics();
    assert!(statistics.used as usize >= list.capacity() && statistics.used_blocks > 1);
    let at = list.as_ptr() as usize;
    let heap = &HEAP as *const _ as usize;
    assert!((heap..heap + (32 << 20)).contains(&at));
}

#[test]
fn an_arena_that_is_too_small_serves_nothing() {
    use std::alloc::GlobalAlloc;
    static SMALL: Heap<Spin, 1> = Heap::new(Spin::new());
    assert!(unsafe { SMALL.alloc(Layout::new::<u64>()) }.is_null());
    assert_eq!(SMALL.statistics(), Default::default());
}
