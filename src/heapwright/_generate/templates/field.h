/* ---- From the field ----
 *
 * What a device reports of its heap, in 116 bytes to be sent, logged as hexadecimal digits, or read by a debugger: no
 * padding, numbers in the device's byte order. `heapwright check --field` compares them with the recording that the
 * heap was tailored to. */
#define {{ upper }}_FIELD_MAGIC UINT32_C(0x31465748) /* "HWF1" in little endian */

struct {{ prefix }}_field {
    uint32_t magic;               /* {{ upper }}_FIELD_MAGIC */
    uint8_t version;              /* 1 */
    uint8_t counts;               /* 0: neither bytes nor blocks; 1: bytes; 2: blocks by size, too */
    uint16_t bytes;               /* of this block */
    uint32_t recipe;              /* the first 32 bits of the recipe's hash */
    uint32_t boots;               /* number of calls of {{ prefix }}_field_boot() */
    uint32_t arena;               /* as of struct {{ prefix }}_usage, like the next four; peaks are over all boots */
    uint32_t peak;                /* bytes */
    uint32_t used_peak;           /* bytes */
    uint32_t refused;             /* number of requests, in all boots */
    uint32_t largest_refused;     /* bytes */
    uint32_t refused_before;      /* number of requests that were refused in earlier boots */
    uint32_t recorded_peak;       /* `peak` in the recordings that the heap was tailored to; 0 if that is not known */
    uint32_t recorded_used_peak;  /* `used_peak` there */
    uint16_t blocks[16];          /* as of struct {{ prefix }}_usage, at most 65535 */
    uint16_t recorded_blocks[16]; /* `blocks` in the recordings */
    uint32_t check;               /* CRC-32 of the bytes before it, as of zlib */
};

/* Begins a boot: call it once after each reset, ahead of {{ prefix }}_field(). The block lies in memory that a reset does not
 * clear, as in a section .noinit; what is no block of this heap is cleared. Leave the call out if there is no such
 * memory. O(bytes of the block). */
void {{ prefix }}_field_boot(struct {{ prefix }}_field *field);

/* Brings a block up to date; one that is no block of this heap is written again. O(bytes of the block). */
void {{ prefix }}_field(struct {{ prefix }}_heap *heap, struct {{ prefix }}_field *field);
