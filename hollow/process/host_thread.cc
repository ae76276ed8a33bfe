#include "hollow/process/host_thread.h"

#include <thread>
#include <utility>

namespace ashlar::hollow {
namespace {

thread_local bool is_host_thread = false;

}  // namespace

HostThread& HostThread::The() {
  static HostThread* thread = new HostThread;  // outlives every program
  return *thread;
}

std::uint64_t HostThread::Add(std::function<void()> function) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_running_) {
    is_running_ = true;
    std::thread([this] { Run(); }).detach();
  }
  functions_.push_back(std::move(function));
  added_.notify_one();
  return ++given_;
}

void HostThread::Run() {
  is_host_thread = true;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    added_.wait(lock, [this] { return !functions_.empty(); });
    const std::function<void()> function = std::move(functions_.front());
    functions_.pop_front();
    lock.unlock();
    function();
    lock.lock();
    done_.fetch_add(1, std::memory_order_release);
    finished_.notify_all();
  }
}

void HostThread::WaitFor(std::uint64_t ticket) {
  if (done() >= ticket || is_host_thread) return;
  std::unique_lock<std::mutex> lock(mutex_);
  finished_.wait(lock, [&] { return done() >= ticket; });
}

}  // namespace ashlar::hollow
