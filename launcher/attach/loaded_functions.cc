#include "launcher/attach/loaded_functions.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ashlar::cli {
namespace {

constexpr std::size_t kMostSymbolBytes = 256;
constexpr std::size_t kMostEntries = 1 << 20;  // of a table: beyond it the object is broken

template <typename T>
std::optional<T> Peek(int memory, std::uint64_t address) {
  T value{};
  const ssize_t got = pread(memory, &value, sizeof(value), static_cast<off_t>(address));
  return got == ssize_t{sizeof(value)} ? std::optional(value) : std::nullopt;
}

bool HasText(int memory, std::uint64_t address, absl::string_view text) {
  std::string there(std::min(text.size(), kMostSymbolBytes) + 1, '\1');
  const ssize_t got = pread(memory, there.data(), there.size(), static_cast<off_t>(address));
  return got == static_cast<ssize_t>(there.size()) && there == absl::StrCat(text, absl::string_view("\0", 1));
}

// The tables of an object's dynamic section, as addresses of the process.
struct DynamicTables {
  std::uint64_t bias = 0;
  std::uint64_t symbols = 0;
  std::uint64_t names = 0;
  std::uint64_t gnu_hash = 0;
};

std::uint64_t DynamicSection(int memory, const LoadedObject& object, const Elf64_Ehdr& header, std::uint64_t& bias) {
  std::uint64_t dynamic = 0;
  std::optional<std::uint64_t> first_load;
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = Peek<Elf64_Phdr>(memory, object.begin + header.e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment.has_value()) return 0;
    if (segment->p_type == PT_LOAD && !first_load.has_value()) first_load = segment->p_vaddr - segment->p_offset;
    if (segment->p_type == PT_DYNAMIC) dynamic = segment->p_vaddr;
  }
  if (dynamic == 0 || !first_load.has_value()) return 0;
  bias = object.begin - *first_load;
  return dynamic + bias;
}

std::optional<DynamicTables> TablesOf(int memory, const LoadedObject& object) {
  const auto header = Peek<Elf64_Ehdr>(memory, object.begin);
  if (!header.has_value() ||
      !absl::StartsWith(absl::string_view(reinterpret_cast<const char*>(header->e_ident), 4), ELFMAG) ||
      header->e_ident[EI_CLASS] != ELFCLASS64) {
    return std::nullopt;
  }
  DynamicTables out;
  const std::uint64_t dynamic = DynamicSection(memory, object, *header, out.bias);
  if (dynamic == 0) return std::nullopt;
  for (std::size_t i = 0; i < kMostEntries; ++i) {
    const auto entry = Peek<Elf64_Dyn>(memory, dynamic + i * sizeof(Elf64_Dyn));
    if (!entry.has_value() || entry->d_tag == DT_NULL) break;
    // glibc has made addresses of these; others leave them as they are in the file.
    const std::uint64_t at = entry->d_un.d_ptr < out.bias ? entry->d_un.d_ptr + out.bias : entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) out.symbols = at;
    if (entry->d_tag == DT_STRTAB) out.names = at;
    if (entry->d_tag == DT_GNU_HASH) out.gnu_hash = at;
  }
  const bool is_whole = out.symbols != 0 && out.names != 0 && out.gnu_hash != 0;
  return is_whole ? std::optional(out) : std::nullopt;
}

