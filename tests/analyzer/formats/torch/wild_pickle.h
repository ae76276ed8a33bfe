// Writes pickles of traces with all the freedom that the format has: by any pickler, and by none.
//
//   std::string bytes = WildPickle(seed).Make();
#ifndef ASHLAR_TESTS_ANALYZER_FORMATS_TORCH_WILD_PICKLE_H_
#define ASHLAR_TESTS_ANALYZER_FORMATS_TORCH_WILD_PICKLE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"

namespace ashlar::formats {

class WildPickle {
 public:
  explicit WildPickle(std::uint64_t seed)
      : rng_(seed), protocol_(static_cast<int>(2 + rng_.Below(4))), is_wild_(rng_.Below(3) == 0) {}

  std::string Make() {
    out_ = {'\x80', static_cast<char>(protocol_)};
    out_ += '}';
    unfinished_ = {Put()};
    out_ += '(';
    const bool segments_first = rng_.Below(2) == 0;
    if (segments_first) Segments();
    Text("device_traces");
    Traces();
    if (!segments_first) Segments();
    if (is_wild_ && rng_.Below(3) == 0) {
      Text("host_traces");
      Refer(lists_);
    }
    out_ += "u.";
    return std::move(out_);
  }

 private:
  void Segments() {
    Text("segments");
    out_ += ']';
    Put();
  }

  void Traces() {
    out_ += ']';
    const std::uint64_t outer = Put();
    unfinished_.push_back(outer);
    const std::uint64_t lists = rng_.Below(4);
    const bool has_mark = lists != 1 || rng_.Below(3) == 0;
    if (has_mark) out_ += '(';
    for (std::uint64_t i = 0; i < lists; ++i) Trace();
    if (lists == 0 && has_mark) {
      out_ += 'e';
    } else if (lists > 0) {
      out_ += has_mark ? 'e' : 'a';
    }
    if (is_wild_ && rng_.Below(8) == 0) lists_.push_back(outer);
  }

  void Trace() {
    out_ += ']';
    const std::uint64_t list = Put();
    if (is_wild_ && rng_.Below(6) == 0) lists_.push_back(list);
    for (std::uint64_t batches = rng_.Below(4); batches > 0; --batches) {
      if (rng_.Below(4) == 0) {
        Entry();
        out_ += 'a';
        continue;
      }
      out_ += '(';
      for (std::uint64_t count = rng_.Below(rng_.Below(3) == 0 ? 1500 : 30); count > 0; --count) Entry();
      if (is_wild_ && rng_.Below(30) == 0) {
        out_ += '1';  // POP_MARK: these were none
      } else {
        out_ += 'e';
      }
    }
  }

