/* Writers: see files.h.
 *
 * A writer writes a temporary file in the folder of the one it is for.  The file is made with the
 * first byte, when the script's part already knows that the writer is to be closed.  What is
 * written between begin() and finish() is a member: counted, summed, and deflated on request. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "frontend/files.h"
#include "frontend/functions.h"
#include "frontend/interrupt.h"

static const char writer_name[] = "tensor.writer";

enum { PREFIX = 1, VALUES = PREFIX }; /* user values */
enum { TRIES = 100 };                  /* names for the temporary file */

typedef struct tl_writer {
  bool open;
  int fd;
  char *target, *temporary; /* paths; the second is NULL where there is no such file */
  int64_t position;         /* bytes in the file */
  size_t used;              /* bytes that wait in `buffer` */
  bool counting, deflating; /* a member is being written */
  int64_t start, taken;     /* of the member: its position, its bytes before they are deflated */
  uLong sum;                /* their CRC-32 */
  z_stream stream;
  unsigned char buffer[TL_FILE_BUFFER]; /* of small pieces */
  unsigned char output[TL_FILE_BUFFER]; /* of zlib */
} tl_writer;

static tl_writer *check_writer(lua_State *L) {
  tl_writer *writer = luaL_checkudata(L, 1, writer_name);
  if (!writer->open) luaL_error(L, "the writer is closed");
  return writer;
}

/* How messages begin; the writer at index 1 keeps the string alive. */
static const char *prefix_of(lua_State *L) {
  lua_getiuservalue(L, 1, PREFIX);
  const char *prefix = lua_tostring(L, -1);
  lua_pop(L, 1);
  return prefix;
}

static int close_writer(lua_State *L) {
  tl_writer *writer = luaL_checkudata(L, 1, writer_name);
  if (writer->deflating) deflateEnd(&writer->stream);
  writer->deflating = false;
  if (writer->fd >= 0) close(writer->fd);
  writer->fd = -1;
  if (writer->temporary) unlink(writer->temporary);
  free(writer->temporary);
  free(writer->target);
  writer->temporary = writer->target = NULL;
  writer->open = false;
  return 0;
}

/* ---- bytes ---- */

static tl_status fail_to_write(tl_error *error) {
  return tl_error_set(error, TL_FAILED, "cannot be written: %s", strerror(errno));
}

/* A name that nobody has, beginning with a point: `.NAME.12ab34cd.tmp`. */
static tl_status open_temporary(tl_writer *writer, tl_error *error) {
  if (writer->fd >= 0) return TL_OK;
  const char *slash = strrchr(writer->target, '/'), *name = slash ? slash + 1 : writer->target;
  int folder = (int)(name - writer->target);
  size_t room = strlen(writer->target) + 32;
  char *path = malloc(room);
  if (!path) return tl_error_set(error, TL_NO_MEMORY, "wants too much memory");
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  unsigned mark = (unsigned)now.tv_nsec ^ (unsigned)getpid() << 16;
  for (unsigned i = 0; i < TRIES && writer->fd < 0; i++) {
    /* The longest name that a folder takes has no room for more. */
    snprintf(path, room, "%.*s.%.200s.%08x.tmp", folder, writer->target, name,
             (mark + i) * 2654435761u);
    writer->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (writer->fd < 0 && errno != EEXIST) break;
  }
  if (writer->fd >= 0) {
    writer->temporary = path;
    return TL_OK;
  }
  tl_status status = fail_to_write(error);
  free(path);
  return status;
}