std::uint32_t GnuHash(absl::string_view name) {
  std::uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

std::optional<std::uint64_t> DefinedAt(int memory, const DynamicTables& tables, std::uint32_t index,
                                       absl::string_view name) {
  const auto symbol = Peek<Elf64_Sym>(memory, tables.symbols + index * sizeof(Elf64_Sym));
  if (!symbol.has_value() || symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) {
    return std::nullopt;
  }
  if (!HasText(memory, tables.names + symbol->st_name, name)) return std::nullopt;
  return tables.bias + symbol->st_value;
}

std::optional<std::uint64_t> FindIn(int memory, const DynamicTables& tables, absl::string_view name) {
  struct Header {
    std::uint32_t buckets, first_symbol, filter_words, filter_shift;
  };
  const auto header = Peek<Header>(memory, tables.gnu_hash);
  if (!header.has_value() || header->buckets == 0) return std::nullopt;
  const std::uint32_t hash = GnuHash(name);
  const std::uint64_t buckets = tables.gnu_hash + sizeof(Header) + std::uint64_t{header->filter_words} * 8;
  const std::uint64_t chain = buckets + std::uint64_t{header->buckets} * 4;
  const auto begin = Peek<std::uint32_t>(memory, buckets + std::uint64_t{hash % header->buckets} * 4);
  if (!begin.has_value() || *begin < header->first_symbol) return std::nullopt;
  for (std::uint32_t i = *begin; i - *begin < kMostEntries; ++i) {
    const auto link = Peek<std::uint32_t>(memory, chain + std::uint64_t{i - header->first_symbol} * 4);
    if (!link.has_value()) return std::nullopt;
    if ((*link | 1) == (hash | 1)) {
      if (const auto at = DefinedAt(memory, tables, i, name)) return at;
    }
    if ((*link & 1) != 0) return std::nullopt;
  }
  return std::nullopt;
}

// A line of /proc/PID/maps: "begin-end perms offset device inode   path".
struct MapLine {
  std::uint64_t begin = 0, end = 0, offset = 0;
  bool is_code = false;
  std::string path;
};

std::optional<MapLine> ReadMapLine(const std::string& line) {
  std::istringstream in(line);
  MapLine out;
  char dash = 0;
  std::string permissions, device, inode;
  if (!(in >> std::hex >> out.begin >> dash >> out.end >> permissions >> out.offset >> device >> inode))
    return std::nullopt;
  std::getline(in >> std::ws, out.path);
  out.is_code = permissions.find('x') != std::string::npos;
  return absl::StartsWith(out.path, "/") ? std::optional(std::move(out)) : std::nullopt;
}

std::vector<LoadedObject> ObjectsOf(std::int64_t pid) {
  std::vector<LoadedObject> out;
  std::ifstream maps(absl::StrCat("/proc/", pid, "/maps"));
  for (std::string line; std::getline(maps, line);) {
    std::optional<MapLine> map = ReadMapLine(line);
    if (!map.has_value()) continue;
    if (map->offset == 0) out.push_back({.path = map->path, .begin = map->begin});
    if (map->is_code && !out.empty() && out.back().path == map->path) {
      out.back().code_begin = map->begin;
      out.back().code_end = map->end;
    }
  }
  return out;
}

std::string StatusLine(std::int64_t pid, absl::string_view key) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(status, line);) {
    if (absl::StartsWith(line, key))
      return std::string(absl::StripAsciiWhitespace(absl::string_view(line).substr(key.size())));
  }
  return "";
}

int PtraceScope() {
  std::ifstream in("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  in >> scope;
  return scope;
}

}  // namespace

absl::Status NotAllowed(std::int64_t pid) {
  if (const std::string tracer = StatusLine(pid, "TracerPid:"); !tracer.empty() && tracer != "0") {
    return absl::PermissionDeniedError(
        absl::StrCat("process ", pid, " is held by process ", tracer, ", a debugger or tracer: end that first"));
  }
  const std::vector<std::string> users = absl::StrSplit(StatusLine(pid, "Uid:"), '\t');
  if (geteuid() != 0 && !users.empty() && users[0] != absl::StrCat(geteuid())) {
    return absl::PermissionDeniedError(
        absl::StrCat("process ", pid, " is of user ", users[0], ": run ashlar attach as that user, or with sudo"));
  }
  if (const int scope = PtraceScope(); scope > 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        "process ", pid, ": the system lets no process look into another (kernel.yama.ptrace_scope is ", scope, ")",
        scope < 3 ? ": run ashlar attach with sudo, or sysctl kernel.yama.ptrace_scope=0" : ""));
  }
  return absl::PermissionDeniedError(absl::StrCat(
      "process ", pid,
      ": the system does not let this process look into it: in a container it takes --cap-add=SYS_PTRACE"));
}

absl::StatusOr<LoadedFunctions> LoadedFunctions::Of(std::int64_t pid) {
  const int memory = open(absl::StrCat("/proc/", pid, "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  if (memory < 0) {
    if (errno == ENOENT) return absl::NotFoundError(absl::StrCat("there is no process ", pid));
    return NotAllowed(pid);
  }
  LoadedFunctions out(memory, ObjectsOf(pid));
  if (out.objects_.empty()) return NotAllowed(pid);
  return out;
}

LoadedFunctions::LoadedFunctions(LoadedFunctions&& other) noexcept
    : memory_(std::exchange(other.memory_, -1)), objects_(std::move(other.objects_)) {}

LoadedFunctions::~LoadedFunctions() {
  if (memory_ >= 0) close(memory_);
}

bool LoadedFunctions::HasLoaded(absl::string_view name_begins) const {
  return std::any_of(objects_.begin(), objects_.end(), [&](const LoadedObject& one) {
    return absl::StartsWith(absl::string_view(one.path).substr(one.path.rfind('/') + 1), name_begins);
  });
}

std::optional<std::uint64_t> LoadedFunctions::Find(absl::string_view name) const {
  for (const LoadedObject& object : objects_) {
    const std::optional<DynamicTables> tables = TablesOf(memory_, object);
    if (!tables.has_value()) continue;
    if (const auto at = FindIn(memory_, *tables, name)) return at;
  }
  return std::nullopt;
}

const LoadedObject* LoadedFunctions::CodeAt(std::uint64_t address) const {
  const auto found = std::find_if(objects_.begin(), objects_.end(), [address](const LoadedObject& one) {
    return one.code_begin <= address && address < one.code_end;
  });
  return found == objects_.end() ? nullptr : &*found;
}

}  // namespace ashlar::cli
