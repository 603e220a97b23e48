/* Datagrams of many sizes from one port to another over lwIP's loopback interface. It prints what its ring has, and
 * then what lwIP itself counted: blocks of its heap and elements of its pools that are in use. */
#include <stdio.h>

#include "lwip/init.h"
#include "lwip/memp.h"
#include "lwip/netif.h"
#include "lwip/stats.h"
#include "lwip/udp.h"

#include "drain.h"

enum { DATAGRAMS = 400, PORT = 7000, WAITING = 12 };

static struct pbuf *waiting[WAITING];
static unsigned received;

static void receive(void *unused, struct udp_pcb *pcb, struct pbuf *packet, const ip_addr_t *from, u16_t port)
{
    LWIP_UNUSED_ARG(unused);
    LWIP_UNUSED_ARG(pcb);
    LWIP_UNUSED_ARG(from);
    LWIP_UNUSED_ARG(port);
    struct pbuf **place = &waiting[received++ % WAITING];
    if (*place) {
        pbuf_free(*place);
    }
    *place = packet;
}

int main(void)
{
    ip_addr_t here;
    u32_t state = 1;
    lwip_init();
    IP_ADDR4(&here, 127, 0, 0, 1);
    struct udp_pcb *to = udp_new(), *from = udp_new();
    udp_bind(to, &here, PORT);
    udp_recv(to, receive, NULL);
    for (unsigned i = 0; i < DATAGRAMS; i++) {
        state = state * 1664525u + 1013904223u;
        struct pbuf *packet = pbuf_alloc(PBUF_TRANSPORT, (u16_t)(state >> 22), PBUF_RAM);
        if (packet == NULL || udp_sendto(from, packet, &here, PORT) != ERR_OK) {
            return 1;
        }
        if (i % 8 == 0) {
            pbuf_realloc(packet, (u16_t)(packet->tot_len / 2));
        }
        pbuf_free(packet);
        netif_poll_all();
        drain();
    }
    drain();
    unsigned elements = 0;
    for (unsigned i = 0; i < MEMP_MAX; i++) {
        elements += (unsigned)memp_pools[i]->stats->used;
    }
    printf("%u received, %u in pools, %u bytes of the heap\n", received, elements, (unsigned)lwip_stats.mem.used);
    return 0;
}
