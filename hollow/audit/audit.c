// The auditor of the dynamic linker (rtld-audit(7), LD_AUDIT) by which a program with a CUDA runtime of its own runs
// over the hollow device: each public function of that runtime goes on in the function of the same name of the
// libraries that are preloaded: in their order that which serves, and the recorder's, before the hollow device's. The
// runtime itself never starts.
//
// An object is seen when it is mapped, before it is relocated and before its constructors: the program, the libraries
// that it needs, and those that it opens. What the auditor cannot serve it leaves as it is.
#include "hollow/audit/entries.h"
#include "hollow/audit/loaded.h"
#include "hollow/audit/redirect.h"
#include "hollow/audit/system.h"

#define ASHLAR_AUDIT __attribute__((visibility("default")))

enum { kMostWaiting = 64, kMostName = 128, kMostAbove = 2 };

// Whoever answers in place of a runtime: null until the dynamic linker has mapped it. Those above stand before the
// hollow device, in the order of LD_PRELOAD.
static const struct link_map* g_above[kMostAbove];
static size_t g_above_count;
static const struct link_map* g_hollow;

// Mapped before the hollow device: the program, and what was preloaded before it.
static const struct link_map* g_waiting[kMostWaiting];
static size_t g_waiting_count;

// Without a use here: NVIDIA's libraries that the hollow device stands in for, PyTorch's, which have no runtime of
// their own, and ours.
static int IsLeft(const char* file) {
  static const char* const kLeft[] = {
      "libashlar_",   "libcudart",     "libcublas",       "libcudnn",   "libcufft",        "libcurand",
      "libcusolver",  "libcusparse",   "libnccl",         "libnvrtc",   "libcupti",        "libcufile",
      "libnvblas",    "libnvJitLink",  "libnvshmem",      "libcuda.so", "libnvidia-ml.so", "libtorch.so",
      "libtorch_cpu", "libtorch_cuda", "libtorch_python", "libc10"};
  for (size_t i = 0; i < sizeof(kLeft) / sizeof(kLeft[0]); ++i) {
    if (HasPrefix(file, kLeft[i])) return 1;
  }
  return 0;
}

static int IsAnswered(const void* context, const char* name) {
  (void)context;
  return ExportOf(g_hollow, name) != 0;
}

// What answers as the runtime of that version does, where versions differ: ashlar_12_NAME.
static uint64_t AnswerOfVersion(const char* name, int major) {
  char versioned[kMostName] = "ashlar_00_";
  const size_t prefix = TextBytes(versioned), bytes = TextBytes(name) + 1;
  if (prefix + bytes > kMostName) return 0;
  versioned[7] = (char)('0' + major / 10);
  versioned[8] = (char)('0' + major % 10);
  CopyBytes(versioned + prefix, name, bytes);
  return ExportOf(g_hollow, versioned);
}

static uint64_t AnswerOf(const char* name, int major) {
  uint64_t answer = AnswerOfVersion(name, major);
  for (size_t i = 0; answer == 0 && i < g_above_count; ++i) answer = ExportOf(g_above[i], name);
  if (answer == 0) answer = ExportOf(g_hollow, name);
  return answer != 0 ? answer : ExportOf(g_hollow, "ashlar_not_supported");
}

static void Serve(const struct link_map* map, const LoadedFile* loaded) {
  static Redirection all[kMostEntries];
  const AnsweredNames names = {IsAnswered, NULL};
  const FoundEntries* found = FindEntries(&loaded->elf, &names);
  if (found->count == 0) return;
  size_t count = 0;
  for (size_t i = 0; i < found->count; ++i) {
    const uint64_t target = AnswerOf(found->entries[i].name, found->major);
    if (target != 0) all[count++] = (Redirection){found->entries + i, target};
  }
  if (Redirect(map, loaded, all, count)) return;
  Say(loaded->path,
      ": its CUDA runtime is linked in, and this system lets no code be changed, so that the hollow device "
      "does not serve it: link it with nvcc -cudart shared");
}

static void LookAt(const struct link_map* map) {
  static LoadedFile loaded;
  if (map->l_name != NULL && IsLeft(FileName(map->l_name))) return;
  if (!OpenLoaded(map, &loaded)) return;
  Serve(map, &loaded);
  CloseLoaded(&loaded);
}

static void LookAtWaiting(void) {
  for (size_t i = 0; i < g_waiting_count; ++i) LookAt(g_waiting[i]);
  g_waiting_count = 0;
}

ASHLAR_AUDIT unsigned la_version(unsigned version);
ASHLAR_AUDIT unsigned la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie);

// The linker's own number: what is used here is there since the first.
unsigned la_version(unsigned version) { return version; }

// 0: no binding of a symbol is told, and calls between libraries take their usual way.
unsigned la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
  (void)cookie;
  if (space != LM_ID_BASE) return 0;
  const char* file = map->l_name == NULL ? "" : FileName(map->l_name);
  if (IsSameText(file, "libashlar_record.so") || IsSameText(file, "libashlar_serve.so")) {
    if (g_above_count < kMostAbove) g_above[g_above_count++] = map;
  } else if (IsSameText(file, "libashlar_hollow.so")) {
    g_hollow = map;
    LookAtWaiting();
  } else if (g_hollow != NULL) {
    LookAt(map);
  } else if (g_waiting_count < kMostWaiting) {
    g_waiting[g_waiting_count++] = map;
  }
  return 0;
}
