#ifndef PARLEY_CQRENCODE_H
#define PARLEY_CQRENCODE_H
#include <dlfcn.h>
#include <pthread.h>
#include <qrencode.h>
#include <stddef.h>

/* libqrencode is loaded when an invitation is first drawn: most nodes never do. */
struct parley_qr {
  _Bool is_loaded;
  __typeof__(QRcode_encodeString) *encode;
  __typeof__(QRcode_free) *release;
};

static inline void parley_qr_load(struct parley_qr *functions) {
  void *library = dlopen("libqrencode.so.4", RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) return;
  /* POSIX has dlsym's result convert to a function (dlsym, "Application usage"). */
  functions->encode = (__typeof__(functions->encode))dlsym(library, "QRcode_encodeString");
  functions->release = (__typeof__(functions->release))dlsym(library, "QRcode_free");
  functions->is_loaded = functions->encode != NULL && functions->release != NULL;
}

static inline const struct parley_qr *parley_qr(void) {
  /* Inside the function: Swift emits no definition for a static variable of a header's top level. */
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static struct parley_qr functions;
  static _Bool is_resolved;
  pthread_mutex_lock(&mutex);
  if (!is_resolved) parley_qr_load(&functions);
  is_resolved = 1;
  pthread_mutex_unlock(&mutex);
  return &functions;
}

/* NULL when the library is not there or the text does not fit. Given back with parley_qr_release. */
static inline QRcode *parley_qr_encode(const char *text) {
  const struct parley_qr *library = parley_qr();
  return library->is_loaded ? library->encode(text, 0, QR_ECLEVEL_L, QR_MODE_8, 1) : NULL;
}

static inline void parley_qr_release(QRcode *code) { parley_qr()->release(code); }

#endif
