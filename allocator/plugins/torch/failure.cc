#include "allocator/plugins/torch/failure.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include "ashlar/handle.h"

namespace ashlar::torch {

const char kConstructName[] =
    "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";

void Construct(void* constructor, void* self, const SourceLocation& where, const char* text) {
  reinterpret_cast<void (*)(void*, SourceLocation, std::string)>(constructor)(self, where, text);
}

namespace {

constexpr char kTypeInfo[] = "_ZTIN3c1016OutOfMemoryErrorE";
constexpr char kVirtualTable[] = "_ZTVN3c1016OutOfMemoryErrorE";
constexpr std::size_t kRoomBytes = 1024;  // a c10::Error takes 128 bytes in 2.14

// PyTorch's class, or nulls where the process has no PyTorch.
struct TorchError {
  std::type_info* type = nullptr;
  void** virtual_table = nullptr;
  void* constructor = nullptr;
  void (*construct)(void*, void*, const SourceLocation&, const char*) = Construct;

  TorchError() {
    void* library = dlopen("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD);  // and libc10.so, on which it depends
    if (library == nullptr) return;
    type = static_cast<std::type_info*>(dlsym(library, kTypeInfo));
    virtual_table = static_cast<void**>(dlsym(library, kVirtualTable));
    constructor = dlsym(library, kConstructName);
    if (constructor != nullptr) return;
    constructor = dlsym(library, kOldConstructName);
    construct = OldConstruct;
  }
  bool is_known() const { return type != nullptr && virtual_table != nullptr && constructor != nullptr; }
};

void Destroy(void* error) { static_cast<std::exception*>(error)->~exception(); }

// c10::OutOfMemoryError adds nothing to c10::Error but its name: an Error with the other's table of functions is one.
[[noreturn]] void ThrowTorchError(const TorchError& torch, const std::string& text) {
  void* error = abi::__cxa_allocate_exception(kRoomBytes);
  torch.construct(torch.constructor, error, {__func__, __FILE__, __LINE__}, text.c_str());
  *static_cast<void**>(error) = torch.virtual_table + 2;  // behind the offset and the type
  abi::__cxa_throw(error, torch.type, Destroy);
}

}  // namespace

void ThrowFailure(ashlar_status status, int device, const std::string& text) {
  if (status != ASHLAR_OUT_OF_MEMORY) throw std::runtime_error(text);
  const std::string out_of_memory = "CUDA out of memory. GPU " + std::to_string(device) + ": " + text;
  static const TorchError torch;
  if (torch.is_known()) ThrowTorchError(torch, out_of_memory);
  throw OutOfMemoryError(out_of_memory);
}

}  // namespace ashlar::torch
