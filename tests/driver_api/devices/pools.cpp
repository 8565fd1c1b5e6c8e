// SPDX-License-Identifier: Apache-2.0
// Pools of two devices, virtual memory of two devices, and what processes share about them.
#include "two_devices.h"

namespace devices {
namespace {

void ask_pool_calls(const Told& told) {
    Both both;
    both.start();
    CUmemoryPool defaults[2]{}, current{}, made{}, none{};
    for (int i = 0; i < 2; ++i) must("cuDeviceGetDefaultMemPool", &defaults[i], i);
    told.give("default of 2", call("cuDeviceGetDefaultMemPool", &none, 2));
    told.give("defaults differ", defaults[0] != defaults[1]);
    CUmemPoolProps properties{};
    properties.allocType = 1, properties.location = {1, 1};
    told.give("pool on 1", call("cuMemPoolCreate", &made, const_cast<const CUmemPoolProps*>(&properties)));
    properties.location = {1, 2};
    told.give("pool on 2", call("cuMemPoolCreate", &none, const_cast<const CUmemPoolProps*>(&properties)));
    told.give("pool of 1 for 0", call("cuDeviceSetMemPool", 0, made));
    told.give("pool of 1 for 1", call("cuDeviceSetMemPool", 1, made));
    must("cuDeviceGetMemPool", &current, 1);
    told.give("current of 1", current == made ? "made" : current == defaults[1] ? "default" : "another");
    must("cuDeviceGetMemPool", &current, 0);
    told.give("current of 0", current == made ? "made" : current == defaults[0] ? "default" : "another");
    told.give("for 2", call("cuDeviceSetMemPool", 2, made));
    const auto place = [&](CUdeviceptr at) {
        int ordinal = -5;
        CUmemoryPool pool{};
        const int one = call("cuPointerGetAttribute", static_cast<void*>(&ordinal), 9, at), other = call("cuPointerGetAttribute", static_cast<void*>(&pool), 17, at);
        CUcontext context{};
        static_cast<void>(call("cuPointerGetAttribute", static_cast<void*>(&context), 1, at));
        return number(one) + " " + number(ordinal) + " " + number(other) + (pool == made ? " made" : pool == defaults[0] ? " default 0" : pool == defaults[1] ? " default 1" : " another") + " " + both.name(context);
    };
    CUdeviceptr at = 0;
    both.use(0);
    told.give("allocate in 1, 0 is current", list({number(call("cuMemAllocAsync", &at, page, both.at[1].stream)), place(at)}));
    told.give("free it in 0", call("cuMemFreeAsync", at, both.at[0].stream));
    both.use(1);
    told.give("allocate in 0, 1 is current", list({number(call("cuMemAllocAsync", &at, page, both.at[0].stream)), place(at)}));
    told.give("free it in 1", call("cuMemFreeAsync", at, both.at[1].stream));
    told.give("allocate in null, 1 is current", list({number(call("cuMemAllocAsync", &at, page, CUstream{})), place(at)}));
    both.use(0);
    told.give("from pool of 1 in 0", list({number(call("cuMemAllocFromPoolAsync", &at, page, made, both.at[0].stream)), place(at)}));
    told.give("free with cuMemFree", call("cuMemFree_v2", at));
    told.give("from default of 1 in 0", list({number(call("cuMemAllocFromPoolAsync", &at, page, defaults[1], both.at[0].stream)), place(at)}));
    must("cuStreamSynchronize", both.at[0].stream);
    const auto access = [&](CUmemoryPool pool, int type, int id) {
        int flags = -5;
        CUmemLocation location{type, id};
        const int result = call("cuMemPoolGetAccess", &flags, pool, &location);
        return number(result) + " " + number(flags);
    };
    const auto set = [&](const std::string& of, CUmemoryPool pool, std::vector<CUmemAccessDesc> wishes) {
        told.give("set access " + of, list({number(call("cuMemPoolSetAccess", pool, static_cast<const CUmemAccessDesc*>(wishes.data()), wishes.size())), access(pool, 1, 0), access(pool, 1, 1)}));
    };
    told.give("access of 0 to default 1", access(defaults[1], 1, 0));
    told.give("access of 1 to default 1", access(defaults[1], 1, 1));
    told.give("access of 2 to default 1", access(defaults[1], 1, 2));
    told.give("access of the host to default 1", access(defaults[1], 2, 0));
    set("of 0", defaults[1], {{{1, 0}, 3}});
    told.give("kernel of 0 then", list({both.put(0, at, 80), word(at)}));
    told.give("access flags of the pointer", [&] { int flags = -5; const int result = call("cuPointerGetAttribute", static_cast<void*>(&flags), 16, at); return number(result) + " " + number(flags); }());
    set("of 0, read only", defaults[1], {{{1, 0}, 1}});
    set("of 0, none", defaults[1], {{{1, 0}, 0}});
    set("of 1, none", defaults[1], {{{1, 1}, 0}});
    set("of 1, all", defaults[1], {{{1, 1}, 3}});
    set("of 2", defaults[1], {{{1, 2}, 3}});
    set("of the host", defaults[1], {{{2, 0}, 3}});
    set("flags 2", defaults[1], {{{1, 0}, 2}});
    set("of both", defaults[1], {{{1, 0}, 3}, {{1, 1}, 3}});
    set("of 0 twice", defaults[1], {{{1, 0}, 0}, {{1, 0}, 3}});
    set("of 0 and 2", defaults[1], {{{1, 0}, 0}, {{1, 2}, 3}});
    set("of the made one", made, {{{1, 0}, 3}});
    told.give("pools, health 0", health(both, 0));
    told.give("pools, health 1", health(both, 1));
}

void ask_mapped(const Told& told) {
    Both both;
    both.start();
    CUmemAllocationProp properties{};
    properties.type = 1, properties.location = {1, 1}, properties.requestedHandleTypes = 1;
    std::size_t granularity = 0;
    told.give("granularity of 1", list({number(call("cuMemGetAllocationGranularity", &granularity, const_cast<const CUmemAllocationProp*>(&properties), 0)), number(static_cast<long long>(granularity))}));
    properties.location.id = 2;
    told.give("granularity of 2", call("cuMemGetAllocationGranularity", &granularity, const_cast<const CUmemAllocationProp*>(&properties), 0));
    CUmemGenericAllocationHandle handle = 0;
    told.give("memory on 2", call("cuMemCreate", &handle, page, &properties, 0ull));
    properties.location.id = 1;
    std::size_t before[2], after[2], total;
    for (int i = 0; i < 2; ++i) { both.use(i); must("cuMemGetInfo_v2", &before[i], &total); }
    both.use(0);
    told.give("memory on 1", call("cuMemCreate", &handle, 8 * page, &properties, 0ull));
    for (int i = 0; i < 2; ++i) { both.use(i); must("cuMemGetInfo_v2", &after[i], &total); }
    both.use(0);
    CUdeviceptr at = 0;
    must("cuMemAddressReserve", &at, 8 * page, std::size_t{0}, CUdeviceptr{0}, 0ull);
    told.give("map", call("cuMemMap", at, 8 * page, std::size_t{0}, handle, 0ull));
    CUmemAllocationProp got{};
    must("cuMemGetAllocationPropertiesFromHandle", &got, handle);
    told.give("place", number(got.location.type) + " " + number(got.location.id));
    const auto access = [&](int type, int id) {
        unsigned long long flags = 77;
        const CUmemLocation location{type, id};
        const int result = call("cuMemGetAccess", &flags, &location, at);
        return number(result) + " " + number(static_cast<long long>(flags));
    };
    const auto set = [&](const std::string& of, std::vector<CUmemAccessDesc> wishes) {
        told.give("access " + of, list({number(call("cuMemSetAccess", at, 8 * page, static_cast<const CUmemAccessDesc*>(wishes.data()), wishes.size())), access(1, 0), access(1, 1)}));
    };
    const auto ordinal = [&] { int value = -5; const int result = call("cuPointerGetAttribute", static_cast<void*>(&value), 9, at); return number(result) + " " + number(value); };
    set("of nobody", {});
    set("of 0 only", {{{1, 0}, 3}});
    told.give("kernel of 0", both.put(0, at, 90));
    told.give("ordinal", ordinal());
    CUcontext context{};
    told.give("context of the pointer", list({number(call("cuPointerGetAttribute", static_cast<void*>(&context), 1, at)), both.name(context)}));
    told.give("copy with 0 current", word(at));
    both.use(1);
    told.give("copy with 1 current, which has no access", word(at));
    told.give("fill with 1 current, which has no access", call("cuMemsetD32_v2", at, 91u, std::size_t{4}));
    told.give("peer copy to the memory of 0, 1 is current", call("cuMemcpyPeer", both.at[0].memory, both.at[0].context, at, both.at[0].context, std::size_t{64}));
    told.give("DtoD with 1 current, which has no access", call("cuMemcpyDtoD_v2", both.at[1].memory, at, std::size_t{64}));
    both.use(0);
    set("of 1, too", {{{1, 1}, 3}});
    both.use(1);
    told.give("kernel of 1", list({both.put(1, at, 92), word(at)}));
    both.use(0);
    set("of both, read only", {{{1, 0}, 1}, {{1, 1}, 1}});
    told.give("read of 0", both.get(0, at));
    told.give("fill, read only", call("cuMemsetD32_v2", at, 93u, std::size_t{4}));
    set("of both", {{{1, 0}, 3}, {{1, 1}, 3}});
    set("of 0, read only", {{{1, 0}, 1}});
    set("of 1, none", {{{1, 1}, 0}});
    set("of 0 twice", {{{1, 0}, 1}, {{1, 0}, 3}});
    set("of 2", {{{1, 2}, 3}});
    set("of 0 and 2", {{{1, 0}, 0}, {{1, 2}, 3}});
    told.give("flags of 2", access(1, 2));
    told.give("flags of the host", access(2, 0));
    told.give("mapped, health 0", health(both, 0));
    told.give("mapped, health 1", health(both, 1));
}

} // namespace

void ask_pools(Answers& answers) {
    in_process(answers, "pools", ask_pool_calls);
}

void ask_virtual_memory(Answers& answers) {
    in_process(answers, "mapped memory", ask_mapped);
}

void ask_sharing(Answers& answers) {
    // Memory and an event of device 0; the other process opens them with device `on` current.
    for (int on = 0; on < 2; ++on)
        in_two_processes(
            answers, "sharing " + number(on),
            [](const Told&, const Peer& peer) {
                Both both;
                both.start();
                CUdeviceptr memory = 0;
                must("cuMemAlloc_v2", &memory, page);
                must("cuMemsetD32_v2", memory, 95u, std::size_t{64});
                CUipcMemHandle handle{};
                must("cuIpcGetMemHandle", &handle, memory);
                CUevent event{};
                must("cuEventCreate", &event, 6u);
                must("cuEventRecord", event, both.at[0].stream);
                CUipcEventHandle shared{};
                must("cuIpcGetEventHandle", &shared, event);
                must("cuCtxSynchronize");
                peer.send(handle);
                peer.send(shared);
                peer.meet();
            },
            [on](const Told& told, const Peer& peer) {
                const auto handle = peer.receive<CUipcMemHandle>();
                const auto shared = peer.receive<CUipcEventHandle>();
                Both both;
                both.start();
                both.use(on);
                const std::string of = ", opened on " + number(on);
                CUdeviceptr memory = 0;
                const int opened = call("cuIpcOpenMemHandle_v2", &memory, handle, 1u);
                told.give("memory" + of, opened);
                if (!opened) {
                    int ordinal = -5;
                    CUcontext context{};
                    const int asked = call("cuPointerGetAttribute", static_cast<void*>(&ordinal), 9, memory);
                    told.give("ordinal" + of, number(asked) + " " + number(ordinal));
                    must("cuPointerGetAttribute", static_cast<void*>(&context), 1, memory);
                    told.give("context" + of, both.name(context));
                    told.give("copied" + of, word(memory));
                    CUdeviceptr twice = 0;
                    told.give("again" + of, list({number(call("cuIpcOpenMemHandle_v2", &twice, handle, 1u)), twice == memory ? "same" : "other"}));
                    both.use(1 - on);
                    CUdeviceptr beside = 0;
                    told.give("on the other device too" + of, list({number(call("cuIpcOpenMemHandle_v2", &beside, handle, 1u)), beside == memory ? "same" : "other"}));
                    both.use(on);
                    told.give("kernel" + of, list({both.put(on, memory, 96), word(memory)}));
                    told.give("close" + of, call("cuIpcCloseMemHandle", memory));
                }
                CUevent event{};
                both.use(on);
                told.give("event" + of, call("cuIpcOpenEventHandle", &event, shared));
                if (event) {
                    told.give("wait in " + number(on) + of, call("cuStreamWaitEvent", both.at[on].stream, event, 0u));
                    told.give("record in " + number(on) + of, call("cuEventRecord", event, both.at[on].stream));
                }
                told.give("health 0" + of, health(both, 0));
                told.give("health 1" + of, health(both, 1));
                peer.meet();
            });
    in_process(answers, "enabled by opening", [](const Told& told) {
        Both both;
        both.start();
        told.give("enable after the others' questions", call("cuCtxEnablePeerAccess", both.at[1].context, 0u));
    });
}

} // namespace devices
