// A program that makes a plan of cuDNN's as PyTorch's convolutions do, takes the workspace that the plan asks for, and
// prints its size. Its cuDNN is stand_in_cudnn.cc, its runtime the stand-in of tests/hollow/client: under `ashlar
// dry-run` the hollow device is in their place. Its argument is the mode of the heuristic.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <vector>

extern "C" {
int cudaMalloc(void** address, std::size_t bytes);
int cudaFree(void* address);
int cudnnCreate(void** handle);
int cudnnBackendCreateDescriptor(int kind, void** out);
int cudnnBackendSetAttribute(void* descriptor, int name, int type, std::int64_t count, const void* values);
int cudnnBackendFinalize(void* descriptor);
int cudnnBackendGetAttribute(void* descriptor, int name, int type, std::int64_t wanted, std::int64_t* count,
                             void* values);
}

namespace {

constexpr int kDataType = 1, kInt64 = 3, kHeuristicMode = 8, kNumericalNote = 11, kDescriptor = 15;
constexpr int kConvertsDown = 1;

void Check(int status, const char* what) {
  if (status == 0) return;
  std::fprintf(stderr, "%s: %d\n", what, status);
  std::exit(1);
}

struct Attribute {
  int name, type;
  const void* value;
};

void* Make(int kind, std::initializer_list<Attribute> attributes) {
  void* out = nullptr;
  Check(cudnnBackendCreateDescriptor(kind, &out), "cudnnBackendCreateDescriptor");
  for (const Attribute& of : attributes) {
    Check(cudnnBackendSetAttribute(out, of.name, of.type, 1, of.value), "cudnnBackendSetAttribute");
  }
  return out;
}

void* Finalized(void* descriptor) {
  Check(cudnnBackendFinalize(descriptor), "cudnnBackendFinalize");
  return descriptor;
}

bool ConvertsDown(void* config) {
  void* engine = Make(2, {});
  std::int64_t count = 0;
  int note = 0;
  Check(cudnnBackendGetAttribute(config, 300, kDescriptor, 1, &count, &engine), "the engine");
  Check(cudnnBackendGetAttribute(engine, 1303, kNumericalNote, 1, &count, &note), "its notes");
  return count > 0 && note == kConvertsDown;
}

std::int64_t WorkspaceOf(int mode) {
  const int of_float = 0;
  const std::int64_t one = 1;
  void* tensor =
      Finalized(Make(17, {{901, kDataType, &of_float}, {902, kInt64, &one}, {903, kInt64, &one}, {906, kInt64, &one}}));
  void* operation = Finalized(Make(10, {{704, kDescriptor, &tensor}}));
  void* graph = Finalized(Make(15, {{801, kDescriptor, &operation}}));
  void* heuristic = Finalized(Make(4, {{201, kDescriptor, &graph}, {200, kHeuristicMode, &mode}}));
  std::int64_t count = 0;
  Check(cudnnBackendGetAttribute(heuristic, 202, kDescriptor, 0, &count, nullptr), "how many configurations");
  std::vector<void*> configs;
  while (static_cast<std::int64_t>(configs.size()) < count) configs.push_back(Make(3, {}));
  Check(cudnnBackendGetAttribute(heuristic, 202, kDescriptor, count, &count, configs.data()), "the configurations");
  for (void* config : configs) {
    if (ConvertsDown(config)) continue;
    void* plan = Finalized(Make(5, {{401, kDescriptor, &config}}));
    std::int64_t bytes = 0;
    Check(cudnnBackendGetAttribute(plan, 402, kInt64, 1, &count, &bytes), "the workspace");
    return bytes;
  }
  return -1;
}

}  // namespace

int main(int count, char** arguments) {
  void* handle = nullptr;
  Check(cudnnCreate(&handle), "cudnnCreate");
  const std::int64_t bytes = WorkspaceOf(count > 1 ? std::atoi(arguments[1]) : 0);
  std::printf("%lld\n", static_cast<long long>(bytes));
  if (bytes <= 0) return 0;
  void* workspace = nullptr;
  Check(cudaMalloc(&workspace, static_cast<std::size_t>(bytes)), "cudaMalloc");
  Check(cudaFree(workspace), "cudaFree");
  return 0;
}
