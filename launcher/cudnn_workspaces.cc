#include "launcher/cudnn_workspaces.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace ashlar::cli {
namespace {

using json = nlohmann::json;

// Numbers: cudnn_graph.h of 9.24.
enum CudnnKind { kEngine = 2, kConfig = 3, kHeuristic = 4, kPlan = 5, kDevice = 38 };
enum CudnnType { kDataType = 1, kInt64 = 3, kHeuristicMode = 8, kNumericalNote = 11, kDescriptor = 15, kChar = 24 };
enum CudnnName {
  kMode = 200,
  kGraph = 201,
  kResults = 202,
  kHeuristicDevice = 204,
  kConfigEngine = 300,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kPlanDevice = 407,
  kTensorType = 901,
  kNumericalNotes = 1303,
  kDeviceJson = 2702,
};
constexpr int kFloat = 0;         // CUDNN_DATA_FLOAT
constexpr int kConvertsDown = 1;  // CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS
constexpr int kMostNotes = 32;
constexpr std::int64_t kMostConfigs = 64;

// The library, in the process that asks. What is made stays: the process ends once it has asked.
class Cudnn {
 public:
  explicit Cudnn(const CudnnPlans& plans) {
    if (!plans.cublaslt.empty()) dlopen(plans.cublaslt.c_str(), RTLD_NOW | RTLD_GLOBAL);
    library_ = dlopen(plans.library.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library_ == nullptr) return;
    Find("cudnnBackendCreateDescriptor", create_);
    Find("cudnnBackendFinalize", finalize_);
    Find("cudnnBackendSetAttribute", set_);
    Find("cudnnBackendGetAttribute", get_);
    Find("cudnnGetVersion", version_);
    if (version_ == nullptr || get_ == nullptr || set_ == nullptr || finalize_ == nullptr || create_ == nullptr) return;
    device_ = Make(kDevice);
    Set(device_, kDeviceJson, kChar, static_cast<std::int64_t>(plans.device.size()), plans.device.data());
    is_ready_ = Finalize(device_);
  }

  std::size_t version() const { return version_ == nullptr ? 0 : version_(); }
  bool is_ready() const { return is_ready_; }

  // nullopt: it has no plan for the graph.
  std::optional<std::int64_t> WorkspaceOf(const json& question) {
    void* graph = Rebuild(question["graph"]);
    if (graph == nullptr) return std::nullopt;
    const bool is_float = IsOfFloats(question["graph"]);
    void* heuristic = Make(kHeuristic);
    const int mode = question["mode"].get<int>();
    Set(heuristic, kGraph, kDescriptor, 1, &graph);
    Set(heuristic, kMode, kHeuristicMode, 1, &mode);
    Set(heuristic, kHeuristicDevice, kDescriptor, 1, &device_);
    std::int64_t count = 0;
    if (!Finalize(heuristic) || get_(heuristic, kResults, kDescriptor, 0, &count, nullptr) != 0) return std::nullopt;
    std::vector<void*> configs;
    while (static_cast<std::int64_t>(configs.size()) < std::min(count, kMostConfigs)) configs.push_back(Make(kConfig));
    if (get_(heuristic, kResults, kDescriptor, static_cast<std::int64_t>(configs.size()), &count, configs.data()) != 0)
      return std::nullopt;
    configs.resize(static_cast<std::size_t>(std::min<std::int64_t>(count, static_cast<std::int64_t>(configs.size()))));
    for (void* config : configs) {
      if (is_float && ConvertsDown(config)) continue;
      if (const std::optional<std::int64_t> bytes = WorkspaceOfConfig(config); bytes.has_value()) return bytes;
    }
    return std::nullopt;
  }

 private:
  template <typename Function>
  void Find(const char* name, Function& to) {
    to = reinterpret_cast<Function>(dlsym(library_, name));
  }

  void* Make(int kind) {
    void* out = nullptr;
    return create_(kind, &out) == 0 ? out : nullptr;
  }
  bool Set(void* descriptor, int name, int type, std::int64_t count, const void* values) {
    return set_(descriptor, name, type, count, values) == 0;
  }
  bool Finalize(void* descriptor) { return finalize_(descriptor) == 0; }

  // The same descriptor, and those that it has; null where the library does not take it.
  void* Rebuild(const json& text) {
    void* out = Make(text["kind"].get<int>());
    if (out == nullptr) return nullptr;
    for (const json& attribute : text["set"]) {
      const auto count = attribute[2].get<std::int64_t>();
      bool was_set = false;
      if (attribute[1] == kDescriptor) {
        std::vector<void*> parts;
        for (const json& part : attribute[3]) parts.push_back(Rebuild(part));
        was_set = Set(out, attribute[0].get<int>(), kDescriptor, count, parts.data());
      } else {
        const std::string bytes = absl::HexStringToBytes(attribute[3].get<std::string>());
        was_set = Set(out, attribute[0].get<int>(), attribute[1].get<int>(), count, bytes.data());
      }
      if (!was_set) return nullptr;
    }
    return Finalize(out) ? out : nullptr;
  }

