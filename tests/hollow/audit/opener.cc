// A program without a runtime: its libraries have one.
//
//   audit_opener open FILE...     opens each twice, one after the other, and has it make its calls
//   audit_needing_client          has the library that it is linked with make its calls
#include <dlfcn.h>

extern "C" void ashlar_test_call();

namespace {

bool OpenAndCall(const char* file) {
  void* library = dlopen(file, RTLD_NOW);
  if (library == nullptr) return false;
  reinterpret_cast<void (*)()>(dlsym(library, "ashlar_test_call"))();
  return dlclose(library) == 0;
}

}  // namespace

int main(int count, char** words) {
#ifdef ASHLAR_TEST_NEEDS
  ashlar_test_call();
#endif
  for (int i = 2; i < count; ++i) {
    if (!OpenAndCall(words[i]) || !OpenAndCall(words[i])) return 1;
  }
  return 0;
}
