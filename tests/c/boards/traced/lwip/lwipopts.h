/* lwIP with its own heap and pools, recorded: UDP over its loopback interface. */
#ifndef LWIPOPTS_H
#define LWIPOPTS_H

#define NO_SYS 1
#define SYS_LIGHTWEIGHT_PROT 1
#define LWIP_NETCONN 0
#define LWIP_SOCKET 0
#define LWIP_ARP 0
#define LWIP_TCP 0
#define MEM_ALIGNMENT 4
#define MEM_SIZE 65536
#define MEMP_NUM_PBUF 64
#define LWIP_HAVE_LOOPIF 1
#define LWIP_NETIF_LOOPBACK 1
#define LWIP_STATS 1

#endif
