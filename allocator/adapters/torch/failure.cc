#include "allocator/adapters/torch/failure.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <typeinfo>

namespace ashlar::torch {
namespace {

// c10::SourceLocation (c10/util/Exception.h, PyTorch 1.13 to 2.15).
struct SourceLocation {
  const char* function;
  const char* file;
  std::uint32_t line;
};

// c10::OutOfMemoryError(SourceLocation, std::string), as a function: it is declared in a class that we do not have, so
// that `self` goes first.
using Construct = void (*)(void* self, SourceLocation where, std::string text);

constexpr char kTypeInfo[] = "_ZTIN3c1016OutOfMemoryErrorE";
constexpr char kVirtualTable[] = "_ZTVN3c1016OutOfMemoryErrorE";
constexpr char kConstruct[] =
    "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
constexpr std::size_t kRoomBytes = 1024;  // c10::Error is smaller: 168 bytes in 2.6, 176 in 2.14

// PyTorch's class, or nulls where the process has no PyTorch, or one whose strings are those of before GCC 5.
struct TorchError {
  std::type_info* type = nullptr;
  void** virtual_table = nullptr;
  Construct construct = nullptr;

  TorchError() {
    void* library = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return;
    type = static_cast<std::type_info*>(dlsym(library, kTypeInfo));
    virtual_table = static_cast<void**>(dlsym(library, kVirtualTable));
    construct = reinterpret_cast<Construct>(dlsym(library, kConstruct));
  }
  bool is_known() const { return type != nullptr && virtual_table != nullptr && construct != nullptr; }
};

void Destroy(void* error) { static_cast<std::exception*>(error)->~exception(); }

// c10::OutOfMemoryError adds nothing to c10::Error but its name: an Error with the other's table of functions is one.
[[noreturn]] void ThrowTorchError(const TorchError& torch, const std::string& text) {
  void* error = abi::__cxa_allocate_exception(kRoomBytes);
  torch.construct(error, {__func__, __FILE__, __LINE__}, text);
  *static_cast<void**>(error) = torch.virtual_table + 2;  // behind the offset and the type
  abi::__cxa_throw(error, torch.type, Destroy);
}

}  // namespace

void ThrowFailure(ashlar_status status, int device, const std::string& text) {
  if (status != ASHLAR_OUT_OF_MEMORY) throw std::runtime_error(text);
  const std::string out_of_memory = "CUDA out of memory. GPU " + std::to_string(device) + ": " + text;
  static const TorchError torch;
  if (torch.is_known()) ThrowTorchError(torch, out_of_memory);
  throw OutOfMemory(out_of_memory);
}

}  // namespace ashlar::torch
