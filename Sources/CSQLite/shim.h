#include <sqlite3.h>

// sqlite3_db_config takes variable arguments, which Swift cannot call.
static inline int parley_sqlite_checkpoint_on_close(sqlite3 *database, int enabled) {
  return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !enabled, (int *)0);
}
