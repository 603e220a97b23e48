/* ---- watched by AddressSanitizer or Valgrind --------------------------------------------------------------------- */

#if defined({{ upper }}_UNWATCHED)
#elif defined(__SANITIZE_ADDRESS__)
#define {{ upper }}_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define {{ upper }}_ASAN
#endif
#endif

#if defined({{ upper }}_ASAN) || defined({{ upper }}_VALGRIND)
/* The heap goes to its metadata unseen: its entries have other names from here on, and those at the end of this file
 * tell the tool what is handed out. */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((no_sanitize("address"))), apply_to = function)
#define {{ upper }}_UNSEEN
#else
#pragma GCC push_options
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#define {{ upper }}_UNSEEN __attribute__((__no_sanitize_address__))
#define static {{ upper }}_UNSEEN static
#endif
{% for entry in entries %}
#define {{ entry.name }}(...) {{ entry.unseen }}(__VA_ARGS__)
{{ upper }}_UNSEEN {{ entry.type }}{{ entry.unseen }}({{ entry.parameters }});
{% endfor %}
#if defined(__clang__)
#pragma clang attribute push(__attribute__((no_builtin)), apply_to = function)
#endif
#endif

