#include "gateway/surface/errors.h"

#include <stddef.h>
#include <string.h>

struct row {
    enum error_code code;
    int err; /* 0: any */
    struct refusal refusal;
};

#define ANY 0

/* The first row that fits. */
static const struct row rows[] = {
    {ERROR_INVALID, ESHUTDOWN, {409, "not_running"}},
    {ERROR_INVALID, ENOTEMPTY, {409, "not_empty"}},
    {ERROR_INVALID, EOPNOTSUPP, {422, "not_supported"}},
    {ERROR_INVALID, ANY, {400, "invalid_request"}},
    {ERROR_NOT_FOUND, ANY, {404, "not_found"}},
    {ERROR_DENIED, ANY, {403, "forbidden"}},
    {ERROR_LIMIT, ENOSPC, {507, "disk_full"}},
    {ERROR_LIMIT, EDQUOT, {507, "disk_full"}},
    {ERROR_LIMIT, EFBIG, {413, "too_large"}},
    {ERROR_LIMIT, E2BIG, {413, "too_large"}},
    {ERROR_LIMIT, ANY, {429, "too_many"}},
    {ERROR_UNSUPPORTED, ANY, {422, "not_supported"}},
    {ERROR_PROTOCOL, ANY, {502, "sandbox_misbehaved"}},
    {ERROR_SYSTEM, ETIMEDOUT, {504, "timeout"}},
    {ERROR_SYSTEM, ETIME, {504, "timeout"}},
    {ERROR_SYSTEM, ENOBUFS, {503, "unavailable"}},
    {ERROR_SYSTEM, EIO, {503, "unavailable"}},
    {ERROR_SYSTEM, EROFS, {503, "unavailable"}},
    {ERROR_SYSTEM, ENOSPC, {503, "unavailable"}},
    {ERROR_SYSTEM, ECANCELED, {503, "unavailable"}},
    {ERROR_SYSTEM, ESHUTDOWN, {503, "unavailable"}},
};

static const struct row file_rows[] = {
    {ERROR_SYSTEM, EACCES, {403, "path_not_allowed"}},
    {ERROR_SYSTEM, EPERM, {403, "path_not_allowed"}},
    {ERROR_SYSTEM, EROFS, {403, "path_not_allowed"}},
    {ERROR_SYSTEM, EOPNOTSUPP, {403, "path_not_allowed"}}, /* no files can be made there, such as in /proc */
    {ERROR_SYSTEM, ENOENT, {404, "not_found"}},
    {ERROR_SYSTEM, ENOSPC, {507, "disk_full"}},
    {ERROR_SYSTEM, EDQUOT, {507, "disk_full"}},
    {ERROR_SYSTEM, ENOTEMPTY, {409, "not_empty"}},
    {ERROR_SYSTEM, EBUSY, {409, "busy"}},
    {ERROR_SYSTEM, EEXIST, {409, "exists"}},
    {ERROR_SYSTEM, EFBIG, {413, "too_large"}},
    {ERROR_SYSTEM, EISDIR, {400, "invalid_request"}},
    {ERROR_SYSTEM, ENOTDIR, {400, "invalid_request"}},
    {ERROR_SYSTEM, ENXIO, {400, "invalid_request"}},
    {ERROR_SYSTEM, ELOOP, {400, "invalid_request"}},
    {ERROR_SYSTEM, ENAMETOOLONG, {400, "invalid_request"}},
    {ERROR_SYSTEM, EINVAL, {400, "invalid_request"}},
    {ERROR_DENIED, ANY, {403, "path_not_allowed"}},
    {ERROR_INVALID, ENOTEMPTY, {409, "not_empty"}},
};

static const struct refusal *find(const struct row *table, size_t count, const struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (table[i].code == err->code && (table[i].err == ANY || table[i].err == err->err))
            return &table[i].refusal;
    }
    return NULL;
}

struct refusal errors_of(const struct error *err)
{
    const struct refusal *refusal = find(rows, sizeof rows / sizeof *rows, err);

    return refusal != NULL ? *refusal : (struct refusal){500, "internal"};
}

struct refusal errors_of_file(const struct error *err)
{
    const struct refusal *refusal = find(file_rows, sizeof file_rows / sizeof *file_rows, err);

    return refusal != NULL ? *refusal : errors_of(err);
}

int errors_write(struct buf *body, const char *code, const char *message, const char *request_id)
{
    const char *const parts[] = {"{\"error\":{\"code\":", code,       ",\"message\":", message,
                                 ",\"request_id\":",      request_id, "}}\n"};
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof parts / sizeof *parts; i++)
        r = i % 2 == 0 ? buf_append(body, parts[i], strlen(parts[i]))
                       : buf_append_json(body, parts[i], strlen(parts[i]));
    return r;
}

void errors_from_store(struct error *err, int result, const char *message)
{
    (void)error_set(err, ERROR_SYSTEM, 0, "this can't be recorded now: %s",
                    message != NULL ? message : "the store does not answer");
    err->err = result == -ENOMEM ? ENOMEM : ENOBUFS;
}
