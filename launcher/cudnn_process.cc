#include "launcher/cudnn_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ashlar::cli {
namespace {

using json = nlohmann::json;

// Numbers: cudnn_graph.h of 9.24.
enum CudnnKind { kEngine = 2, kConfig = 3, kHeuristic = 4, kPlan = 5, kDevice = 38 };
enum CudnnType {
  kDataType = 1,
  kInt64 = 3,
  kHeuristicMode = 8,
  kNumericalNote = 11,
  kDescriptor = 15,
  kBehaviorNote = 19,
  kChar = 24
};
enum CudnnName {
  kMode = 200,
  kGraph = 201,
  kResults = 202,
  kHeuristicDevice = 204,
  kConfigEngine = 300,
  kConfigWorkspace = 303,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kPlanDevice = 407,
  kTensorType = 901,
  kEngineIndex = 1301,
  kNumericalNotes = 1303,
  kBehaviorNotes = 1305,
  kDeviceJson = 2702,
};
constexpr int kFloat = 0;         // CUDNN_DATA_FLOAT
constexpr int kConvertsDown = 1;  // CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS
constexpr int kMostNotes = 32;
constexpr std::int64_t kMostConfigs = 64;
constexpr char kPlanOf[] = "plan:";
constexpr char kVersion[] = "version ";
constexpr char kReady[] = "ready";

// The library, in the process that asks. Descriptors mostly stay: the process is there for these questions alone.
class Cudnn {
 public:
  explicit Cudnn(const CudnnSource& source) {
    if (!source.cublaslt.empty()) dlopen(source.cublaslt.c_str(), RTLD_NOW | RTLD_GLOBAL);
    library_ = dlopen(source.library.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library_ == nullptr) return;
    Find("cudnnBackendCreateDescriptor", create_);
    Find("cudnnBackendDestroyDescriptor", destroy_);
    Find("cudnnBackendFinalize", finalize_);
    Find("cudnnBackendSetAttribute", set_);
    Find("cudnnBackendGetAttribute", get_);
    Find("cudnnGetVersion", version_);
    if (version_ == nullptr || get_ == nullptr || set_ == nullptr || finalize_ == nullptr || create_ == nullptr) return;
    device_ = Make(kDevice);
    Set(device_, kDeviceJson, kChar, static_cast<std::int64_t>(source.device.size()), source.device.data());
    is_ready_ = Finalize(device_);
  }

  std::size_t version() const { return version_ == nullptr ? 0 : version_(); }
  bool is_ready() const { return is_ready_; }

  // Of a command line (cudnn_process.h).
  std::string Answer(const std::string& line) {
    const std::size_t space = line.find(' ');
    const std::string command = line.substr(0, space);
    const Found& found = FoundFor(space == std::string::npos ? "" : line.substr(space + 1));
    if (command == "configs") return ConfigsText(found);
    std::optional<std::int64_t> bytes;
    std::size_t number = 0;
    if (command == "first") {
      bytes = FirstWorkspace(found);
    } else if (absl::StartsWith(command, kPlanOf) && absl::SimpleAtoi(command.substr(sizeof(kPlanOf) - 1), &number) &&
               number < found.configs.size()) {
      bytes = WorkspaceOf(found.configs[number]);
    }
    return bytes.has_value() ? absl::StrCat("= ", *bytes) : "-";
  }

 private:
  // What its heuristics have for a graph.
  struct Found {
    std::vector<void*> configs = {};
    bool is_float = false;
  };

  const Found& FoundFor(const std::string& text) {
    const auto [place, is_new] = found_.try_emplace(text);
    if (!is_new) return place->second;
    const json question = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (question.is_object()) place->second = Ask(question);
    return place->second;
  }

