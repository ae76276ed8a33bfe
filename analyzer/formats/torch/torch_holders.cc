#include "analyzer/formats/torch/torch_holders.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "analyzer/formats/torch/torch_record.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats {
namespace {

using pickle::Kind;
using pickle::Value;

constexpr int kNamesVersion = 1;

// A dictionary whose keys are texts: what is not there, or is of another kind, is as if nothing was said.
class Members {
 public:
  Members(const pickle::Document& document, const Value& dict) : document_(document), dict_(dict) {}

  const Value* Find(absl::string_view name) const {
    pickle::ItemCursor items = document_.Items(dict_);
    while (const Value* key = items.Next()) {
      const Value* value = items.Next();
      if (key->kind() == Kind::kString && document_.Text(*key) == name) return value;
    }
    return nullptr;
  }
  std::string Text(absl::string_view name) const {
    const Value* value = Find(name);
    return value != nullptr && value->kind() == Kind::kString ? ToUtf8(document_.Text(*value)) : "";
  }
  std::uint64_t Count(absl::string_view name) const {
    const Value* value = Find(name);
    const bool is_count = value != nullptr && value->kind() == Kind::kInt && value->payload() <= kMost;
    return is_count ? value->payload() : 0;
  }
  std::vector<std::string> Texts(absl::string_view name) const {
    const Value* value = Find(name);
    std::vector<std::string> out;
    if (value == nullptr || (value->kind() != Kind::kList && value->kind() != Kind::kTuple)) return out;
    pickle::ItemCursor items = document_.Items(*value);
    while (const Value* item = items.Next()) {
      if (item->kind() == Kind::kString) out.push_back(ToUtf8(document_.Text(*item)));
    }
    return out;
  }
  double Number(absl::string_view name) const {
    const Value* value = Find(name);
    if (value == nullptr) return 0;
    return value->kind() == Kind::kFloat ? value->AsDouble() : static_cast<double>(Count(name));
  }

