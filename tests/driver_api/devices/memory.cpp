// SPDX-License-Identifier: Apache-2.0
// Memory of two devices: what pointers say, copies between contexts, managed memory.
#include "two_devices.h"

namespace devices {
namespace {

/// Context, memory type, device pointer, managed, ordinal, range size, mapped, access flags, pool.
std::string attributes(const Both& both, CUdeviceptr at) {
    std::string all;
    for (int attribute : {1, 2, 3, 4, 8, 9, 12, 13, 16, 17}) {
        unsigned long long value[2] = {};
        const int result = call("cuPointerGetAttribute", static_cast<void*>(value), attribute, at);
        std::string said = "!" + number(result);
        if (!result) switch (attribute) {
            case 1: said = both.name(reinterpret_cast<CUcontext>(value[0])); break;
            case 3:
            case 4: said = value[0] == at ? "same" : value[0] ? "other" : "none"; break;
            case 17: said = value[0] ? "some" : "none"; break;
            case 12: said = number(static_cast<long long>(value[0])); break;
            default: said = number(static_cast<int>(value[0])); break;
            }
        all += (all.empty() ? "" : " ") + number(attribute) + ":" + said;
    }
    return all;
}

void ask_pointers(const Told& told) {
    Both both;
    both.start();
    CUdeviceptr managed[2] = {}, pooled[2] = {}, variable[2] = {}, mine[2] = {};
    void *pinned[2] = {}, *portable[2] = {};
    std::size_t size = 0;
    for (int i = 0; i < 2; ++i) {
        both.use(i);
        must("cuMemAllocManaged", &managed[i], std::size_t{4096}, 1u);
        must("cuMemAllocAsync", &pooled[i], std::size_t{4096}, both.at[i].stream);
        must("cuMemHostAlloc", &pinned[i], std::size_t{4096}, 0u);
        must("cuMemHostAlloc", &portable[i], std::size_t{4096}, 3u);
        must("cuModuleGetGlobal_v2", &variable[i], &size, both.at[i].module, "variable");
        must("cuModuleGetGlobal_v2", &mine[i], &size, both.at[i].module, "managed_variable");
        must("cuCtxSynchronize");
    }
    const auto ask = [&](const std::string& of) {
        for (int current = 0; current < 2; ++current) {
            both.use(current);
            for (int i = 0; i < 2; ++i) {
                const std::string where = ", of " + number(i) + ", current " + number(current) + of;
                told.give("memory" + where, attributes(both, both.at[i].memory));
                told.give("managed" + where, attributes(both, managed[i]));
                told.give("pool" + where, attributes(both, pooled[i]));
                told.give("pinned" + where, attributes(both, reinterpret_cast<CUdeviceptr>(pinned[i])));
                told.give("portable" + where, attributes(both, reinterpret_cast<CUdeviceptr>(portable[i])));
                told.give("variable" + where, attributes(both, variable[i]));
                told.give("managed variable" + where, attributes(both, mine[i]));
                CUdeviceptr base = 0;
                told.give("range" + where, call("cuMemGetAddressRange_v2", &base, &size, both.at[i].memory));
                CUdeviceptr device = 0;
                told.give("device pointer of pinned" + where, list({number(call("cuMemHostGetDevicePointer_v2", &device, pinned[i], 0u)), device == reinterpret_cast<CUdeviceptr>(pinned[i]) ? "same" : "other"}));
            }
        }
    };
    ask("");
    both.use(0);
    must("cuCtxEnablePeerAccess", both.at[1].context, 0u);
    ask(", 0 may access 1");
    both.use(0);
    CUcontext user{};
    CUdeviceptr of_user = 0;
    must("cuCtxCreate_v2", &user, 0u, 1);
    must("cuMemAlloc_v2", &of_user, std::size_t{4096});
    must("cuCtxPopCurrent_v2", &user);
    told.give("memory of a created context", attributes(both, of_user));
    // Kernels of both on host memory and managed memory of either.
    for (int i = 0; i < 2; ++i)
        for (int on = 0; on < 2; ++on) {
            const std::string where = " of " + number(i) + " from " + number(on);
            both.use(on);
            told.give("kernel, portable" + where, both.put(on, reinterpret_cast<CUdeviceptr>(portable[i]), 40));
            told.give("kernel, pinned" + where, both.put(on, reinterpret_cast<CUdeviceptr>(pinned[i]), 41));
            told.give("kernel, managed" + where, both.put(on, managed[i], 42));
            told.give("kernel, managed variable" + where, both.put(on, mine[i], 43));
            told.give("words" + where, word(reinterpret_cast<CUdeviceptr>(pinned[i])) + " " + word(managed[i]) + " " + word(mine[i]));
        }
}

void ask_copies(const Told& told, bool peers) {
    Both both;
    both.start();
    const Side &a = both.at[0], &b = both.at[1];
    const std::string end = peers ? ", with access" : "";
    if (peers) must("cuCtxEnablePeerAccess", b.context, 0u);
    const std::size_t small = 64;
    const CUcontext none = nullptr, junk = reinterpret_cast<CUcontext>(const_cast<char*>(text));
    const auto peer = [&](const std::string& of, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, std::size_t size) {
        fill(a.memory, 50);
        fill(b.memory, 51);
        const int result = call("cuMemcpyPeer", to, to_context, from, from_context, size);
        told.give("peer copy, " + of + end, number(result) + " " + word(a.memory) + " " + word(b.memory));
    };
    peer("0 to 1", b.memory, b.context, a.memory, a.context, small);
    peer("1 to 0", a.memory, a.context, b.memory, b.context, small);
    peer("contexts swapped", a.memory, b.context, b.memory, a.context, small);
    peer("both of 0", a.memory, a.context, b.memory, a.context, small);
    peer("within 1", b.memory, b.context, b.memory + 2048, b.context, small);
    peer("too large", a.memory, a.context, b.memory, b.context, 3 * page);
    peer("of nothing", a.memory, a.context, b.memory, b.context, 0);
    peer("of nothing at null", 0, a.context, 0, b.context, 0);
    peer("no contexts", a.memory, none, b.memory, none, small);
    peer("no source context", a.memory, a.context, b.memory, none, small);
    (void)junk;
    std::vector<unsigned> host(1024, 52);
    peer("from host memory", a.memory, a.context, reinterpret_cast<CUdeviceptr>(host.data()), b.context, small);
    both.use(1);
    peer("1 to 0, 1 is current", a.memory, a.context, b.memory, b.context, small);
    both.use(0);
    for (int i = 0; i < 3; ++i) {
        const CUstream stream = i == 2 ? nullptr : both.at[i].stream;
        fill(a.memory, 50);
        fill(b.memory, 51);
        const int result = call("cuMemcpyPeerAsync", a.memory, a.context, b.memory, b.context, small, stream);
        told.give("peer copy, in " + number(i) + end, list({number(result), number(call("cuStreamSynchronize", stream)), word(a.memory)}));
    }
    const auto plain = [&](const std::string& of, auto&& make) {
        fill(a.memory, 50);
        fill(b.memory, 51);
        const int result = make();
        told.give("copy, " + of + end, list({number(result), number(call("cuCtxSynchronize")), word(a.memory), word(b.memory)}));
    };
    plain("DtoD 1 to 0", [&] { return call("cuMemcpyDtoD_v2", a.memory, b.memory, small); });
    plain("DtoD 0 to 1", [&] { return call("cuMemcpyDtoD_v2", b.memory, a.memory, small); });
    plain("unified", [&] { return call("cuMemcpy", a.memory, b.memory, small); });
    plain("unified, async in 0", [&] { return call("cuMemcpyAsync", a.memory, b.memory, small, a.stream); });
    plain("within 1, 0 is current", [&] { return call("cuMemcpyDtoD_v2", b.memory, b.memory + 2048, small); });
    plain("within 1 in 0", [&] { return call("cuMemcpyDtoDAsync_v2", b.memory, b.memory + 2048, small, a.stream); });
    plain("within 1 in 1", [&] { return call("cuMemcpyDtoDAsync_v2", b.memory, b.memory + 2048, small, b.stream); });
    plain("unified within 1", [&] { return call("cuMemcpy", b.memory, b.memory + 2048, small); });
    plain("within 1, of nothing", [&] { return call("cuMemcpyDtoD_v2", b.memory, b.memory + 2048, std::size_t{0}); });
    plain("fill 1 in 1", [&] { return call("cuMemsetD32Async", b.memory, 54u, std::size_t{16}, b.stream); });
    plain("fill 1 of nothing", [&] { return call("cuMemsetD32_v2", b.memory, 54u, std::size_t{0}); });
    plain("HtoD 1, 0 is current", [&] { return call("cuMemcpyHtoD_v2", b.memory, static_cast<const void*>(host.data()), small); });
    plain("fill 1, 0 is current", [&] { return call("cuMemsetD32_v2", b.memory, 53u, std::size_t{16}); });
    CUDA_MEMCPY2D box{};
    box.srcMemoryType = 2, box.srcDevice = b.memory, box.dstMemoryType = 2, box.dstDevice = a.memory, box.WidthInBytes = 16, box.Height = 2;
    plain("2D", [&] { return call("cuMemcpy2D_v2", const_cast<const CUDA_MEMCPY2D*>(&box)); });
    box.dstDevice = b.memory + 2048;
    plain("2D within 1", [&] { return call("cuMemcpy2D_v2", const_cast<const CUDA_MEMCPY2D*>(&box)); });
    box.srcMemoryType = 1, box.srcHost = host.data(), box.dstDevice = b.memory;
    plain("2D HtoD 1", [&] { return call("cuMemcpy2D_v2", const_cast<const CUDA_MEMCPY2D*>(&box)); });
    CUDA_MEMCPY3D_PEER cube{};
    cube.srcMemoryType = 2, cube.srcDevice = b.memory, cube.dstMemoryType = 2, cube.dstDevice = a.memory, cube.WidthInBytes = 16, cube.Height = 2, cube.Depth = 1;
    cube.srcContext = b.context, cube.dstContext = a.context;
    const CUDA_MEMCPY3D_PEER* const cubed = &cube;
    plain("3D peer", [&] { return call("cuMemcpy3DPeer", cubed); });
    plain("3D peer in 1", [&] { return call("cuMemcpy3DPeerAsync", cubed, b.stream); });
    std::swap(cube.srcContext, cube.dstContext);
    plain("3D peer, contexts swapped", [&] { return call("cuMemcpy3DPeer", cubed); });
    cube.srcContext = cube.dstContext = nullptr;
    plain("3D peer, no contexts", [&] { return call("cuMemcpy3DPeer", cubed); });
    // Arrays of the other device.
    CUDA_ARRAY3D_DESCRIPTOR shape{16, 16, 0, 3, 1, 0};
    CUarray array{};
    both.use(1);
    must("cuArray3DCreate_v2", &array, const_cast<const CUDA_ARRAY3D_DESCRIPTOR*>(&shape));
    both.use(0);
    plain("HtoA 1, 0 is current", [&] { return call("cuMemcpyHtoA_v2", array, std::size_t{0}, static_cast<const void*>(host.data()), small); });
    plain("AtoD 1 to 0", [&] { return call("cuMemcpyAtoD_v2", a.memory, array, std::size_t{0}, small); });
    told.give("copies, health 0" + end, health(both, 0));
    told.give("copies, health 1" + end, health(both, 1));
}

void ask_managed(const Told& told) {
    Both both;
    both.start();
    both.use(0);
    CUdeviceptr managed = 0;
    must("cuMemAllocManaged", &managed, 2 * page, 1u);
    const auto attribute = [&](int which) {
        int value[4] = {-7, -7, -7, -7};
        const std::size_t bytes = which == 3 ? 16 : 4;
        const int result = call("cuMemRangeGetAttribute", static_cast<void*>(&value[0]), bytes, which, managed, page);
        std::string said = number(result) + " " + number(value[0]);
        if (which == 3) for (int i = 1; i < 4; ++i) said += " " + number(value[i]);
        return said;
    };
    // The attribute is what it was before: the order in which the recorded program's compiler took them.
    const auto advise = [&](int advice, int type, int id, int which) {
        const std::string before = attribute(which);
        return number(call("cuMemAdvise_v2", managed, page, advice, CUmemLocation{type, id})) + ", " + before;
    };
    told.give("preferred is 1", advise(3, 1, 1, 2));
    told.give("preferred is 2", advise(3, 1, 2, 2));
    told.give("used by 1", advise(5, 1, 1, 3));
    told.give("used by 0", advise(5, 1, 0, 3));
    told.give("used by the host", advise(5, 2, 0, 3));
    told.give("used by 2", advise(5, 1, 2, 3));
    told.give("not used by 1", advise(6, 1, 1, 3));
    told.give("prefetched to 1 in 0", list({number(call("cuMemPrefetchAsync_v2", managed, page, CUmemLocation{1, 1}, 0u, both.at[0].stream)), attribute(4)}));
    told.give("prefetched to 1 in 1", list({number(call("cuMemPrefetchAsync_v2", managed, page, CUmemLocation{1, 1}, 0u, both.at[1].stream)), attribute(4)}));
    told.give("prefetched to 0 in 1", list({number(call("cuMemPrefetchAsync_v2", managed, page, CUmemLocation{1, 0}, 0u, both.at[1].stream)), attribute(4)}));
    told.give("prefetched to 2", list({number(call("cuMemPrefetchAsync_v2", managed, page, CUmemLocation{1, 2}, 0u, both.at[0].stream)), attribute(4)}));
    must("cuCtxSynchronize");
    for (int which : {5, 6, 7, 8}) told.give("range attribute " + number(which), attribute(which));
    both.use(1);
    told.give("free of the other's", call("cuMemFree_v2", managed));
}

} // namespace

void ask_memory(Answers& answers) {
    in_process(answers, "pointers", ask_pointers);
    in_process(answers, "copies", [](const Told& told) { ask_copies(told, false); });
    in_process(answers, "copies with access", [](const Told& told) { ask_copies(told, true); });
    in_process(answers, "managed memory", ask_managed);
}

} // namespace devices
