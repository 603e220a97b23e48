"""Contracts in ACSL for the generated C of a fixed pool: what each function asks for and promises, for Frama-C's WP.

The heap's state is told by a stack of the free blocks' numbers, which exists in the proof alone (ghost code): the list
that runs through the arena holds just these blocks, from the last to the first, and none twice. A block is live where
it was carved and is not in the stack.
"""

from __future__ import annotations

import re

from heapwright.recipes.pools import Fixed
from heapwright.recipes.recipe import Recipe

_VIEW = """\
/* ---- what holds of the heap, for Frama-C's WP -------------------------------------------------------------------- */

#define APP_FIXED_STRIDE ((APP_FIXED_SIZES_2 + APP_ALIGN - 1u) / APP_ALIGN * APP_ALIGN) /* bytes from block to block */

/* All carved blocks, by number: first the free ones, the one freed last behind the others, then those that are live.
 * Where each stands; and how many are free. */
/*@ ghost unsigned int app_stack[APP_FIXED_COUNTS_2]; */
/*@ ghost unsigned int app_place[APP_FIXED_COUNTS_2]; */
/*@ ghost unsigned int app_depth; */

/*@ logic uint32_t *app_word_at(struct app_heap *h, integer at) = (uint32_t *)((unsigned char *)h + at);
  @ logic integer app_word{L}(struct app_heap *h, integer at) = (integer)*app_word_at(h, at);
  @ logic integer app_block_number(integer i) = APP_FIXED_BLOCKS_AT_2 + i * APP_FIXED_STRIDE;
  @ logic integer app_carved{L}(struct app_heap *h) = app_word(h, APP_CARVED_AT);
  @
  @ // The arena is memory, and the proof's own variables lie elsewhere.
  @ predicate app_arena{L}(struct app_heap *h) =
  @   \\valid((unsigned char *)h + (0 .. APP_FIXED_END - 1)) &&
  @   \\separated((unsigned char *)h + (0 .. APP_FIXED_END - 1), &app_stack[0 .. APP_FIXED_COUNTS_2 - 1]) &&
  @   \\separated((unsigned char *)h + (0 .. APP_FIXED_END - 1), &app_place[0 .. APP_FIXED_COUNTS_2 - 1]) &&
  @   \\separated((unsigned char *)h + (0 .. APP_FIXED_END - 1), &app_depth);
  @
  @ // A word of the arena: four bytes at a multiple of four.
  @ predicate app_is_word(integer at) = 0 <= at <= APP_FIXED_END - 4 && at % 4 == 0;
  @
  @ predicate app_live{L}(struct app_heap *h, integer i) = 0 <= i < app_carved(h) && app_place[i] >= app_depth;
  @
  @ predicate app_counted{L}(struct app_heap *h) = app_depth <= app_carved(h) <= APP_FIXED_COUNTS_2;
  @ predicate app_ordered{L}(struct app_heap *h) = \\forall integer k; 0 <= k < app_carved(h) ==>
  @   0 <= app_stack[k] < app_carved(h) && app_place[app_stack[k]] == k;
  @ predicate app_placed{L}(struct app_heap *h) = \\forall integer i; 0 <= i < app_carved(h) ==>
  @   0 <= app_place[i] < app_carved(h) && app_stack[app_place[i]] == i;
  @ predicate app_headed{L}(struct app_heap *h) = app_word(h, APP_HEADS_AT) ==
  @   (app_depth == 0 ? 0 : app_block_number(app_stack[app_depth - 1]));
  @ predicate app_ended{L}(struct app_heap *h) = app_depth > 0 ==> app_word(h, app_block_number(app_stack[0])) == 0;
  @ predicate app_linked_to{L}(struct app_heap *h, integer n) = \\forall integer k; 0 < k < n ==>
  @   app_word(h, app_block_number(app_stack[k])) == app_block_number(app_stack[k - 1]);
  @ predicate app_linked{L}(struct app_heap *h) = app_linked_to(h, app_depth);
  @ predicate app_sound{L}(struct app_heap *h) =
  @   app_counted(h) && app_ordered(h) && app_placed(h) && app_headed(h) && app_ended(h) &&
  @   app_linked(h);
  @
  @ // What the memory model has no numbers for: addresses inside one arena differ by as many bytes as lie between.
  @ axiomatic app_addresses {
  @   axiom app_apart: \\forall unsigned char *p, integer at; 0 <= at <= APP_FIXED_END ==>
  @     (uintptr_t)(p + at) == (uintptr_t)p + at;
  @ }
  @*/

/* A live block becomes the last of the free ones, and the live block that stood there takes its place. */
/*@ ghost
  /@ requires app_counted(h) && app_ordered(h) && app_placed(h) && app_live(h, number);
     assigns app_depth, app_stack[0 .. APP_FIXED_COUNTS_2 - 1], app_place[0 .. APP_FIXED_COUNTS_2 - 1];
     ensures app_depth == \\old(app_depth) + 1 && app_stack[app_depth - 1] == number;
     ensures app_counted(h);
     ensures app_ordered(h);
     ensures app_placed(h);
     ensures \\forall integer k; 0 <= k < app_depth - 1 ==> app_stack[k] == \\old(app_stack[k]);
     ensures \\forall integer i; app_live(h, i) <==> \\old(app_live(h, i)) && i != number;
  @/
  static void app_put(struct app_heap *h, unsigned int number)
  {
      unsigned int place = app_place[number];
      unsigned int other = app_stack[app_depth];
      app_stack[place] = other;
      app_place[other] = place;
      app_stack[app_depth] = number;
      app_place[number] = app_depth;
      app_depth++;
  }
*/

"""

