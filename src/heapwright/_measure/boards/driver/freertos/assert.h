/* assert.h: for an application's FreeRTOSConfig.h; a compiler alone has no such header. */
#ifndef HW_ASSERT_H
#define HW_ASSERT_H

_Noreturn void assertion_failed(const char *what, const char *file, int line);
#define assert(holds) ((holds) ? (void)0 : assertion_failed(#holds, __FILE__, __LINE__))

#endif
