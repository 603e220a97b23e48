/* tls.c: a node that opens TLS connections to its server and sends readings, with mbed TLS.
 *
 *     tls server PATH        waits at a Unix socket and answers, with mbed TLS's own test certificates
 *     tls node PATH          connects, checks the server's certificate, sends readings, closes; three times
 */
#include <mbedtls/certs.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECTIONS 3
#define READINGS 20

static void require(int fine)
{
    if (!fine) {
        _exit(1);
    }
}

static int send_all(void *context, const unsigned char *data, size_t length)
{
    const ssize_t sent = write(*(int *)context, data, length);
    return sent < 0 ? MBEDTLS_ERR_NET_SEND_FAILED : (int)sent;
}

static int receive(void *context, unsigned char *data, size_t length)
{
    const ssize_t got = read(*(int *)context, data, length);
    return got < 0 ? MBEDTLS_ERR_NET_RECV_FAILED : (int)got;
}

static void converse(mbedtls_ssl_context *ssl, int node)
{
    unsigned char text[200];
    for (int i = 0; i < READINGS; i++) {
        memset(text, 'a' + i % 26, sizeof text);
        if (node) {
            require(mbedtls_ssl_write(ssl, text, 60 + 7 * (size_t)i) > 0);
            require(mbedtls_ssl_read(ssl, text, sizeof text) > 0);
        } else {
            require(mbedtls_ssl_read(ssl, text, sizeof text) > 0);
            require(mbedtls_ssl_write(ssl, text, 16) > 0);
        }
    }
    if (node) {
        mbedtls_ssl_close_notify(ssl);
    } else {
        require(mbedtls_ssl_read(ssl, text, sizeof text) == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY);
    }
}

static void connection(int socket, int node, mbedtls_ctr_drbg_context *random)
{
    mbedtls_ssl_context ssl;
    mbedtls_ssl_config config;
    mbedtls_x509_crt certificate;
    mbedtls_pk_context key;
    mbedtls_ssl_init(&ssl);
    mbedtls_ssl_config_init(&config);
    mbedtls_x509_crt_init(&certificate);
    mbedtls_pk_init(&key);
    const int end = node ? MBEDTLS_SSL_IS_CLIENT : MBEDTLS_SSL_IS_SERVER;
    require(!mbedtls_ssl_config_defaults(&config, end, MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT));
    mbedtls_ssl_conf_rng(&config, mbedtls_ctr_drbg_random, random);
    if (node) {
        const unsigned char *authority = (const unsigned char *)mbedtls_test_ca_crt_rsa;
        require(!mbedtls_x509_crt_parse(&certificate, authority, mbedtls_test_ca_crt_rsa_len));
        mbedtls_ssl_conf_ca_chain(&config, &certificate, NULL);
    } else {
        const unsigned char *own = (const unsigned char *)mbedtls_test_srv_crt_rsa;
        const unsigned char *secret = (const unsigned char *)mbedtls_test_srv_key_rsa;
        require(!mbedtls_x509_crt_parse(&certificate, own, mbedtls_test_srv_crt_rsa_len));
        require(!mbedtls_pk_parse_key(&key, secret, mbedtls_test_srv_key_rsa_len, NULL, 0));
        require(!mbedtls_ssl_conf_own_cert(&config, &certificate, &key));
    }
    require(!mbedtls_ssl_setup(&ssl, &config));
    require(!node || !mbedtls_ssl_set_hostname(&ssl, "localhost"));
    mbedtls_ssl_set_bio(&ssl, &socket, send_all, receive, NULL);
    require(!mbedtls_ssl_handshake(&ssl));
    converse(&ssl, node);
    mbedtls_ssl_free(&ssl);
    mbedtls_ssl_config_free(&config);
    mbedtls_x509_crt_free(&certificate);
    mbedtls_pk_free(&key);
    close(socket);
}

int main(int argc, char **argv)
{
    require(argc == 3);
    const int node = strcmp(argv[1], "node") == 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, argv[2], sizeof address.sun_path - 1);
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_entropy_init(&entropy);
    mbedtls_ctr_drbg_init(&random);
    require(!mbedtls_ctr_drbg_seed(&random, mbedtls_entropy_func, &entropy, NULL, 0));
    const int listening = node ? -1 : socket(AF_UNIX, SOCK_STREAM, 0);
    require(node || !bind(listening, (const struct sockaddr *)&address, sizeof address));
    require(node || !listen(listening, 1));
    for (int i = 0; i < CONNECTIONS; i++) {
        const int to = node ? socket(AF_UNIX, SOCK_STREAM, 0) : accept(listening, NULL, NULL);
        require(to >= 0 && (!node || !connect(to, (const struct sockaddr *)&address, sizeof address)));
        connection(to, node, &random);
    }
    mbedtls_ctr_drbg_free(&random);
    mbedtls_entropy_free(&entropy);
    return 0;
}
