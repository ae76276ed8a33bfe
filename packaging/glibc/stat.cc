// stat and its like are functions of glibc since 2.33; before that they were macros over these.
#include <fcntl.h>
#include <sys/stat.h>

extern "C" {

int __xstat(int version, const char* path, struct stat* out);
int __lxstat(int version, const char* path, struct stat* out);
int __fxstat(int version, int file, struct stat* out);
int __fxstatat(int version, int folder, const char* path, struct stat* out, int flags);

#ifdef __x86_64__
static constexpr int kVersion = 1;  // _STAT_VER of the headers of glibc 2.32
#else
static constexpr int kVersion = 0;
#endif

int stat(const char* path, struct stat* out) { return __xstat(kVersion, path, out); }
int lstat(const char* path, struct stat* out) { return __lxstat(kVersion, path, out); }
int fstat(int file, struct stat* out) { return __fxstat(kVersion, file, out); }
int fstatat(int folder, const char* path, struct stat* out, int flags) {
  return __fxstatat(kVersion, folder, path, out, flags);
}

// On 64 bit the two structs are one.
static_assert(sizeof(struct stat) == sizeof(struct stat64));
int stat64(const char* path, struct stat64* out) __attribute__((alias("stat")));
int lstat64(const char* path, struct stat64* out) __attribute__((alias("lstat")));
int fstat64(int file, struct stat64* out) __attribute__((alias("fstat")));
int fstatat64(int folder, const char* path, struct stat64* out, int flags) __attribute__((alias("fstatat")));

}  // extern "C"
