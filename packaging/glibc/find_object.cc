// _dl_find_object of glibc 2.35, by which GCC 12's unwinder finds the frames of a function: here by a walk over the
// loaded libraries, as the unwinder itself did before GCC 12.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

namespace {

struct Search {
  std::uintptr_t address;
  dl_find_object* out;
  link_map* map;  // of which the unwinder reads the address alone
};

bool Holds(const dl_phdr_info& object, std::uintptr_t address, const ElfW(Phdr) * &frames, const ElfW(Phdr) * &code) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object.dlpi_phdr[i];
    const std::uintptr_t begin = object.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && address >= begin && address < begin + part.p_memsz) code = &part;
    if (part.p_type == PT_GNU_EH_FRAME) frames = &part;
  }
  return code != nullptr && frames != nullptr;
}

int Look(dl_phdr_info* object, std::size_t /*size*/, void* search_of) {
  auto* search = static_cast<Search*>(search_of);
  const ElfW(Phdr)* frames = nullptr;
  const ElfW(Phdr)* code = nullptr;
  if (!Holds(*object, search->address, frames, code)) return 0;
  search->map->l_addr = object->dlpi_addr;
  const std::uintptr_t begin = object->dlpi_addr + code->p_vaddr;
  search->out->dlfo_flags = 0;
  search->out->dlfo_map_start = reinterpret_cast<void*>(begin);
  search->out->dlfo_map_end = reinterpret_cast<void*>(begin + code->p_memsz);
  search->out->dlfo_link_map = search->map;
  search->out->dlfo_eh_frame = reinterpret_cast<void*>(object->dlpi_addr + frames->p_vaddr);
  return 1;
}

}  // namespace

extern "C" int _dl_find_object(void* address, dl_find_object* out) noexcept {
  static thread_local link_map map;  // the caller reads it before this thread's next search
  Search search{reinterpret_cast<std::uintptr_t>(address), out, &map};
  return dl_iterate_phdr(Look, &search) == 1 ? 0 : -1;
}