  Found Ask(const json& question) {
    Found out{.is_float = IsOfFloats(question["graph"])};
    void* graph = Rebuild(question["graph"]);
    if (graph == nullptr) return out;
    void* heuristic = Make(kHeuristic);
    const int mode = question["mode"].get<int>();
    Set(heuristic, kGraph, kDescriptor, 1, &graph);
    Set(heuristic, kMode, kHeuristicMode, 1, &mode);
    Set(heuristic, kHeuristicDevice, kDescriptor, 1, &device_);
    std::int64_t count = 0;
    if (!Finalize(heuristic) || get_(heuristic, kResults, kDescriptor, 0, &count, nullptr) != 0) return out;
    std::vector<void*> configs;
    while (static_cast<std::int64_t>(configs.size()) < std::min(count, kMostConfigs)) configs.push_back(Make(kConfig));
    const auto wanted = static_cast<std::int64_t>(configs.size());
    if (get_(heuristic, kResults, kDescriptor, wanted, &count, configs.data()) != 0) return out;
    configs.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, wanted)));
    out.configs = std::move(configs);
    return out;
  }

  std::optional<std::int64_t> FirstWorkspace(const Found& found) {
    for (void* config : found.configs) {
      const std::vector<int> notes = NotesOf(EngineOf(config), kNumericalNotes, kNumericalNote);
      if (found.is_float && std::find(notes.begin(), notes.end(), kConvertsDown) != notes.end()) continue;
      if (const std::optional<std::int64_t> bytes = WorkspaceOf(config); bytes.has_value()) return bytes;
    }
    return std::nullopt;
  }

  std::string ConfigsText(const Found& found) {
    std::size_t first = 0;
    while (first < found.configs.size() && !WorkspaceOf(found.configs[first]).has_value()) ++first;
    std::string out = "*";
    for (std::size_t i = first; i < found.configs.size(); ++i) {
      void* engine = EngineOf(found.configs[i]);
      absl::StrAppend(&out, " ", i, ":", NumberOf(engine, kEngineIndex), ":",
                      NumberOf(found.configs[i], kConfigWorkspace), ":",
                      absl::StrJoin(NotesOf(engine, kNumericalNotes, kNumericalNote), "."), ":",
                      absl::StrJoin(NotesOf(engine, kBehaviorNotes, kBehaviorNote), "."));
      Destroy(engine);
    }
    return first == found.configs.size() ? "-" : out;
  }

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
  void Destroy(void* descriptor) {
    if (destroy_ != nullptr && descriptor != nullptr) destroy_(descriptor);
  }

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

  void* EngineOf(void* config) {
    void* engine = Make(kEngine);
    std::int64_t count = 0;
    if (get_(config, kConfigEngine, kDescriptor, 1, &count, &engine) == 0) return engine;
    Destroy(engine);
    return nullptr;
  }

  std::vector<int> NotesOf(void* engine, int name, int type) {
    std::int64_t count = 0;
    int notes[kMostNotes] = {};
    if (engine == nullptr || get_(engine, name, type, kMostNotes, &count, notes) != 0) return {};
    return {notes, notes + std::clamp<std::int64_t>(count, 0, kMostNotes)};
  }

  // Of an attribute; 0 where the library does not say it.
  std::int64_t NumberOf(void* descriptor, int name) {
    std::int64_t out = 0, count = 0;
    return descriptor != nullptr && get_(descriptor, name, kInt64, 1, &count, &out) == 0 ? out : 0;
  }

  // Of a plan of the configuration; nullopt: it becomes none.
  std::optional<std::int64_t> WorkspaceOf(void* config) {
    void* plan = Make(kPlan);
    std::int64_t bytes = 0, count = 0;
    const bool is_told = plan != nullptr && Set(plan, kPlanConfig, kDescriptor, 1, &config) &&
                         Set(plan, kPlanDevice, kDescriptor, 1, &device_) && Finalize(plan) &&
                         get_(plan, kPlanWorkspace, kInt64, 1, &count, &bytes) == 0 && bytes >= 0;
    Destroy(plan);
    return is_told ? std::optional(bytes) : std::nullopt;
  }

  void* library_ = nullptr;
  void* device_ = nullptr;
  bool is_ready_ = false;
  std::map<std::string, Found> found_;
  int (*create_)(int, void**) = nullptr;
  int (*destroy_)(void*) = nullptr;
  int (*finalize_)(void*) = nullptr;
  int (*set_)(void*, int, int, std::int64_t, const void*) = nullptr;
  int (*get_)(void*, int, int, std::int64_t, std::int64_t*, void*) = nullptr;
  std::size_t (*version_)() = nullptr;
};

