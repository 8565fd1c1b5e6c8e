// SPDX-License-Identifier: Apache-2.0
// What a driver answers about batches: of copies, prefetches and discards; and about copies between contexts.
// Answers: batch_answers_h100.txt.
#include "processes.h"

#include "runtime/shim/texture_types.h"

#include <functional>
#include <vector>

using namespace answers;

namespace {

constexpr std::size_t mega = std::size_t{1} << 20;

CUstream make_stream() {
    CUstream stream{};
    must("cuStreamCreate", &stream, 1u);
    return stream;
}
CUdeviceptr allocate(std::size_t size) {
    CUdeviceptr at = 0;
    must("cuMemAlloc_v2", &at, size);
    return at;
}
CUdeviceptr allocate_managed(std::size_t size) {
    CUdeviceptr at = 0;
    must("cuMemAllocManaged", &at, size, 1u);
    return at;
}

struct Batch {
    std::vector<CUdeviceptr> to, from;
    std::vector<std::size_t> sizes;
    std::vector<CUmemcpyAttributes> attributes;
    std::vector<std::size_t> indices;
};

void ask_copies(const Told& told) {
    start();
    const CUstream stream = make_stream();
    CUdeviceptr a = allocate(mega), b = allocate(mega);
    std::vector<char> host(mega, 3);
    const auto plain = [&] {
        Batch batch;
        batch.to = {a, a + 8192, a + 16384}, batch.from = {b, b + 8192, b + 16384}, batch.sizes = {4096, 100, 1};
        batch.attributes = {{1, {}, {}, 0}};
        batch.indices = {0};
        return batch;
    };
    const auto run = [&](const std::string& of, Batch batch, CUstream on) {
        for (const bool old : {true, false}) {
            std::size_t wrong = 77;
            const int result = old ? call("cuMemcpyBatchAsync", batch.to.data(), batch.from.data(), batch.sizes.data(), batch.to.size(), batch.attributes.data(),
                                          batch.indices.data(), batch.indices.size(), &wrong, on)
                                   : call("cuMemcpyBatchAsync_v2", batch.to.data(), batch.from.data(), batch.sizes.data(), batch.to.size(), batch.attributes.data(),
                                          batch.indices.data(), batch.indices.size(), on);
            const int ended = call("cuCtxSynchronize");
            told.give(std::string("batch") + (old ? " of 12.8: " : ": ") + of, number(result) + (old ? " " + number(static_cast<long long>(wrong)) : "") + " " + number(ended));
        }
    };
    const auto with = [&](const std::string& of, const std::function<void(Batch&)>& change) {
        Batch batch = plain();
        change(batch);
        run(of, batch, stream);
    };
    with("three copies", [](Batch&) {});
    run("the null stream", plain(), nullptr);
    run("the legacy stream", plain(), reinterpret_cast<CUstream>(1));
    run("the thread's stream", plain(), reinterpret_cast<CUstream>(2));
    with("no copies", [](Batch& b) { b.to.clear(), b.from.clear(), b.sizes.clear(); });
    with("no copies, no attributes", [](Batch& b) { b = {}; });
    with("no attributes", [](Batch& b) { b.attributes.clear(), b.indices.clear(); });
    for (int order = 0; order <= 4; ++order) with("access order " + number(order), [=](Batch& b) { b.attributes[0].srcAccessOrder = order; });
    for (unsigned flags : {1u, 2u, 3u}) with("flags " + number(flags), [=](Batch& b) { b.attributes[0].flags = flags; });
    with("first index 1", [](Batch& b) { b.indices = {1}; });
    with("indices 0 2", [](Batch& b) { b.attributes.resize(2, b.attributes[0]), b.indices = {0, 2}; });
    with("indices 0 0", [](Batch& b) { b.attributes.resize(2, b.attributes[0]), b.indices = {0, 0}; });
    with("indices 0 2 1", [](Batch& b) { b.attributes.resize(3, b.attributes[0]), b.indices = {0, 2, 1}; });
    with("indices 0 3", [](Batch& b) { b.attributes.resize(2, b.attributes[0]), b.indices = {0, 3}; });
    with("more attributes than copies", [](Batch& b) { b.attributes.resize(4, b.attributes[0]), b.indices = {0, 1, 2, 3}; });
    with("second order 0", [](Batch& b) { b.attributes.resize(2, b.attributes[0]), b.attributes[1].srcAccessOrder = 0, b.indices = {0, 2}; });
    with("a copy of nothing", [](Batch& b) { b.sizes[1] = 0; });
    with("from null", [](Batch& b) { b.from[1] = 0; });
    with("to null", [](Batch& b) { b.to[2] = 0; });
    with("beyond the end", [](Batch& b) { b.sizes[1] = 2 * mega; });
    with("from host memory", [&](Batch& b) { b.from[1] = reinterpret_cast<CUdeviceptr>(host.data()); });
    with("from host memory during the call", [&](Batch& b) { b.from[1] = reinterpret_cast<CUdeviceptr>(host.data()), b.attributes[0].srcAccessOrder = 2; });
    with("to host memory", [&](Batch& b) { b.to[1] = reinterpret_cast<CUdeviceptr>(host.data()); });
    with("from host to host memory", [&](Batch& b) { b.to[1] = reinterpret_cast<CUdeviceptr>(host.data()), b.from[1] = b.to[1] + 4096; });
    for (int place : {1, 2, 3, 4, 5}) with("hint place " + number(place), [=](Batch& b) { b.attributes[0].srcLocHint = {place, 0}; });
    with("hint device 7", [](Batch& b) { b.attributes[0].srcLocHint = {1, 7}; });
    const CUdeviceptr managed = allocate_managed(mega);
    with("managed, hint device 7", [=](Batch& b) { b.from[0] = managed, b.attributes[0].srcLocHint = {1, 7}; });
    with("managed, hint place 5", [=](Batch& b) { b.from[0] = managed, b.attributes[0].srcLocHint = {5, 0}; });
    with("managed, hint the host", [=](Batch& b) { b.from[0] = managed, b.attributes[0].srcLocHint = {2, 0}; });
    must("cuCtxSynchronize");
}

void ask_boxes(const Told& told) {
    start();
    const CUstream stream = make_stream();
    const CUdeviceptr a = allocate(mega), b = allocate(mega);
    std::vector<char> host(mega, 3);
    CUDA_ARRAY3D_DESCRIPTOR shape{16, 16, 4, 0x20, 1, 0}, other_shape{16, 16, 4, 0x01, 1, 0};
    CUarray array{}, of_bytes{};
    must("cuArray3DCreate_v2", &array, &shape);
    must("cuArray3DCreate_v2", &of_bytes, &other_shape);
    const auto pointer = [](CUdeviceptr at, std::size_t row = 0, std::size_t rows = 0) {
        CUmemcpy3DOperand end{};
        end.type = 1, end.op.ptr = {at, row, rows, {}};
        return end;
    };
    const auto in_array = [](CUarray in, std::size_t x = 0, std::size_t y = 0, std::size_t z = 0) {
        CUmemcpy3DOperand end{};
        end.type = 2, end.op.array = {in, {x, y, z}};
        return end;
    };
    const auto plain = [&] { return CUDA_MEMCPY3D_BATCH_OP{pointer(b), pointer(a), {8, 4, 2}, 1, 0}; };
    const auto run = [&](const std::string& of, std::vector<CUDA_MEMCPY3D_BATCH_OP> list, CUstream on, unsigned long long flags = 0) {
        for (const bool old : {true, false}) {
            std::size_t wrong = 77;
            const int result = old ? call("cuMemcpy3DBatchAsync", list.size(), list.data(), &wrong, flags, on) : call("cuMemcpy3DBatchAsync_v2", list.size(), list.data(), flags, on);
            const int ended = call("cuCtxSynchronize");
            told.give(std::string("boxes") + (old ? " of 12.8: " : ": ") + of, number(result) + (old ? " " + number(static_cast<long long>(wrong)) : "") + " " + number(ended));
        }
    };
    const auto with = [&](const std::string& of, const std::function<void(CUDA_MEMCPY3D_BATCH_OP&)>& change) {
        CUDA_MEMCPY3D_BATCH_OP box = plain();
        change(box);
        run(of, {plain(), box}, stream);
    };
    with("two boxes", [](auto&) {});
    run("none", {}, stream);
    run("the null stream", {plain()}, nullptr);
    run("flags 1 of the list", {plain()}, stream, 1);
    for (int type : {0, 3}) with("operand type " + number(type), [=](auto& box) { box.src.type = type; });
    for (int order = 0; order <= 4; ++order) with("access order " + number(order), [=](auto& box) { box.srcAccessOrder = order; });
    for (unsigned flags : {1u, 2u}) with("flags " + number(flags), [=](auto& box) { box.flags = flags; });
    for (int side = 0; side < 3; ++side) with("extent 0 in dimension " + number(side), [=](auto& box) { box.extent[side] = 0; });
    with("row as long as the box", [=](auto& box) { box.src = pointer(b, 8); });
    with("row too short", [=](auto& box) { box.src = pointer(b, 7); });
    with("too few rows", [=](auto& box) { box.src = pointer(b, 8, 3); });
    with("longer rows", [=](auto& box) { box.src = pointer(b, 100, 50); });
    with("beyond the end", [=](auto& box) { box.src = pointer(b, 4096, 4096); });
    with("from null", [=](auto& box) { box.src = pointer(0); });
    with("from host memory", [&](auto& box) { box.src = pointer(reinterpret_cast<CUdeviceptr>(host.data())); });
    with("to an array", [=](auto& box) { box.dst = in_array(array); });
    with("to an array at 8 12 2", [=](auto& box) { box.dst = in_array(array, 8, 12, 2); });
    with("to an array at 9 12 2", [=](auto& box) { box.dst = in_array(array, 9, 12, 2); });
    with("to an array at 8 12 3", [=](auto& box) { box.dst = in_array(array, 8, 12, 3); });
    with("from an array", [=](auto& box) { box.src = in_array(array); });
    with("from array to array", [=](auto& box) { box.src = in_array(array), box.dst = in_array(array, 8, 8, 2); });
    with("between arrays of other elements", [=](auto& box) { box.src = in_array(array), box.dst = in_array(of_bytes); });
    // What rows of an array's elements are: 8 x 2 words.
    std::vector<unsigned> words(64);
    for (unsigned i = 0; i < 64; ++i) words[i] = i;
    CUDA_MEMCPY3D_BATCH_OP box{pointer(reinterpret_cast<CUdeviceptr>(words.data()), 10), in_array(array), {8, 2, 1}, 1, 0};
    must("cuMemcpy3DBatchAsync_v2", std::size_t{1}, &box, 0ull, stream);
    std::vector<unsigned> back(64);
    box = {in_array(array, 1, 1, 0), pointer(reinterpret_cast<CUdeviceptr>(back.data())), {2, 1, 1}, 1, 0};
    must("cuStreamSynchronize", stream);
    must("cuMemcpy3DBatchAsync_v2", std::size_t{1}, &box, 0ull, stream);
    must("cuStreamSynchronize", stream);
    told.give("rows of words", number(back[0]) + " " + number(back[1]));
}

void ask_peers(const Told& told) {
    CUcontext context = start(), other{};
    const CUdeviceptr a = allocate(mega), b = allocate(mega);
    must("cuCtxCreate_v2", &other, 0u, 0);
    const CUdeviceptr c = allocate(mega);
    must("cuCtxSetCurrent", context);
    const CUstream stream = make_stream();
    CUDA_ARRAY3D_DESCRIPTOR shape{16, 16, 4, 0x20, 1, 0};
    CUarray array{};
    must("cuArray3DCreate_v2", &array, &shape);
    std::vector<char> host(mega, 3);
    const auto plain = [&] {
        CUDA_MEMCPY3D_PEER box{};
        box.srcMemoryType = 2, box.srcDevice = b, box.srcContext = context;
        box.dstMemoryType = 2, box.dstDevice = a, box.dstContext = context;
        box.WidthInBytes = 32, box.Height = 4, box.Depth = 2;
        return box;
    };
    const auto with = [&](const std::string& of, const std::function<void(CUDA_MEMCPY3D_PEER&)>& change) {
        CUDA_MEMCPY3D_PEER box = plain();
        change(box);
        std::string answer = number(call("cuMemcpy3DPeer", &box));
        answer += " " + number(call("cuMemcpy3DPeerAsync", &box, stream));
        answer += " " + number(call("cuMemcpy3DPeerAsync", &box, CUstream{}));
        told.give("box between contexts: " + of, answer + " " + number(call("cuCtxSynchronize")));
    };
    with("one context", [](auto&) {});
    with("two contexts", [=](auto& box) { box.srcContext = other, box.srcDevice = c; });
    with("wrong context", [=](auto& box) { box.srcContext = other; });
    with("no context", [](auto& box) { box.srcContext = nullptr; });
    with("no contexts", [](auto& box) { box.srcContext = nullptr, box.dstContext = nullptr; });
    with("unified", [](auto& box) { box.srcMemoryType = 4; });
    with("from host memory", [&](auto& box) { box.srcMemoryType = 1, box.srcHost = host.data(); });
    with("from host memory, no context", [&](auto& box) { box.srcMemoryType = 1, box.srcHost = host.data(), box.srcContext = nullptr; });
    with("to an array", [=](auto& box) { box.dstMemoryType = 3, box.dstArray = array; });
    with("type 0", [](auto& box) { box.srcMemoryType = 0; });
    with("type 5", [](auto& box) { box.srcMemoryType = 5; });
    with("width 0", [](auto& box) { box.WidthInBytes = 0; });
    with("depth 0", [](auto& box) { box.Depth = 0; });
    with("level 1", [](auto& box) { box.srcLOD = 1; });
    with("pitch below the width", [](auto& box) { box.srcPitch = 31; });
    with("pitch", [](auto& box) { box.srcPitch = 64; });
    with("too few rows", [](auto& box) { box.srcPitch = 64, box.srcHeight = 3; });
    with("beyond the end", [](auto& box) { box.srcZ = 1 << 20; });
    const auto line = [&](const std::string& of, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, std::size_t size) {
        std::string answer = number(call("cuMemcpyPeer", to, to_context, from, from_context, size));
        answer += " " + number(call("cuMemcpyPeerAsync", to, to_context, from, from_context, size, stream));
        told.give("copy between contexts: " + of, answer + " " + number(call("cuCtxSynchronize")));
    };
    line("one context", a, context, b, context, 4096);
    line("two contexts", a, context, c, other, 4096);
    line("contexts exchanged", a, other, c, context, 4096);
    line("null source context", a, context, b, nullptr, 4096);
    line("null contexts", a, nullptr, b, nullptr, 4096);
    line("nothing", a, context, b, context, 0);
    line("nothing, null contexts", a, nullptr, b, nullptr, 0);
    line("beyond the end", a, context, b, context, 2 * mega);
    line("from host memory", a, context, reinterpret_cast<CUdeviceptr>(host.data()), context, 4096);
    line("to null", 0, context, b, context, 4096);
    must("cuCtxSetCurrent", CUcontext{});
    line("two contexts, none current", a, context, c, other, 4096);
    must("cuCtxSetCurrent", context);
    told.give("peer access to itself", call("cuCtxEnablePeerAccess", context, 0u));
    told.give("peer access to another of the device", call("cuCtxEnablePeerAccess", other, 0u));
    told.give("peer access, flags 1", call("cuCtxEnablePeerAccess", other, 1u));
    told.give("peer access ended", call("cuCtxDisablePeerAccess", other));
    int can = 77;
    const int asked = call("cuDeviceCanAccessPeer", &can, 0, 0);
    told.give("can access itself", number(asked) + " " + number(can));
    told.give("can access device 1", call("cuDeviceCanAccessPeer", &can, 0, 1));
    for (int attribute = 0; attribute <= 6; ++attribute) {
        can = 77;
        const int result = call("cuDeviceGetP2PAttribute", &can, attribute, 0, 0);
        told.give("attribute " + number(attribute) + " of itself as peer", number(result) + " " + number(can));
    }
    told.give("attribute of device 1 as peer", call("cuDeviceGetP2PAttribute", &can, 1, 0, 1));
}

void ask_managed(const Told& told) {
    start();
    const CUstream stream = make_stream();
    const std::size_t size = 4 * mega;
    const CUdeviceptr a = allocate_managed(size), b = allocate_managed(size), plain = allocate(size);
    std::vector<CUdeviceptr> ranges = {a, b};
    std::vector<std::size_t> sizes = {size, size};
    const auto last = [&](CUdeviceptr at) {
        int place = 77;
        const int result = call("cuMemRangeGetAttribute", static_cast<void*>(&place), std::size_t{4}, 4, at, size);
        return result ? "!" + number(result) : number(place);
    };
    const auto prefetch = [&](const char* entry, const std::string& of, std::vector<CUdeviceptr> at, std::vector<std::size_t> bytes, std::vector<CUmemLocation> places,
                              std::vector<std::size_t> indices, unsigned long long flags, CUstream on) {
        const int result = call(entry, at.data(), bytes.data(), at.size(), places.data(), indices.data(), places.size(), flags, on);
        const int ended = call("cuCtxSynchronize");
        told.give(std::string(entry) + " " + of, number(result) + " " + number(ended) + " " + last(a) + " " + last(b));
    };
    for (const char* entry : {"cuMemPrefetchBatchAsync", "cuMemDiscardAndPrefetchBatchAsync"}) {
        prefetch(entry, "to the device", ranges, sizes, {{1, 0}}, {0}, 0, stream);
        prefetch(entry, "to the host", ranges, sizes, {{2, 0}}, {0}, 0, stream);
        prefetch(entry, "to both", ranges, sizes, {{1, 0}, {2, 0}}, {0, 1}, 0, stream);
        prefetch(entry, "first index 1", ranges, sizes, {{1, 0}}, {1}, 0, stream);
        prefetch(entry, "indices 0 0", ranges, sizes, {{1, 0}, {2, 0}}, {0, 0}, 0, stream);
        prefetch(entry, "indices 0 0 to the host first", ranges, sizes, {{2, 0}, {1, 0}}, {0, 0}, 0, stream);
        prefetch(entry, "three, indices 0 2 1", {a, b, a + 4096}, {4096, size, 4096}, {{1, 0}, {2, 0}, {1, 0}}, {0, 2, 1}, 0, stream);
        prefetch(entry, "indices 0 2", ranges, sizes, {{1, 0}, {2, 0}}, {0, 2}, 0, stream);
        prefetch(entry, "no places", ranges, sizes, {}, {}, 0, stream);
        prefetch(entry, "more places than ranges", ranges, sizes, {{1, 0}, {2, 0}, {1, 0}}, {0, 1, 2}, 0, stream);
        prefetch(entry, "nothing", {}, {}, {}, {}, 0, stream);
        prefetch(entry, "flags 1", ranges, sizes, {{2, 0}}, {0}, 1, stream);
        prefetch(entry, "the null stream", ranges, sizes, {{2, 0}}, {0}, 0, nullptr);
        prefetch(entry, "device 7", ranges, sizes, {{1, 7}}, {0}, 0, stream);
        for (int place : {0, 3, 4, 5}) prefetch(entry, "to place " + number(place), ranges, sizes, {{place, 0}}, {0}, 0, stream);
        prefetch(entry, "second of device memory", {a, plain}, sizes, {{1, 0}}, {0}, 0, stream);
        prefetch(entry, "second of size 0", ranges, {size, 0}, {{2, 0}}, {0}, 0, stream);
        prefetch(entry, "second beyond", ranges, {size, 2 * size}, {{1, 0}}, {0}, 0, stream);
        prefetch(entry, "second null", {a, 0}, sizes, {{2, 0}}, {0}, 0, stream);
        told.give(std::string(entry) + " without ranges", call(entry, nullptr, sizes.data(), std::size_t{2}, nullptr, nullptr, std::size_t{0}, 0ull, stream));
    }
    must("cuMemPrefetchAsync_v2", a, size, CUmemLocation{1, 0}, 0u, stream);
    must("cuStreamSynchronize", stream);
    const auto discard = [&](const std::string& of, std::vector<CUdeviceptr> at, std::vector<std::size_t> bytes, unsigned long long flags, CUstream on) {
        const int result = call("cuMemDiscardBatchAsync", at.data(), bytes.data(), at.size(), flags, on);
        const int ended = call("cuCtxSynchronize");
        told.give("discard " + of, number(result) + " " + number(ended) + " " + last(a));
    };
    discard("two", ranges, sizes, 0, stream);
    discard("parts", {a + 4096, b + 100}, {8192, 100}, 0, stream);
    discard("none", {}, {}, 0, stream);
    discard("flags 1", ranges, sizes, 1, stream);
    discard("in the null stream", ranges, sizes, 0, nullptr);
    discard("in the legacy stream", ranges, sizes, 0, reinterpret_cast<CUstream>(1));
    discard("device memory", {a, plain}, sizes, 0, stream);
    discard("nothing of one", ranges, {size, 0}, 0, stream);
    discard("beyond", ranges, {size, 2 * size}, 0, stream);
    discard("null", {a, 0}, sizes, 0, stream);
    discard("overlapping", {a, a + 4096}, {size, 8192}, 0, stream);
    told.give("discard without ranges", call("cuMemDiscardBatchAsync", nullptr, sizes.data(), std::size_t{2}, 0ull, stream));
    must("cuMemsetD8Async", a, static_cast<unsigned char>(3), size, stream);
    discard("behind a fill", {b}, {size}, 0, stream);
    told.give("written after the discard", *reinterpret_cast<volatile char*>(a));
}

} // namespace

int main(int count, char** words) {
    Answers answers(count, words);
    in_process(answers, "copies", ask_copies);
    in_process(answers, "boxes", ask_boxes);
    in_process(answers, "peers", ask_peers);
    in_process(answers, "managed memory", ask_managed);
    return answers.finish();
}
