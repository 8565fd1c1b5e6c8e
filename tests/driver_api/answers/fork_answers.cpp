// SPDX-License-Identifier: Apache-2.0
// What calls answer in a child that was forked from a process that uses the driver. Answers: fork_answers_h100.txt
// (an H100's driver, but for what that file names). Each call is made in a child of its own, because a driver may crash or hang there.
#include "answers.h"
#include "current_context_calls.h"

#include <csignal>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

using namespace answers;

namespace {

/// The answer of `make` in a forked child: its result, how the child was ended, or that it did not end in 2 s.
std::string in_child(const std::function<int()>& make) {
    int ends[2];
    if (pipe(ends) != 0) return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
        std::signal(SIGALRM, SIG_DFL);
        alarm(2);
        const int result = make();
        _exit(write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
    }
    close(ends[1]);
    int result = 0, status = 0;
    const bool answered = read(ends[0], &result, sizeof result) == sizeof result;
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child) return "no child";
    if (answered) return std::to_string(result);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return "no end";
    return WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "no answer";
}

/// Those that need no context.
std::vector<Call> device_calls(CUcontext primary) {
    static int number;
    static unsigned flags;
    static std::size_t size;
    static const char* text;
    static char name[100];
    static void* pointer;
    std::vector<Call> calls;
    const auto ask = [&](const char* entry, auto... arguments) {
        calls.push_back({entry, [=] { return call(entry, arguments...); }});
    };
    const auto address = [](auto& variable) { return &variable; };
    ask("cuInit", 0u);
    ask("cuDriverGetVersion", address(number));
    ask("cuGetErrorName", 2, address(text));
    ask("cuGetErrorString", 2, address(text));
    ask("cuGetProcAddress_v2", "cuMemAlloc", address(pointer), 12000, std::uint64_t{0}, static_cast<int*>(nullptr));
    ask("cuDeviceGetCount", address(number));
    ask("cuDeviceGet", address(number), 0);
    ask("cuDeviceGetName", static_cast<char*>(name), 100, 0);
    ask("cuDeviceGetUuid_v2", static_cast<char*>(name), 0);
    ask("cuDeviceTotalMem_v2", address(size), 0);
    ask("cuDeviceGetAttribute", address(number), 16, 0);
    ask("cuDeviceGetByPCIBusId", address(number), "0000:00:00.0");
    ask("cuDeviceGetPCIBusId", static_cast<char*>(name), 100, 0);
    ask("cuDeviceComputeCapability", address(number), address(number), 0);
    ask("cuDeviceCanAccessPeer", address(number), 0, 0);
    ask("cuDevicePrimaryCtxGetState", 0, address(flags), address(number));
    ask("cuDevicePrimaryCtxSetFlags_v2", 0, 0u);
    ask("cuDevicePrimaryCtxRetain", address(pointer), 0);
    ask("cuDevicePrimaryCtxRelease_v2", 0);
    ask("cuDevicePrimaryCtxReset_v2", 0);
    ask("cuCtxSetCurrent", primary);
    ask("cuCtxPushCurrent_v2", primary);
    ask("cuProfilerStart");
    ask("cuFlushGPUDirectRDMAWrites", 100, 100);
    ask("cuMemGetAllocationGranularity", address(size), name, 0); // an entry that may be missing
    ask("cuGraphCreate", address(pointer), 0u);
    return calls;
}

} // namespace

int main(int count, char** words) {
    Answers all(count, words);
    alarm(100);
    // Before the driver was initialised a child is a process like any other.
    int number = 0;
    call("cuDriverGetVersion", &number);
    all.give("before cuInit: cuInit", in_child([] { return call("cuInit", 0u); }));
    all.give("before cuInit: all that a process does", in_child([] {
                 Objects objects;
                 objects.prepare();
                 return 0;
             }));
    must("cuInit", 0u);
    for (const Call& asked : device_calls(nullptr)) all.give("cuInit: " + asked.question, in_child(asked.make));
    Objects objects;
    objects.prepare();
    for (const Call& asked : device_calls(objects.context))
        all.give("context, device: " + asked.question, in_child(asked.make));
    for (const Call& asked : context_calls(objects))
        if (!asked.question.starts_with("cuThreadExchange")) // of the thread alone
            all.give("context: " + asked.question, in_child(asked.make));
    // A child of a child, and one whose parent, a child itself, was refused.
    all.give("grandchild: cuInit", in_child([] {
                 std::string answer = in_child([] { return call("cuInit", 0u); });
                 return answer == "no end" ? -1 : std::atoi(answer.c_str());
             }));
    // The parent goes on.
    all.give("afterwards: cuCtxSynchronize", call("cuCtxSynchronize"));
    return all.finish();
}
