// Starts the tests with the hollow device preloaded, as `ashlar dry-run` starts a program: by itself where it has to.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

int main(int count, char** words) {
  if (dlsym(RTLD_DEFAULT, "ashlar_hollow_used") == nullptr) {
    if (std::getenv("LD_PRELOAD") != nullptr) {
      std::fprintf(stderr, "the library is not preloaded: LD_PRELOAD=%s\n", std::getenv("LD_PRELOAD"));
      return 1;
    }
    setenv("LD_PRELOAD", ASHLAR_HOLLOW_LIBRARY, 1);
    setenv("LD_LIBRARY_PATH", ASHLAR_HOLLOW_SHIMS, 1);
    execv("/proc/self/exe", words);
    std::perror("cannot start again");
    return 1;
  }
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