/* write(), but a file that may not grow so large is an error: no signal that ends the program. */
static ssize_t write_quietly(int fd, const void *bytes, size_t count) {
  sigset_t excess, before;
  sigemptyset(&excess);
  sigaddset(&excess, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &excess, &before);
  ssize_t put = write(fd, bytes, count);
  int reason = errno;
  if (put < 0 && reason == EFBIG && !sigismember(&before, SIGXFSZ)) {
    sigtimedwait(&excess, NULL, &(struct timespec){0, 0});
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = reason;
  return put;
}

/* Into the file. */
static tl_status put_raw(tl_writer *writer, const void *from, size_t count, tl_error *error) {
  tl_status status = open_temporary(writer, error);
  if (status != TL_OK) return status;
  for (const char *bytes = from; count > 0;) {
    ssize_t put = write_quietly(writer->fd, bytes, count < TL_FILE_PIECE ? count : TL_FILE_PIECE);
    if (put < 0 && errno != EINTR) return fail_to_write(error);
    if (tl_interrupt_pending()) return tl_error_set(error, TL_INTERRUPTED, "interrupted");
    if (put <= 0) continue;
    writer->position += put;
    bytes += put;
    count -= (size_t)put;
  }
  return TL_OK;
}

/* Deflates at most TL_FILE_PIECE bytes; `flush` is zlib's. */
static tl_status deflate_piece(tl_writer *writer, const void *from, size_t count, int flush,
                               tl_error *error) {
  z_stream *stream = &writer->stream;
  stream->next_in = (z_const Bytef *)(uintptr_t)from;
  stream->avail_in = (uInt)count;
  do {
    stream->next_out = writer->output;
    stream->avail_out = TL_FILE_BUFFER;
    deflate(stream, flush); /* fails only when it is called wrongly */
    tl_status status = put_raw(writer, writer->output, TL_FILE_BUFFER - stream->avail_out, error);
    if (status != TL_OK) return status;
  } while (stream->avail_out == 0);
  return TL_OK;
}

/* Counts and sums a member's bytes on their way. */
static tl_status put(tl_writer *writer, const void *from, size_t count, tl_error *error) {
  if (!writer->counting) return put_raw(writer, from, count, error);
  for (const char *bytes = from; count > 0;) {
    size_t piece = count < TL_FILE_PIECE ? count : TL_FILE_PIECE;
    tl_status status = writer->deflating
                           ? deflate_piece(writer, bytes, piece, Z_NO_FLUSH, error)
                           : put_raw(writer, bytes, piece, error);
    if (status != TL_OK) return status;
    writer->sum = crc32_z(writer->sum, (const unsigned char *)bytes, piece);
    writer->taken += (int64_t)piece;
    bytes += piece;
    count -= piece;
  }
  return TL_OK;
}

static tl_status flush(tl_writer *writer, tl_error *error) {
  size_t count = writer->used;
  writer->used = 0;
  return put(writer, writer->buffer, count, error);
}

/* The same for what may be small. */
static tl_status put_block(tl_writer *writer, const void *bytes, size_t count, tl_error *error) {
  if (count > TL_FILE_BUFFER - writer->used) {
    tl_status status = flush(writer, error);
    if (status != TL_OK) return status;
  }
  if (count > TL_FILE_BUFFER) return put(writer, bytes, count, error);
  memcpy(writer->buffer + writer->used, bytes, count);
  writer->used += count;
  return TL_OK;
}

/* ---- tensors ---- */

/* The elements of a view in row-major order: dimensions from `block` on lie so in memory. */
typedef struct tl_walk {
  const tl_view *view;
  int block;
  size_t block_bytes, element;
} tl_walk;

static tl_walk walk_of(const tl_view *view) {
  tl_walk walk = {.view = view, .block = view->ndim};
  walk.element = walk.block_bytes = tl_dtype_size((tl_dtype)view->dtype);
  int64_t step = 1;
  while (walk.block > 0) {
    int d = walk.block - 1;
    if (view->shape[d] != 1 && view->stride[d] != step) break;
    step *= view->shape[d];
    walk.block = d;
  }
  walk.block_bytes = (size_t)step * walk.element;
  return walk;
}

/* As little-endian numbers: on a machine of the other kind in the buffer, turned round. */
static tl_status put_numbers(tl_writer *writer, const char *bytes, size_t count, size_t element,
                             tl_error *error) {
  if (element == 1 || tl_file_is_native(false)) return put_block(writer, bytes, count, error);
  tl_status status = TL_OK;
  for (size_t at = 0; at < count && status == TL_OK; at += element) {
    unsigned char number[16];
    memcpy(number, bytes + at, element);
    tl_file_swap(number, 1, element);
    status = put_block(writer, number, element, error);
  }
  return status;
}

static tl_status put_walk(tl_writer *writer, const tl_walk *walk, int dim, const char *at,
                          tl_error *error) {
  if (dim == walk->block) {
    return put_numbers(writer, at, walk->block_bytes, walk->element, error);
  }
  int64_t step = walk->view->stride[dim] * (int64_t)walk->element;
  tl_status status = TL_OK;
  for (int64_t i = 0; i < walk->view->shape[dim] && status == TL_OK; i++) {
    status = put_walk(writer, walk, dim + 1, at + i * step, error);
  }
  return status;
}

/* writer:tensor(x): its elements in row-major order, little-endian.  Waits for them. */
static int write_tensor(lua_State *L) {
  tl_writer *writer = check_writer(L);
  const char *prefix = prefix_of(L);
  const tl_tensor *x = tl_tensor_check(L, 2, prefix);
  const char *data = tl_tensor_read(L, x, prefix);
  if (tl_view_numel(&x->view) == 0) return 0;
  tl_walk walk = walk_of(&x->view);
  tl_error error;
  const char *first = data + (size_t)x->view.offset * walk.element;
  if (put_walk(writer, &walk, 0, first, &error) != TL_OK) return tl_file_raise(L, prefix, &error);
  return 0;
}

/* ---- other methods ---- */

/* writer:write(bytes) */
static int write_string(lua_State *L) {
  tl_writer *writer = check_writer(L);
  size_t count;
  const char *bytes = luaL_checklstring(L, 2, &count);
  tl_error error;
  if (put_block(writer, bytes, count, &error) != TL_OK) {
    return tl_file_raise(L, prefix_of(L), &error);
  }
  return 0;
}

/* writer:position(): bytes written so far, outside of members. */
static int position(lua_State *L) {
  const tl_writer *writer = check_writer(L);
  lua_pushinteger(L, writer->position + (int64_t)writer->used);
  return 1;
}

/* writer:begin(deflate) */
static int begin(lua_State *L) {
  tl_writer *writer = check_writer(L);
  tl_error error;
  luaL_argcheck(L, !writer->counting, 1, "in a member");
  if (flush(writer, &error) != TL_OK) return tl_file_raise(L, prefix_of(L), &error);
  if (lua_toboolean(L, 2)) {
    memset(&writer->stream, 0, sizeof writer->stream);
    if (deflateInit2(&writer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      return tl_fail(L, "%s: out of memory", prefix_of(L));
    }
    writer->deflating = true;
  }
  writer->counting = true;
  writer->start = writer->position;
  writer->taken = 0;
  writer->sum = crc32_z(0, NULL, 0);
  return 0;
}

/* writer:finish(): the member's CRC-32, its bytes in the file, and those before deflating. */
static int finish(lua_State *L) {
  tl_writer *writer = check_writer(L);
  tl_error error;
  luaL_argcheck(L, writer->counting, 1, "not in a member");
  tl_status status = flush(writer, &error);
  if (writer->deflating) {
    if (status == TL_OK) status = deflate_piece(writer, NULL, 0, Z_FINISH, &error);
    deflateEnd(&writer->stream);
  }
  writer->counting = writer->deflating = false;
  if (status != TL_OK) return tl_file_raise(L, prefix_of(L), &error);
  lua_pushinteger(L, (lua_Integer)writer->sum);
  lua_pushinteger(L, writer->position - writer->start);
  lua_pushinteger(L, writer->taken);
  return 3;
}

/* writer:patch(at, bytes): writes over what was written. */
static int patch(lua_State *L) {
  tl_writer *writer = check_writer(L);
  int64_t at = luaL_checkinteger(L, 2);
  size_t count;
  const char *bytes = luaL_checklstring(L, 3, &count);
  tl_error error;
  if (flush(writer, &error) != TL_OK) return tl_file_raise(L, prefix_of(L), &error);
  luaL_argcheck(L, at >= 0 && at + (int64_t)count <= writer->position, 2, "not written yet");
  ssize_t put = pwrite(writer->fd, bytes, count, (off_t)at);
  if (put < 0 || (size_t)put != count) {
    if (put >= 0) errno = EIO;
    fail_to_write(&error);
    return tl_file_raise(L, prefix_of(L), &error);
  }
  return 0;
}

/* The folder's entry is on the disk only when the folder is; a failure is no loss of what was. */
static void sync_folder(const char *path) {
  char folder[PATH_MAX];
  const char *slash = strrchr(path, '/');
  size_t length = slash ? (size_t)(slash - path) + 1 : 0;
  if (length >= sizeof folder) return;
  memcpy(folder, path, length);
  folder[length] = '\0';
  int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

/* writer:commit(): the file takes the place of the one it is for. */
static int commit(lua_State *L) {
  tl_writer *writer = check_writer(L);
  tl_error error;
  tl_status status = flush(writer, &error); /* opens it, if nothing else has */
  writer->open = false;
  if (status == TL_OK && fsync(writer->fd) != 0) status = fail_to_write(&error);
  if (status == TL_OK) {
    int closed = close(writer->fd);
    writer->fd = -1;
    if (closed != 0 || rename(writer->temporary, writer->target) != 0) {
      status = fail_to_write(&error);
    }
  }
  if (status != TL_OK) return tl_file_raise(L, prefix_of(L), &error);
  free(writer->temporary);
  writer->temporary = NULL;
  sync_folder(writer->target);
  return 0;
}

/* ---- opening ---- */

/* The file that is to be replaced: behind links, and a regular one if there is one. */
static tl_status find_target(tl_writer *writer, const char *path, tl_error *error) {
  struct stat status;
  writer->target = realpath(path, NULL);
  if (!writer->target) writer->target = strdup(path);
  if (!writer->target) return tl_error_set(error, TL_NO_MEMORY, "wants too much memory");
  if (stat(writer->target, &status) == 0 && !S_ISREG(status.st_mode)) {
    return tl_error_set(error, TL_FAILED, "is %s, not a file",
                        S_ISDIR(status.st_mode) ? "a folder" : "a device");
  }
  return TL_OK;
}

/* open_writer(prefix, path) */
int tl_file_open_writer(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"write", write_string}, {"tensor", write_tensor}, {"position", position}, {"begin", begin},
      {"finish", finish},      {"patch", patch},         {"commit", commit},     {NULL, NULL},
  };
  const char *prefix = luaL_checkstring(L, 1);
  const char *path = tl_file_check_path(L, 2, prefix);
  tl_writer *writer = tl_file_push(L, sizeof *writer, VALUES, writer_name, methods, close_writer);
  writer->fd = -1;
  writer->open = true;
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, PREFIX);
  tl_error error;
  if (find_target(writer, path, &error) != TL_OK) return tl_file_raise(L, prefix, &error);
  return 1;
}
