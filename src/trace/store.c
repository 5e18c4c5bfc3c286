// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// SQLite's errors and small statements.

#include "trace/store.h"

#include <errno.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/cleanup.h"

static bool is_no_room(int code)
{
	return code == ENOSPC || code == EDQUOT || code == EFBIG;
}

int store_errno(sqlite3 *database, int result)
{
	static const struct {
		int result;
		int code;
	} codes[] = {
		{SQLITE_OK, 0},
		{SQLITE_DONE, 0},
		{SQLITE_ROW, 0},
		{SQLITE_FULL, ENOSPC},
		{SQLITE_BUSY, EBUSY},
		{SQLITE_LOCKED, EBUSY},
		{SQLITE_NOMEM, ENOMEM},
		{SQLITE_CONSTRAINT, EINVAL},
		{SQLITE_TOOBIG, EINVAL},
		{SQLITE_READONLY, EROFS},
		{SQLITE_PERM, EACCES},
		{SQLITE_AUTH, EACCES},
		{SQLITE_CORRUPT, EBADMSG},
		{SQLITE_NOTADB, EBADMSG},
		{SQLITE_SCHEMA, EBADMSG},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(codes); i++) {
		if (codes[i].result == (result & 0xff)) {
			return -codes[i].code;
		}
	}
	// SQLITE_IOERR, SQLITE_CANTOPEN: the system call says more.
	int code = database ? sqlite3_system_errno(database) : 0;
	return is_no_room(code) ? -ENOSPC : code > 0 ? -code : -EIO;
}

int store_error(sqlite3 *database, int result, struct error *e, const char *context)
{
	int r = store_errno(database, result);
	const char *text = database ? sqlite3_errmsg(database) : sqlite3_errstr(result);
	return r == -EIO || r == -EINVAL || r == -EBADMSG
	               ? error_set(e, -r, "%s: %s", context, text)
	               : error_errno(e, -r, "%s", context);
}

int store_exec(sqlite3 *database, const char *sql)
{
	return sqlite3_exec(database, sql, NULL, NULL, NULL);
}

sqlite3_int64 store_number(sqlite3 *database, const char *sql, sqlite3_int64 otherwise)
{
	sqlite3_stmt *statement = NULL;
	sqlite3_int64 number = otherwise;
	if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK &&
		sqlite3_step(statement) == SQLITE_ROW &&
		sqlite3_column_type(statement, 0) == SQLITE_INTEGER) {
		number = sqlite3_column_int64(statement, 0);
	}
	sqlite3_finalize(statement);
	return number;
}

bool store_is_on_network(const char *path)
{
	// From linux/magic.h and the file systems' own sources; f_type is 32 bits of a long.
	static const unsigned network[] = {
		0x6969, // NFS
		0x0bd00bd0, // Lustre
		0x47504653, // GPFS
		0x19830326, // BeeGFS
		0x00c36400, // Ceph
		0xff534d42, // CIFS
		0xfe534d42, // SMB2
		0x517b, // SMB
		0x5346414f, // AFS
		0x6b414653, // kAFS
		0x564c, // NCP
		0x01161970, // GFS2
		0x7461636f, // OCFS2
		0x01021997, // 9P: no shared mapping
	};
	struct statfs fs;
	if (statfs(path, &fs) < 0) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(network); i++) {
		if ((unsigned)fs.f_type == network[i]) {
			return true;
		}
	}
	return false;
}
