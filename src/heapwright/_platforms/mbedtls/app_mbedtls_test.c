/* app_mbedtls_test.c: whether mbedTLS allocates from app_heap alone: handshakes of a client and a server in memory,
 * with a certificate made here, and data both ways.
 *
 * With a recipe of threads = "cached" compile it with -DAPP_TEST_CACHED. It wants 512 KiB, mbedTLS 3 and its default
 * configuration. Where there is a main already, compile it with -Dmain=app_mbedtls_test and call that.
 */
#include "app_mbedtls.h"

#include <stdio.h>
#include <string.h>

#include "mbedtls/ctr_drbg.h"
#include "mbedtls/entropy.h"
#include "mbedtls/ssl.h"
#include "mbedtls/x509_crt.h"
#include "psa/crypto.h"

enum { ARENA = 512 << 10, HANDSHAKES = 4, PIPE = 32768, PAYLOAD = 100000, CHUNK = 3000 };

static _Alignas(APP_ARENA_ALIGNMENT) unsigned char arena[ARENA];
static mbedtls_entropy_context entropy;
static mbedtls_ctr_drbg_context random_source;
static mbedtls_pk_context key;
static mbedtls_x509_crt certificate;
static int failures;

static void expect(int holds, const char *what)
{
    if (!holds) {
        printf("FAILED: %s\n", what);
        failures++;
    }
}

static void good(int result, const char *what)
{
    if (result < 0) {
        printf("FAILED: %s: -0x%04x\n", what, (unsigned)-result);
        failures++;
    }
}

static uint32_t used(void)
{
#ifdef APP_TEST_CACHED
    app_release_thread(app_mbedtls_heap());
#endif
    return app_statistics(app_mbedtls_heap()).used_blocks;
}

/* ---- a wire in memory ---------------------------------------------------------------------------------------------
 */

struct pipe {
    unsigned char bytes[PIPE];
    size_t begin, end;
};

struct side {
    mbedtls_ssl_config config;
    mbedtls_ssl_context ssl;
    struct pipe *out, *in;
};

static struct pipe wires[2];

static int to_wire(void *side, const unsigned char *bytes, size_t length)
{
    struct pipe *pipe = ((struct side *)side)->out;
    if (pipe->end + length > PIPE) {
        return MBEDTLS_ERR_SSL_WANT_WRITE;
    }
    memcpy(pipe->bytes + pipe->end, bytes, length);
    pipe->end += length;
    return (int)length;
}

static int from_wire(void *side, unsigned char *bytes, size_t most)
{
    struct pipe *pipe = ((struct side *)side)->in;
    const size_t there = pipe->end - pipe->begin, length = there < most ? there : most;
    if (length == 0) {
        return MBEDTLS_ERR_SSL_WANT_READ;
    }
    memcpy(bytes, pipe->bytes + pipe->begin, length);
    pipe->begin += length;
    if (pipe->begin == pipe->end) {
        pipe->begin = pipe->end = 0;
    }
    return (int)length;
}

/* ---- what both need -----------------------------------------------------------------------------------------------
 */

static void make_certificate(void)
{
    static const unsigned char serial[] = {1};
    mbedtls_x509write_cert writer;
    unsigned char der[1024];
    mbedtls_pk_init(&key);
    good(mbedtls_pk_setup(&key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY)), "a key is made");
    good(mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(key), mbedtls_ctr_drbg_random, &random_source),
         "a key is made");
    mbedtls_x509write_crt_init(&writer);
    mbedtls_x509write_crt_set_md_alg(&writer, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(&writer, &key);
    mbedtls_x509write_crt_set_issuer_key(&writer, &key);
    good(mbedtls_x509write_crt_set_subject_name(&writer, "CN=localhost"), "the certificate's subject");
    good(mbedtls_x509write_crt_set_issuer_name(&writer, "CN=localhost"), "the certificate's issuer");
    good(mbedtls_x509write_crt_set_serial_raw(&writer, (unsigned char *)serial, 1), "the certificate's number");
    good(mbedtls_x509write_crt_set_validity(&writer, "20200101000000", "20991231235959"), "the certificate's time");
    const int length = mbedtls_x509write_crt_der(&writer, der, sizeof der, mbedtls_ctr_drbg_random, &random_source);
    good(length, "the certificate is written");
    mbedtls_x509write_crt_free(&writer);
    mbedtls_x509_crt_init(&certificate);
    if (length > 0) {
        good(mbedtls_x509_crt_parse_der(&certificate, der + sizeof der - length, (size_t)length), "and read");
    }
}

static void begin(void)
{
    mbedtls_entropy_init(&entropy);
    mbedtls_ctr_drbg_init(&random_source);
    good(psa_crypto_init() == PSA_SUCCESS ? 0 : -1, "PSA begins");
    good(mbedtls_ctr_drbg_seed(&random_source, mbedtls_entropy_func, &entropy, NULL, 0), "random numbers are seeded");
    make_certificate();
}

static void end(void)
{
    mbedtls_x509_crt_free(&certificate);
    mbedtls_pk_free(&key);
    mbedtls_ctr_drbg_free(&random_source);
    mbedtls_entropy_free(&entropy);
    mbedtls_psa_crypto_free();
}

