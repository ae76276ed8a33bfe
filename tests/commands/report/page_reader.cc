#include "tests/commands/report/page_reader.h"

#include <zlib.h>

#include <cmath>
#include <cstring>

#include "gtest/gtest.h"

namespace ashlar::tests {
namespace {

std::string ElementText(const std::string& html, const std::string& id) {
  const std::string begin = "id=\"" + id + "\">";
  const std::size_t at = html.find(begin);
  if (at == std::string::npos) return "";
  EXPECT_EQ(html.find(begin, at + 1), std::string::npos) << id << " stands twice";
  const std::size_t from = at + begin.size();
  return html.substr(from, html.find("</script", from) - from);
}

std::string FromBase64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    const std::size_t digit = digits.find(c);
    EXPECT_NE(digit, std::string::npos) << "no base64: " << c;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count >= 8) out += static_cast<char>(bits >> (count -= 8) & 0xff);
  }
  return out;
}

std::string Unzipped(const std::string& packed) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string out;
  int state = Z_OK;
  while (state == Z_OK) {
    char chunk[65536];
    stream.next_out = reinterpret_cast<Bytef*>(chunk);
    stream.avail_out = sizeof(chunk);
    state = inflate(&stream, Z_NO_FLUSH);
    out.append(chunk, sizeof(chunk) - stream.avail_out);
  }
  EXPECT_EQ(state, Z_STREAM_END);
  inflateEnd(&stream);
  return out;
}

template <typename T>
std::vector<double> Elements(const std::string& bytes, std::size_t offset, std::size_t count) {
  EXPECT_EQ(offset % 8, 0U);
  EXPECT_LE(offset + count * sizeof(T), bytes.size());
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i) {
    T value{};
    std::memcpy(&value, bytes.data() + offset + i * sizeof(T), sizeof(T));
    out.push_back(static_cast<double>(value));
  }
  return out;
}

std::vector<double> Elements(const std::string& type, const std::string& bytes, std::size_t offset, std::size_t count) {
  if (type == "u8") return Elements<std::uint8_t>(bytes, offset, count);
  if (type == "u16") return Elements<std::uint16_t>(bytes, offset, count);
  if (type == "u32") return Elements<std::uint32_t>(bytes, offset, count);
  if (type == "i8") return Elements<std::int8_t>(bytes, offset, count);
  if (type == "i16") return Elements<std::int16_t>(bytes, offset, count);
  if (type == "i32") return Elements<std::int32_t>(bytes, offset, count);
  EXPECT_EQ(type, "f64");
  return Elements<double>(bytes, offset, count);
}

}  // namespace

PageReader::PageReader(const std::string& html) {
  index_ = nlohmann::json::parse(ElementText(html, "ashlar-document"), nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(index_.is_discarded());
  for (std::size_t i = 0;; ++i) {
    std::string text = ElementText(html, "ashlar-blob-" + std::to_string(i));
    if (text.empty()) break;
    packed_.push_back(std::move(text));
  }
}

const std::string& PageReader::Blob(std::size_t number) const {
  const auto [found, is_new] = unpacked_.try_emplace(number);
  if (is_new) found->second = Unzipped(FromBase64(packed_.at(number)));
  return found->second;
}

std::vector<std::int64_t> PageReader::Column(const nlohmann::json& run, const std::string& name) const {
  if (!run["columns"].contains(name)) return {};
  const nlohmann::json& column = run["columns"][name];
  const double base = column["base"];
  const double scale = column["scale"];
  const bool is_delta = column["delta"];
  std::vector<std::int64_t> out;
  double sum = 0;
  bool is_exact = true;
  for (const double raw : Elements(column["type"], Blob(column["blob"]), column["offset"], column["count"])) {
    sum = is_delta ? sum + raw : raw;
    const double value = base + scale * sum;
    is_exact = is_exact && value == std::floor(value) && std::abs(value) < 9007199254740992.0;
    out.push_back(static_cast<std::int64_t>(value));
  }
  EXPECT_TRUE(is_exact) << name;
  return out;
}

}  // namespace ashlar::tests
