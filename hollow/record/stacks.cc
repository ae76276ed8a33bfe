#include "hollow/record/stacks.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unwind.h>

#include <cstddef>
#include <cstring>
#include <string_view>

#include "allocator/base/fingerprint.h"
#include "hollow/record/log.h"

namespace ashlar::record {
namespace {

// A file's bytes while it lives; none where it cannot be read.
class FileBytes {
 public:
  explicit FileBytes(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat facts {};
    if (file >= 0 && fstat(file, &facts) == 0 && facts.st_size > 0) {
      void* at = mmap(nullptr, static_cast<std::size_t>(facts.st_size), PROT_READ, MAP_PRIVATE, file, 0);
      if (at != MAP_FAILED) data_ = static_cast<const char*>(at);
      if (at != MAP_FAILED) size_ = static_cast<std::size_t>(facts.st_size);
    }
    if (file >= 0) close(file);
  }
  ~FileBytes() {
    if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
  }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  // `count` values from an offset on; null where the file is too short.
  template <typename Value>
  const Value* At(std::uint64_t offset, std::uint64_t count = 1) const {
    if (offset > size_ || count > (size_ - offset) / sizeof(Value)) return nullptr;
    return reinterpret_cast<const Value*>(data_ + offset);
  }
  std::uint64_t size() const { return size_; }

 private:
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

std::string FindIn(const FileBytes& file, const ElfW(Shdr) & table, const ElfW(Shdr) & texts, std::uint64_t offset) {
  const std::uint64_t count = table.sh_size / sizeof(ElfW(Sym));
  const auto* symbols = file.At<ElfW(Sym)>(table.sh_offset, count);
  const char* names = file.At<char>(texts.sh_offset, texts.sh_size);
  if (symbols == nullptr || names == nullptr) return "";
  for (std::uint64_t i = 0; i < count; ++i) {
    const ElfW(Sym)& symbol = symbols[i];
    if ((symbol.st_info & 0xf) != STT_FUNC || symbol.st_name >= texts.sh_size) continue;
    if (offset < symbol.st_value || offset - symbol.st_value >= symbol.st_size) continue;
    return {names + symbol.st_name, strnlen(names + symbol.st_name, texts.sh_size - symbol.st_name)};
  }
  return "";
}

// Of .symtab, the symbols that a library does not export.
std::string OwnSymbol(const char* path, std::uint64_t offset) {
  const FileBytes file(path);
  const auto* head = file.At<ElfW(Ehdr)>(0);
  if (head == nullptr || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return "";
  const auto* sections = file.At<ElfW(Shdr)>(head->e_shoff, head->e_shnum);
  if (sections == nullptr) return "";
  for (unsigned i = 0; i < head->e_shnum; ++i) {
    const bool is_table = sections[i].sh_type == SHT_SYMTAB && sections[i].sh_link < head->e_shnum;
    if (is_table) return FindIn(file, sections[i], sections[sections[i].sh_link], offset);
  }
  return "";
}

}  // namespace

CodeName NameOf(const void* return_address) {
  const auto address = reinterpret_cast<std::uintptr_t>(return_address) - 1;
  Dl_info info = {};
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<void*>(address), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) {
    return {"", address, ""};
  }
  // The program itself has no name there; its file is always behind this one.
  const bool is_program = map->l_name == nullptr || *map->l_name == '\0';
  CodeName out{is_program ? "/proc/self/exe" : map->l_name, address - map->l_addr, ""};
  out.function = info.dli_sname != nullptr ? info.dli_sname : OwnSymbol(out.file.c_str(), out.offset);
  if (!is_program) return out;
  char path[4096];
  const ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path));
  if (bytes > 0) out.file.assign(path, static_cast<std::size_t>(bytes));
  return out;
}

namespace {

constexpr std::size_t kMostNameBytes = 4000;  // of templates; a row has room for the path too

struct Walk {
  const void* caller;
  Stack* stack;
  bool is_past_ours;
};

_Unwind_Reason_Code TakeFrame(_Unwind_Context* context, void* data) {
  auto* walk = static_cast<Walk*>(data);
  const auto* address = reinterpret_cast<const void*>(_Unwind_GetIP(context));
  if (address == nullptr) return _URC_END_OF_STACK;
  walk->is_past_ours = walk->is_past_ours || address == walk->caller;
  if (walk->is_past_ours) walk->stack->frames[walk->stack->count++] = address;
  return walk->stack->count == Stack::kMostFrames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

std::uint64_t KeyOf(const Stack& stack) {
  Fingerprint out;
  for (std::size_t i = 0; i < stack.count; ++i) out.Add(reinterpret_cast<std::uint64_t>(stack.frames[i]));
  return out.value();
}

}  // namespace

Stack CaptureStack(const void* caller) {
  Stack out;
  Walk walk{caller, &out, false};
  _Unwind_Backtrace(TakeFrame, &walk);
  if (out.count == 0) out.frames[out.count++] = caller;  // the walk lost its way
  return out;
}

std::optional<std::uint64_t> Stacks::Find(const Stack& stack) const {
  const auto it = stacks_.find(KeyOf(stack));
  return it == stacks_.end() ? std::nullopt : std::optional(it->second);
}

std::vector<const void*> Stacks::UnknownFrames(const Stack& stack) const {
  std::vector<const void*> out;
  for (std::size_t i = 0; i < stack.count; ++i) {
    if (frames_.count(stack.frames[i]) == 0) out.push_back(stack.frames[i]);
  }
  return out;
}

std::uint64_t Stacks::Add(const Stack& stack, const std::vector<const void*>& unknown,
                          const std::vector<CodeName>& names, Log& log) {
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    const auto [frame, is_new] = frames_.try_emplace(unknown[i], Frame{frames_.size()});
    if (!is_new) continue;
    frame->second.file = *files_.insert(names[i].file).first;
    const std::string_view function = names[i].function.empty() ? "-" : std::string_view(names[i].function);
    LogRow row('f');
    row.Decimal(frame->second.number).Hex(names[i].offset).Text(function.substr(0, kMostNameBytes)).Text(names[i].file);
    log.Append(row.Finish());
  }
  const auto [number, is_new] = stacks_.try_emplace(KeyOf(stack), stacks_.size());
  if (!is_new) return number->second;
  callers_.push_back(frames_.at(stack.frames[0]).file);
  LogRow row('s');
  row.Decimal(number->second);
  for (std::size_t i = 0; i < stack.count; ++i) row.Decimal(frames_.at(stack.frames[i]).number);
  log.Append(row.Finish());
  return number->second;
}

std::string_view Stacks::FileOf(std::uint64_t number) const {
  return number < callers_.size() ? callers_[number] : std::string_view();
}

}  // namespace ashlar::record
