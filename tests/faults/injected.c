/* Loaded with LD_PRELOAD: counts the calls of this process that touch files below $INJECTED_BELOW, and fails one of them.

   The fault is the system's, so Python, Rust and C++ meet it alike. injected_arm(n, v) fails call number n (from 0) with the error
   number v of those that the call can have. injected_calls() returns the number of calls since then, injected_name() the failed one. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)
#define HANDLES 4096

static const int OPEN[] = {EMFILE, EIO, ENOMEM, ENFILE}, CREATE[] = {ENOSPC, EMFILE, EDQUOT, EIO, ENOMEM, ENFILE};
static const int READ[] = {EIO, ENOMEM}, WRITE[] = {ENOSPC, EIO, EDQUOT}, MAP[] = {ENOMEM, ENFILE};
static int armed, variant, ours[HANDLES];
static long calls, at;
static char failed[PATH_MAX + 16];

void injected_arm(long number, int which) { armed = 1; calls = 0; at = number; variant = which; failed[0] = 0; }
void injected_disarm(void) { armed = 0; }
long injected_calls(void) { return calls; }
const char *injected_name(void) { return failed; }

static int below(const char *path) {
    static const char *root;
    if (!root) root = getenv("INJECTED_BELOW");
    return root && path && !strncmp(path, root, strlen(root));
}
static int is_ours(int handle) { return handle >= 0 && handle < HANDLES && ours[handle]; }
static int opened(int handle, int mine) {
    if (handle >= 0 && handle < HANDLES) ours[handle] = mine;
    return handle;
}
static int strike(int mine, const char *call, const char *path, const int *errors, int count) {
    if (!armed || !mine || calls++ != at) return 0;
    errno = errors[variant % count];
    int number = errno;
    snprintf(failed, sizeof failed, "%s %s (%s)", call, path ? path : "", strerror(number));
    errno = number;
    return 1;
}
#define STRIKE(mine, call, path, errors) strike(mine, call, path, errors, sizeof errors / sizeof *errors)

static int open_any(const char *name, int directory, const char *path, int flags, mode_t mode) {
    REAL(int, "openat", int, const char *, int, ...);
    int mine = below(path) || (path && path[0] != '/' && is_ours(directory));
    if (flags & O_CREAT ? STRIKE(mine, name, path, CREATE) : STRIKE(mine, name, path, OPEN)) return -1;
    return opened(real(directory, path, flags, mode), mine);
}
#define MODE mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
int open(const char *path, int flags, ...) { MODE return open_any("open", AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return open_any("open", AT_FDCWD, path, flags, mode); }
int openat(int directory, const char *path, int flags, ...) { MODE return open_any("open", directory, path, flags, mode); }
int openat64(int directory, const char *path, int flags, ...) { MODE return open_any("open", directory, path, flags, mode); }

static FILE *fopen_any(const char *path, const char *mode) {
    REAL(FILE *, "fopen", const char *, const char *);
    int mine = below(path);
    if (strchr(mode, 'r') ? STRIKE(mine, "fopen", path, OPEN) : STRIKE(mine, "fopen", path, CREATE)) return NULL;
    FILE *file = real(path, mode);
    if (file) opened(fileno(file), mine);
    return file;
}
FILE *fopen(const char *path, const char *mode) { return fopen_any(path, mode); }
FILE *fopen64(const char *path, const char *mode) { return fopen_any(path, mode); }
DIR *opendir(const char *path) {
    REAL(DIR *, "opendir", const char *);
    return STRIKE(below(path), "opendir", path, OPEN) ? NULL : real(path);
}
int close(int handle) { REAL(int, "close", int); opened(handle, 0); return real(handle); }

#define ON_HANDLE(type, name, errors, parameters, arguments, ...) \
    type name parameters { REAL(type, #name, __VA_ARGS__); return STRIKE(is_ours(handle), #name, NULL, errors) ? -1 : real arguments; }
ON_HANDLE(ssize_t, read, READ, (int handle, void *data, size_t size), (handle, data, size), int, void *, size_t)
ON_HANDLE(ssize_t, pread64, READ, (int handle, void *data, size_t size, off64_t where), (handle, data, size, where), int, void *, size_t, off64_t)
ON_HANDLE(ssize_t, write, WRITE, (int handle, const void *data, size_t size), (handle, data, size), int, const void *, size_t)
ON_HANDLE(ssize_t, writev, WRITE, (int handle, const struct iovec *data, int size), (handle, data, size), int, const struct iovec *, int)
ON_HANDLE(ssize_t, pwrite64, WRITE, (int handle, const void *data, size_t size, off64_t where), (handle, data, size, where), int, const void *, size_t, off64_t)
ON_HANDLE(int, fsync, WRITE, (int handle), (handle), int)
ON_HANDLE(int, fdatasync, WRITE, (int handle), (handle), int)
ON_HANDLE(int, ftruncate64, WRITE, (int handle, off64_t size), (handle, size), int, off64_t)

#define ON_PATH(name, parameters, arguments, path, ...) \
    int name parameters { REAL(int, #name, __VA_ARGS__); return STRIKE(below(path), #name, path, WRITE) ? -1 : real arguments; }
ON_PATH(mkdir, (const char *path, mode_t mode), (path, mode), path, const char *, mode_t)
ON_PATH(rename, (const char *from, const char *to), (from, to), to, const char *, const char *)
ON_PATH(link, (const char *from, const char *to), (from, to), to, const char *, const char *)
ON_PATH(linkat, (int here, const char *from, int there, const char *to, int flags), (here, from, there, to, flags), to, int, const char *, int, const char *, int)

static void *map_any(void *start, size_t size, int protection, int flags, int handle, off64_t where) {
    REAL(void *, "mmap64", void *, size_t, int, int, int, off64_t);
    return STRIKE(is_ours(handle), "mmap", NULL, MAP) ? MAP_FAILED : real(start, size, protection, flags, handle, where);
}
void *mmap(void *start, size_t size, int protection, int flags, int handle, off_t where) { return map_any(start, size, protection, flags, handle, where); }
void *mmap64(void *start, size_t size, int protection, int flags, int handle, off64_t where) { return map_any(start, size, protection, flags, handle, where); }
