/* lan9118.c: the example application's network interface on QEMU's mps2-an385, polled once a tick. */
#include <stdint.h>

#include "FreeRTOS.h"
#include "task.h"

#include "default_netif.h"
#include "lwip/etharp.h"
#include "lwip/netif.h"
#include "lwip/tcpip.h"

#include "board.h"

/* Registers of the LAN9118 (SMSC's data sheet, section 5), in words. */
#define LAN9118 ((volatile uint32_t *)0x40200000u)
enum {
    RX_DATA = 0x00 / 4,
    TX_DATA = 0x20 / 4,
    RX_STATUS = 0x40 / 4,
    TX_STATUS = 0x48 / 4,
    TX_CONFIG = 0x70 / 4,
    RX_INFO = 0x7c / 4,
    TX_INFO = 0x80 / 4,
    MAC_COMMAND = 0xa4 / 4,
    MAC_DATA = 0xa8 / 4
};
enum { MAC_CONTROL = 1, MAC_HIGH = 2, MAC_LOW = 3 };
#define MAC_BUSY (1u << 31)
#define MAC_READ (1u << 30)
#define MAC_ALL_ADDRESSES (1u << 18)
#define MAC_SENDS_AND_RECEIVES (1u << 3 | 1u << 2)
#define TX_ON (1u << 1)
#define TX_FIRST_AND_LAST (1u << 13 | 1u << 12)
enum { CHECKSUM_BYTES = 4, FRAME_BYTES = 1536 };

static struct netif interface;

static uint32_t mac_read(uint32_t index)
{
    LAN9118[MAC_COMMAND] = MAC_BUSY | MAC_READ | index;
    return LAN9118[MAC_DATA];
}

static void mac_write(uint32_t index, uint32_t value)
{
    LAN9118[MAC_DATA] = value;
    LAN9118[MAC_COMMAND] = MAC_BUSY | index;
}

/* lwIP calls it with its core locked. */
static err_t send_frame(struct netif *netif, struct pbuf *packet)
{
    static uint32_t frame[FRAME_BYTES / 4];
    (void)netif;
    if (packet->tot_len > FRAME_BYTES) {
        return ERR_BUF;
    }
    (void)pbuf_copy_partial(packet, frame, packet->tot_len, 0);
    LAN9118[TX_DATA] = TX_FIRST_AND_LAST | packet->tot_len;
    LAN9118[TX_DATA] = packet->tot_len;
    for (unsigned i = 0; i < (packet->tot_len + 3u) / 4; i++) {
        LAN9118[TX_DATA] = frame[i];
    }
    while ((LAN9118[TX_INFO] >> 16 & 0xffu) != 0) {
        (void)LAN9118[TX_STATUS];
    }
    return ERR_OK;
}

static void receive_frame(void)
{
    static uint32_t frame[FRAME_BYTES / 4];
    const uint32_t bytes = LAN9118[RX_STATUS] >> 16 & 0x3fffu;
    for (unsigned i = 0; i < (bytes + 3u) / 4; i++) {
        const uint32_t word = LAN9118[RX_DATA];
        if (i < FRAME_BYTES / 4) {
            frame[i] = word;
        }
    }
    if (bytes <= CHECKSUM_BYTES || bytes > FRAME_BYTES) {
        return;
    }
    const u16_t length = (u16_t)(bytes - CHECKSUM_BYTES);
    struct pbuf *packet = pbuf_alloc(PBUF_RAW, length, PBUF_POOL);
    if (packet != NULL && (pbuf_take(packet, frame, length) != ERR_OK || interface.input(packet, &interface))) {
        (void)pbuf_free(packet);
    }
}

static err_t start(struct netif *netif)
{
    const uint32_t low = mac_read(MAC_LOW), high = mac_read(MAC_HIGH);
    for (unsigned i = 0; i < ETHARP_HWADDR_LEN; i++) {
        netif->hwaddr[i] = (u8_t)(i < 4 ? low >> 8 * i : high >> 8 * (i - 4));
    }
    netif->hwaddr_len = ETHARP_HWADDR_LEN;
    netif->mtu = 1500;
    netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_LINK_UP;
    netif->name[0] = 'e';
    netif->name[1] = 'n';
    netif->output = etharp_output;
    netif->linkoutput = send_frame;
    LAN9118[TX_CONFIG] = TX_ON;
    mac_write(MAC_CONTROL, MAC_ALL_ADDRESSES | MAC_SENDS_AND_RECEIVES);
    return ERR_OK;
}

void init_default_netif(const ip4_addr_t *address, const ip4_addr_t *mask, const ip4_addr_t *gateway)
{
    netif_add(&interface, address, mask, gateway, NULL, start, tcpip_input);
    netif_set_default(&interface);
}

void default_netif_poll(void)
{
    board_ready();
    while ((LAN9118[RX_INFO] >> 16 & 0xffu) != 0) {
        receive_frame();
    }
    vTaskDelay(1);
}

void default_netif_shutdown(void)
{
}
