// Tasks shared out among real processes, some of which die in the middle; and among the processes of a job, joined by a
// link of the test's own in place of MPI.
#include <signal.h>
#include <unistd.h>

#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "commands/fleet/places.h"
#include "commands/fleet/worker.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::fleet {
namespace {

// What the worker does by the task's first word: kill itself, leave, be long, or say who it is.
std::string Do(const std::string& task) {
  if (task == "die") raise(SIGKILL);
  if (task == "leave") _exit(3);
  if (task.rfind("once ", 0) == 0) {
    const std::string mark = task.substr(5);
    if (!std::ifstream(mark)) {
      std::ofstream(mark) << "here";
      raise(SIGKILL);
    }
  }
  if (task == "long") return std::string(1'000'000, 'x');
  return absl::StrCat(task, " by ", getpid());
}

std::vector<Worker> Workers(std::size_t count) {
  std::vector<Worker> out;
  for (std::size_t i = 0; i < count; ++i) {
    absl::StatusOr<Worker> worker = Worker::Open(Do);
    EXPECT_TRUE(worker.ok()) << worker.status();
    out.push_back(*std::move(worker));
  }
  return out;
}

struct Outcome {
  absl::Status status;
  std::map<std::size_t, std::string> done;
  std::vector<std::string> lost;
};

Outcome Share(const std::vector<std::string>& tasks, Places& places) {
  Outcome out;
  ShareEvents events;
  events.text = [&](std::size_t task, std::size_t) { return tasks[task]; };
  events.done = [&](std::size_t task, const std::string& result) {
    EXPECT_TRUE(out.done.emplace(task, result).second) << "done twice: " << task;
  };
  events.lost = [&](std::size_t task, std::size_t, const std::string& how, bool is_given_up) {
    out.lost.push_back(absl::StrCat(tasks[task], ": ", how, is_given_up ? ", given up" : ""));
  };
  out.status = ShareOut(tasks.size(), places, events);
  return out;
}

TEST(Share, EveryTaskIsDoneOnceByOneOfTheProcesses) {
  const std::vector<Worker> workers = Workers(3);
  WorkerPlaces places(workers);
  const std::vector<std::string> tasks(20, "work");
  const Outcome outcome = Share(tasks, places);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.done.size(), 20u);
  for (const auto& [task, result] : outcome.done) EXPECT_NE(result, absl::StrCat("work by ", getpid()));
  EXPECT_THAT(outcome.lost, testing::IsEmpty());
}

TEST(Share, ALongResultComesInOnePiece) {
  const std::vector<Worker> workers = Workers(2);
  WorkerPlaces places(workers);
  const Outcome outcome = Share({"long", "work", "long"}, places);
  ASSERT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.done.at(0).size(), 1'000'000u);
  EXPECT_EQ(outcome.done.at(2), std::string(1'000'000, 'x'));
}

TEST(Share, ATaskThatKillsItsProcessIsTriedTwiceAndCostsNoOther) {
  const std::vector<Worker> workers = Workers(2);
  WorkerPlaces places(workers);
  const Outcome outcome = Share({"die", "a", "leave", "b", "c"}, places);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.done.size(), 3u);
  EXPECT_THAT(outcome.lost, testing::UnorderedElementsAre("die: signal 9 (Killed)", "die: signal 9 (Killed), given up",
                                                          "leave: exit code 3", "leave: exit code 3, given up"));
}

TEST(Share, ATaskWhoseProcessIsLostOnceIsDone) {
  const std::string mark = testing::TempDir() + "ashlar_share_once";
  std::remove(mark.c_str());
  const std::vector<Worker> workers = Workers(1);
  WorkerPlaces places(workers);
  const Outcome outcome = Share({"once " + mark}, places);
  std::remove(mark.c_str());
  ASSERT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.done.size(), 1u);
  EXPECT_EQ(outcome.lost.size(), 1u);
}

// One place, whose worker is lost before it has read task 1: the next one does that before what it is given then.
class LateTaskPlace : public Places {
 public:
  std::size_t count() const override { return 1; }
  absl::Status Send(std::size_t, const Message& message) override {
    sent_.push_back(message);
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<PlaceMessage>> Next(int) override {
    if (sent_.empty()) return std::nullopt;
    if (sent_.front().task == 1 && !is_lost_ && sent_.size() == 1) {
      is_lost_ = true;
      return PlaceMessage{0, {MessageKind::kLost, "signal 9 (Killed)"}};
    }
    const Message task = sent_.front();
    sent_.pop_front();
    return PlaceMessage{0, {MessageKind::kResult, "did " + task.text, task.task}};
  }
  absl::Status Close() override { return absl::OkStatus(); }

 private:
  std::deque<Message> sent_;
  bool is_lost_ = false;
};

TEST(Share, AWorkerThatIsLostBetweenTwoTasksShiftsNoResult) {
  LateTaskPlace places;
  const Outcome outcome = Share({"a", "b", "c", "d"}, places);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.done, testing::ElementsAre(testing::Pair(0, "did a"), testing::Pair(1, "did b"),
                                                 testing::Pair(2, "did c"), testing::Pair(3, "did d")));
  EXPECT_THAT(outcome.lost, testing::ElementsAre("b: signal 9 (Killed)"));
}

// Two processes' ends of a job, each a queue.
class FakeJob {
 public:
  class End : public Link {
   public:
    End(FakeJob& job, int rank) : job_(job), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(job_.boxes_.size()); }
    absl::Status Send(int to, const std::string& bytes) override {
      const std::lock_guard lock(job_.mutex_);
      job_.boxes_[static_cast<std::size_t>(to)].push_back({rank_, bytes});
      return absl::OkStatus();
    }
    absl::StatusOr<std::optional<Packet>> TryReceive() override {
      const std::lock_guard lock(job_.mutex_);
      std::deque<Packet>& box = job_.boxes_[static_cast<std::size_t>(rank_)];
      if (box.empty()) return std::nullopt;
      Packet out = std::move(box.front());
      box.pop_front();
      return out;
    }
    absl::Status Close() override { return absl::OkStatus(); }

   private:
    FakeJob& job_;
    int rank_;
  };

  explicit FakeJob(std::size_t size) : boxes_(size) {}

 private:
  std::mutex mutex_;
  std::vector<std::deque<Packet>> boxes_;
};

TEST(Share, AJobOfSeveralProcesses) {
  const std::vector<Worker> own = Workers(1);  // all are forked before any thread
  const std::vector<Worker> second = Workers(1);
  const std::vector<Worker> third = Workers(1);
  FakeJob job(3);
  FakeJob::End end0(job, 0), end1(job, 1), end2(job, 2);
  std::thread relay1([&] { EXPECT_TRUE(Relay(second, end1).ok()); });
  std::thread relay2([&] { EXPECT_TRUE(Relay(third, end2).ok()); });
  JobPlaces places(own, end0);
  EXPECT_EQ(places.count(), 3u);
  std::vector<std::string> tasks(30, "work");
  tasks[4] = "die";
  const Outcome outcome = Share(tasks, places);
  EXPECT_TRUE(places.Close().ok());
  relay1.join();
  relay2.join();
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.done.size(), 29u);
  EXPECT_EQ(outcome.lost.size(), 2u);
  std::set<std::string> workers;
  for (const auto& [task, result] : outcome.done) workers.insert(result);
  EXPECT_GE(workers.size(), 2u);
}

}  // namespace
}  // namespace ashlar::fleet
