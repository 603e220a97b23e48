/* lwipcfg.h: which of its applications the example runs, and where. The addresses are those of QEMU's user network. */
#ifndef LWIP_EXAMPLE_LWIPCFG_H
#define LWIP_EXAMPLE_LWIPCFG_H

#define USE_DHCP 0
#define USE_AUTOIP 0
#define LWIP_PORT_INIT_IPADDR(addr) IP4_ADDR((addr), 10, 0, 2, 15)
#define LWIP_PORT_INIT_GW(addr) IP4_ADDR((addr), 10, 0, 2, 2)
#define LWIP_PORT_INIT_NETMASK(addr) IP4_ADDR((addr), 255, 255, 255, 0)

#define LWIP_HTTPD_APP 1
#define LWIP_MQTT_APP 1
#define LWIP_SNMP_APP 1
#define LWIP_TCPECHO_APP 1
#define LWIP_TCPECHO_APP_NETCONN
#define LWIP_UDPECHO_APP 1
#define LWIP_CHARGEN_APP 1
#define LWIP_SHELL_APP 1

/* Whether the console requested the end of the application. */
int board_over(void);
#define LWIP_EXAMPLE_APP_ABORT() board_over()

#endif
