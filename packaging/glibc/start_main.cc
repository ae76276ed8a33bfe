// The start of a program under a glibc older than 2.34. Since 2.34 the start code that the linker adds leaves a
// program's constructors to the C library; an older one expects the start code to bring them. This stands between both.
#include <cstddef>

extern "C" {

using Main = int (*)(int, char**, char**);
using Step = void (*)(int, char**, char**);

int ashlar_older_start_main(Main main, int argc, char** argv, Step init, void (*fini)(), void (*rtld_fini)(),
                            void* stack_end);
__asm__(".symver ashlar_older_start_main, __libc_start_main@" ASHLAR_GLIBC_BASE);

extern void _init();
extern Step __init_array_start[] __attribute__((visibility("hidden")));
extern Step __init_array_end[] __attribute__((visibility("hidden")));

static void RunConstructors(int argc, char** argv, char** environment) {
  _init();
  const auto count = static_cast<size_t>(__init_array_end - __init_array_start);
  for (size_t i = 0; i < count; ++i) __init_array_start[i](argc, argv, environment);
}

int __libc_start_main(Main main, int argc, char** argv, Step /*init*/, void (*fini)(), void (*rtld_fini)(),
                      void* stack_end) {
  return ashlar_older_start_main(main, argc, argv, RunConstructors, fini, rtld_fini, stack_end);
}

}  // extern "C"