_CONTRACTS = {
    "exceeds": """\
  assigns \\nothing;
  ensures \\result == 1 <==> bytes > most;
  ensures \\result == 0 <==> bytes <= most;""",
    "arena_base": """\
  assigns \\nothing;
  ensures \\result == (unsigned char *)h;""",
    "arena_pointer": """\
  requires app_arena(h) && 0 <= at < APP_FIXED_END;
  assigns \\nothing;
  ensures \\result == (unsigned char *)h + at;""",
    "load4": """\
  requires app_arena(h) && app_is_word(at);
  assigns \\nothing;
  ensures \\result == app_word(h, at);""",
    "store1": """\
  requires app_arena(h) && 0 <= at < APP_FIXED_END;
  assigns *((unsigned char *)h + at);""",
    "store4": """\
  requires app_arena(h) && app_is_word(at);
  assigns *app_word_at(h, at);
  ensures app_word(h, at) == value;""",
    "raw_link": """\
  requires app_arena(h) && app_is_word(at);
  assigns \\nothing;
  ensures \\result == app_word(h, at);""",
    "store_link": """\
  requires app_arena(h) && app_is_word(at);
  assigns *app_word_at(h, at);
  ensures app_word(h, at) == node;""",
    "fixed_stride": """\
  requires class_ == 0;
  assigns \\nothing;
  ensures \\result == APP_FIXED_STRIDE;""",
    "fixed_class_for": """\
  assigns \\nothing;
  ensures n <= APP_FIXED_SIZES_2 ==> \\result == 0;
  ensures n > APP_FIXED_SIZES_2 ==> \\result == APP_COUNT;""",
    "fixed_head": """\
  requires class_ == 0;
  assigns \\nothing;
  ensures \\result == APP_HEADS_AT;""",
    "fixed_class_of_address": """\
  assigns \\nothing;
  ensures \\result == 0;""",
    "fixed_pop": """\
  requires class_ == 0 && app_arena(h) && app_sound(h);
  assigns *app_word_at(h, APP_HEADS_AT), app_depth;
  ensures app_sound(h);
  ensures \\old(app_depth) == 0 ==> \\result == 0 && app_depth == 0;
  ensures \\old(app_depth) > 0 ==>
    app_depth == \\old(app_depth) - 1 && \\result == app_block_number(app_stack[app_depth]);""",
    "fixed_carve": """\
  requires class_ == 0 && app_arena(h) && app_sound(h);
  assigns *app_word_at(h, APP_CARVED_AT), app_stack[0 .. APP_FIXED_COUNTS_2 - 1],
    app_place[0 .. APP_FIXED_COUNTS_2 - 1];
  ensures app_sound(h);
  ensures \\forall integer i; 0 <= i < \\old(app_carved(h)) ==> app_place[i] == \\old(app_place[i]);
  ensures \\forall integer k; 0 <= k < \\old(app_carved(h)) ==> app_stack[k] == \\old(app_stack[k]);
  ensures app_place[\\old(app_carved(h))] == \\old(app_carved(h)) || \\old(app_carved(h)) == APP_FIXED_COUNTS_2;
  ensures \\old(app_carved(h)) == APP_FIXED_COUNTS_2 ==> \\result == 0 && app_carved(h) == APP_FIXED_COUNTS_2;
  ensures \\old(app_carved(h)) < APP_FIXED_COUNTS_2 ==>
    app_carved(h) == \\old(app_carved(h)) + 1 && \\result == app_block_number(\\old(app_carved(h)));""",
    "fixed_find_in": """\
  requires class_ == 0 && app_arena(h) && app_sound(h);
  assigns *app_word_at(h, APP_HEADS_AT), *app_word_at(h, APP_CARVED_AT), app_depth,
    app_stack[0 .. APP_FIXED_COUNTS_2 - 1], app_place[0 .. APP_FIXED_COUNTS_2 - 1];
{served}
  ensures \\result == 0 <==> \\old(app_depth == 0 && app_carved(h) == APP_FIXED_COUNTS_2);""",
    "fixed_find": """\
  requires app_arena(h) && app_sound(h);
  assigns *app_word_at(h, APP_HEADS_AT), *app_word_at(h, APP_CARVED_AT), app_depth,
    app_stack[0 .. APP_FIXED_COUNTS_2 - 1], app_place[0 .. APP_FIXED_COUNTS_2 - 1];
{served}
  ensures \\result == 0 <==>
    n > APP_FIXED_SIZES_2 || \\old(app_depth == 0 && app_carved(h) == APP_FIXED_COUNTS_2);""",
    "fixed_release": """\
  requires app_arena(h) && app_sound(h);
  requires \\exists integer i; app_live(h, i) && at == app_block_number(i);
  assigns *app_word_at(h, at), *app_word_at(h, APP_HEADS_AT), app_depth,
    app_stack[0 .. APP_FIXED_COUNTS_2 - 1], app_place[0 .. APP_FIXED_COUNTS_2 - 1];
{freed}""",
    "fixed_init": """\
  requires app_arena(h);
  assigns *app_word_at(h, APP_HEADS_AT), *app_word_at(h, APP_CARVED_AT), app_depth;
  ensures app_sound(h) && app_depth == 0 && app_carved(h) == 0;""",
    "pool_admits": """\
  assigns \\nothing;
  ensures \\result != 0 <==> size <= APP_AT_HAND;""",
    "count_refused": """\
  requires app_arena(h);
  assigns *app_word_at(h, APP_REFUSED_AT);
  ensures app_word(h, APP_REFUSED_AT) == (uint32_t)(\\old(app_word(h, APP_REFUSED_AT)) + 1);""",
    "heap_init": """\
  requires bytes >= APP_FIXED_END ==> app_arena(h);
{made}
  ensures \\result == 1 <==> bytes >= APP_FIXED_END;
  ensures \\result == 0 <==> bytes < APP_FIXED_END;
  ensures \\result == 1 ==> app_sound(h) && app_depth == 0 && app_carved(h) == 0;""",
    "init": """\
  requires arena != NULL && bytes >= APP_FIXED_END ==> app_arena((struct app_heap *)arena);
{made_at}
  ensures \\result == NULL || \\result == (struct app_heap *)arena;
  ensures \\result == NULL <==> arena == NULL || (uintptr_t)arena % APP_ARENA_ALIGN != 0 || bytes < APP_FIXED_END;
  ensures \\result != NULL ==> app_sound(\\result) && (\\forall integer i; !app_live(\\result, i));""",
    "heap_malloc_from": """\
  requires app_arena(h) && app_sound(h);
  assigns *app_word_at(h, APP_REFUSED_AT);
  ensures \\result == NULL && app_sound(h);
  ensures app_word(h, APP_REFUSED_AT) == (uint32_t)(\\old(app_word(h, APP_REFUSED_AT)) + 1);""",
    "heap_malloc": """\
  requires app_arena(h) && app_sound(h);
{malloc}""",
    "malloc": """\
  requires app_arena(heap) && app_sound(heap);
{malloc_heap}""",
    "heap_free": """\
  requires app_arena(h) && app_sound(h);
  requires \\exists integer i; app_live(h, i) && at == app_block_number(i);
  assigns *app_word_at(h, at), *app_word_at(h, APP_HEADS_AT), app_depth,
    app_stack[0 .. APP_FIXED_COUNTS_2 - 1], app_place[0 .. APP_FIXED_COUNTS_2 - 1];
{freed}""",
    "address_of": """\
  requires \\exists integer at; 0 <= at < APP_FIXED_END && (unsigned char *)pointer == (unsigned char *)h + at;
  assigns \\nothing;
  ensures 0 <= \\result < APP_FIXED_END && (unsigned char *)pointer == (unsigned char *)h + \\result;""",
    "free": """\
  requires app_arena(heap) && app_sound(heap);
  requires pointer == NULL || \\exists integer i; app_live(heap, i) &&
    (unsigned char *)pointer == (unsigned char *)heap + app_block_number(i);
  assigns *(uint32_t *)pointer, *app_word_at(heap, APP_HEADS_AT), app_depth,
    app_stack[0 .. APP_FIXED_COUNTS_2 - 1], app_place[0 .. APP_FIXED_COUNTS_2 - 1];
  ensures app_sound(heap);
  ensures pointer == NULL ==> app_depth == \\old(app_depth);
  ensures \\forall integer i; app_live(heap, i) <==> \\old(app_live(heap, i)) &&
    (pointer == NULL || (unsigned char *)pointer != (unsigned char *)heap + app_block_number(i));""",
}

