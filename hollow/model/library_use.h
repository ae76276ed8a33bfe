// What a process has of NVIDIA's libraries that take memory of a device for themselves: handles and communicators. The
// hollow device takes none of that memory, so a report works it out of these.
//
//   const int communicator = use.AddCommunicator({.device = 0, .ranks = 8});
//   use.NoteCollective(communicator);
//   use.Most().communicators.size();   // those that were there together, at the time when they were most
//
// Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_MODEL_LIBRARY_USE_H_
#define ASHLAR_HOLLOW_MODEL_LIBRARY_USE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ashlar::hollow {

class LibraryUse {
 public:
  // Of NCCL.
  struct Communicator {
    int device = 0;
    int ranks = 1;
    bool has_collectives = false;  // all-reduce and its like: what rings and trees do
    std::set<int> peers = {};      // that it sends to or receives from, one by one
    bool is_suspended = false;     // at the time when those that were not were most
  };

  // Of cuDNN: what its plans were made for, and where the library is that the program brought.
  struct Cudnn {
    std::string library = {}, cublaslt = {};  // files; empty: not known
    std::string device = {};                  // JSON (hollow/api/cudnn/backend_text.h), as each of `graphs` is
    std::uint64_t version = 0;                // 92400
    bool is_asked = false;                    // while the program runs, what workspaces its plans need
    std::map<std::string, bool> graphs = {};  // that plans were made for; whether one had an answer
    std::uint64_t more = 0;                   // plans beyond the first kMostGraphs
    std::uint64_t answered = 0;               // of the graphs, and of those plans
    std::uint64_t most_bytes = 0;             // the largest workspace
    std::string why_silent = {};              // of the first question that had no answer
  };
  static constexpr std::size_t kMostGraphs = 2000;

  struct Summary {
    std::map<int, int> cublas_handles = {};  // by device: the most at a time
    bool has_cudnn = false;                  // a handle of it was made
    Cudnn cudnn = {};
    int nccl_version = 0;  // 22809 is 2.28.9; 0: no communicator was made
    std::vector<Communicator> communicators = {};
  };

  void AddCublas(int device);
  void RemoveCublas(int device);
  void AddCudnn(const Cudnn& library);
  void NoteCudnnPlan(const std::string& graph, std::optional<std::uint64_t> workspace_bytes = std::nullopt);
  void NoteCudnnSilence(const std::string& why);

  void SetNcclVersion(int version);
  // Its number. It is active until it is suspended or removed, and again when it is resumed.
  int AddCommunicator(const Communicator& communicator);
  void Suspend(int number);  // it keeps a part of its memory
  void Resume(int number);
  void Remove(int number);
  void NoteCollective(int number);
  void NotePeer(int number, int peer);

  Summary Most() const;
  // A forked child starts at nothing. The caller makes sure that no other thread is in here.
  void Clear();

 private:
  void TakeMost();
  // Not the parent's, in a forked child.
  bool Has(int number) const { return number >= 0 && number < static_cast<int>(communicators_.size()); }

  mutable std::mutex mutex_;
  std::map<int, int> cublas_handles_;  // by device, now
  Summary most_;
  std::vector<Communicator> communicators_;  // all that were made
  std::set<int> active_, suspended_;
  std::set<int> most_active_, suspended_then_;  // then: beside the most active ones
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_MODEL_LIBRARY_USE_H_
