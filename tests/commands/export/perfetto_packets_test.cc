#include "commands/export/perfetto_packets.h"

#include <string>

#include "gtest/gtest.h"

namespace ashlar::exports {
namespace {

// What the classes of the package perfetto write for the same message.
TEST(PerfettoPacketsTest, BytesOfACounter) {
  std::string bytes;
  StringSink sink(&bytes);
  PerfettoPackets packets(sink);
  packets.Counter(7, 1'000, 300);
  //  packet {  timestamp: 1000  trusted_packet_sequence_id: 1
  //    track_event { type: TYPE_COUNTER(4)  track_uuid: 7  counter_value: 300 } }
  EXPECT_EQ(bytes,
            "\x0a\x0f"
            "\x40\xe8\x07"
            "\x50\x01"
            "\x5a\x08"
            "\x48\x04"
            "\x58\x07"
            "\xf0\x01\xac\x02");
}

TEST(PerfettoPacketsTest, LongNumbersAndTexts) {
  ProtobufMessage message;
  message.Number(1, ~std::uint64_t{0});
  EXPECT_EQ(message.bytes(), "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  message.Clear();
  message.Text(16, std::string(200, 'x'));
  EXPECT_EQ(message.bytes().substr(0, 4), "\x82\x01\xc8\x01");
  EXPECT_EQ(message.bytes().size(), 204u);
}

}  // namespace
}  // namespace ashlar::exports
