// SPDX-License-Identifier: Apache-2.0
// What a driver answers about advice on managed memory and about host memory that is registered.
// Answers: memory_answers_h100.txt.
#include "answers.h"

#include "runtime/shim/cuda_types.h"

#include <cstring>
#include <unistd.h>

using namespace answers;

namespace {

std::string number(long long value) {
    return std::to_string(value);
}

std::string range_attributes(CUdeviceptr pointer, std::size_t size) {
    std::string all;
    for (int attribute = 0; attribute <= 9; ++attribute) {
        int values[3] = {77, 77, 77};
        const bool list = attribute == 3;
        const int result = call("cuMemRangeGetAttribute", static_cast<void*>(values), std::size_t{list ? 12u : 4u}, attribute, pointer, size);
        all += (all.empty() ? "" : " ") + (result ? "!" + number(result) : number(values[0]));
        if (list && !result) all += "," + number(values[1]) + "," + number(values[2]);
    }
    return all;
}

void ask_advice(Answers& answers, CUstream stream) {
    const std::size_t size = 8 << 20, half = size / 2;
    const auto fresh = [&] {
        CUdeviceptr pointer = 0;
        must("cuMemAllocManaged", &pointer, size, 1u);
        return pointer;
    };
    CUdeviceptr m = fresh();
    answers.give("attributes of new managed memory", range_attributes(m, size));
    for (int advice = 0; advice <= 8; ++advice)
        for (int place = 0; place <= 5; ++place) {
            m = fresh();
            const std::string of = " " + number(advice) + " place " + number(place);
            answers.give("advice" + of, call("cuMemAdvise_v2", m, size, advice, CUmemLocation{place, 0}));
            answers.give("attributes after" + of, range_attributes(m, size));
            must("cuMemFree_v2", m);
        }
    for (int advice = 0; advice <= 8; ++advice)
        for (int device : {-2, -1, 0, 1}) {
            m = fresh();
            const std::string of = " " + number(advice) + " device " + number(device);
            answers.give("advice" + of, call("cuMemAdvise", m, size, advice, device));
            answers.give("attributes after" + of, range_attributes(m, size));
            must("cuMemFree_v2", m);
        }
    m = fresh();
    const CUmemLocation device{1, 0}, host{2, 0};
    must("cuMemAdvise_v2", m, half, 1, device);
    must("cuMemAdvise_v2", m, half, 3, device);
    must("cuMemAdvise_v2", m, half, 5, device);
    answers.give("half advised: whole", range_attributes(m, size));
    answers.give("half advised: first half", range_attributes(m, half));
    answers.give("half advised: second half", range_attributes(m + half, half));
    answers.give("half advised: 100 bytes", range_attributes(m + 100, 100));
    must("cuMemAdvise_v2", m, size, 5, host);
    answers.give("accessed by both: first half", range_attributes(m, half));
    answers.give("accessed by both: whole", range_attributes(m, size));
    must("cuMemAdvise_v2", m, half, 6, device);
    answers.give("no longer by the device: first half", range_attributes(m, half));
    must("cuMemAdvise_v2", m, half, 2, device);
    must("cuMemAdvise_v2", m, half, 4, device);
    answers.give("advice taken back: first half", range_attributes(m, half));
    must("cuMemAdvise_v2", m + 100, std::size_t{100}, 1, device);
    answers.give("100 bytes read mostly: these", range_attributes(m + 100, 100));
    answers.give("100 bytes read mostly: 4096 around", range_attributes(m, 4096));
    answers.give("100 bytes read mostly: 64 KiB around", range_attributes(m, 65536));
    answers.give("100 bytes read mostly: 2 MiB around", range_attributes(m, 2 << 20));
    m = fresh();
    answers.give("prefetch to the host", call("cuMemPrefetchAsync_v2", m, size, host, 0u, stream));
    answers.give("prefetched to the host", range_attributes(m, size));
    answers.give("prefetch half to the device", call("cuMemPrefetchAsync_v2", m, half, device, 0u, stream));
    must("cuStreamSynchronize", stream);
    answers.give("half prefetched to the device: whole", range_attributes(m, size));
    answers.give("half prefetched to the device: it", range_attributes(m, half));
    answers.give("prefetch of old form, -1", call("cuMemPrefetchAsync", m, size, -1, stream));
    answers.give("prefetched by the old form", range_attributes(m, size));
    for (int place = 0; place <= 5; ++place) {
        answers.give("prefetch to place " + number(place), call("cuMemPrefetchAsync_v2", m, size, CUmemLocation{place, 0}, 0u, stream));
        answers.give("prefetched to place " + number(place), range_attributes(m, size));
        answers.give("prefetch to place " + number(place) + " id 1", call("cuMemPrefetchAsync_v2", m, size, CUmemLocation{place, 1}, 0u, stream));
    }
    answers.give("prefetch with flags", call("cuMemPrefetchAsync_v2", m, size, device, 1u, stream));
    answers.give("prefetch of nothing", call("cuMemPrefetchAsync_v2", m, std::size_t{0}, device, 0u, stream));
    answers.give("prefetch beyond", call("cuMemPrefetchAsync_v2", m, size + (2 << 20), device, 0u, stream));
    answers.give("advice on nothing", call("cuMemAdvise_v2", m, std::size_t{0}, 1, device));
    answers.give("advice beyond", call("cuMemAdvise_v2", m, size + (64 << 20), 1, device));
    CUdeviceptr plain = 0;
    must("cuMemAlloc_v2", &plain, std::size_t{4096});
    answers.give("advice on device memory", call("cuMemAdvise_v2", plain, std::size_t{4096}, 1, device));
    answers.give("prefetch of device memory", call("cuMemPrefetchAsync_v2", plain, std::size_t{4096}, device, 0u, stream));
    answers.give("attributes of device memory", range_attributes(plain, 4096));
    void* pinned = nullptr;
    must("cuMemHostAlloc", &pinned, std::size_t{4096}, 0u);
    answers.give("advice on pinned memory", call("cuMemAdvise_v2", reinterpret_cast<CUdeviceptr>(pinned), std::size_t{4096}, 1, device));
    answers.give("prefetch of pinned memory", call("cuMemPrefetchAsync_v2", reinterpret_cast<CUdeviceptr>(pinned), std::size_t{4096}, device, 0u, stream));
    answers.give("attributes of pinned memory", range_attributes(reinterpret_cast<CUdeviceptr>(pinned), 4096));
    static char unknown[8192];
    answers.give("advice on unknown memory", call("cuMemAdvise_v2", reinterpret_cast<CUdeviceptr>(unknown), std::size_t{4096}, 1, device));
    answers.give("prefetch of unknown memory", call("cuMemPrefetchAsync_v2", reinterpret_cast<CUdeviceptr>(unknown), std::size_t{4096}, device, 0u, stream));
    answers.give("attributes of unknown memory", range_attributes(reinterpret_cast<CUdeviceptr>(unknown), 4096));
    int values[8];
    must("cuMemAdvise_v2", m, size, 5, device);
    for (std::size_t bytes : {0, 2, 4, 6, 8, 16, 20, 32}) {
        for (int& value : values) value = 77;
        std::string answer = number(call("cuMemRangeGetAttribute", static_cast<void*>(values), bytes, 3, m, size));
        for (int value : values) answer += " " + number(value);
        answers.give("accessed by in " + number(static_cast<long long>(bytes)) + " bytes", answer);
        for (int attribute : {1, 2, 4, 5, 6}) {
            for (int& value : values) value = 77;
            answer = number(call("cuMemRangeGetAttribute", static_cast<void*>(values), bytes, attribute, m, size));
            for (int i = 0; i < 3; ++i) answer += " " + number(values[i]);
            answers.give("attribute " + number(attribute) + " in " + number(static_cast<long long>(bytes)) + " bytes", answer);
        }
    }
    int first = 77, second[2] = {77, 77};
    void* places[] = {&first, second};
    std::size_t sizes[] = {4, 8};
    int kinds[] = {1, 3};
    std::string plural = number(call("cuMemRangeGetAttributes", &places[0], &sizes[0], &kinds[0], std::size_t{2}, m, size));
    answers.give("cuMemRangeGetAttributes", plural + " " + number(first) + " " + number(second[0]) + " " + number(second[1]));
    kinds[1] = 99;
    answers.give("cuMemRangeGetAttributes unknown", call("cuMemRangeGetAttributes", &places[0], &sizes[0], &kinds[0], std::size_t{2}, m, size));
    answers.give("cuMemRangeGetAttributes of none", call("cuMemRangeGetAttributes", &places[0], &sizes[0], &kinds[0], std::size_t{0}, m, size));
    for (unsigned flags : {0u, 1u, 2u, 3u, 4u, 0x99u}) {
        CUdeviceptr pointer = 0;
        answers.give("cuMemAllocManaged flags " + number(flags), call("cuMemAllocManaged", &pointer, std::size_t{64}, flags));
    }
}

void ask_host(Answers& answers) {
    char* base = static_cast<char*>(std::aligned_alloc(4096, 4096 * 16));
    std::memset(base, 0, 4096 * 16);
    const auto add = [&](const char* what, std::size_t at, std::size_t size, unsigned flags) {
        answers.give(std::string("register ") + what, call("cuMemHostRegister_v2", static_cast<void*>(base + at), size, flags));
    };
    const auto end = [&](const char* what, std::size_t at) {
        answers.give(std::string("unregister ") + what, call("cuMemHostUnregister", static_cast<void*>(base + at)));
    };
    const auto flags_of = [&](const char* what, void* pointer) {
        unsigned flags = 77;
        const int result = call("cuMemHostGetFlags", &flags, pointer);
        answers.give(std::string("flags of ") + what, number(result) + " " + number(flags));
    };
    const auto place_of = [&](const char* what, char* pointer) {
        CUdeviceptr device = 0;
        const int result = call("cuMemHostGetDevicePointer_v2", &device, static_cast<void*>(pointer), 0u);
        answers.give(std::string("device pointer of ") + what,
                     number(result) + (result ? "" : " " + number(static_cast<long long>(device - reinterpret_cast<CUdeviceptr>(pointer)))));
    };
    add("80 bytes at 100", 100, 80, 3);
    add("20 bytes at 200 of the same page", 200, 20, 2);
    add("an overlap of both", 150, 200, 2);
    add("an overlap with the first", 90, 20, 2);
    add("the same again", 100, 80, 2);
    add("inside", 110, 10, 2);
    add("touching", 180, 20, 2);
    flags_of("80 bytes at 100", base + 100);
    flags_of("inside", base + 110);
    flags_of("the page before", base + 10);
    place_of("80 bytes at 100", base + 100);
    place_of("inside", base + 150);
    place_of("between", base + 190);
    add("two pages", 8192, 8192, 0);
    add("the second of them", 12288, 4096, 0);
    end("in the middle of a page", 8192 + 64);
    end("at the second page", 12288);
    end("unknown", 4096 * 6);
    end("two pages", 8192);
    end("two pages again", 8192);
    end("at 101", 101);
    end("80 bytes at 100", 100);
    end("20 bytes at 200", 200);
    end("touching", 180);
    add("nothing", 0, 0, 0);
    add("flags 16", 0, 4096, 16);
    end("flags 16", 0);
    add("flags 8 (read only)", 0, 4096, 8);
    end("flags 8 (read only)", 0);
    add("flags 4 (input, output)", 0, 4096, 4);
    end("flags 4 (input, output)", 0);
    add("flags 32", 0, 4096, 32);
    answers.give("register null", call("cuMemHostRegister_v2", static_cast<void*>(nullptr), std::size_t{4096}, 0u));
    void* pinned = nullptr;
    must("cuMemHostAlloc", &pinned, std::size_t{5000}, 0u);
    flags_of("an allocation of flags 0", pinned);
    flags_of("its inside", static_cast<char*>(pinned) + 100);
    answers.give("unregister an allocation", call("cuMemHostUnregister", pinned));
    answers.give("register an allocation", call("cuMemHostRegister_v2", pinned, std::size_t{4096}, 0u));
    answers.give("cuMemFreeHost inside", call("cuMemFreeHost", static_cast<void*>(static_cast<char*>(pinned) + 64)));
    answers.give("cuMemFreeHost", call("cuMemFreeHost", pinned));
    answers.give("cuMemFreeHost again", call("cuMemFreeHost", pinned));
    answers.give("cuMemFreeHost of plain memory", call("cuMemFreeHost", static_cast<void*>(base)));
    answers.give("cuMemFreeHost null", call("cuMemFreeHost", static_cast<void*>(nullptr)));
    flags_of("plain memory", base);
    for (unsigned flags = 1; flags <= 16; flags *= 2) {
        void* made = nullptr;
        const int result = call("cuMemHostAlloc", &made, std::size_t{64}, flags);
        answers.give("cuMemHostAlloc flags " + number(flags), result);
        if (!result && flags != 2) // which lies beside the one before and answers its flags there
            flags_of(("an allocation of flags " + number(flags)).c_str(), made);
    }
    void* made = base;
    answers.give("cuMemHostAlloc of nothing", call("cuMemHostAlloc", &made, std::size_t{0}, 0u));
    answers.give("cuMemHostAlloc of nothing is null", made == nullptr);
    CUdeviceptr device = 0, managed = 0;
    must("cuMemAlloc_v2", &device, std::size_t{4096});
    must("cuMemAllocManaged", &managed, std::size_t{4096}, 1u);
    answers.give("register managed memory", call("cuMemHostRegister_v2", reinterpret_cast<void*>(managed), std::size_t{4096}, 0u));
    answers.give("cuMemFreeHost of managed memory", call("cuMemFreeHost", reinterpret_cast<void*>(managed)));
    answers.give("cuMemFree of pinned memory", [&] {
        must("cuMemHostAlloc", &pinned, std::size_t{5000}, 0u);
        return call("cuMemFree_v2", reinterpret_cast<CUdeviceptr>(pinned));
    }());
}

} // namespace

int main(int count, char** words) {
    Answers answers(count, words);
    alarm(100);
    CUcontext context{};
    must("cuInit", 0u);
    must("cuDevicePrimaryCtxRetain", &context, 0);
    must("cuCtxSetCurrent", context);
    CUstream stream{};
    must("cuStreamCreate", &stream, 1u);
    ask_host(answers);
    ask_advice(answers, stream);
    return answers.finish();
}
