"""The native module: what csrc/policy.h, the headers in native/build_binding.py and recorder/raw_format.h declare.

`tests/core/test_native.py` compares this file with the module that was built. C data is `Any`: structs by their
pointers, pointers to arrays by `ffi.cast`.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

_Callback = TypeVar("_Callback", bound=Callable[..., Any])

class _FFI:
    NULL: Final[Any]
    def new_allocator(self, *, should_clear_after_alloc: bool) -> Callable[[str], Any]: ...
    def new(self, type: str, value: object = ..., /) -> Any: ...
    def new_handle(self, value: object, /) -> Any: ...
    def from_handle(self, handle: Any, /) -> Any: ...
    def def_extern(self, name: str = ..., error: object = ...) -> Callable[[_Callback], _Callback]: ...
    def cast(self, type: str, value: object, /) -> Any: ...
    def gc(self, data: object, destructor: Callable[[Any], object], /) -> Any: ...
    def from_buffer(self, memory: object, /) -> Any: ...
    def buffer(self, data: object, bytes: int = ..., /) -> Any: ...
    def memmove(self, to: object, data: object, bytes: int, /) -> None: ...
    def string(self, data: object, /) -> bytes: ...
    def addressof(self, library: _Lib, function: str, /) -> Any: ...
    def typeof(self, type: object, /) -> Any: ...
    def sizeof(self, type: str, /) -> int: ...
    def offsetof(self, type: str, field: str, /) -> int: ...

class _Lib:
    # policy.h: limits
    HW_MAX_POOLS: Final[int]
    HW_MAX_CLASSES: Final[int]
    HW_DIRECT_LISTS: Final[int]
    HW_TURN_LISTS: Final[int]
    HW_MAX_REQUEST: Final[int]

    # policy.h: pool kinds
    HW_QUICK: Final[int]
    HW_GENERAL: Final[int]
    HW_FIXED: Final[int]
    HW_BUDDY: Final[int]
    HW_PADDED: Final[int]
    HW_PARTITION: Final[int]
    HW_COMPACT: Final[int]

    # policy.h: how free blocks are found
    HW_DOUBLE: Final[int]
    HW_SINGLE: Final[int]
    HW_IMPLICIT: Final[int]
    HW_TREE: Final[int]
    HW_LIFO: Final[int]
    HW_FIFO: Final[int]
    HW_ADDRESS: Final[int]
    HW_SIZE: Final[int]
    HW_FIRST: Final[int]
    HW_NEXT: Final[int]
    HW_BEST: Final[int]
    HW_WORST: Final[int]
    HW_EXACT: Final[int]
    HW_FROM_START: Final[int]
    HW_FROM_FREED: Final[int]
    HW_FROM_LOWEST_FREE: Final[int]
    HW_FROM_TRIED: Final[int]

    # policy.h: when neighbours merge
    HW_NEVER: Final[int]
    HW_IMMEDIATE: Final[int]
    HW_FORWARD: Final[int]
    HW_KEYS_MIXED: Final[int]
    HW_KEYS_NONE: Final[int]
    HW_KEYS_PLAIN: Final[int]
    HW_LAZY: Final[int]
    HW_DEFERRED: Final[int]
    HW_SWEEP: Final[int]

    # policy.h: the top, resizing, flushing
    HW_TOP_LAST: Final[int]
    HW_TOP_BUMP: Final[int]
    HW_TOP_LIST: Final[int]
    HW_TOP_EXTEND: Final[int]
    HW_ALIGNED_BLOCKS: Final[int]
    HW_ALIGNED_MULTIPLE: Final[int]
    HW_ALIGNED_TWICE: Final[int]
    HW_TOP_BELOW: Final[int]
    HW_RESIZE_IN_PLACE: Final[int]
    HW_REFILL_PART: Final[int]
    HW_RESIZE_BOTH_SIDES: Final[int]
    HW_RESIZE_KEEP: Final[int]
    HW_RESIZE_MOVE: Final[int]
    HW_RESIZE_KEEP_HALF: Final[int]
    HW_RESIZE_TRIM: Final[int]
    HW_RESIZE_SHRINK: Final[int]
    HW_RESIZE_WITH_REST: Final[int]
    HW_RESIZE_SMALLER_SIDE: Final[int]
    HW_RESIZE_DOWN_FIRST: Final[int]
    HW_MERGED_FILED: Final[int]
    HW_MERGED_IN_PLACE: Final[int]
    HW_MERGED_AT_NEXT: Final[int]
    HW_FLUSH_BEFORE_REFUSING: Final[int]
    HW_FLUSH_OVER_LIMIT: Final[int]
    HW_FLUSH_BEFORE_GROWING: Final[int]
    HW_FLUSH_IDLE: Final[int]

    # types.h, calls.h, native.h, workloads.h
    HW_OP_MALLOC: Final[int]
    HW_OP_CALLOC: Final[int]
    HW_OP_REALLOC: Final[int]
    HW_OP_FREE: Final[int]
    HW_SHORT_WALK: Final[int]
    HW_GROWING: Final[int]
    HW_CHECKS_NONE: Final[int]
    HW_CHECKS_FREES: Final[int]
    HW_CHECKS_FULL: Final[int]
    HW_CHECKS_NEIGHBOURS: Final[int]
    HW_CACHE_UNITS: Final[int]
    HW_CLASS_SHIFT: Final[int]
    HW_MAP_STEPS: Final[int]
    HW_FILLED: Final[int]
    HW_SAMPLED: Final[int]
    HW_WAITING: Final[int]
    HW_CHECK_NOTHING: Final[int]
    HW_CHECK_PAYLOAD: Final[int]
    HW_CHECK_INVARIANTS: Final[int]
    HW_BROKEN_PAYLOAD: Final[int]
    HW_NO_MEMORY: Final[int]
    HW_NO_ROOM: Final[int]
    HW_USAGE: Final[int]
    HW_LOOP_SHRINK: Final[int]
    HW_LOOP_GROW: Final[int]
    HW_LOOP_RESIZE: Final[int]
    HW_LOOP_PHASES: Final[int]
    HW_LOOP_QUEUE: Final[int]
    HW_LOOP_DRIFT: Final[int]
    HW_LOOP_SAW: Final[int]
    HW_LOOP_ALIGNED: Final[int]
    HW_LOOP_REFILL: Final[int]
    HW_RUN_HEADER: Final[int]
    HW_RUN_USED: Final[int]
    HW_RUN_FREE: Final[int]
    HW_RUN_CACHED: Final[int]
    HW_RUN_CONTROL: Final[int]
    HW_RUN_UNTOUCHED: Final[int]
    # native/build_binding.py: which engine was built
    def hw_engine_digest(self, /) -> Any: ...
    def hw_engine_commit(self, /) -> Any: ...
    def hw_assign_slots(self, op: Any, object: Any, count: int, objects: int, scratch: Any, slot: Any, /) -> int: ...
    def hw_total(self, calls: Any, count: int, totals: Any, /) -> int: ...
    def hw_front_bytes(self, policy: Any, calls: Any, /) -> int: ...
    def hw_reserve(self, front: int, bytes: int, /) -> Any: ...
    def hw_unreserve(self, memory: Any, front: int, bytes: int, /) -> None: ...
    def hw_forget(self, memory: Any, bytes: int, /) -> None: ...
    def hw_go_on(self, watcher: Any, so_far: Any, /) -> int: ...
    def hw_replay(self, policy: Any, calls: Any, memory: Any, bytes: int, options: Any, metrics: Any, /) -> int: ...
    def hw_replay_each(
        self, policies: Any, count: int, calls: Any, memory: Any, bytes: int, metrics: Any, code: Any, /
    ) -> int: ...
    def hw_number_objects(self, op: Any, id: Any, count: int, latest: Any, object: Any, /) -> int: ...
    def hw_deaths(self, calls: Any, latest: Any, death: Any, /) -> None: ...
    def hw_live_bytes(self, calls: Any, bytes: Any, align: int, both: int, after: Any, /) -> int: ...
    def hw_is_orderly(self, op: Any, id: Any, count: int, live: Any, /) -> int: ...
    def hw_is_ordinary(self, policy: Any, /) -> int: ...
    def hw_route(self, memories: Any, count: int, calls: Any, where: Any, at: Any, metrics: Any, /) -> int: ...
    def hw_endure(self, policy: Any, loop: Any, memory: Any, bytes: int, points: Any, endured: Any, /) -> int: ...
    def hw_loop_calls(self, loop: Any, calls: int, written: Any, /) -> int: ...
    def hw_serves(self, policy: Any, calls: Any, memory: Any, bytes: int, wiped: Any, /) -> int: ...
    def hw_film_open(self, policy: Any, calls: Any, memory: Any, bytes: int, code: Any, /) -> Any: ...
    def hw_film_follow(self, film: Any, calls: Any, /) -> None: ...
    def hw_film_counts(self, film: Any, metrics: Any, /) -> None: ...
    def hw_film_leave_out(self, film: Any, birth: int, death: int, /) -> None: ...
    def hw_film_show(self, film: Any, call: int, pieces: Any, room: int, /) -> int: ...
    def hw_cell_shares(self, pieces: Any, count: int, extent: int, rows: int, shares: Any, /) -> None: ...
    def hw_film_alive(self, film: Any, alive: Any, /) -> int: ...
    def hw_film_extent(self, film: Any, extent: Any, /) -> None: ...
    def hw_film_close(self, film: Any, metrics: Any, /) -> int: ...
    def hw_metadata(self, policy: Any, calls: Any, memory: Any, bytes: int, marks: Any, /) -> int: ...
    def hw_usage_after(self, policy: Any, calls: Any, memory: Any, bytes: int, usage: Any, /) -> int: ...
    def hw_serve(self, arrivals: Any, link: Any, events: Any, /) -> int: ...

    # counter.h
    HW_RISCV: Final[int]
    HW_THUMB_UNTIMED: Final[int]
    HW_THREADS_CACHED: Final[int]
    HW_THREADS_LOCK: Final[int]
    HW_THREADS_NONE: Final[int]
    HW_THUMB_M3: Final[int]
    HW_THUMB_M4: Final[int]
    def hw_counter_block(self, engine: Any, address: int, size: int, counter: Any, /) -> None: ...
    def hw_counter_access(
        self, engine: Any, type: int, address: int, size: int, value: int, counter: Any, /
    ) -> None: ...

    # logs.h
    HW_LOG_LINE: Final[int]
    HW_LOG_NOTHING: Final[int]
    HW_LOG_SKIPPED: Final[int]
    HW_LOG_MALLOC: Final[int]
    HW_LOG_CALLOC: Final[int]
    HW_LOG_FREE: Final[int]
    HW_LOG_FAIL: Final[int]
    HW_LOG_RESIZE: Final[int]
    HW_LOG_RESIZE_SELF: Final[int]
    HW_LOG_OLD: Final[int]
    HW_LOG_RESIZE_OLD: Final[int]
    HW_LOG_BEGIN: Final[int]
    HW_LOG_END: Final[int]
    HW_LOG_CANCEL: Final[int]
    HW_LOG_KIND: Final[int]
    HW_LOG_OF_KIND: Final[int]
    HW_LOG_NEWEST: Final[int]
    HW_LOG_CALL: Final[int]
    HW_LOG_RETURN: Final[int]
    HW_LOG_KINDS: Final[int]
    HW_LOG_LITERAL: Final[int]
    HW_LOG_SKIP: Final[int]
    HW_LOG_NUMBER: Final[int]
    HW_LOG_TIME: Final[int]
    HW_LOG_FRACTION: Final[int]
    HW_LOG_FLOAT: Final[int]
    HW_LOG_WORD: Final[int]
    HW_LOG_RUN: Final[int]
    HW_LOG_BLANKS: Final[int]
    HW_LOG_OPTIONAL: Final[int]
    HW_LOG_LAST: Final[int]
    HW_LOG_CODES: Final[int]
    HW_LOG_NO_SLOT: Final[int]
    HW_LOG_ADDRESS: Final[int]
    HW_LOG_OLD_ADDRESS: Final[int]
    HW_LOG_SIZE: Final[int]
    HW_LOG_COUNT: Final[int]
    HW_LOG_ALIGN: Final[int]
    HW_LOG_THREAD: Final[int]
    HW_LOG_SITE: Final[int]
    HW_LOG_PROCESS: Final[int]
    HW_LOG_PARTS: Final[int]
    HW_LOG_NO_FUNCTION: Final[int]
    HW_LOG_MALLOC_OF: Final[int]
    HW_LOG_CALLOC_OF: Final[int]
    HW_LOG_REALLOC: Final[int]
    HW_LOG_MEMALIGN: Final[int]
    HW_LOG_FREES: Final[int]
    HW_LOG_MOST_NESTED: Final[int]
    HW_LEFT_OUT: Final[int]
    HW_LOG_AS_BEFORE: Final[int]
    HW_LOG_HEX: Final[int]
    HW_LOG_UPPER: Final[int]
    HW_LOG_BARE: Final[int]
    HW_LOG_NIL: Final[int]
    HW_LOG_DECIMAL: Final[int]
    HW_LOG_ZEROS: Final[int]
    def hw_blocks_new(self, /) -> Any: ...
    def hw_blocks_delete(self, blocks: Any, /) -> None: ...
    def hw_blocks_count(self, blocks: Any, /) -> int: ...
    def hw_blocks_find(self, blocks: Any, address: int, block: Any, /) -> int: ...
    def hw_blocks_take(self, blocks: Any, address: int, block: Any, /) -> int: ...
    def hw_blocks_put(self, blocks: Any, address: int, block: int, /) -> int: ...
    def hw_blocks_overlapped(self, blocks: Any, address: int, size: int, first: Any, /) -> int: ...
    def hw_blocks_list(self, blocks: Any, address: Any, block: Any, put: Any, /) -> None: ...
    def hw_scanner_new(self, forms: Any, count: int, parts: Any, literals: Any, head: int, /) -> Any: ...
    def hw_scanner_delete(self, scanner: Any, /) -> None: ...
    def hw_scanner_number(self, scanner: Any, name: Any, length: int, /) -> int: ...
    def hw_scanner_names(self, scanner: Any, /) -> int: ...
    def hw_scanner_name(self, scanner: Any, number: int, length: Any, /) -> Any: ...
    def hw_scanner_ignore(self, scanner: Any, needles: Any, count: int, starts: Any, /) -> None: ...
    def hw_scanner_scan(self, scanner: Any, text: Any, length: int, scanned: Any, /) -> None: ...
    def hw_log_apply(self, state: Any, events: Any, which: Any, count: int, /) -> int: ...
    def hw_log_order(self, order: Any, events: Any, count: int, ordered: Any, /) -> int: ...
    def hw_log_order_end(self, order: Any, most: int, ordered: Any, /) -> int: ...
    def hw_log_newest(self, newest: Any, events: Any, count: int, /) -> None: ...
    def hw_log_calls(self, calls: Any, thread: Any, events: Any, count: int, made: Any, /) -> int: ...

    # raw_format.h
    RAW_RECORDS_AT: Final[int]
    RAW_FIRST_CHUNK_BYTES: Final[int]
    RAW_CHUNK_BYTES: Final[int]
    RAW_LEAST_RUN: Final[int]
    RAW_HUGE: Final[int]
    RAW_MEASURED: Final[int]
    RAW_LONGEST_GAP: Final[int]
    RAW_MODULES_AT: Final[int]
    RAW_MODULES: Final[int]
    RAW_EMPTY: Final[int]
    RAW_MALLOC: Final[int]
    RAW_CALLOC: Final[int]
    RAW_FREE: Final[int]
    RAW_REALLOC_BEGIN: Final[int]
    RAW_REALLOC_END: Final[int]
    RAW_REALLOC_FAILED: Final[int]
    RAW_REALLOC_FREED: Final[int]
    RAW_RUN: Final[int]
    RAW_CLOCK: Final[int]
    RAW_ALIGN: Final[int]
    RAW_SITE: Final[int]
    RAW_COST: Final[int]

ffi: _FFI
lib: _Lib
