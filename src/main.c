/* tensorlua [options] [script [args]]: reads the options and decides what runs, in which order, and
 * with which exit status. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/host.h"

static const char usage[] =
    "usage: %s [options] [script [args]]\n"
    "Runs a Lua script with tensors; without one, and on a terminal, reads Lua from it.\n"
    "  -e code     run the Lua text 'code'\n"
    "  -l mod      require 'mod' into the global 'mod'\n"
    "  -l g=mod    require 'mod' into the global 'g'\n"
    "  -i          read from standard input once the script has run\n"
    "  -v          print the version\n"
    "  -E          ignore LUA_INIT, LUA_PATH and LUA_CPATH\n"
    "  -W          turn warnings on\n"
    "  -h, --help  print this text\n"
    "  --          end of the options\n"
    "  -           end of the options; the script is standard input\n";

/* What a word of the command line is when it is not an option's letter. */
enum { NO_OPTION = 0, END_OF_OPTIONS = '-', UNKNOWN = '?', NO_VALUE = ':' };

/* Reads the word at argv[*at] and, if it is an option, moves *at past it and its value. */
static int next_option(char **argv, int *at, const char **value) {
  const char *word = argv[*at];
  if (word == NULL || word[0] != '-' || word[1] == '\0') return NO_OPTION;
  ++*at;
  if (strcmp(word, "--") == 0) return END_OF_OPTIONS;
  if (strcmp(word, "--help") == 0) return 'h';
  if (strchr("el", word[1])) {
    *value = word[2] ? word + 2 : argv[*at];
    if (word[2]) return word[1];
    if (*value == NULL || **value == '-') return NO_VALUE;
    ++*at;
    return word[1];
  }
  return strchr("ivEWh", word[1]) && word[2] == '\0' ? word[1] : UNKNOWN;
}

typedef struct plan {
  const char *program;
  int script; /* its index in argv; argc without one */
  bool script_is_stdin, help, version, interactive, no_environment, has_code;
} plan;

/* False, with a message, if the command line is wrong. */
static bool read_options(char **argv, plan *p) {
  int at = argv[0] != NULL, option;
  const char *value;
  bool ended = false;
  for (;;) {
    int word = at;
    if (ended || (option = next_option(argv, &at, &value)) == NO_OPTION) break;
    switch (option) {
    case END_OF_OPTIONS: ended = true; break;
    case 'h': p->help = true; break;
    case 'i': p->interactive = p->version = true; break;
    case 'v': p->version = true; break;
    case 'E': p->no_environment = true; break;
    case 'e': p->has_code = true; break;
    case NO_VALUE:
      fprintf(stderr, "%s: '%s' needs argument\n", p->program, argv[word]);
      return false;
    case UNKNOWN:
      fprintf(stderr, "%s: unrecognized option '%s'\n", p->program, argv[word]);
      return false;
    }
  }
  p->script = at;
  p->script_is_stdin = !ended && argv[at] && strcmp(argv[at], "-") == 0;
  return true;
}

/* -e, -l and -W take effect in the order in which they stand. */
static bool run_options(tl_host *host, char **argv) {
  int at = argv[0] != NULL, option;
  const char *value;
  while ((option = next_option(argv, &at, &value)) != NO_OPTION && option != END_OF_OPTIONS) {
    if (option == 'e' && !tl_host_run_string(host, value, "=(command line)")) return false;
    if (option == 'l' && !tl_host_require(host, value)) return false;
    if (option == 'W') tl_host_warn(host);
  }
  return true;
}

static void print_version(void) {
  puts(tl_host_version());
  fflush(stdout);
}

static bool run(tl_host *host, const plan *p, int argc, char **argv) {
  const char *script = argv[p->script];
  if (p->version) print_version();
  if (!tl_host_set_arguments(host, argc, argv, p->script)) return false;
  if (!p->no_environment && !tl_host_run_init(host)) return false;
  if (!run_options(host, argv)) return false;
  if (script && !tl_host_run_file(host, p->script_is_stdin ? NULL : script, true)) return false;
  if (p->interactive) {
    tl_host_read_loop(host);
  } else if (!script && !p->has_code && !p->version) {
    if (!isatty(STDIN_FILENO)) return tl_host_run_file(host, NULL, false);
    print_version();
    tl_host_read_loop(host);
  }
  return true;
}

/* What was printed but could not be written is an error too. */
static bool flush_output(const char *program) {
  errno = 0;
  int flushed = fflush(stdout);
  if (flushed == 0 && !ferror(stdout)) return true;
  fprintf(stderr, "%s: cannot write to standard output%s%s\n", program, errno ? ": " : "",
          errno ? strerror(errno) : "");
  return false;
}

int main(int argc, char **argv) {
  plan p = {.program = argv[0] && argv[0][0] ? argv[0] : "tensorlua"};
  bool ok = read_options(argv, &p);
  if (!ok || p.help) {
    fprintf(ok ? stdout : stderr, usage, p.program);
  } else {
    tl_host *host = tl_host_open(p.program, !p.no_environment);
    ok = host && run(host, &p, argc, argv);
    if (host && !tl_host_close(host)) ok = false;
  }
  if (!flush_output(p.program)) ok = false;
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
