/* NuttX's include/malloc.h: what mallinfo reports. */
#pragma once

struct mallinfo {
    int arena;
    int ordblks;
    int aordblks;
    int mxordblk;
    int uordblks;
    int fordblks;
    int usmblks;
};

struct mallinfo_task {
    int aordblks;
    int uordblks;
};
