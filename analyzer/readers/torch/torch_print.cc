#include "analyzer/readers/torch/torch_print.h"

#include <charconv>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "analyzer/readers/utf8.h"

namespace ashlar::readers {
namespace {

using pickle::Kind;
using pickle::Value;

// A container inside a setting's value is printed this deep; no known setting needs more than one level.
constexpr int kMaxPrintDepth = 3;
constexpr std::size_t kMaxPrintBytes = 64 * 1024;

// The shortest text that reads back as the same number, always recognisable as a float.
std::string PrintFloat(double value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  std::string text(buffer, end);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

void Print(const pickle::Document& document, const Value& value, int depth, std::string* out);

// A dict prints as "1:0,2:4", a list as "1,2".
void PrintItems(const pickle::Document& document, const Value& value, int depth, std::string* out) {
  pickle::ItemCursor items = document.Items(value);
  const bool is_dict = value.kind() == Kind::kDict;
  for (std::size_t i = 0; const Value* item = items.Next(); ++i) {
    if (out->size() > kMaxPrintBytes) return;
    if (i > 0) out->push_back(is_dict && i % 2 == 1 ? ':' : ',');
    Print(document, *item, depth + 1, out);
  }
}

void Print(const pickle::Document& document, const Value& value, int depth, std::string* out) {
  switch (value.kind()) {
    case Kind::kBool:
      return absl::StrAppend(out, value.payload() != 0 ? "True" : "False");
    case Kind::kInt:
      return absl::StrAppend(out, static_cast<std::int64_t>(value.payload()));
    case Kind::kUint:
      return absl::StrAppend(out, value.payload());
    case Kind::kFloat:
      return absl::StrAppend(out, PrintFloat(value.AsDouble()));
    case Kind::kString:
      return absl::StrAppend(out, ToUtf8(document.Text(value).substr(0, kMaxPrintBytes)));
    case Kind::kNone:
      return absl::StrAppend(out, "None");
    case Kind::kTuple:
    case Kind::kList:
    case Kind::kDict:
    case Kind::kSet:
      if (depth < kMaxPrintDepth) return PrintItems(document, value, depth, out);
      return absl::StrAppend(out, "...");
    case Kind::kBytes:
    case Kind::kBigInt:
      return absl::StrAppend(out, "<", pickle::KindName(value.kind()), ">");
  }
}

}  // namespace

std::string PrintValue(const pickle::Document& document, const Value& value) {
  std::string out;
  Print(document, value, 0, &out);
  return out;
}

}  // namespace ashlar::readers