void Say(int to, const std::string& line) {
  const std::string text = line + "\n";
  if (send(to, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) _exit(1);
}

// In the child: "version 92400", then "ready", and an answer for each line. It uses no device that is there.
void AnswerAll(const CudnnSource& source, int channel) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int of : {0, 1, 2}) dup2(nowhere, of);
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  Cudnn cudnn(source);
  Say(channel, absl::StrCat("version ", cudnn.version()));
  if (!cudnn.is_ready()) return;
  Say(channel, "ready");
  std::string asked;
  char bytes[4096];
  for (ssize_t count = 0; (count = read(channel, bytes, sizeof(bytes))) > 0;) {
    asked.append(bytes, static_cast<std::size_t>(count));
    for (std::size_t end = 0; (end = asked.find('\n')) != std::string::npos; asked.erase(0, end + 1)) {
      Say(channel, cudnn.Answer(asked.substr(0, end)));
    }
  }
}

}  // namespace

void CudnnProcess::Fail(const std::string& why) {
  End();
  if (why_not_.empty()) why_not_ = why;
}

bool CudnnProcess::Start(std::chrono::milliseconds most) {
  if (source_.library.empty()) {
    Fail("the program has loaded no libcudnn");
    return false;
  }
  const auto until = std::chrono::steady_clock::now() + most;
  int ends[2] = {};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    Fail(absl::StrCat("no process could be made to ask it in: ", std::strerror(errno)));
    return false;
  }
  process_ = fork();
  if (process_ == 0) {
    close(ends[0]);
    AnswerAll(source_, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  channel_ = ends[0];
  const std::string version = process_ > 0 ? ReadLine(most).value_or("") : "";
  if (absl::StartsWith(version, kVersion)) (void)absl::SimpleAtoi(version.substr(sizeof(kVersion) - 1), &version_);
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  if (version_ > 0 && ReadLine(left) == kReady) return true;
  Fail(took_too_long_  ? "its library did not start in time"
       : version_ == 0 ? "its library could not be loaded"
                       : "its library takes no device that is not there");
  return false;
}

std::optional<std::string> CudnnProcess::Ask(const std::string& command, std::chrono::milliseconds most) {
  if (is_given_up_) return std::nullopt;
  const auto until = std::chrono::steady_clock::now() + most;
  if (process_ <= 0 && !Start(most)) {
    is_given_up_ = true;
    return std::nullopt;
  }
  const std::string line = command + "\n";
  std::optional<std::string> out;
  if (send(channel_, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size())) {
    out = ReadLine(std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()));
  }
  if (out.has_value()) return out;
  is_given_up_ = took_too_long_ || ++ends_ == kMostEnds;
  Fail(took_too_long_ ? "its library took too long" : "its library ended its process");
  return std::nullopt;
}

std::optional<std::string> CudnnProcess::ReadLine(std::chrono::milliseconds most) {
  const auto until = std::chrono::steady_clock::now() + most;
  while (read_.find('\n') == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd ready = {channel_, POLLIN, 0};
    const int found = left.count() <= 0 ? 0 : poll(&ready, 1, static_cast<int>(left.count()));
    if (found < 0 && errno == EINTR) continue;
    took_too_long_ = found == 0;
    if (found <= 0) return std::nullopt;
    char bytes[4096];
    const ssize_t count = read(channel_, bytes, sizeof(bytes));
    if (count <= 0) return std::nullopt;
    read_.append(bytes, static_cast<std::size_t>(count));
  }
  const std::size_t end = read_.find('\n');
  std::string out = read_.substr(0, end);
  read_.erase(0, end + 1);
  return out;
}

void CudnnProcess::End() {
  if (channel_ >= 0) close(channel_);
  channel_ = -1;
  read_.clear();
  if (process_ > 0) {
    kill(process_, SIGKILL);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  process_ = -1;
}

}  // namespace ashlar::cli
