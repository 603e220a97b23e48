/* lwipopts.h: the example application's own options, but for what a board changes: IPv4 by Ethernet alone, everything
 * from the kernel's heap, stacks, and a TIME_WAIT of seconds. */
#ifndef LWIP_EXAMPLE_LWIPOPTS_H
#define LWIP_EXAMPLE_LWIPOPTS_H

#include "examples/example_app/lwipopts.h"

#undef LWIP_IPV6
#define LWIP_IPV6 0
#undef PPP_SUPPORT
#define PPP_SUPPORT 0
#undef PPPOE_SUPPORT
#undef PPPOS_SUPPORT
#undef LWIP_MDNS_RESPONDER
#define LWIP_MDNS_RESPONDER 0
#undef LWIP_ASSERT_CORE_LOCKED

/* Both packets and the contents of pools. Statistics of the heap would put a size before each object. */
#include <stddef.h>
void *pvPortMalloc(size_t size);
void *pvPortCalloc(size_t count, size_t size);
void vPortFree(void *pointer);
#define MEM_CUSTOM_ALLOCATOR 1
#define MEM_CUSTOM_MALLOC pvPortMalloc
#define MEM_CUSTOM_CALLOC pvPortCalloc
#define MEM_CUSTOM_FREE vPortFree
#define MEMP_MEM_MALLOC 1
#undef MEM_ALIGNMENT
#define MEM_ALIGNMENT 8
#undef MEM_STATS
#define MEM_STATS 0

/* Bytes. The echo of datagrams keeps 4 KiB on its stack. */
#define TCPIP_THREAD_STACKSIZE 4096
#define DEFAULT_THREAD_STACKSIZE 6144
#define TCPIP_THREAD_PRIO 3
#define DEFAULT_THREAD_PRIO 2
#define TCPIP_MBOX_SIZE 32
#define DEFAULT_RAW_RECVMBOX_SIZE 8
#define DEFAULT_UDP_RECVMBOX_SIZE 8
#define DEFAULT_TCP_RECVMBOX_SIZE 8
#define DEFAULT_ACCEPTMBOX_SIZE 8

#define LWIP_MQTT_EXAMPLE_IPADDR_INIT = IPADDR4_INIT_BYTES(10, 0, 2, 100)

/* A control block of a closed connection waits for two of them: with the usual minute they would fill the heap. */
#define TCP_MSL 1000

#endif