/* ---- sessions -----------------------------------------------------------------------------------------------------
 */

static int open_side(struct side *side, int endpoint)
{
    side->out = &wires[endpoint == MBEDTLS_SSL_IS_CLIENT];
    side->in = &wires[endpoint != MBEDTLS_SSL_IS_CLIENT];
    mbedtls_ssl_init(&side->ssl);
    mbedtls_ssl_config_init(&side->config);
    good(mbedtls_ssl_config_defaults(&side->config, endpoint, MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT),
         "defaults");
    mbedtls_ssl_conf_rng(&side->config, mbedtls_ctr_drbg_random, &random_source);
    if (endpoint == MBEDTLS_SSL_IS_SERVER) {
        good(mbedtls_ssl_conf_own_cert(&side->config, &certificate, &key), "the server's certificate");
    } else {
        mbedtls_ssl_conf_ca_chain(&side->config, &certificate, NULL);
    }
    const int result = mbedtls_ssl_setup(&side->ssl, &side->config);
    if (result == 0 && endpoint == MBEDTLS_SSL_IS_CLIENT) {
        good(mbedtls_ssl_set_hostname(&side->ssl, "localhost"), "the server's name");
    }
    mbedtls_ssl_set_bio(&side->ssl, side, to_wire, from_wire, NULL);
    return result;
}

static void close_side(struct side *side)
{
    mbedtls_ssl_free(&side->ssl);
    mbedtls_ssl_config_free(&side->config);
}

static int wants(int result)
{
    return result == MBEDTLS_ERR_SSL_WANT_READ || result == MBEDTLS_ERR_SSL_WANT_WRITE ||
           result == MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET;
}

static void shake_hands(struct side *client, struct side *server)
{
    int theirs = -1, ours = -1;
    for (unsigned round = 0; round < 1000 && (theirs != 0 || ours != 0); round++) {
        ours = ours ? mbedtls_ssl_handshake(&client->ssl) : 0;
        theirs = theirs ? mbedtls_ssl_handshake(&server->ssl) : 0;
        if ((ours && !wants(ours)) || (theirs && !wants(theirs))) {
            break;
        }
    }
    good(ours, "the client shakes hands");
    good(theirs, "the server shakes hands");
    expect(mbedtls_ssl_get_verify_result(&client->ssl) == 0, "the client knows the server");
}

static unsigned char pattern(size_t i)
{
    return (unsigned char)(i * 31 + i / 251);
}

static void send_payload(struct side *from, struct side *to)
{
    unsigned char bytes[CHUNK];
    size_t sent = 0, got = 0;
    int wrong = 0;
    for (unsigned round = 0; round < 100000 && got < PAYLOAD; round++) {
        const size_t left = PAYLOAD - sent, length = left < CHUNK ? left : CHUNK;
        for (size_t i = 0; i < length; i++) {
            bytes[i] = pattern(sent + i);
        }
        const int out = length ? mbedtls_ssl_write(&from->ssl, bytes, length) : 0;
        sent += out > 0 ? (size_t)out : 0u;
        const int in = mbedtls_ssl_read(&to->ssl, bytes, sizeof bytes);
        for (int i = 0; i < in; i++) {
            wrong += bytes[i] != pattern(got + (size_t)i);
        }
        got += in > 0 ? (size_t)in : 0u;
        if ((out < 0 && !wants(out)) || (in <= 0 && !wants(in))) {
            break;
        }
    }
    expect(got == PAYLOAD && wrong == 0, "the payload comes as it was sent");
}

static void run_session(void)
{
    struct side client, server;
    memset(wires, 0, sizeof wires);
    good(open_side(&client, MBEDTLS_SSL_IS_CLIENT), "the client is set up");
    good(open_side(&server, MBEDTLS_SSL_IS_SERVER), "the server is set up");
    shake_hands(&client, &server);
    send_payload(&client, &server);
    send_payload(&server, &client);
    expect(app_check(app_mbedtls_heap()) == 0, "the heap is whole");
    close_side(&client);
    close_side(&server);
}

static void run_out(void)
{
    struct side client;
    void *blocks[64] = {NULL};
    for (unsigned i = 0; i < 64; i++) {
        blocks[i] = app_malloc(app_mbedtls_heap(), ARENA / 48);
    }
    expect(open_side(&client, MBEDTLS_SSL_IS_CLIENT) == MBEDTLS_ERR_SSL_ALLOC_FAILED,
           "mbedTLS gets an out-of-memory error");
    close_side(&client);
    for (unsigned i = 0; i < 64; i++) {
        app_free(app_mbedtls_heap(), blocks[i]);
    }
}

int main(void)
{
    expect(app_mbedtls_use(arena, 1) == -1, "an arena that is too small is rejected");
    expect(app_mbedtls_use(arena, sizeof arena) == 0, "mbedTLS takes the heap");
    begin();
    run_session(); /* what it leaves is kept for the next ones */
    const uint32_t before = used();
    expect(before > 0, "mbedTLS allocates from the heap");
    run_out();
    for (unsigned i = 0; i < HANDSHAKES; i++) {
        run_session();
    }
    expect(used() == before, "a session gives all back");
    end();
    expect(used() == 0, "mbedTLS gives all back");
    printf("app_mbedtls: %s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}
