// Of glibc 2.32: whether the process has one thread, by which libstdc++ saves atomic operations. "No" is always right.
extern "C" char __libc_single_threaded;
char __libc_single_threaded = 0;
