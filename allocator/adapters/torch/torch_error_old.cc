#define _GLIBCXX_USE_CXX11_ABI 0  // of this file alone: std::string is the one of before GCC 5

#include <string>

#include "allocator/adapters/torch/torch_error.h"

namespace ashlar::torch {

const char kOldConstructName[] = "_ZN3c105ErrorC2ENS_14SourceLocationESs";

void OldConstruct(void* constructor, void* self, const SourceLocation& where, const char* text) {
  reinterpret_cast<void (*)(void*, SourceLocation, std::string)>(constructor)(self, where, text);
}

}  // namespace ashlar::torch
