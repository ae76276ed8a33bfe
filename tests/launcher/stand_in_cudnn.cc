// A small cuDNN for cudnn_workspaces_test.cc and cudnn_run_test.cc: it makes plans for a device whose text has
// "deviceVer". Of each graph it knows two configurations: one that converts its inputs down and asks for 999 bytes, and
// one that asks for 1000 times the number of the operation's kind. Heuristic mode 7 ends the process, mode 8 takes
// long, and kind 13 has no plan.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace {

struct Descriptor {
  int kind = 0;
  std::map<int, std::string> attributes;
  bool converts_down = false;
  std::int64_t bytes = 0;
};

Descriptor* PartOf(Descriptor* of, int name) {
  Descriptor* out = nullptr;
  std::memcpy(&out, of->attributes[name].data(), sizeof(out));
  return out;
}

}  // namespace

extern "C" {

std::size_t cudnnGetVersion() { return 91234; }
int cudnnCreate(void**) { return 1001; }  // there is no device

int cudnnBackendCreateDescriptor(int kind, void** out) {
  *out = new Descriptor{kind, {}, false, 0};
  return 0;
}

int cudnnBackendSetAttribute(void* descriptor, int name, int type, std::int64_t count, const void* values) {
  const std::size_t size = type == 24 ? 1 : type == 15 || type == 3 ? 8 : 4;
  static_cast<Descriptor*>(descriptor)->attributes[name] =
      std::string(static_cast<const char*>(values), static_cast<std::size_t>(count) * size);
  return 0;
}

int cudnnBackendFinalize(void* descriptor) {
  auto* const mine = static_cast<Descriptor*>(descriptor);
  if (mine->kind == 38) return mine->attributes[2702].find("deviceVer") == std::string::npos ? 2000 : 0;
  if (mine->kind == 5) return PartOf(PartOf(mine, 401), 1)->kind == 13 ? 3000 : 0;
  if (mine->kind != 4) return 0;
  int mode = 0;
  std::memcpy(&mode, mine->attributes[200].data(), sizeof(mode));
  if (mode == 7) std::abort();
  if (mode == 8) sleep(60);
  return 0;
}

int cudnnBackendGetAttribute(void* descriptor, int name, int, std::int64_t wanted, std::int64_t* count, void* values) {
  auto* const mine = static_cast<Descriptor*>(descriptor);
  *count = name == 202 ? 2 : 1;
  if (wanted == 0) return 0;
  if (name == 202) {  // its operation is attribute 1 of a configuration
    for (int i = 0; i < 2; ++i) {
      auto* const config = static_cast<Descriptor*>(static_cast<void**>(values)[i]);
      Descriptor* operation = PartOf(PartOf(mine, 201), 801);
      config->attributes[1] = std::string(reinterpret_cast<const char*>(&operation), sizeof(operation));
      config->converts_down = i == 0;
      config->bytes = i == 0 ? 999 : 1000 * operation->kind;
    }
  } else if (name == 300) {
    static_cast<Descriptor*>(*static_cast<void**>(values))->converts_down = mine->converts_down;
  } else if (name == 303) {
    *static_cast<std::int64_t*>(values) = mine->bytes;
  } else if (name == 1301) {
    *static_cast<std::int64_t*>(values) = mine->converts_down ? 5 : 6;
  } else if (name == 1303) {
    *static_cast<int*>(values) = 1;
    *count = mine->converts_down ? 1 : 0;
  } else if (name == 1305) {
    *static_cast<int*>(values) = 3;
  } else {
    *static_cast<std::int64_t*>(values) = PartOf(mine, 401)->bytes;
  }
  return 0;
}

}  // extern "C"
