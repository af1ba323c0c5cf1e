/* The C API from C89, as its header says: without the library preloaded there is none.
 *
 *   run: api_in_c [OPERATION TEXT]...
 *
 * Sets each, and prints what came of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "shim/api/convpin.h"

typedef const char *(*set_algo_t)(const char *, const char *);

int main(int argc, char **argv) {
  set_algo_t set_algo;
  void *found = dlsym(RTLD_DEFAULT, "convpin_set_algo");
  int i;
  memcpy(&set_algo, &found, sizeof found);
  if (set_algo == NULL) return puts("no convpin"), 0;
  for (i = 1; i + 1 < argc; i += 2) {
    const char *error = set_algo(strcmp(argv[i], "NULL") ? argv[i] : NULL, strcmp(argv[i + 1], "NULL") ? argv[i + 1] : NULL);
    puts(error ? error : "ok");
  }
  return 0;
}
