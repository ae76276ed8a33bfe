// Messages as logs break them: over lines, with what a logger or launcher puts before each, in long texts, repeated.
#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <vector>

#include "analyzer/formats/oom/oom_message.h"
#include "analyzer/formats/oom/oom_parser.h"
#include "tests/analyzer/formats/oom/messages.h"

namespace ashlar::formats {
namespace {

constexpr const char* kPrefixes[] = {"[rank0]: ",
                                     "[rank12]:",
                                     "[1,0]<stderr>:",
                                     "[2024-06-13 10:22:33,104] ",
                                     "(RayTrainWorker pid=1234, ip=10.0.0.7) ",
                                     "(VllmWorkerProcess pid=77) ERROR 06-13 10:22:33 worker.py:226] ",
                                     "2024-06-13 10:22:33,104 ERROR ",
                                     "2024-06-13T10:22:33.104Z ",
                                     "ERROR:2024-06-13 10:22:33 ",
                                     "E0613 10:20:30.123456 1234:12 trainer.cc:88] ",
                                     "WARNING: ",
                                     "worker-1  | ",
                                     "12: ",
                                     "│ ",
                                     "  # ",
                                     "> "};

std::string WithPrefixes(const std::string& text, std::size_t at, const std::string& prefix) {
  return prefix + text.substr(0, at) + "\n" + prefix + text.substr(at) + "\n";
}

std::string Figures(const OomMessage& message) {
  std::string out =
      message.family + (message.truncated ? " cut" : "") + " on " + std::to_string(message.device.value_or(-1));
  for (const auto& slot : {message.tried, message.total, message.allocated, message.free, message.reserved,
                           message.unallocated_reserved, message.private_pool, message.limit}) {
    out += slot ? " " + std::to_string(slot->low_bytes) + ".." + std::to_string(slot->high_bytes) : " -";
  }
  for (const ProcessUse& process : message.processes) {
    out += " process " + std::to_string(process.pid.value_or(0)) + (process.is_this_process ? " this " : " ") +
           (process.used ? std::to_string(process.used->low_bytes) : "-");
  }
  return out;
}

// A break inside a number cannot be told from two numbers, so none is made there.
bool MayBreak(const std::string& text, std::size_t at) {
  return !std::isdigit(static_cast<unsigned char>(text[at])) && text[at] != '.';
}

TEST(OomMessageWrappingTest, BrokenAnywhereBehindAnyPrefix) {
  for (const std::string text : {oom_messages::kNeighbours, oom_messages::kColabBert, oom_messages::kPrivatePools}) {
    const std::string whole = Figures(FindOomMessages(text).at(0));
    for (const std::string prefix : kPrefixes) {
      for (std::size_t at = 1; at < text.size(); ++at) {
        if (!MayBreak(text, at)) continue;
        const std::vector<OomMessage> found = FindOomMessages(WithPrefixes(text, at, prefix));
        ASSERT_EQ(found.size(), 1u) << WithPrefixes(text, at, prefix);
        ASSERT_EQ(Figures(found[0]), whole) << WithPrefixes(text, at, prefix);
      }
    }
  }
}

TEST(OomMessageWrappingTest, WrappedAtEightyColumnsBehindAnyPrefix) {
  for (const char* message : oom_messages::kAll) {
    const std::string text = message;
    const std::vector<OomMessage> whole = FindOomMessages(text);
    for (const std::string prefix : {"[rank3]: ", "2024-06-13 10:22:33,104 ERROR ", "(Worker pid=5) "}) {
      std::string wrapped = prefix;
      std::size_t column = 0;
      for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\n' || (column >= 80 && text[i] == ' ')) {
          wrapped += "\n" + prefix;
          column = 0;
          continue;
        }
        wrapped += text[i];
        ++column;
      }
      const std::vector<OomMessage> found = FindOomMessages(wrapped);
      ASSERT_EQ(found.size(), whole.size()) << wrapped;
      EXPECT_EQ(Figures(found[0]), Figures(whole[0])) << wrapped;
    }
  }
}

TEST(OomMessageWrappingTest, WhatIsNoPrefix) {
  for (const char* line : {"", "GPU 0 has a total", "(GPU 0; 14.76 GiB total capacity",
                           "[16,12,512,512] and type float", "86.00 MiB. GPU 0", "12.32 GiB already allocated",
                           "0 bytes is free", "761,856,000 bytes", "(rounded to 35758080)", "ERRORS are many",
                           "Informed", "allocated by PyTorch", "W external/xla/bfc_allocator.cc:501] Allocator",
                           "bfc_allocator.cc:246] tried", "1", "[", "(", "]", "RuntimeError: CUDA out of memory."}) {
    EXPECT_EQ(oom::LinePrefixLength(line), 0u) << line;
  }
}

TEST(OomMessageWrappingTest, OnePieceAtATime) {
  EXPECT_EQ(oom::LinePrefixLength("[rank0]: GPU 0"), 8u);
  EXPECT_EQ(oom::LinePrefixLength("[1,0]<stderr>:GPU 0"), 14u);
  EXPECT_EQ(oom::LinePrefixLength("2024-06-13 10:22:33 INFO x"), 10u);
  EXPECT_EQ(oom::LinePrefixLength("3: GPU 0"), 2u);
  EXPECT_EQ(oom::LinePrefixLength("engine.py:110] GPU"), 14u);
  EXPECT_EQ(oom::LinePrefixLength("worker-1  | GPU 0"), 11u);
}

// Several windows of the reader, a message every 50,000 bytes, a traceback around each.
TEST(OomMessageWrappingTest, EveryMessageOfALongLog) {
  std::string log;
  std::vector<std::size_t> at;
  std::vector<std::string> figures;
  for (std::size_t i = 0; i < 100; ++i) {
    while (log.size() < (i + 1) * 50'000) {
      log += "2024-06-13 10:22:33,104 INFO trainer.py:" + std::to_string(log.size()) + "] step 12 loss 3.4 5.00 GiB\n";
    }
    log += "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n";
    const std::string message = oom_messages::kAll[i % std::size(oom_messages::kAll)];
    const OomMessage alone = FindOomMessages(message).at(0);
    at.push_back(log.size() + alone.byte_offset);
    figures.push_back(Figures(alone));
    log += message + "\n";
  }
  const std::vector<OomMessage> found = FindOomMessages(log);
  ASSERT_EQ(found.size(), at.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    EXPECT_EQ(found[i].byte_offset, at[i]) << i;
    EXPECT_EQ(Figures(found[i]), figures[i]) << i;
  }
}

}  // namespace
}  // namespace ashlar::formats
