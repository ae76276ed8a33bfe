#include "tests/hollow/library_machine.h"

#include <cstdlib>
#include <cstring>

#include "hollow/api/driver/call.h"
#include "hollow/api/surface.h"
#include "hollow/process/process.h"

namespace ashlar::hollow {

Remembered remembered;
Settings simple_machine;

void LibrariesTest::SetUp() {
  remembered = {};
  simple_machine = {};
  simple_machine.devices = 2;
}

void CountRefused(const char* name) { remembered.refused.emplace_back(name); }
bool IsInitialized() { return true; }
void CountLaunch(void* stream) { remembered.launches.push_back(stream); }
void ReadMadeUp(void* host, std::uint64_t bytes) {
  remembered.made_up.push_back(bytes);
  std::memset(host, 0x11, bytes);
}
const Settings& TheSettings() { return simple_machine; }
std::uint64_t TotalBytes(int) { return simple_machine.total_bytes; }
std::uint64_t UsedBytes(int device) { return device == 0 ? 5 << 20 : 0; }
std::vector<ProcessBytes> ProcessesOn(int device) {
  if (device != 0) return {};
  return {{101, 3 << 20}, {102, 2 << 20}};
}

CublasHold HoldForCublas() { return {}; }
void ReturnHold(const CublasHold&) {}
void NoteCudnn(const LibraryUse::Cudnn&) {}
void NoteCudnnPlan(const std::string& graph, std::optional<std::uint64_t> workspace_bytes) {
  remembered.cudnn_plans.push_back(graph);
  remembered.cudnn_workspaces.push_back(workspace_bytes);
}
void NoteCudnnSilence(const std::string& why) { remembered.cudnn_silences.push_back(why); }

}  // namespace ashlar::hollow

extern "C" {

int cudaFree(void* address) {
  if (address != nullptr) ++ashlar::hollow::remembered.freed;
  std::free(address);
  return 0;
}
int cudaMalloc(void** address, std::size_t bytes) {
  ashlar::hollow::remembered.allocated.push_back(bytes);
  *address = std::malloc(1);
  return 0;
}
int cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                 std::size_t height, int) {
  for (std::size_t row = 0; row < height; ++row) {
    std::memcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
  }
  return 0;
}
int cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                      std::size_t height, int kind, void*) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

}  // extern "C"
