/* Readers: see files.h.
 *
 * A reader has a window, at first all of the file: the bytes that are still to come from it.  A
 * window may be deflated; then it has been said how many bytes come out of it, and no more do.
 * Nothing is allocated for bytes that are not known to be there, or, deflated, that cannot be. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "frontend/arguments.h"
#include "frontend/files.h"
#include "frontend/functions.h"
#include "frontend/interrupt.h"

static const char reader_name[] = "tensor.reader";

enum { PREFIX = 1, TEXT, VALUES = TEXT }; /* user values */

/* Two bits of deflated data give at most 258 bytes. */
enum { MOST_INFLATED = 1032 };

typedef struct tl_reader {
  bool open;
  int fd;           /* or -1: */
  const char *text; /* the bytes of the string that is the user value TEXT */
  int64_t size;     /* of all of it */
  int64_t at, end;  /* what is still to be read for the window */
  int64_t left;     /* what is still to come out of it */
  bool inflating;
  bool counting;    /* the sum below is wanted */
  uLong sum;        /* CRC-32 of what came out of the window */
  z_stream stream;
  unsigned char *buffer;
} tl_reader;

static tl_reader *check_reader(lua_State *L) {
  tl_reader *reader = luaL_checkudata(L, 1, reader_name);
  if (!reader->open) luaL_error(L, "the reader is closed");
  return reader;
}

/* How messages begin; the reader at index 1 keeps the string alive. */
static const char *prefix_of(lua_State *L) {
  lua_getiuservalue(L, 1, PREFIX);
  const char *prefix = lua_tostring(L, -1);
  lua_pop(L, 1);
  return prefix;
}

static void end_window(tl_reader *reader) {
  if (reader->inflating) inflateEnd(&reader->stream);
  reader->inflating = false;
}

static int close_reader(lua_State *L) {
  tl_reader *reader = luaL_checkudata(L, 1, reader_name);
  end_window(reader);
  free(reader->buffer);
  reader->buffer = NULL;
  if (reader->open && reader->fd >= 0) close(reader->fd);
  reader->open = false;
  return 0;
}

/* ---- bytes ---- */

/* Reads `count` bytes at `at`, which are known to be within the size. */
static tl_status read_source(tl_reader *reader, void *to, size_t count, tl_error *error) {
  if (reader->fd < 0) {
    memcpy(to, reader->text + reader->at, count);
    reader->at += (int64_t)count;
    return TL_OK;
  }
  for (char *bytes = to; count > 0;) {
    ssize_t got = pread(reader->fd, bytes, count, (off_t)reader->at);
    if (got < 0 && errno == EINTR) got = 0;
    else if (got < 0) return tl_error_set(error, TL_FAILED, "cannot be read: %s", strerror(errno));
    else if (got == 0) return tl_error_set(error, TL_FAILED, "became shorter while it was read");
    if (tl_interrupt_pending()) return tl_error_set(error, TL_INTERRUPTED, "interrupted");
    reader->at += got;
    bytes += got;
    count -= (size_t)got;
  }
  return TL_OK;
}

/* Puts the next compressed bytes before zlib. */
static tl_status refill(tl_reader *reader, tl_error *error) {
  int64_t count = reader->end - reader->at;
  if (reader->stream.avail_in > 0 || count == 0) return TL_OK;
  if (count > TL_FILE_BUFFER) count = TL_FILE_BUFFER;
  tl_status status = read_source(reader, reader->buffer, (size_t)count, error);
  reader->stream.next_in = reader->buffer;
  reader->stream.avail_in = status == TL_OK ? (uInt)count : 0;
  return status;
}

/* Inflates `count` bytes, at most TL_FILE_PIECE. */
static tl_status inflate_piece(tl_reader *reader, void *to, size_t count, tl_error *error) {
  reader->stream.next_out = to;
  reader->stream.avail_out = (uInt)count;
  while (reader->stream.avail_out > 0) {
    tl_status status = refill(reader, error);
    if (status != TL_OK) return status;
    int result = inflate(&reader->stream, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) return tl_error_set(error, TL_NO_MEMORY, "wants too much memory");
    if (result == Z_STREAM_END && reader->stream.avail_out > 0) {
      return tl_error_set(error, TL_FAILED, "is cut short: less is deflated in it than it says");
    }
    if (result != Z_OK && result != Z_STREAM_END) {
      return tl_error_set(error, TL_FAILED, "is damaged: its deflated data cannot be inflated");
    }
  }
  return TL_OK;
}

