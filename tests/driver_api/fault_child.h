// SPDX-License-Identifier: Apache-2.0
// Runs something in a child process and returns what it said on stderr: a fault ends a process's use of the driver. The
// caller must not have used the driver itself, because its threads would be missing in the child.
#pragma once

#include "driver.h"

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace driver_test {

/// stderr, and a line "code N" at its end with what `body` returned; a line "status N" instead if the child died.
inline std::string said_by_child(const std::function<int()>& body) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        const std::string text = "\ncode " + std::to_string(body()) + "\n";
        const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
        _exit(written > 0 ? 0 : 1);
    }
    close(ends[1]);
    std::string said;
    char buffer[512];
    for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, std::size_t(got));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) said += "\nstatus " + std::to_string(status) + "\n";
    return said;
}

/// For what a child does: the primary context of a device, which becomes current; null if the driver doesn't give it.
inline CUcontext begin_on(CUdevice device) {
    CUcontext primary = nullptr;
    const bool given = cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&primary, device) == 0 && cuCtxSetCurrent(primary) == 0;
    return given ? primary : nullptr;
}

/// Launches kernel `k` of `text` with 64-bit parameters, the first of which is the address of 4096 bytes of device memory
/// plus `offset`, 32 threads; what synchronising gives, -1 where anything else fails. The memory begins with an odd address.
inline int code_of_launch(const std::string& text, std::uint64_t offset, std::uint64_t second, std::uint64_t* result = nullptr) {
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    CUdeviceptr data = 0;
    if (!begin_on(0)) return -1;
    if (cuModuleLoadData(&module, text.c_str()) != 0 || cuModuleGetFunction(&kernel, module, "k") != 0) return -1;
    if (cuMemAlloc_v2(&data, 4096) != 0) return -1;
    const CUdeviceptr odd = data + 1;
    if (cuMemcpyHtoD_v2(data, &odd, sizeof odd) != 0) return -1;
    std::uint64_t address = data + offset;
    void* parameters[] = {&address, &second};
    if (cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr) != 0) return -1;
    const int code = cuCtxSynchronize();
    if (result && code == 0 && cuMemcpyDtoH_v2(result, data, sizeof *result) != 0) return -1;
    return cuStreamSynchronize(nullptr) == code ? code : -1; // a fault sticks
}

} // namespace driver_test
