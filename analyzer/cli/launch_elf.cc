#include "analyzer/cli/launch_elf.h"

#include <elf.h>

#include <cstdint>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ashlar::cli {
namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kOwnMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kOwnMachine = EM_AARCH64;
#else
constexpr std::uint16_t kOwnMachine = EM_NONE;
#endif

class Elf64 {
 public:
  explicit Elf64(absl::string_view bytes) : bytes_(bytes), header_(At<Elf64_Ehdr>(0).value_or(Elf64_Ehdr{})) {}

  bool IsOfThisMachine() const { return header_.e_machine == kOwnMachine; }

  bool HasSegment(std::uint32_t type) const { return Segment(type).has_value(); }

  bool HasSection(absl::string_view name) const {
    const std::optional<Elf64_Shdr> names = Section(header_.e_shstrndx);
    if (!names.has_value()) return false;
    for (std::uint16_t i = 0; i < header_.e_shnum; ++i) {
      const std::optional<Elf64_Shdr> section = Section(i);
      if (section.has_value() && TextAt(names->sh_offset + section->sh_name) == name) return true;
    }
    return false;
  }

  std::vector<std::string> Needed() const {
    std::vector<std::string> out;
    const std::optional<Elf64_Phdr> dynamic = Segment(PT_DYNAMIC);
    if (!dynamic.has_value()) return out;
    std::vector<std::uint64_t> names;
    std::uint64_t strings = 0;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic->p_filesz; at += sizeof(Elf64_Dyn)) {
      const std::optional<Elf64_Dyn> entry = At<Elf64_Dyn>(dynamic->p_offset + at);
      if (!entry.has_value() || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_NEEDED) names.push_back(entry->d_un.d_val);
      if (entry->d_tag == DT_STRTAB) strings = OffsetOf(entry->d_un.d_ptr);
    }
    for (const std::uint64_t name : names) out.emplace_back(TextAt(strings + name));
    return out;
  }

 private:
  template <typename T>
  std::optional<T> At(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T out;
    std::memcpy(&out, bytes_.data() + offset, sizeof(T));
    return out;
  }

  absl::string_view TextAt(std::uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const absl::string_view rest = bytes_.substr(offset);
    return rest.substr(0, rest.find('\0'));
  }

  std::optional<Elf64_Shdr> Section(std::uint16_t index) const {
    if (index >= header_.e_shnum) return std::nullopt;
    return At<Elf64_Shdr>(header_.e_shoff + index * sizeof(Elf64_Shdr));
  }

  std::optional<Elf64_Phdr> SegmentAt(std::uint16_t index) const {
    return At<Elf64_Phdr>(header_.e_phoff + index * sizeof(Elf64_Phdr));
  }

  std::optional<Elf64_Phdr> Segment(std::uint32_t type) const {
    for (std::uint16_t i = 0; i < header_.e_phnum; ++i) {
      const std::optional<Elf64_Phdr> segment = SegmentAt(i);
      if (segment.has_value() && segment->p_type == type) return segment;
    }
    return std::nullopt;
  }

  // Where in the file a loaded address lies; the end of the file where it lies in none.
  std::uint64_t OffsetOf(std::uint64_t address) const {
    for (std::uint16_t i = 0; i < header_.e_phnum; ++i) {
      const std::optional<Elf64_Phdr> segment = SegmentAt(i);
      if (!segment.has_value() || segment->p_type != PT_LOAD || address < segment->p_vaddr) continue;
      if (address - segment->p_vaddr < segment->p_filesz) return segment->p_offset + (address - segment->p_vaddr);
    }
    return bytes_.size();
  }

  absl::string_view bytes_;
  Elf64_Ehdr header_;
};

}  // namespace

std::optional<ElfFacts> ReadElf(absl::string_view bytes) {
  if (!absl::StartsWith(bytes, ELFMAG) || bytes.size() <= EI_CLASS) return std::nullopt;
  ElfFacts out;
  out.is_64_bit = bytes[EI_CLASS] == ELFCLASS64;
  if (!out.is_64_bit) return out;
  const Elf64 file(bytes);
  out.is_of_this_machine = file.IsOfThisMachine();
  out.has_interpreter = file.HasSegment(PT_INTERP);
  out.has_device_code = file.HasSection(".nv_fatbin") || file.HasSection(".nvFatBinSegment");
  // A name of shared memory that every libcudart has in its text, seen in those of CUDA 12 and 13.
  // (Put together here, so that this program does not have it.)
  out.has_own_runtime = absl::StrContains(bytes, absl::StrCat("/cudart", ".shm.%"));
  out.needed = file.Needed();
  return out;
}

}  // namespace ashlar::cli