/* Takes `count` bytes, which are not more than are left, out of the window. */
static tl_status take(tl_reader *reader, void *to, size_t count, tl_error *error) {
  for (char *bytes = to; count > 0;) {
    size_t piece = count < TL_FILE_PIECE ? count : TL_FILE_PIECE;
    tl_status status = reader->inflating ? inflate_piece(reader, bytes, piece, error)
                                         : read_source(reader, bytes, piece, error);
    if (status != TL_OK) return status;
    if (reader->counting) reader->sum = crc32_z(reader->sum, (unsigned char *)bytes, piece);
    reader->left -= (int64_t)piece;
    bytes += piece;
    count -= piece;
  }
  return TL_OK;
}

/* ---- methods ---- */

static int size(lua_State *L) {
  lua_pushinteger(L, check_reader(L)->size);
  return 1;
}

static int left(lua_State *L) {
  lua_pushinteger(L, check_reader(L)->left);
  return 1;
}

/* reader:fail(text) raises what is wrong with the file. */
static int fail(lua_State *L) {
  check_reader(L);
  const char *text = luaL_checkstring(L, 2);
  return tl_fail(L, "%s %s", prefix_of(L), text);
}

/* reader:rename(prefix): how messages begin from now on. */
static int rename_reader(lua_State *L) {
  check_reader(L);
  luaL_checkstring(L, 2);
  lua_settop(L, 2);
  lua_setiuservalue(L, 1, PREFIX);
  return 0;
}

static int refuse_short(lua_State *L, const tl_reader *reader, const char *what, int64_t wanted) {
  return tl_fail(L, "%s is cut short: %s should have %I bytes, and %I are there", prefix_of(L),
                 what, (LUAI_UACINT)wanted, (LUAI_UACINT)reader->left);
}

/* reader:read(count, what): the next bytes, as a string; `what` they are, for the message. */
static int read_string(lua_State *L) {
  tl_reader *reader = check_reader(L);
  int64_t count = luaL_checkinteger(L, 2);
  const char *what = luaL_checkstring(L, 3);
  luaL_argcheck(L, count >= 0, 2, "negative");
  if (count > reader->left) return refuse_short(L, reader, what, count);
  luaL_Buffer buffer;
  char *bytes = luaL_buffinitsize(L, &buffer, (size_t)count);
  tl_error error;
  if (take(reader, bytes, (size_t)count, &error) != TL_OK) {
    return tl_file_raise(L, prefix_of(L), &error);
  }
  luaL_pushresultsize(&buffer, (size_t)count);
  return 1;
}

/* Any byte but 0 is true; C has only 1. */
static void make_bool(unsigned char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) bytes[i] = bytes[i] != 0;
}

/* reader:tensor(dtype, big, shape): a tensor of the next bytes; `big`-endian ones. */
static int read_tensor(lua_State *L) {
  tl_reader *reader = check_reader(L);
  const char *prefix = prefix_of(L);
  int found = tl_dtype_find(luaL_checkstring(L, 2));
  luaL_argcheck(L, found >= 0, 2, "no dtype");
  tl_dtype dtype = (tl_dtype)found;
  luaL_checktype(L, 4, LUA_TTABLE);
  lua_settop(L, 4);
  tl_view view;
  tl_error error;
  tl_check_shape(L, 4, prefix, dtype, &view);
  size_t count = (size_t)tl_view_numel(&view), element = tl_dtype_size(dtype);
  if ((int64_t)(count * element) > reader->left) {
    return refuse_short(L, reader, "its data", (int64_t)(count * element));
  }
  tl_context *context = tl_context_of(L);
  tl_tensor *tensor = tl_tensor_new(L, &view, prefix);
  void *data = tl_engine_fill(context->engine, tensor->storage);
  tl_status status = data ? take(reader, data, count * element, &error)
                          : tl_error_set(&error, TL_NO_MEMORY, "wants too much memory");
  if (status != TL_OK) {
    tl_tensor_drop(context, tensor);
    return tl_file_raise(L, prefix, &error);
  }
  if (element > 1 && !tl_file_is_native(lua_toboolean(L, 3))) tl_file_swap(data, count, element);
  if (found == tl_dtype_find("bool")) make_bool(data, count);
  return 1;
}

/* reader:enter(at, length [, inflated]): the window becomes `length` bytes from `at` on, deflated
 * when it is said to how many they inflate.  False when they are not there, or cannot be that. */
