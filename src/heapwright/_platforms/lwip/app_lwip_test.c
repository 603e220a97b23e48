/* app_lwip_test.c: whether lwIP's packets and pools live in app_heap: 10 MB by TCP from one network interface to
 * another, every byte checked.
 *
 * For lwIP without an operating system (NO_SYS 1), with LWIP_TCP and LWIP_IPV4. It wants 96 KiB for APP_LWIP_BYTES, and
 * a sys_now(). Where there is a main already, compile it with -Dmain=app_lwip_test and call that.
 */
#include "app_heap.h"

#include <stdio.h>
#include <string.h>

#include "lwip/init.h"
#include "lwip/ip4.h"
#include "lwip/mem.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/priv/tcp_priv.h"
#include "lwip/sys.h"
#include "lwip/tcp.h"
#include "lwip/timeouts.h"

enum { PAYLOAD = 10000000, PORT = 7, ROUNDS = 20000000, LOSE_EVERY = 997 };

struct app_heap *app_lwip_heap(void);

static struct netif near_end, far_end;
static struct tcp_pcb *listener, *sender;
static u32_t sent, received, packets, lost;
static int failures, wrong, closed;
static u32_t most_blocks;

static void expect(int holds, const char *what)
{
    if (!holds) {
        printf("FAILED: %s\n", what);
        failures++;
    }
}

static u8_t pattern(u32_t i)
{
    return (u8_t)(i * 31u + i / 251u);
}

/* ---- a wire between two interfaces: what one sends is copied, queued, and comes in at the other
 * ----------------------
 */

static struct pbuf *queue[64];
static struct netif *queue_to[64];
static unsigned queue_first, queue_length;

static err_t transmit(struct netif *from, struct pbuf *packet, const ip4_addr_t *to)
{
    LWIP_UNUSED_ARG(to);
    if (++packets % LOSE_EVERY == 0 || queue_length == LWIP_ARRAYSIZE(queue)) {
        lost++;
        return ERR_OK;
    }
    struct pbuf *copy = pbuf_alloc(PBUF_RAW, packet->tot_len, packets % 2 ? PBUF_RAM : PBUF_POOL);
    if (copy == NULL) {
        lost++;
        return ERR_MEM;
    }
    pbuf_copy(copy, packet);
    const unsigned last = (queue_first + queue_length++) % LWIP_ARRAYSIZE(queue);
    queue[last] = copy;
    queue_to[last] = from == &near_end ? &far_end : &near_end;
    return ERR_OK;
}

static void deliver(void)
{
    while (queue_length != 0) {
        struct pbuf *packet = queue[queue_first];
        struct netif *to = queue_to[queue_first];
        queue_first = (queue_first + 1) % LWIP_ARRAYSIZE(queue);
        queue_length--;
        if (to->input(packet, to) != ERR_OK) {
            pbuf_free(packet);
        }
    }
}

static err_t begin_interface(struct netif *interface)
{
    interface->name[0] = 'h';
    interface->name[1] = 'w';
    interface->output = transmit;
    interface->mtu = 1500;
    return ERR_OK;
}

static void add_interface(struct netif *interface, u8_t number)
{
    ip4_addr_t address, mask, gateway;
    IP4_ADDR(&address, 10, 0, 0, number);
    IP4_ADDR(&mask, 255, 255, 255, 0);
    ip4_addr_set_zero(&gateway);
    netif_add(interface, &address, &mask, &gateway, NULL, begin_interface, ip_input);
    netif_set_link_up(interface);
    netif_set_up(interface);
}

/* ---- both ends ------------------------------------------------------------------------------------------------------
 */

static err_t receive(void *unused, struct tcp_pcb *pcb, struct pbuf *packet, err_t error)
{
    LWIP_UNUSED_ARG(unused);
    LWIP_UNUSED_ARG(error);
    if (packet == NULL) {
        closed = 1;
        return tcp_close(pcb);
    }
    for (struct pbuf *part = packet; part != NULL; part = part->next) {
        for (u16_t i = 0; i < part->len; i++) {
            wrong += ((u8_t *)part->payload)[i] != pattern(received++);
        }
    }
    tcp_recved(pcb, packet->tot_len);
    pbuf_free(packet);
    return ERR_OK;
}

