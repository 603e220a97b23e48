/* ---- from the field ---------------------------------------------------------------------------------------------- */

#define {{ upper }}_FIELD_RECIPE UINT32_C(0x{{ hash[:8] }})
_Static_assert(sizeof(struct {{ prefix }}_field) == 116u, "the block has no padding");

/* CRC-32 of a block up to its own (IEEE 802.3, reflected, as zlib has it). */
static uint32_t {{ prefix }}_field_sum(const struct {{ prefix }}_field *field)
{
    const unsigned char *bytes = (const unsigned char *)field;
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < sizeof *field - sizeof field->check; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            sum = (sum >> 1) ^ ((sum & 1u) ? UINT32_C(0xedb88320) : 0u);
        }
    }
    return ~sum;
}

/* Clears a block that is none of this heap. */
static void {{ prefix }}_field_begin(struct {{ prefix }}_field *field)
{
    if (field->magic != {{ upper }}_FIELD_MAGIC || field->recipe != {{ upper }}_FIELD_RECIPE || field->check != {{ prefix }}_field_sum(field)) {
        unsigned char *bytes = (unsigned char *)field;
        for (size_t i = 0; i < sizeof *field; i++) {
            bytes[i] = 0;
        }
        field->magic = {{ upper }}_FIELD_MAGIC;
        field->version = 1;
        field->counts = {{ counts }};
        field->bytes = (uint16_t)sizeof *field;
        field->recipe = {{ upper }}_FIELD_RECIPE;
{% if recorded %}
        static const uint16_t recorded[16] = { {{- recorded.blocks | join(", ") -}} };
        field->recorded_peak = {{ recorded.peak }}u;
        field->recorded_used_peak = {{ recorded.used_peak }}u;
        for (size_t i = 0; i < 16u; i++) {
            field->recorded_blocks[i] = recorded[i];
        }
{% endif %}
    }
}

static uint32_t {{ prefix }}_field_most(uint32_t before, uint32_t now)
{
    return before > now ? before : now;
}

void {{ prefix }}_field_boot(struct {{ prefix }}_field *field)
{
    {{ prefix }}_field_begin(field);
    field->boots++;
    field->refused_before = field->refused;
    field->check = {{ prefix }}_field_sum(field);
}

void {{ prefix }}_field(struct {{ prefix }}_heap *heap, struct {{ prefix }}_field *field)
{
    const struct {{ prefix }}_usage usage = {{ prefix }}_usage(heap);
    {{ prefix }}_field_begin(field);
    field->arena = usage.arena;
    field->peak = {{ prefix }}_field_most(field->peak, usage.peak);
    field->used_peak = {{ prefix }}_field_most(field->used_peak, usage.used_peak);
    field->refused = field->refused_before + usage.refused;
    field->largest_refused = {{ prefix }}_field_most(field->largest_refused, usage.largest_refused);
    for (size_t i = 0; i < 16u; i++) {
        const uint32_t blocks = {{ prefix }}_field_most(field->blocks[i], usage.blocks[i]);
        field->blocks[i] = (uint16_t)(blocks < UINT16_MAX ? blocks : UINT16_MAX);
    }
    field->check = {{ prefix }}_field_sum(field);
}