 private:
  static constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const pickle::Document& document_;
  const Value& dict_;
};

trace::Holder HolderOf(const Members& members) {
  return {.kind = members.Text("kind"),
          .name = members.Text("name"),
          .file = members.Text("file"),
          .line = static_cast<std::int64_t>(members.Count("line")),
          .function = members.Text("function"),
          .nodes = members.Count("nodes"),
          .mode = members.Text("mode"),
          .container = members.Text("container"),
          .traits = members.Texts("traits"),
          .variables = members.Texts("variables")};
}

absl::Status NoHolder(const Value& value) {
  return absl::InvalidArgumentError(absl::StrCat("there is no such holder (byte ", value.offset(), ")"));
}

absl::Status ReadIndex(const Value& value, std::size_t holders, std::uint32_t* out) {
  if (value.kind() != Kind::kInt || value.payload() >= holders) return NoHolder(value);
  *out = static_cast<std::uint32_t>(value.payload());
  return absl::OkStatus();
}

// [address, owner, [others]]
absl::Status ReadBlock(const Value& value, std::size_t holders, TorchContext* context, trace::HeldBlock* out) {
  if (value.kind() != Kind::kList && value.kind() != Kind::kTuple) return ExpectKind(value, Kind::kList);
  pickle::ItemCursor items = context->document.Items(value);
  const Value* address = items.Next();
  const Value* owner = items.Next();
  const Value* others = items.Next();
  if (others == nullptr || (address->kind() != Kind::kInt && address->kind() != Kind::kUint)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected an address, an owner and other names (byte ", value.offset(), ")"));
  }
  out->address = address->payload();
  if (absl::Status status = ReadIndex(*owner, holders, &out->owner); !status.ok()) return status;
  if (others->kind() != Kind::kList) return ExpectKind(*others, Kind::kList);
  if (absl::Status status = context->Visit(*others); !status.ok()) return status;
  pickle::ItemCursor names = context->document.Items(*others);
  while (const Value* name = names.Next()) {
    if (absl::Status status = ReadIndex(*name, holders, &out->others.emplace_back()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadNames(const Value& names, TorchContext* context, trace::Holders* out) {
  if (names.kind() != Kind::kDict) return ExpectKind(names, Kind::kDict);
  const pickle::Document& document = context->document;
  const Members members(document, names);
  if (members.Count("version") != kNamesVersion) {
    return absl::InvalidArgumentError(absl::StrCat("version ", members.Count("version"), " is not known"));
  }
  out->when = members.Text("when");
  out->seconds = members.Number("seconds");
  out->objects = members.Count("objects");
  out->bound = members.Text("bound");
  for (const char* part : {"holders", "blocks"}) {
    const Value* list = members.Find(part);
    if (list == nullptr || list->kind() != Kind::kList) {
      return absl::InvalidArgumentError(absl::StrCat("it has no list '", part, "'"));
    }
    if (absl::Status status = context->Visit(*list); !status.ok()) return status;
  }
  pickle::ItemCursor holders = document.Items(*members.Find("holders"));
  while (const Value* holder = holders.Next()) {
    if (holder->kind() != Kind::kDict) return ExpectKind(*holder, Kind::kDict);
    out->holders.push_back(HolderOf(Members(document, *holder)));
  }
  pickle::ItemCursor blocks = document.Items(*members.Find("blocks"));
  while (const Value* block = blocks.Next()) {
    absl::Status status = ReadBlock(*block, out->holders.size(), context, &out->blocks.emplace_back());
    if (!status.ok()) return status;
  }
  std::sort(out->blocks.begin(), out->blocks.end(),
            [](const trace::HeldBlock& a, const trace::HeldBlock& b) { return a.address < b.address; });
  return absl::OkStatus();
}

struct Owned {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};

// Requested bytes of the live blocks by address.
absl::flat_hash_map<std::uint64_t, std::uint64_t> LiveBytes(const trace::Snapshot& snapshot) {
  absl::flat_hash_map<std::uint64_t, std::uint64_t> out;
  for (const trace::SnapshotSegment& segment : snapshot.segments) {
    for (const trace::SnapshotBlock& block : segment.blocks) {
      if (block.state == trace::BlockState::kLive)
        out[block.address] = block.requested_bytes.value_or(block.size_bytes);
    }
  }
  return out;
}

void WriteHolder(const trace::Holder& holder, const Owned& owned, pickle::PickleWriter& out) {
  const auto text = [&out](absl::string_view key, const std::string& value) {
    if (value.empty()) return;
    out.Text(key);
    out.Text(value);
  };
  const auto count = [&out](absl::string_view key, std::uint64_t value) {
    out.Text(key);
    out.Unsigned(value);
  };
  const auto texts = [&out](absl::string_view key, const std::vector<std::string>& values) {
    if (values.empty()) return;
    out.Text(key);
    out.BeginList();
    for (const std::string& value : values) out.Text(value);
    out.EndList();
  };
  out.BeginDict();
  text("kind", holder.kind);
  text("name", holder.name);
  count("bytes", owned.bytes);
  count("blocks", owned.blocks);
  text("file", holder.file);
  if (holder.line > 0) count("line", static_cast<std::uint64_t>(holder.line));
  text("function", holder.function);
  if (holder.nodes > 0) count("nodes", holder.nodes);
  text("mode", holder.mode);
  text("container", holder.container);
  texts("traits", holder.traits);
  texts("variables", holder.variables);
  out.EndDict();
}

}  // namespace

void ReadHolders(const Value& names, TorchContext* context, std::optional<trace::Holders>* out) {
  trace::Holders read;
  const absl::Status status = ReadNames(names, context, &read);
  if (status.ok()) {
    *out = std::move(read);
    return;
  }
  context->notes.Add("names", absl::StrCat("ashlar_names: ", status.message(), "; who holds the memory is not shown"));
}

void WriteHolders(const trace::Holders& names, const trace::Snapshot& snapshot, pickle::PickleWriter& out) {
  const auto live = LiveBytes(snapshot);
  std::vector<Owned> owned(names.holders.size());
  std::uint64_t total = 0;
  for (const auto& [address, bytes] : live) total += bytes;
  for (const trace::HeldBlock& block : names.blocks) {
    const auto found = live.find(block.address);
    if (found == live.end()) continue;
    owned[block.owner].bytes += found->second;
    ++owned[block.owner].blocks;
  }
  out.BeginDict();
  out.Text("version");
  out.Unsigned(kNamesVersion);
  out.Text("when");
  out.Text(names.when);
  out.Text("seconds");
  out.Float(names.seconds);
  out.Text("objects");
  out.Unsigned(names.objects);
  out.Text("bound");
  if (names.bound.empty()) {
    out.None();
  } else {
    out.Text(names.bound);
  }
  out.Text("live_bytes");
  out.Unsigned(total);
  out.Text("holders");
  out.BeginList();
  for (std::size_t i = 0; i < names.holders.size(); ++i) WriteHolder(names.holders[i], owned[i], out);
  out.EndList();
  out.Text("blocks");
  out.BeginList();
  for (const trace::HeldBlock& block : names.blocks) {
    out.BeginList();
    out.Unsigned(block.address);
    out.Unsigned(block.owner);
    out.BeginList();
    for (const std::uint32_t other : block.others) out.Unsigned(other);
    out.EndList();
    out.EndList();
  }
  out.EndList();
  out.EndDict();
}

}  // namespace ashlar::formats
