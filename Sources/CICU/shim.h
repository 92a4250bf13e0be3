#ifndef PARLEY_CICU_H
#define PARLEY_CICU_H
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unicode/uspoof.h>

/* ICU's confusable characters (Unicode Technical Standard 39). Loaded when a name is first compared, so that its data of
   30 MB are mapped only then, and so that a program built beside one version runs beside another: each version has its
   number in the library's name and in every function's (unicode/urename.h). */
struct parley_icu {
  int is_loaded;
  __typeof__(uspoof_open) *open;
  __typeof__(uspoof_getSkeletonUTF8) *skeleton;
  USpoofChecker *checker;
};

static inline void parley_icu_load(struct parley_icu *icu, int version) {
  char name[64];
  UErrorCode status = U_ZERO_ERROR;
  snprintf(name, sizeof name, "libicui18n.so.%d", version);
  void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) return;
  /* POSIX has dlsym's result convert to a function (dlsym, "Application usage"). */
  snprintf(name, sizeof name, "uspoof_open_%d", version);
  icu->open = (__typeof__(icu->open))dlsym(library, name);
  snprintf(name, sizeof name, "uspoof_getSkeletonUTF8_%d", version);
  icu->skeleton = (__typeof__(icu->skeleton))dlsym(library, name);
  if (icu->open == NULL || icu->skeleton == NULL) return;
  icu->checker = icu->open(&status);
  icu->is_loaded = U_SUCCESS(status) && icu->checker != NULL;
}

static inline const struct parley_icu *parley_icu(void) {
  /* Inside the function: Swift emits no definition for a static variable of a header's top level. */
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static struct parley_icu functions;
  static _Bool is_resolved;
  pthread_mutex_lock(&mutex);
  if (!is_resolved) {
    parley_icu_load(&functions, U_ICU_VERSION_MAJOR_NUM);
    /* 58 of 2016 has all that is needed; none is beyond 99 for years. */
    for (int version = 99; !functions.is_loaded && version >= 58; version--) parley_icu_load(&functions, version);
    is_resolved = 1;
  }
  pthread_mutex_unlock(&mutex);
  return &functions;
}

/* False when ICU is not there. Does not keep it loaded. */
static inline _Bool parley_icu_is_installed(void) {
  char name[64];
  for (int version = 99; version >= 58; version--) {
    snprintf(name, sizeof name, "libicui18n.so.%d", version);
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL) continue;
    dlclose(library);
    return 1;
  }
  return 0;
}

/* Bytes of the skeleton, which may be more than `capacity`; negative when there is none. The checker is not changed once
   it is open, so any thread may use it (unicode/uspoof.h, "Thread Safety"). */
static inline int parley_icu_skeleton(const char *text, int byte_count, char *skeleton, int capacity) {
  const struct parley_icu *icu = parley_icu();
  UErrorCode status = U_ZERO_ERROR;
  int count = icu->is_loaded ? icu->skeleton(icu->checker, 0, text, byte_count, skeleton, capacity, &status) : -1;
  return U_SUCCESS(status) || status == U_BUFFER_OVERFLOW_ERROR ? count : -1;
}

#endif
