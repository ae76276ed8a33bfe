#include "hollow/api/real_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace ashlar::hollow {
namespace {

struct LoadedSearch {
  const char* file;
  std::string path;
};

int TakeLoaded(dl_phdr_info* info, std::size_t, void* data) {
  auto* search = static_cast<LoadedSearch*>(data);
  if (info->dlpi_name == nullptr) return 0;
  const char* slash = std::strrchr(info->dlpi_name, '/');
  const char* file = slash == nullptr ? info->dlpi_name : slash + 1;
  if (std::strncmp(file, search->file, std::strlen(search->file)) != 0) return 0;
  search->path = info->dlpi_name;
  return 1;
}

}  // namespace

std::string RealPath(const char* file) {
  LoadedSearch search{file, {}};
  dl_iterate_phdr(TakeLoaded, &search);
  return search.path;
}

void* RealFunction(const char* file, const char* name) {
  const std::string path = RealPath(file);
  if (path.empty()) return nullptr;
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* function = dlsym(library, name);
  dlclose(library);  // stays loaded: whoever loaded it holds it
  return function;
}

int RealMajor(const char* file) {
  const std::string path = RealPath(file);
  return path.empty() ? 0 : std::atoi(path.c_str() + path.rfind(file) + std::strlen(file));
}

bool RealProperty(const char* file, const char* name, int otherwise, int type, int* value) {
  if (type < 0 || type > 2 || value == nullptr) return false;
  const auto real = reinterpret_cast<int (*)(int, int*)>(RealFunction(file, name));
  if (real != nullptr && real(type, value) == 0) return true;
  *value = type == 0 ? otherwise / 10000 : type == 1 ? otherwise / 100 % 100 : otherwise % 100;
  return true;
}

const char* RealText(const char* file, const char* name, int status, const char* otherwise) {
  const auto real = reinterpret_cast<const char* (*)(int)>(RealFunction(file, name));
  const char* text = real == nullptr ? nullptr : real(status);
  return text == nullptr ? otherwise : text;
}

}  // namespace ashlar::hollow
