#ifndef PARLEY_CCRYPTO_H
#define PARLEY_CCRYPTO_H
#include <dlfcn.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stddef.h>

/* libcrypto is loaded with the first file that is hashed. Linked in, it would cost each idle node 1.4 MiB of resident
   memory: tables, symbols, and 392 KiB of pointers that are relocated at start. */
struct parley_sha256 {
  EVP_MD *algorithm;
  __typeof__(EVP_MD_CTX_new) *make;
  __typeof__(EVP_MD_CTX_free) *end;
  __typeof__(EVP_DigestInit_ex2) *begin;
  __typeof__(EVP_DigestUpdate) *update;
  __typeof__(EVP_DigestFinal_ex) *finish;
};

static inline void parley_sha256_load(struct parley_sha256 *sha256) {
  void *library = dlopen("libcrypto.so.3", RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) return;
  /* POSIX has dlsym's result convert to a function (dlsym, "Application usage"). */
  __typeof__(EVP_MD_fetch) *fetch = (__typeof__(fetch))dlsym(library, "EVP_MD_fetch");
#define PARLEY_FIND(field, name) ((sha256->field = (__typeof__(sha256->field))dlsym(library, name)) != NULL)
  if (fetch != NULL && PARLEY_FIND(make, "EVP_MD_CTX_new") && PARLEY_FIND(end, "EVP_MD_CTX_free")
      && PARLEY_FIND(begin, "EVP_DigestInit_ex2") && PARLEY_FIND(update, "EVP_DigestUpdate")
      && PARLEY_FIND(finish, "EVP_DigestFinal_ex"))
    /* Once: a fetch by name costs more than hashing 64 bytes. Never changed after, and shareable between threads. */
    sha256->algorithm = fetch(NULL, "SHA2-256", NULL);
#undef PARLEY_FIND
}

/* NULL when there is no libcrypto 3 with SHA-256. What it points to never changes. */
static inline const struct parley_sha256 *parley_sha256_library(void) {
  /* Inside the function: Swift emits no definition for a static variable of a header's top level. */
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static struct parley_sha256 functions;
  static _Bool is_resolved;
  pthread_mutex_lock(&mutex);
  if (!is_resolved) parley_sha256_load(&functions);
  is_resolved = 1;
  pthread_mutex_unlock(&mutex);
  return functions.algorithm != NULL ? &functions : NULL;
}

/* 32 bytes at `result`, which may be the start of `bytes`. 1, or 0 when it failed. */
static inline int parley_sha256_hash(
    const struct parley_sha256 *library, EVP_MD_CTX *context, const void *bytes, size_t count, unsigned char *result) {
  return library->begin(context, library->algorithm, NULL) && (count == 0 || library->update(context, bytes, count))
    && library->finish(context, result, NULL);
}

#endif
