// Compiled with _GLIBCXX_USE_CXX11_ABI=0, alone: std::string is the one of before GCC 5.
#include <string>

#include "allocator/plugins/torch/failure.h"

namespace ashlar::torch {

static_assert(sizeof(std::string) == sizeof(void*), "this file is compiled with the wrong std::string");

const char kOldConstructName[] = "_ZN3c105ErrorC2ENS_14SourceLocationESs";

void OldConstruct(void* constructor, void* self, const SourceLocation& where, const char* text) {
  reinterpret_cast<void (*)(void*, SourceLocation, std::string)>(constructor)(self, where, text);
}

}  // namespace ashlar::torch