_SOUND = ("counted", "ordered", "placed", "headed", "ended", "linked")
"""The parts of app_sound()."""

_PARTS = {
    "served": """\
  ensures app_sound(h);
  ensures \\result != 0 ==> \\exists integer i; \\result == app_block_number(i) && 0 <= i < APP_FIXED_COUNTS_2 &&
    !\\old(app_live(h, i)) && app_live(h, i) &&
    (\\forall integer j; j != i ==> (app_live(h, j) <==> \\old(app_live(h, j))));
  ensures \\result == 0 ==> \\forall integer j; app_live(h, j) <==> \\old(app_live(h, j));""",
    "freed": """\
  ensures app_sound(h);
  ensures \\forall integer i; app_live(h, i) <==> \\old(app_live(h, i)) && at != app_block_number(i);""",
    "made": """\
  assigns ((unsigned char *)h)[0 .. APP_CONTROL - 1], *app_word_at(h, APP_SHARED_LIMIT_AT),
    *app_word_at(h, APP_SHARED_HIGH_AT), *app_word_at(h, APP_HEADS_AT), *app_word_at(h, APP_CARVED_AT), app_depth;""",
    "malloc": """\
  assigns *app_word_at(h, APP_HEADS_AT), *app_word_at(h, APP_CARVED_AT), *app_word_at(h, APP_REFUSED_AT), app_depth,
    app_stack[0 .. APP_FIXED_COUNTS_2 - 1], app_place[0 .. APP_FIXED_COUNTS_2 - 1];
  ensures app_sound(h);
  ensures \\result == NULL <==>
    size > APP_FIXED_SIZES_2 || \\old(app_depth == 0 && app_carved(h) == APP_FIXED_COUNTS_2);
  ensures \\result == NULL ==>
    app_word(h, APP_REFUSED_AT) == (uint32_t)(\\old(app_word(h, APP_REFUSED_AT)) + 1) &&
    (\\forall integer j; app_live(h, j) <==> \\old(app_live(h, j)));
  ensures \\result != NULL ==> \\exists integer i;
    (unsigned char *)\\result == (unsigned char *)h + app_block_number(i) && 0 <= i < APP_FIXED_COUNTS_2 &&
    !\\old(app_live(h, i)) && app_live(h, i) &&
    (\\forall integer j; j != i ==> (app_live(h, j) <==> \\old(app_live(h, j))));""",
}
_PARTS["malloc_heap"] = re.sub(r"\bh\b", "heap", _PARTS["malloc"])
_PARTS["made_at"] = re.sub(r"\bh\b", "(struct app_heap *)arena", _PARTS["made"])

