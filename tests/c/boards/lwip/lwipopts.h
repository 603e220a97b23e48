/* What the test of the platform lwip needs, and a lock that counts. */
#ifndef LWIPOPTS_H
#define LWIPOPTS_H

#define NO_SYS 1
#define SYS_LIGHTWEIGHT_PROT 1
#define LWIP_NETCONN 0
#define LWIP_SOCKET 0
#define LWIP_ARP 0
#define MEM_ALIGNMENT 8
#define TCP_MSS 1460
#define TCP_SND_BUF (8 * TCP_MSS)
#define TCP_WND (8 * TCP_MSS)

#define APP_LWIP_BYTES 98304
#include "app_lwip_opts.h"

#endif
