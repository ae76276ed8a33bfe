// A program's own cuDNN, loaded in a process of its own that uses no device: what it says of plans, by its heuristics.
// Whatever the library does there harms nobody else, and it has a limited time.
//
//   CudnnProcess process({"/x/libcudnn.so.9", "/x/libcublasLt.so.13", R"({"deviceVer":900,...})"});
//   std::optional<std::string> line = process.Ask("first " + graph, std::chrono::seconds(10));   // "= 25755664"
//
// cuDNN makes plans for a device that JSON describes, from 9.8 on (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR). A graph is a
// text of hollow/api/cudnn/backend_text.h. Commands, each a line, and what is answered:
//
//   first GRAPH        "= BYTES": the workspace of the first configuration that becomes a plan, as PyTorch takes it,
//                      without those that convert float's inputs down; "-": there is none
//   configs GRAPH      "* NUMBER:ENGINE:BYTES:NOTES:BEHAVIOR ...": the configurations from the first on that becomes
//                      a plan, in cuDNN's order, notes with dots between; "-": there is none
//   plan:NUMBER GRAPH  "= BYTES": the workspace of a plan of that configuration; "-": it becomes none
//
// Sizes are bytes. Thread rule: one thread.
#ifndef ASHLAR_LAUNCHER_CUDNN_PROCESS_H_
#define ASHLAR_LAUNCHER_CUDNN_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace ashlar::cli {

struct CudnnSource {
  std::string library, cublaslt;  // files; cuDNN needs cuBLASLt
  std::string device;             // JSON

  auto operator<=>(const CudnnSource&) const = default;
};

class CudnnProcess {
 public:
  explicit CudnnProcess(CudnnSource source) : source_(std::move(source)) {}
  ~CudnnProcess() { End(); }
  CudnnProcess(const CudnnProcess&) = delete;
  CudnnProcess& operator=(const CudnnProcess&) = delete;

  // Starts it where it does not run. nullopt: it has no answer, and why_not() says why. Once it could not be started,
  // took longer, or has ended kMostEnds times, it is not asked again.
  std::optional<std::string> Ask(const std::string& command, std::chrono::milliseconds most);
  bool is_given_up() const { return is_given_up_; }

  std::uint64_t version() const { return version_; }  // 92400; 0: not known
  // Of what failed first, in words.
  const std::string& why_not() const { return why_not_; }

 private:
  static constexpr int kMostEnds = 3;

  bool Start(std::chrono::milliseconds most);
  void Fail(const std::string& why);
  std::optional<std::string> ReadLine(std::chrono::milliseconds most);
  void End();

  const CudnnSource source_;
  pid_t process_ = -1;
  int channel_ = -1;
  std::string read_;  // behind the last line
  std::uint64_t version_ = 0;
  bool took_too_long_ = false, is_given_up_ = false;
  int ends_ = 0;  // of its process, by itself
  std::string why_not_;
};

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_CUDNN_PROCESS_H_
