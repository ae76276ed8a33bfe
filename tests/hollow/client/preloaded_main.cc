// Starts the tests with the hollow device preloaded, as `ashlar dry-run` starts a program: by itself where it has to.
// ASHLAR_TEST_REAL_CUDA=1 leaves it out: what a test claims of CUDA is then asked of NVIDIA's own libraries, which must
// be found first (LD_PRELOAD=libcuda.so.1, LD_LIBRARY_PATH). Tests with machines of their own fail there.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

int main(int count, char** words) {
  const bool is_real = std::getenv("ASHLAR_TEST_REAL_CUDA") != nullptr;
  if (!is_real && dlsym(RTLD_DEFAULT, "ashlar_hollow_used") == nullptr) {
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
