/* lwIP's compiler and platform: this machine, with what lwIP takes where nothing else is said. */
#ifndef ARCH_CC_H
#define ARCH_CC_H

typedef unsigned sys_prot_t;

#endif
