#include "engine/fault.h"

#include <stdlib.h>
#include <string.h>

static tl_status parse_one(tl_fault *fault, const char *text, size_t length, tl_error *error) {
  char name[64];
  const char *colon = memchr(text, ':', length);
  size_t name_length = colon ? (size_t)(colon - text) : length;
  if (!colon || name_length == 0 || name_length >= sizeof name) {
    return tl_error_set(error, TL_INVALID,
                        "TENSORLUA_FAULT: '%.*s' is not of the form operation:count", (int)length,
                        text);
  }
  memcpy(name, text, name_length);
  name[name_length] = '\0';
  fault->op = tl_op_find(name);
  if (fault->op == TL_OP_none && strcmp(name, "alloc") != 0) {
    return tl_error_set(error, TL_INVALID, "TENSORLUA_FAULT: there is no operation '%s'", name);
  }
  size_t digits = strspn(colon + 1, "0123456789");
  fault->remaining = digits < 10 ? strtoul(colon + 1, NULL, 10) : 0;
  if (fault->remaining == 0 || colon + 1 + digits != text + length) {
    return tl_error_set(error, TL_INVALID, "TENSORLUA_FAULT: '%.*s' wants a count from 1 on",
                        (int)length, text);
  }
  return TL_OK;
}

tl_status tl_faults_parse(tl_faults *faults, const char *text, tl_error *error) {
  faults->count = 0;
  while (text && *text) {
    size_t length = strcspn(text, ",");
    if (faults->count == TL_MAX_FAULTS) {
      return tl_error_set(error, TL_INVALID, "TENSORLUA_FAULT: more than %d faults", TL_MAX_FAULTS);
    }
    tl_status status = parse_one(&faults->faults[faults->count++], text, length, error);
    if (status != TL_OK) return status;
    text += length;
    if (*text == ',') text++;
  }
  return TL_OK;
}

static bool countdown(tl_fault *fault) { return fault->remaining > 0 && --fault->remaining == 0; }

bool tl_faults_hit(tl_faults *faults, const tl_command *command) {
  bool hit = false;
  for (int f = 0; f < faults->count; f++) {
    tl_fault *fault = &faults->faults[f];
    if (fault->op != TL_OP_none) {
      if (fault->op == command->op) hit |= countdown(fault);
      continue;
    }
    for (int i = 0; i < command->noperands; i++) {
      const tl_operand *operand = &command->operands[i];
      const tl_storage *storage = operand->storage;
      bool needs_buffer = storage->last_write == 0 && !storage->data; /* not filled either */
      if (operand->access & TL_WRITE && needs_buffer) hit |= countdown(fault);
    }
  }
  return hit;
}
