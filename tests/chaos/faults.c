/* Preloaded into a process: the n-th open, write, fsync, connect, read or large allocation fails, once or from
   then on. Nothing counts before `faults_arm`. Standard error is spared: an error must be told somewhere. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NONE = -1, OPEN, WRITE, FSYNC, CONNECT, READ, ALLOCATE };
#define LARGE 65536

static int kind = NONE, lasting = 0;
static long nth = 0;
static atomic_long count = 0;

void faults_arm(int which, long n, int goes_on) {
    count = 0;
    nth = n;
    lasting = goes_on;
    kind = which;
}
long faults_count(void) { return count; }
void faults_disarm(void) { kind = NONE; }

static int fails(int which) {
    if (kind != which) return 0;
    long now = ++count;
    return lasting ? now >= nth : now == nth;
}

enum { FILE_, NETWORK, OTHER };
static int sort_of(int fd) {
    struct stat about;
    int before = errno, sort = OTHER;
    if (fstat(fd, &about) == 0) {
        if (S_ISREG(about.st_mode)) sort = FILE_;
        if (S_ISSOCK(about.st_mode)) {
            int domain = 0;
            socklen_t size = sizeof domain;
            if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain != AF_UNIX) sort = NETWORK;
        }
    }
    errno = before;
    return sort;
}

#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name); real; })
#define FAIL(why) do { errno = (why); return -1; } while (0)

#define OPENING(name)                                                            \
    int name(const char *path, int flags, ...) {                                 \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        if (fails(OPEN)) FAIL(EMFILE);                                           \
        return REAL(name)(path, flags, mode);                                    \
    }
OPENING(open)
OPENING(open64)
#define OPENING_AT(name)                                                         \
    int name(int folder, const char *path, int flags, ...) {                     \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        if (fails(OPEN)) FAIL(EMFILE);                                           \
        return REAL(name)(folder, path, flags, mode);                            \
    }
OPENING_AT(openat)
OPENING_AT(openat64)

#define IS_WRITTEN(fd) (kind == WRITE && (fd) != 2 && sort_of(fd) == FILE_ && fails(WRITE))
ssize_t write(int fd, const void *data, size_t size) {
    if (IS_WRITTEN(fd)) FAIL(ENOSPC);
    return REAL(write)(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    if (IS_WRITTEN(fd)) FAIL(ENOSPC);
    return REAL(pwrite)(fd, data, size, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    if (IS_WRITTEN(fd)) FAIL(ENOSPC);
    return REAL(pwrite64)(fd, data, size, at);
}
int fsync(int fd) {
    if (fails(FSYNC)) FAIL(EIO);
    return REAL(fsync)(fd);
}
int fdatasync(int fd) {
    if (fails(FSYNC)) FAIL(EIO);
    return REAL(fdatasync)(fd);
}
int connect(int fd, const struct sockaddr *address, socklen_t size) {
    if (kind == CONNECT && sort_of(fd) == NETWORK && fails(CONNECT)) FAIL(ENETUNREACH);
    return REAL(connect)(fd, address, size);
}

static int read_fails(int fd) {
    if (kind != READ) return 0;
    int sort = sort_of(fd);
    if (sort == OTHER || !fails(READ)) return 0;
    errno = sort == FILE_ ? EIO : ECONNRESET;
    return 1;
}
ssize_t read(int fd, void *data, size_t size) { return read_fails(fd) ? -1 : REAL(read)(fd, data, size); }
ssize_t pread(int fd, void *data, size_t size, off_t at) {
    return read_fails(fd) ? -1 : REAL(pread)(fd, data, size, at);
}
ssize_t pread64(int fd, void *data, size_t size, off64_t at) {
    return read_fails(fd) ? -1 : REAL(pread64)(fd, data, size, at);
}
ssize_t recv(int fd, void *data, size_t size, int flags) {
    return read_fails(fd) ? -1 : REAL(recv)(fd, data, size, flags);
}

extern void *__libc_malloc(size_t), *__libc_realloc(void *, size_t), *__libc_calloc(size_t, size_t);
#define TOO_MUCH(size) ((size) >= LARGE && kind == ALLOCATE && fails(ALLOCATE))
#define NO_MEMORY do { errno = ENOMEM; return NULL; } while (0)
void *malloc(size_t size) {
    if (TOO_MUCH(size)) NO_MEMORY;
    return __libc_malloc(size);
}
void *realloc(void *old, size_t size) {
    if (TOO_MUCH(size)) NO_MEMORY;
    return __libc_realloc(old, size);
}
void *calloc(size_t times, size_t size) {
    if (TOO_MUCH(times * size)) NO_MEMORY;
    return __libc_calloc(times, size);
}
