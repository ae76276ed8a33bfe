// A sink that keeps nothing: with it the allocator is serial.
#ifndef ASHLAR_TESTS_ALLOCATOR_CORE_NO_SINK_H_
#define ASHLAR_TESTS_ALLOCATOR_CORE_NO_SINK_H_

#include <cstdint>

#include "allocator/trace/sink.h"

namespace ashlar::core {

class NoSink final : public trace::EventSink {
 public:
  void OnEvent(const trace::Event& /*event*/, std::uint64_t /*block_size_bytes*/) override {}
};

}  // namespace ashlar::core

#endif  // ASHLAR_TESTS_ALLOCATOR_CORE_NO_SINK_H_