_LOOPS = {
    "    while (class_ < APP_COUNT && APP_FIXED_SIZES[class_] < n) {\n": """\
    /*@ loop invariant 0 <= class_ <= APP_COUNT;
      @ loop invariant class_ > 0 ==> n > APP_FIXED_SIZES_2;
      @ loop assigns class_;
      @ loop variant APP_COUNT - class_;
      @*/
""",
    "    while (class_ > 0 && at < APP_FIXED_BLOCKS_AT[class_]) {\n": """\
    /*@ loop invariant class_ == 0;
      @ loop assigns class_;
      @ loop variant class_;
      @*/
""",
    "    for (uint32_t at = 0; at < APP_CONTROL; at++) {\n": """\
    /*@ loop invariant 0 <= at <= APP_CONTROL;
      @ loop assigns at, ((unsigned char *)h)[0 .. APP_CONTROL - 1];
      @ loop variant APP_CONTROL - at;
      @*/
""",
}
"""What holds in each loop, by the line that begins it."""

_GHOSTS = {
    "        app_store_link(h, head, app_raw_link(h, at));\n": (
        """\
        /*@ assert top: app_depth > 0 && at == app_block_number(app_stack[app_depth - 1]); */
        /*@ assert next: app_word(h, at) == (app_depth == 1 ? 0 : app_block_number(app_stack[app_depth - 2])); */
""",
        """\
        /*@ ghost app_depth--; */
""",
    ),
    "    app_store4(h, carved_at, carved + 1u);\n": (
        "",
        """\
    /*@ assert links: \\forall integer k; 0 <= k < app_depth ==>
          app_word(h, app_block_number(app_stack[k])) == \\at(app_word(h, app_block_number(app_stack[k])), Pre); */
    /*@ ghost app_stack[carved] = carved; */
    /*@ ghost app_place[carved] = carved; */
    /*@ assert stack: \\forall integer k; 0 <= k < app_depth ==> app_stack[k] == \\at(app_stack[k], Pre); */
""",
    ),
    "    app_store_link(h, at, app_raw_link(h, head));\n    app_store_link(h, head, at);\n": (
        """\
    /*@ ghost unsigned int number = (at - APP_FIXED_BLOCKS_AT_2) / APP_FIXED_STRIDE; */
    /*@ assert number: at == app_block_number(number) && app_live(h, number); */
    /*@ assert apart: \\forall integer k; 0 <= k < app_depth ==> app_stack[k] != number; */
    /*@ assert blocks: \\forall integer k; 0 <= k < app_depth ==> app_block_number(app_stack[k]) != at; */
""",
        """\
    /*@ assert carved: app_carved(h) == \\at(app_carved(h), Pre); */
    /*@ assert ended: app_ended(h); */
    /*@ assert linked: app_linked(h); */
    /*@ assert link: app_word(h, at) == (app_depth == 0 ? 0 : app_block_number(app_stack[app_depth - 1])); */
    /*@ assert only: \\forall integer i; at == app_block_number(i) ==> i == number; */
    /*@ ghost app_put(h, number); */
    /*@ assert below: app_linked_to(h, app_depth - 1); */
    /*@ assert top: app_depth > 1 ==>
          app_word(h, app_block_number(app_stack[app_depth - 1])) == app_block_number(app_stack[app_depth - 2]); */
""",
    ),
    "    app_store4(h, APP_CARVED_AT, 0);\n": ("", "    /*@ ghost app_depth = 0; */\n"),
}
"""What stands before and behind a statement in the proof alone."""