  void Entry() {
    if (is_wild_ && !entries_.empty() && rng_.Below(600) == 0) return Refer(entries_);
    MaybeFrame();
    out_ += '}';
    const bool is_again = is_wild_ && last_entry_ != 0 && rng_.Below(200) == 0;
    if (is_again) PutAgain(last_entry_);
    const std::uint64_t entry = is_again ? last_entry_ : Put();
    last_entry_ = entry;
    if (is_wild_ && rng_.Below(50) == 0) entries_.push_back(entry);
    out_ += '(';
    Text("action");
    Text(rng_.Below(40) == 0 ? absl::StrCat("strange_", rng_.Below(3)) : rng_.Below(2) == 0 ? "alloc" : "segment_free");
    MaybeFrame();
    Text("addr");
    MaybeFrame();
    Number(rng_.Next() >> rng_.Between(2, 60));
    Text("size");
    if (is_wild_ && rng_.Below(4000) == 0) {
      Text("no number");
    } else {
      Number(rng_.Below(1 << 20));
    }
    Text("stream");
    if (rng_.Below(20) == 0) {
      Number(rng_.Next());  // a handle, of any 64 bits
    } else {
      Number(rng_.Below(3));
    }
    if (is_wild_ && rng_.Below(800) == 0) Text("size"), Number(1);  // twice: the last holds
    if (is_wild_ && rng_.Below(2000) == 0) Text("a key of the future"), Number(1);
    if (rng_.Below(3) != 0) Text("time_us"), Number(1'700'000'000'000'000 + entry);
    if (rng_.Below(4) != 0) More();
    if (rng_.Below(6) != 0) Frames();
    out_ += 'u';
    if (is_wild_ && rng_.Below(500) == 0) out_ += '2', out_ += '0';  // DUP, POP
  }

  void More() {
    Text("user_metadata");
    if (is_wild_ && rng_.Below(1000) == 0) return Refer(unfinished_);
    Text(rng_.Below(3) == 0 ? absl::StrCat("phase ", rng_.Below(4)) : "");
    Text("compile_context");
    if (rng_.Below(20) == 0) {
      out_ += 'N';
    } else {
      Text("N/A");
    }
    Text("pool_id");
    if (!pools_.empty() && is_wild_ && rng_.Below(400) == 0) return Refer(pools_);
    Number(rng_.Below(30) == 0 ? 2 : 0);
    Number(rng_.Below(30) == 0 ? rng_.Next() >> 20 : rng_.Below(3));
    out_ += '\x86';
    const std::uint64_t pool = Put();
    if (is_wild_) pools_ = {pool};
  }

  void Frames() {
    Text("frames");
    if (is_wild_ && rng_.Below(2000) == 0) return Refer(unfinished_);
    if (!stacks_.empty() && rng_.Below(2) == 0) return Refer(stacks_);
    out_ += ']';
    stacks_.push_back(Put());
    const bool is_run = rng_.Below(3) == 0;
    const std::uint64_t count = is_run ? 0 : rng_.Below(5);
    if (count == 0 && !is_run) return;
    if (count == 1 && rng_.Below(2) == 0) {
      Frame();
      out_ += 'a';
      return;
    }
    out_ += '(';
    for (std::uint64_t i = 0; i < count; ++i) Frame();
    if (is_wild_ && !frames_.empty() && rng_.Below(100) == 0) OtherFrame();
    if (is_run || rng_.Below(3) == 0) Run();
    out_ += 'e';
  }

  // One of some long runs of frames that are known, as a line of a program has that is run again and again.
  void Run() {
    const std::uint64_t which = rng_.Below(6);
    for (std::uint64_t i = 0; i < 10 + which % 3 * 30; ++i) {
      if (!frames_.empty()) Refer({frames_[(which / 2 + i * i) % std::min<std::size_t>(frames_.size(), 30)]});
      if (rng_.Below(50) == 0) MaybeFrame();
    }
  }

  // From here on an index that meant a frame means another.
  void OtherFrame() {
    const std::uint64_t index = frames_[rng_.Below(std::min<std::size_t>(frames_.size(), 30))];
    NewFrame();
    PutAgain(index);
  }

  void Frame() {
    if (!frames_.empty() && rng_.Below(frames_.size() < 30 ? 4 : 200) != 0) return Refer(frames_);
    NewFrame();
  }
  void NewFrame() {
    out_ += '}';
    frames_.push_back(Put());
    out_ += '(';
    Text("name");
    Text(absl::StrCat("f", rng_.Below(20)));
    Text("filename");
    Text("train.py");
    Text("line");
    Number(rng_.Below(300));
    out_ += 'u';
  }

  // --- values --------------------------------------------------------------------------------------------------
  // A frame of the pickle begins: as long as what follows at least, as no reader may rely on it.
  void MaybeFrame() {
    if (protocol_ < 4 || rng_.Below(40) != 0) return;
    out_ += '\x95';
    Little(is_wild_ && rng_.Below(200) == 0 ? 1 << 30 : 1, 8);
  }
  std::uint64_t Put() {
    const std::uint64_t index = memo_++;
    if (protocol_ >= 4 && rng_.Below(8) != 0) {
      out_ += '\x94';
    } else if (index < 256) {
      out_ += 'q', out_ += static_cast<char>(index);
    } else {
      out_ += 'r';
      Little(index, 4);
    }
    return index;
  }
  void PutAgain(std::uint64_t index) {
    out_ += 'r';
    Little(index, 4);
  }
  void Refer(const std::vector<std::uint64_t>& to) {
    if (to.empty()) return Number(0);
    const std::uint64_t index = to[rng_.Below(to.size())];
    if (index < 256) {
      out_ += 'h', out_ += static_cast<char>(index);
    } else {
      out_ += 'j';
      Little(index, 4);
    }
  }
  void Text(const std::string& text) {
    for (const auto& [known, index] : texts_) {
      if (known == text && rng_.Below(10) != 0) return Refer({index});
    }
    out_ += 'X';
    Little(text.size(), 4);
    out_ += text;
    if (rng_.Below(10) != 0) texts_.emplace_back(text, Put());
  }
  void Number(std::uint64_t value) {
    const std::uint64_t way = rng_.Below(4);
    if (value < 256 && way != 0) {
      out_ += 'K', out_ += static_cast<char>(value);
    } else if (value < 65536 && way != 1) {
      out_ += 'M';
      Little(value, 2);
    } else if (value < std::uint64_t{1} << 31 && way != 2) {
      out_ += 'J';
      Little(value, 4);
    } else if (value < std::uint64_t{1} << 55 && way == 3) {
      out_ += '\x8a', out_ += '\x07';
      Little(value, 7);
    } else {
      out_ += '\x8a', out_ += '\x08';
      Little(value, 8);  // below 0 where the top bit is set
    }
  }
  void Little(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i));
  }

  Rng rng_;
  int protocol_;
  bool is_wild_;  // refers back to what is gone, and does what no pickler does
  std::string out_;
  std::uint64_t memo_ = 0;
  std::uint64_t last_entry_ = 0;
  std::vector<std::pair<std::string, std::uint64_t>> texts_;
  std::vector<std::uint64_t> frames_, stacks_, entries_, pools_, lists_, unfinished_;
};

}  // namespace ashlar::formats

#endif  // ASHLAR_TESTS_ANALYZER_FORMATS_TORCH_WILD_PICKLE_H_
