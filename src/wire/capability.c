#include "wire/capability.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CAPABILITY_COUNT = 64 };

int capability_bound(uint64_t from, uint64_t allowed)
{
    for (unsigned long i = 0; i < CAPABILITY_COUNT; i++) {
        if ((from & ~allowed & (UINT64_C(1) << i)) == 0)
            continue;
        if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0) {
            if (errno == EINVAL)
                break; /* beyond the last one this kernel knows */
            return -errno;
        }
    }
    return 0;
}

int capability_set(uint64_t allowed)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)allowed, .permitted = (uint32_t)allowed},
        {.effective = (uint32_t)(allowed >> 32), .permitted = (uint32_t)(allowed >> 32)},
    };

    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}
