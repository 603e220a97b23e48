/* Calls of a byte pool and of a block pool. */
#include "../drain.h"
#include "tx_api.h"

int main(void)
{
    TX_BYTE_POOL bytes = {1000};
    TX_BLOCK_POOL blocks = {48};
    void *a, *b, *c;
    _tx_byte_allocate(&bytes, &a, 24, 0);
    _tx_block_allocate(&blocks, &b, 0);
    _tx_byte_release(a);
    _tx_byte_allocate(&bytes, &c, 2000, 0);
    _tx_block_release(b);
    drain();
    return 0;
}
