#ifdef SOMETHING
#else
#elif 1
#endif
#endif
#if 1 / 0
#endif
#ifndef NEVER_CLOSED
