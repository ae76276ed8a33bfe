#include "hollow/model/library_use.h"

#include <algorithm>
#include <utility>

namespace ashlar::hollow {

void LibraryUse::AddCublas(int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  most_.cublas_handles[device] = std::max(most_.cublas_handles[device], ++cublas_handles_[device]);
}

void LibraryUse::RemoveCublas(int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  --cublas_handles_[device];
}

void LibraryUse::AddCudnn(const Cudnn& library) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!most_.has_cudnn) most_.cudnn = library;
  most_.has_cudnn = true;
}

void LibraryUse::NoteCudnnPlan(const std::string& graph, std::optional<std::uint64_t> workspace_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (graph.empty()) return;
  Cudnn& cudnn = most_.cudnn;
  cudnn.most_bytes = std::max(cudnn.most_bytes, workspace_bytes.value_or(0));
  bool is_one_more = workspace_bytes.has_value();
  if (cudnn.graphs.size() == kMostGraphs && !cudnn.graphs.contains(graph)) {
    ++cudnn.more;
  } else {
    bool& is_answered = cudnn.graphs[graph];
    is_one_more = is_one_more && !is_answered;
    is_answered = is_answered || is_one_more;
  }
  if (is_one_more) ++cudnn.answered;
}

void LibraryUse::NoteCudnnSilence(const std::string& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (most_.cudnn.why_silent.empty()) most_.cudnn.why_silent = why;
}

void LibraryUse::SetNcclVersion(int version) {
  const std::lock_guard<std::mutex> lock(mutex_);
  most_.nccl_version = version;
}

int LibraryUse::AddCommunicator(const Communicator& communicator) {
  int number = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    number = static_cast<int>(communicators_.size());
    communicators_.push_back(communicator);
  }
  Resume(number);
  return number;
}

void LibraryUse::Suspend(int number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (active_.erase(number) > 0) suspended_.insert(number);
}

void LibraryUse::Resume(int number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!Has(number)) return;
  suspended_.erase(number);
  active_.insert(number);
  TakeMost();
}

void LibraryUse::Remove(int number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  active_.erase(number);
  suspended_.erase(number);
}

// What is active has its buffers, what is suspended the rest: those decide, these where those are as many.
void LibraryUse::TakeMost() {
  if (std::pair(active_.size(), suspended_.size()) <= std::pair(most_active_.size(), suspended_then_.size())) return;
  most_active_ = active_;
  suspended_then_ = suspended_;
}

void LibraryUse::NoteCollective(int number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Has(number)) communicators_[static_cast<std::size_t>(number)].has_collectives = true;
}

void LibraryUse::NotePeer(int number, int peer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Has(number)) communicators_[static_cast<std::size_t>(number)].peers.insert(peer);
}

LibraryUse::Summary LibraryUse::Most() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  Summary out = most_;
  for (const int number : most_active_) out.communicators.push_back(communicators_[static_cast<std::size_t>(number)]);
  for (const int number : suspended_then_) {
    out.communicators.push_back(communicators_[static_cast<std::size_t>(number)]);
    out.communicators.back().is_suspended = true;
  }
  return out;
}

void LibraryUse::Clear() {
  cublas_handles_.clear();
  most_ = {};
  communicators_.clear();
  active_.clear();
  suspended_.clear();
  most_active_.clear();
  suspended_then_.clear();
}

}  // namespace ashlar::hollow
