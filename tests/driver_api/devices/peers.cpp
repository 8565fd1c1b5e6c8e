// SPDX-License-Identifier: Apache-2.0
// Access to a peer's memory: turning it on and off, using it, and what happens without; faults of one device and the
// other's contexts.
#include "two_devices.h"

#include <thread>

namespace devices {
namespace {

void ask_enabling(const Told& told) {
    Both both;
    both.start();
    const CUcontext none = nullptr;
    CUcontext user0{}, user1{};
    must("cuCtxCreate_v2", &user0, 0u, 0);
    must("cuCtxPopCurrent_v2", &user0);
    must("cuCtxCreate_v2", &user1, 0u, 1);
    must("cuCtxPopCurrent_v2", &user1);
    both.use(0);
    const auto enable = [&](const std::string& of, CUcontext peer, unsigned flags = 0) { told.give("enable " + of, call("cuCtxEnablePeerAccess", peer, flags)); };
    const auto disable = [&](const std::string& of, CUcontext peer) { told.give("disable " + of, call("cuCtxDisablePeerAccess", peer)); };
    disable("before", both.at[1].context);
    disable("null", none);
    disable("self", both.at[0].context);
    enable("null", none);
    enable("self", both.at[0].context);
    enable("flags 1", both.at[1].context, 1);
    enable("self, flags 1", both.at[0].context, 1);
    enable("another context of 0", user0);
    enable("first", both.at[1].context);
    enable("again", both.at[1].context);
    enable("again, flags 1", both.at[1].context, 1);
    enable("a created one of 1", user1);
    enable("a created one of 1, again", user1);
    disable("first", both.at[1].context);
    disable("again", both.at[1].context);
    disable("a created one", user1);
    enable("once more", both.at[1].context);
    both.use(1);
    enable("the other way", both.at[0].context);
    disable("the other way", both.at[0].context);
    must("cuCtxSetCurrent", user1);
    enable("from a created one", both.at[0].context);
    enable("its own device's", both.at[1].context);
    must("cuCtxSetCurrent", none);
    enable("without a context", both.at[0].context);
    disable("without a context", both.at[0].context);
    both.use(0);
    must("cuCtxDestroy_v2", user1);
    enable("a destroyed one", user1);
    must("cuDevicePrimaryCtxReset_v2", 1);
    enable("one that was reset", both.at[1].context);
    disable("one that was reset", both.at[1].context);
    CUcontext again{};
    must("cuDevicePrimaryCtxRetain", &again, 1);
    enable("after a reset", again);
}

void ask_use(const Told& told) {
    Both both;
    both.start();
    const Side &a = both.at[0], &b = both.at[1];
    both.use(1);
    CUdeviceptr before = 0, after = 0;
    must("cuMemAlloc_v2", &before, page);
    both.use(0);
    must("cuCtxEnablePeerAccess", b.context, 0u);
    both.use(1);
    must("cuMemAlloc_v2", &after, page);
    both.use(0);
    told.give("write, allocated before", list({both.put(0, before, 60), word(before)}));
    told.give("write, allocated after", list({both.put(0, after, 61), word(after)}));
    told.give("read", both.get(0, after));
    // Atomics of both at once.
    both.use(1);
    must("cuCtxEnablePeerAccess", a.context, 0u);
    fill(after, 0);
    must("cuCtxSynchronize");
    CUdeviceptr to = after;
    void* parameters[] = {&to};
    std::string results;
    for (int i = 0; i < 2; ++i) results += number(call("cuLaunchKernel", both.at[i].add, 4u, 1u, 1u, 64u, 1u, 1u, 0u, both.at[i].stream, &parameters[0], static_cast<void**>(nullptr))) + " ";
    for (int i = 0; i < 2; ++i) results += number(call("cuStreamSynchronize", both.at[i].stream)) + " ";
    told.give("atomics of both", results + word(after));
    told.give("write of 1 to 0", list({both.put(1, a.memory, 63), word(a.memory)}));
    both.use(0);
    told.give("use, health 0", health(both, 0));
    told.give("use, health 1", health(both, 1));
}

/// act() is to be refused by the hardware: what each context says afterwards.
template <class Act> void faulting(Answers& answers, const std::string& of, Act&& act) {
    in_process(answers, of, [&](const Told& told) {
        Both both;
        both.start();
        told.give(of, act(both));
        told.give(of + ", context 0", health(both, 0));
        told.give(of + ", context 1", health(both, 1));
        CUcontext made{};
        told.give(of + ", create on 0", call("cuCtxCreate_v2", &made, 0u, 0));
        told.give(of + ", create on 1", call("cuCtxCreate_v2", &made, 0u, 1));
        told.give(of + ", reset of 0", call("cuDevicePrimaryCtxReset_v2", 0));
        told.give(of + ", reset of 1", call("cuDevicePrimaryCtxReset_v2", 1));
        told.give(of + ", retain 0", call("cuDevicePrimaryCtxRetain", &made, 0));
        told.give(of + ", retain 1", call("cuDevicePrimaryCtxRetain", &made, 1));
    });
}

} // namespace

void ask_peers(Answers& answers) {
    in_process(answers, "enabling", ask_enabling);
    in_process(answers, "use of a peer's memory", ask_use);
}

void ask_faults(Answers& answers, bool refused) {
    if (refused) faulting(answers, "refused, write without access", [](Both& both) { return both.put(0, both.at[1].memory, 70); });
    if (refused) faulting(answers, "refused, read without access", [](Both& both) { return both.get(0, both.at[1].memory); });
    if (refused) faulting(answers, "refused, access of the second to the first", [](Both& both) { both.use(1); return both.put(1, both.at[0].memory, 70); });
    if (refused) faulting(answers, "refused, access that is one-way", [](Both& both) {
        must("cuCtxEnablePeerAccess", both.at[1].context, 0u);
        both.use(1);
        return both.put(1, both.at[0].memory, 70);
    });
    if (refused) faulting(answers, "refused, access turned off", [](Both& both) {
        must("cuCtxEnablePeerAccess", both.at[1].context, 0u);
        const std::string with = both.put(0, both.at[1].memory, 70);
        must("cuCtxDisablePeerAccess", both.at[1].context);
        return with + ", " + both.put(0, both.at[1].memory, 71);
    });
    faulting(answers, "access of another context of the device", [](Both& both) {
        must("cuCtxEnablePeerAccess", both.at[1].context, 0u);
        CUcontext user{};
        CUmodule module{};
        CUfunction function{};
        must("cuCtxCreate_v2", &user, 0u, 0);
        must("cuModuleLoadData", &module, static_cast<const void*>(text));
        must("cuModuleGetFunction", &function, module, "put");
        CUdeviceptr to = both.at[1].memory;
        unsigned value = 72;
        void* parameters[] = {&to, &value};
        const int launched = call("cuLaunchKernel", function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, CUstream{}, &parameters[0], static_cast<void**>(nullptr));
        return list({number(launched), number(call("cuCtxSynchronize"))});
    });
    if (refused) faulting(answers, "refused, access to memory of another context of the peer", [](Both& both) {
        CUcontext user{};
        CUdeviceptr memory = 0;
        must("cuCtxCreate_v2", &user, 0u, 1);
        must("cuMemAlloc_v2", &memory, page);
        both.use(0);
        must("cuCtxEnablePeerAccess", both.at[1].context, 0u);
        return both.put(0, memory, 73);
    });
    faulting(answers, "memory of another context of the device", [](Both& both) {
        CUcontext user{};
        CUdeviceptr memory = 0;
        must("cuCtxCreate_v2", &user, 0u, 0);
        must("cuMemAlloc_v2", &memory, page);
        both.use(0);
        return both.put(0, memory, 74);
    });
    if (refused) faulting(answers, "refused, variable of a peer", [](Both& both) {
        CUdeviceptr variable = 0;
        std::size_t size = 0;
        must("cuModuleGetGlobal_v2", &variable, &size, both.at[1].module, "variable");
        must("cuCtxEnablePeerAccess", both.at[1].context, 0u);
        return both.put(0, variable, 62);
    });
    faulting(answers, "trap in another context of the device", [](Both& both) {
        CUcontext user{};
        CUmodule module{};
        CUfunction function{};
        must("cuCtxCreate_v2", &user, 0u, 0);
        must("cuModuleLoadData", &module, static_cast<const void*>(text));
        must("cuModuleGetFunction", &function, module, "trapped");
        const int launched = call("cuLaunchKernel", function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, CUstream{}, static_cast<void**>(nullptr), static_cast<void**>(nullptr));
        return list({number(launched), number(call("cuCtxSynchronize"))});
    });
    if (refused) faulting(answers, "refused, pool memory without access", [](Both& both) {
        CUdeviceptr memory = 0;
        both.use(1);
        must("cuMemAllocAsync", &memory, page, both.at[1].stream);
        must("cuCtxSynchronize");
        both.use(0);
        must("cuCtxEnablePeerAccess", both.at[1].context, 0u);
        return both.put(0, memory, 75);
    });
    if (refused) faulting(answers, "refused, mapped memory without access", [](Both& both) {
        CUmemAllocationProp properties{};
        properties.type = 1, properties.location = {1, 1};
        CUmemGenericAllocationHandle handle = 0;
        CUdeviceptr at = 0;
        must("cuMemAddressReserve", &at, page, std::size_t{0}, CUdeviceptr{0}, 0ull);
        must("cuMemCreate", &handle, page, &properties, 0ull);
        must("cuMemMap", at, page, std::size_t{0}, handle, 0ull);
        const CUmemAccessDesc access{{1, 1}, 3};
        must("cuMemSetAccess", at, page, &access, std::size_t{1});
        must("cuCtxEnablePeerAccess", both.at[1].context, 0u);
        return both.put(0, at, 76);
    });
    faulting(answers, "trap on 1", [](Both& both) {
        CUfunction function{};
        must("cuModuleGetFunction", &function, both.at[1].module, "trapped");
        both.use(1);
        const int launched = call("cuLaunchKernel", function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, both.at[1].stream, static_cast<void**>(nullptr), static_cast<void**>(nullptr));
        return list({number(launched), number(call("cuStreamSynchronize", both.at[1].stream))});
    });
    faulting(answers, "bad address on 1", [](Both& both) { both.use(1); return both.put(1, 0x1000, 77); });
    faulting(answers, "bad address on 0", [](Both& both) { return both.put(0, 0x1000, 77); });
}

} // namespace devices