  // Whether all tensors that the text has are of float.
  static bool IsOfFloats(const json& text) {
    for (const json& attribute : text["set"]) {
      if (attribute[1] == kDescriptor) {
        for (const json& part : attribute[3]) {
          if (!IsOfFloats(part)) return false;
        }
      } else if (attribute[0] == kTensorType && attribute[1] == kDataType) {
        if (attribute[3] != "00000000") return false;
      }
    }
    return true;
  }
  static_assert(kFloat == 0, "as the text of its number is above");

  bool ConvertsDown(void* config) {
    void* engine = Make(kEngine);
    std::int64_t count = 0;
    int notes[kMostNotes] = {};
    if (get_(config, kConfigEngine, kDescriptor, 1, &count, &engine) != 0) return false;
    if (get_(engine, kNumericalNotes, kNumericalNote, kMostNotes, &count, notes) != 0) return false;
    const auto* const end = notes + std::clamp<std::int64_t>(count, 0, kMostNotes);
    return std::find(static_cast<const int*>(notes), end, kConvertsDown) != end;
  }

  std::optional<std::int64_t> WorkspaceOfConfig(void* config) {
    void* plan = Make(kPlan);
    if (plan == nullptr || !Set(plan, kPlanConfig, kDescriptor, 1, &config)) return std::nullopt;
    if (!Set(plan, kPlanDevice, kDescriptor, 1, &device_) || !Finalize(plan)) return std::nullopt;
    std::int64_t bytes = 0, count = 0;
    if (get_(plan, kPlanWorkspace, kInt64, 1, &count, &bytes) != 0 || bytes < 0) return std::nullopt;
    return bytes;
  }

  void* library_ = nullptr;
  void* device_ = nullptr;
  bool is_ready_ = false;
  int (*create_)(int, void**) = nullptr;
  int (*finalize_)(void*) = nullptr;
  int (*set_)(void*, int, int, std::int64_t, const void*) = nullptr;
  int (*get_)(void*, int, int, std::int64_t, std::int64_t*, void*) = nullptr;
  std::size_t (*version_)() = nullptr;
};

void Say(int to, const std::string& line) {
  if (write(to, line.data(), line.size()) < 0) _exit(1);
}

// In the child: "version 92400", "ready", and for each graph its bytes, or "-". It uses no device that is there.
void Answer(const CudnnPlans& plans, int to) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int of : {0, 1, 2}) dup2(nowhere, of);
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  Cudnn cudnn(plans);
  Say(to, absl::StrCat("version ", cudnn.version(), "\n"));
  if (!cudnn.is_ready()) return;
  Say(to, "ready\n");
  for (const std::string& graph : plans.graphs) {
    const json question = json::parse(graph, nullptr, /*allow_exceptions=*/false);
    const std::optional<std::int64_t> bytes = question.is_object() ? cudnn.WorkspaceOf(question) : std::nullopt;
    Say(to, bytes.has_value() ? absl::StrCat(*bytes, "\n") : "-\n");
  }
}

// What comes until the other side closes, or the time is over.
std::string ReadFor(int from, std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  std::string out;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd ready = {from, POLLIN, 0};
    if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) <= 0) return out;
    char bytes[4096];
    const ssize_t count = read(from, bytes, sizeof(bytes));
    if (count <= 0) return out;
    out.append(bytes, static_cast<std::size_t>(count));
  }
}

libraries::CudnnUse Understand(const std::string& said, std::size_t asked) {
  libraries::CudnnUse out{.plans = asked};
  std::istringstream lines(said);
  bool is_ready = false;
  for (std::string line; std::getline(lines, line);) {
    std::uint64_t bytes = 0;
    if (line.rfind("version ", 0) == 0) {
      (void)absl::SimpleAtoi(line.substr(std::strlen("version ")), &out.version);
    } else if (line == "ready") {
      is_ready = true;
    } else if (absl::SimpleAtoi(line, &bytes)) {
      ++out.answered;
      out.most_bytes = std::max(out.most_bytes, bytes);
    }
  }
  if (out.version == 0) {
    out.why_not = "its library could not be loaded";
  } else if (!is_ready) {
    out.why_not = "its library takes no device that is not there";
  }
  return out;
}

}  // namespace

libraries::CudnnUse AskCudnn(const CudnnPlans& plans, std::chrono::milliseconds most) {
  if (plans.graphs.empty()) return {};
  int ends[2] = {};
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    Answer(plans, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  const std::string said = child > 0 ? ReadFor(ends[0], most) : "";
  close(ends[0]);
  if (child > 0) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  libraries::CudnnUse out = Understand(said, plans.graphs.size());
  out.plans += plans.more;
  return out;
}

}  // namespace ashlar::cli
