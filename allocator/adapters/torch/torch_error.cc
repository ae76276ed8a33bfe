#include "allocator/adapters/torch/torch_error.h"

#include <string>

namespace ashlar::torch {

const char kConstructName[] =
    "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";

void Construct(void* constructor, void* self, const SourceLocation& where, const char* text) {
  reinterpret_cast<void (*)(void*, SourceLocation, std::string)>(constructor)(self, where, text);
}

}  // namespace ashlar::torch
