#include "hollow/model/calling_library.h"

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>

namespace ashlar::hollow {
namespace {

// Nothing here is ever destroyed: a program may allocate until its very end.
struct KnownCaller {
  const void* address = nullptr;
  std::string_view library = {};
};
constexpr std::size_t kKnownCallers = 16;

thread_local std::string_view t_library;
thread_local std::array<KnownCaller, kKnownCallers> t_known;

std::string_view Lasting(std::string_view name) {
  static std::mutex& mutex = *new std::mutex;
  static auto& names = *new std::set<std::string, std::less<>>;
  const std::lock_guard<std::mutex> lock(mutex);
  return *names.emplace(name).first;
}

std::string_view LibraryOf(const void* address) {
  KnownCaller& known = t_known[(reinterpret_cast<std::uintptr_t>(address) >> 2) % kKnownCallers];
  if (known.address == address) return known.library;
  Dl_info info = {};
  std::string_view path;
  if (dladdr(address, &info) != 0 && info.dli_fname != nullptr) path = info.dli_fname;
  known = {address, Lasting(path.substr(path.rfind('/') + 1))};
  return known.library;
}

}  // namespace

CallFrom::CallFrom(const void* return_address) : before_(t_library) {
  if (before_.empty()) t_library = LibraryOf(return_address);
}

CallFrom::~CallFrom() { t_library = before_; }

std::string_view CallingLibrary() { return t_library; }

}  // namespace ashlar::hollow
