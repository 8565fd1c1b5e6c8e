// SPDX-License-Identifier: Apache-2.0
#pragma once

struct HostFunction {
    const char *name, *type;
    int bytes;
    double from, to;
    void (*run)(const void* in, void* out, int count);
};
extern const HostFunction host_functions[];
extern const int host_function_count;
