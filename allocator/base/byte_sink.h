// Where a writer puts its bytes, piece by piece, so that a large output is never whole in memory.
//
//   void WriteLines(ByteSink& out) { out.Append("a,b\n"); }
//   std::string text;
//   StringSink sink(&text);
//   WriteLines(sink);
//
// Append keeps no reference to the piece. A sink that cannot take more remembers that itself and drops what follows:
// its owner asks it at the end. Not thread-safe.
#ifndef ASHLAR_ALLOCATOR_BASE_BYTE_SINK_H_
#define ASHLAR_ALLOCATOR_BASE_BYTE_SINK_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ashlar {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void Append(absl::string_view bytes) = 0;
};

// Into a string of the caller's.
class StringSink : public ByteSink {
 public:
  explicit StringSink(std::string* text) : text_(text) {}
  void Append(absl::string_view bytes) override { text_->append(bytes.data(), bytes.size()); }

 private:
  std::string* text_;
};

}  // namespace ashlar

#endif  // ASHLAR_ALLOCATOR_BASE_BYTE_SINK_H_