static int enter(lua_State *L) {
  tl_reader *reader = check_reader(L);
  int64_t at = luaL_checkinteger(L, 2), length = luaL_checkinteger(L, 3);
  bool deflated = !lua_isnoneornil(L, 4);
  int64_t inflated = deflated ? luaL_checkinteger(L, 4) : length;
  end_window(reader);
  bool fits = at >= 0 && at <= reader->size && length >= 0 && length <= reader->size - at &&
              inflated >= 0 && (!deflated || inflated / MOST_INFLATED <= length);
  if (fits && deflated) {
    if (!reader->buffer) reader->buffer = malloc(TL_FILE_BUFFER);
    memset(&reader->stream, 0, sizeof reader->stream);
    if (!reader->buffer || inflateInit2(&reader->stream, -MAX_WBITS) != Z_OK) {
      return tl_fail(L, "%s: out of memory", prefix_of(L));
    }
    reader->inflating = true;
  }
  reader->at = fits ? at : reader->size;
  reader->end = reader->at + (fits ? length : 0);
  reader->left = fits ? inflated : 0;
  reader->counting = true;
  reader->sum = crc32_z(0, NULL, 0);
  lua_pushboolean(L, fits);
  return 1;
}

/* What a deflated window still holds once all that should come out of it has. */
static tl_status finish_inflating(tl_reader *reader, tl_error *error) {
  unsigned char more;
  int result = Z_OK;
  reader->stream.next_out = &more;
  reader->stream.avail_out = 1;
  while (result == Z_OK && reader->stream.avail_out > 0) {
    tl_status status = refill(reader, error);
    if (status != TL_OK) return status;
    result = inflate(&reader->stream, Z_NO_FLUSH);
  }
  if (reader->stream.avail_out == 0) {
    return tl_error_set(error, TL_FAILED, "inflates to more bytes than it says");
  }
  if (result != Z_STREAM_END || reader->stream.avail_in > 0 || reader->at < reader->end) {
    return tl_error_set(error, TL_FAILED, "is damaged: its deflated data ends elsewhere");
  }
  return TL_OK;
}

/* reader:leave(): asks that everything has been taken out of the window, and gives its CRC-32. */
static int leave(lua_State *L) {
  tl_reader *reader = check_reader(L);
  tl_error error;
  if (reader->left > 0) {
    return tl_fail(L, "%s has %I bytes more than it says", prefix_of(L),
                   (LUAI_UACINT)reader->left);
  }
  if (reader->inflating && finish_inflating(reader, &error) != TL_OK) {
    return tl_file_raise(L, prefix_of(L), &error);
  }
  lua_pushinteger(L, (lua_Integer)reader->sum);
  return 1;
}

/* ---- opening ---- */

/* A closed reader for messages that begin with argument 1. */
static tl_reader *push_reader(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"size", size},   {"left", left},         {"fail", fail},   {"rename", rename_reader},
      {"enter", enter}, {"leave", leave},       {"read", read_string},
      {"tensor", read_tensor}, {NULL, NULL},
  };
  tl_reader *reader = tl_file_push(L, sizeof *reader, VALUES, reader_name, methods, close_reader);
  reader->fd = -1;
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, PREFIX);
  return reader;
}

static void open_window(tl_reader *reader, int64_t bytes) {
  reader->open = true;
  reader->size = reader->end = reader->left = bytes;
}

/* open_reader(prefix, path) */
int tl_file_open_reader(lua_State *L) {
  const char *prefix = luaL_checkstring(L, 1);
  const char *path = tl_file_check_path(L, 2, prefix);
  tl_reader *reader = push_reader(L);
  struct stat status;
  reader->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a FIFO must not block */
  reader->open = reader->fd >= 0;
  if (!reader->open || fstat(reader->fd, &status) != 0) {
    return tl_fail(L, "%s cannot be opened: %s", prefix, strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    return tl_fail(L, "%s is %s, not a file", prefix,
                   S_ISDIR(status.st_mode) ? "a folder" : "a device");
  }
  open_window(reader, (int64_t)status.st_size);
  return 1;
}

/* open_string(prefix, bytes): the same for bytes that are there already. */
int tl_file_open_string(lua_State *L) {
  luaL_checkstring(L, 1);
  size_t length;
  const char *text = luaL_checklstring(L, 2, &length);
  tl_reader *reader = push_reader(L);
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, -2, TEXT);
  reader->text = text;
  open_window(reader, (int64_t)length);
  return 1;
}
