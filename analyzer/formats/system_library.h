// A library of the system that is not linked: opened where it is there, when it is first asked for, and never closed.
// In a page there is none.
//
//   const SystemLibrary library("libzstd.so.1");
//   if (!library.Find("ZSTD_isError", out.is_error)) ...   // the library is not here, or has no such function
#ifndef ASHLAR_ANALYZER_FORMATS_SYSTEM_LIBRARY_H_
#define ASHLAR_ANALYZER_FORMATS_SYSTEM_LIBRARY_H_

#if !defined(__EMSCRIPTEN__)
#include <dlfcn.h>
#endif

namespace ashlar::formats {

#if defined(__EMSCRIPTEN__)

class SystemLibrary {
 public:
  explicit SystemLibrary(const char* /*name*/) {}

  bool IsHere() const { return false; }

  template <typename Function>
  bool Find(const char* /*name*/, Function& out) const {
    out = nullptr;
    return false;
  }
};

#else

class SystemLibrary {
 public:
  explicit SystemLibrary(const char* name) : library_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}

  bool IsHere() const { return library_ != nullptr; }

  template <typename Function>
  bool Find(const char* name, Function& out) const {
    out = IsHere() ? reinterpret_cast<Function>(dlsym(library_, name)) : nullptr;
    return out != nullptr;
  }

 private:
  void* library_;
};

#endif

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_SYSTEM_LIBRARY_H_