static err_t answer(void *unused, struct tcp_pcb *pcb, err_t error)
{
    LWIP_UNUSED_ARG(unused);
    LWIP_UNUSED_ARG(error);
    tcp_bind_netif(pcb, &far_end);
    tcp_recv(pcb, receive);
    return ERR_OK;
}

static void send_more(void)
{
    u8_t bytes[1000];
    while (sender && sent < PAYLOAD && tcp_sndbuf(sender) >= sizeof bytes) {
        const u16_t length = (u16_t)LWIP_MIN(PAYLOAD - sent, 1u + sent % sizeof bytes);
        for (u16_t i = 0; i < length; i++) {
            bytes[i] = pattern(sent + i);
        }
        if (tcp_write(sender, bytes, length, TCP_WRITE_FLAG_COPY) != ERR_OK) {
            break;
        }
        sent += length;
    }
    if (sender && sent == PAYLOAD && tcp_close(sender) == ERR_OK) {
        sender = NULL;
    }
}

static err_t greet(void *unused, struct tcp_pcb *pcb, err_t error)
{
    LWIP_UNUSED_ARG(unused);
    LWIP_UNUSED_ARG(error);
    sender = pcb;
    return ERR_OK;
}

static void connect_ends(void)
{
    listener = tcp_new();
    struct tcp_pcb *pcb = tcp_new();
    expect(listener && pcb, "TCP has room");
    expect(tcp_bind(listener, netif_ip_addr4(&far_end), PORT) == ERR_OK, "the listener is bound");
    listener = tcp_listen(listener);
    tcp_accept(listener, answer);
    tcp_bind(pcb, netif_ip_addr4(&near_end), 0);
    tcp_bind_netif(pcb, &near_end);
    expect(tcp_connect(pcb, netif_ip_addr4(&far_end), PORT, greet) == ERR_OK, "TCP connects");
}

static void move_payload(void)
{
    connect_ends();
    for (unsigned round = 0; round < ROUNDS && !closed; round++) {
        deliver();
        sys_check_timeouts();
        send_more();
        if (sender) {
            tcp_output(sender);
        }
        if (round % 256 == 0) {
            const u32_t blocks = app_statistics(app_lwip_heap()).used_blocks;
            most_blocks = LWIP_MAX(most_blocks, blocks);
            expect(app_check(app_lwip_heap()) == 0, "the heap is whole");
        }
    }
}

/* TCP's own timer ends once there are no connections any more. */
static void close_all(u32_t before)
{
    deliver();
    tcp_close(listener);
    while (tcp_tw_pcbs != NULL) {
        tcp_abort(tcp_tw_pcbs);
    }
    while (tcp_active_pcbs != NULL) {
        tcp_abort(tcp_active_pcbs);
    }
    deliver();
    for (u32_t begin = sys_now(); sys_now() - begin < 2000 && app_statistics(app_lwip_heap()).used_blocks != before;) {
        sys_check_timeouts();
    }
}

static void test_calls(void)
{
    u8_t *memory = (u8_t *)mem_malloc(300);
    expect(memory != NULL, "mem_malloc serves");
    memset(memory, 0xff, 300);
    mem_free(memory);
    memory = (u8_t *)mem_calloc(10, 30);
    expect(memory && memory[0] == 0 && memory[299] == 0, "mem_calloc clears");
    expect(mem_trim(memory, 10) == memory, "mem_trim leaves the block where it is");
    mem_free(memory);
    expect(mem_malloc(APP_LWIP_BYTES) == NULL, "more than there is is refused");
}

int main(void)
{
    lwip_init();
    test_calls();
    add_interface(&near_end, 1);
    add_interface(&far_end, 2);
    const u32_t before = app_statistics(app_lwip_heap()).used_blocks;
    move_payload();
    expect(received == PAYLOAD && wrong == 0, "the payload comes as it was sent");
    expect(lost > 0, "some packets are lost");
    expect(most_blocks > before, "packets live in the heap");
    close_all(before);
    expect(app_statistics(app_lwip_heap()).used_blocks == before, "all is given back");
    printf("app_lwip: %s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}