def has_contracts(recipe: Recipe) -> bool:
    """Whether contracts are known of a recipe: one counted class of blocks in a list, and nothing around it."""
    pool = recipe.pools[0]
    plain = recipe.checks == "none" and recipe.threads == "none" and not recipe.counters and recipe.link_bytes == 4
    return (
        plain
        and len(recipe.pools) == 1
        and isinstance(pool, Fixed)
        and len(pool.sizes) == 1
        and pool.counts != "grow"
        and pool.find == "freelist"
        and pool.header == 0
        and recipe.align % 4 == 0
    )


def with_contracts(source: str) -> str:
    """The text of app_heap.c with a contract before each function that init, malloc and free call, or are."""
    for name, contract in _CONTRACTS.items():
        for part, text in _PARTS.items():
            contract = contract.replace(f"{{{part}}}", text)
        contract = re.sub(r"  ensures app_sound\((.*?)\);\n", _each_part, contract + "\n")
        source = _before_function(source, name, f"/*@\n{contract}*/\n")
    for line, told in _LOOPS.items():
        source = source.replace(line, told + line)
    for line, (before, behind) in _GHOSTS.items():
        source = source.replace(line, before + line + behind)
    first = source.index("/* Compares in a function of its own")
    return source[:first] + _VIEW + source[first:]


def _each_part(match: re.Match[str]) -> str:
    """A promise of its own for each part of a sound heap: provers find one at a time."""
    return "".join(f"  ensures app_{part}({match[1]});\n" for part in _SOUND)


def _before_function(source: str, name: str, text: str) -> str:
    """The source with `text` before the function's definition, where there is one."""
    match = re.search(rf"^[\w ]+\**app_{name}\([^;]*?\)\n\{{", source, re.MULTILINE)
    return source if match is None else source[: match.start()] + text + source[match.start() :]


def functions_with_contracts(source: str) -> list[str]:
    """The functions that are proved, by name."""
    names = [f"app_{name}" for name in (*_CONTRACTS, "put")]
    return [name for name in names if re.search(rf"^[\w ]+\**{name}\([^;]*?\)\n\s*\{{", source, re.MULTILINE)]
