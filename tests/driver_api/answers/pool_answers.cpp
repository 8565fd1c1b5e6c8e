// SPDX-License-Identifier: Apache-2.0
// What a driver answers about pools of memory.
// Answers: pool_answers_h100.txt.
#include "answers.h"

#include "runtime/shim/cuda_types.h"

#include <cstring>
#include <functional>
#include <unistd.h>

using namespace answers;

namespace {

constexpr int attribute_count = 8;

std::string number(long long value) {
    return std::to_string(value);
}

/// Size classes instead of sizes: what is reserved depends on the device.
std::string mebibytes(unsigned long long bytes) {
    if (bytes % (1 << 20) == 0 && bytes) return number(static_cast<long long>(bytes >> 20)) + "M";
    return number(static_cast<long long>(bytes));
}

std::string pool_state(CUmemoryPool pool) {
    std::string state;
    for (int attribute = 4; attribute <= 8; ++attribute) {
        unsigned long long value = 0x7777;
        const int result = call("cuMemPoolGetAttribute", pool, attribute, static_cast<void*>(&value));
        state += (attribute > 4 ? " " : "") + (result ? "!" + number(result) : mebibytes(value));
    }
    return state; // threshold, reserved, reserved high, used, used high
}

CUmemPoolProps device_pool() {
    CUmemPoolProps properties{};
    properties.allocType = 1, properties.location = {1, 0};
    return properties;
}

int make_pool(CUmemoryPool& pool, const CUmemPoolProps& properties) {
    return call("cuMemPoolCreate", &pool, &properties);
}

std::string kind_of(CUdeviceptr pointer) {
    std::string kind;
    for (int attribute : {2, 8, 9, 13, 16, 17}) {
        unsigned long long value = 0;
        const int result = call("cuPointerGetAttribute", static_cast<void*>(&value), attribute, pointer);
        if (attribute == 17) kind += result ? " !" + number(result) : value ? " of a pool" : " of none";
        else kind += (kind.empty() ? "" : " ") + (result ? "!" + number(result) : number(static_cast<int>(value)));
    }
    return kind;
}

void ask_pools_of_places(Answers& answers, CUstream stream) {
    CUmemoryPool fallback{};
    must("cuDeviceGetDefaultMemPool", &fallback, 0);
    for (int place = 0; place <= 5; ++place)
        for (int kind = 0; kind <= 3; ++kind)
            for (int id : {0, 1}) {
                const std::string of = " place " + number(place) + " id " + number(id) + " kind " + number(kind);
                CUmemLocation location{place, id};
                CUmemoryPool pool{}, current{};
                int result = call("cuMemGetDefaultMemPool", &pool, &location, kind);
                answers.give("cuMemGetDefaultMemPool" + of,
                             number(result) + (result ? "" : pool == fallback ? " the device's" : pool ? " another" : " null"));
                const int second = call("cuMemGetMemPool", &current, &location, kind);
                answers.give("cuMemGetMemPool" + of, number(second) + (second ? "" : current == pool ? " the default" : " another"));
                if (result) continue;
                answers.give("cuMemSetMemPool" + of + " its default", call("cuMemSetMemPool", &location, kind, pool));
                answers.give("cuMemSetMemPool" + of + " the device's", call("cuMemSetMemPool", &location, kind, fallback));
                (void)call("cuMemSetMemPool", &location, kind, pool);
                CUdeviceptr pointer = 0;
                result = call("cuMemAllocFromPoolAsync", &pointer, std::size_t{4096}, pool, stream);
                answers.give("cuMemAllocFromPoolAsync" + of, number(result) + (result ? "" : " " + kind_of(pointer)));
                if (result) continue;
                must("cuStreamSynchronize", stream);
                const bool managed = kind == 2 || place > 1;
                if (managed) std::memset(reinterpret_cast<void*>(pointer), 1, 4096);
                answers.give("state" + of, pool_state(pool));
                answers.give("cuMemFreeAsync" + of, call("cuMemFreeAsync", pointer, stream));
                must("cuStreamSynchronize", stream);
                for (int who = 0; who <= 3; ++who) {
                    CUmemLocation asker{who, 0};
                    unsigned flags = 77;
                    const int access = call("cuMemPoolGetAccess", &flags, pool, &asker);
                    answers.give("cuMemPoolGetAccess" + of + " from " + number(who), number(access) + " " + number(flags));
                }
            }
    CUmemLocation location{1, 0};
    CUmemoryPool own{}, now{};
    make_pool(own, device_pool());
    answers.give("cuMemSetMemPool own", call("cuMemSetMemPool", &location, 1, own));
    must("cuDeviceGetMemPool", &now, 0);
    answers.give("cuDeviceGetMemPool after cuMemSetMemPool is it", now == own);
    answers.give("cuDeviceSetMemPool default", call("cuDeviceSetMemPool", 0, fallback));
    answers.give("cuMemGetMemPool", call("cuMemGetMemPool", &now, &location, 1));
    answers.give("cuMemGetMemPool after cuDeviceSetMemPool is it", now == fallback);
    answers.give("cuMemSetMemPool own again", call("cuMemSetMemPool", &location, 1, own));
    answers.give("cuMemPoolDestroy current", call("cuMemPoolDestroy", own));
    must("cuDeviceGetMemPool", &now, 0);
    answers.give("cuDeviceGetMemPool then is the default", now == fallback);
    answers.give("cuMemGetDefaultMemPool without a place for it",
                 call("cuMemGetDefaultMemPool", static_cast<CUmemoryPool*>(nullptr), &location, 1));
    answers.give("cuMemGetMemPool without a place for it", call("cuMemGetMemPool", static_cast<CUmemoryPool*>(nullptr), &location, 1));
    answers.give("cuMemGetDefaultMemPool without a location", call("cuMemGetDefaultMemPool", &now, nullptr, 1));
    answers.give("cuMemSetMemPool null", call("cuMemSetMemPool", &location, 1, CUmemoryPool{}));
    answers.give("cuDeviceSetMemPool null", call("cuDeviceSetMemPool", 0, CUmemoryPool{}));
    answers.give("cuMemPoolDestroy default", call("cuMemPoolDestroy", fallback));
}

void ask_pool_properties(Answers& answers) {
    const auto with = [&](const char* what, const std::function<void(CUmemPoolProps&)>& change) {
        CUmemPoolProps properties = device_pool();
        change(properties);
        CUmemoryPool pool{};
        const int result = make_pool(pool, properties);
        std::string answer = number(result);
        if (!result) {
            for (int attribute = 1; attribute <= attribute_count; ++attribute) {
                unsigned long long value = 0x7700000000;
                const int got = call("cuMemPoolGetAttribute", pool, attribute, static_cast<void*>(&value));
                answer += " " + (got ? "!" + number(got) : number(attribute <= 3 ? static_cast<int>(value) : static_cast<long long>(value)));
            }
            must("cuMemPoolDestroy", pool);
        }
        answers.give(std::string("cuMemPoolCreate ") + what, answer);
    };
    with("device", [](CUmemPoolProps&) {});
    with("device 1", [](CUmemPoolProps& p) { p.location.id = 1; });
    for (int place = 0; place <= 5; ++place) with(("place " + number(place)).c_str(), [=](CUmemPoolProps& p) { p.location.type = place; });
    for (int kind : {0, 2, 3, 0x7fffffff}) with(("kind " + number(kind)).c_str(), [=](CUmemPoolProps& p) { p.allocType = kind; });
    with("managed at none", [](CUmemPoolProps& p) { p.allocType = 2, p.location = {0, 0}; });
    for (int handles : {2, 3, 4, 16}) with(("handle types " + number(handles)).c_str(), [=](CUmemPoolProps& p) { p.handleTypes = handles; });
    with("at most 1", [](CUmemPoolProps& p) { p.maxSize = 1; });
    with("at most 64M", [](CUmemPoolProps& p) { p.maxSize = 64 << 20; });
    with("at most 2^50", [](CUmemPoolProps& p) { p.maxSize = 1ull << 50; });
    for (int usage : {1, 2, 4}) with(("usage " + number(usage)).c_str(), [=](CUmemPoolProps& p) { p.usage = static_cast<unsigned short>(usage); });
    with("reserved bytes", [](CUmemPoolProps& p) { p.reserved[0] = 1; });
}

void ask_pool_life(Answers& answers, CUstream stream, unsigned long long threshold, std::size_t most) {
    const std::string of = " (threshold " + mebibytes(threshold) + ", most " + mebibytes(most) + ")";
    CUmemPoolProps properties = device_pool();
    properties.maxSize = most;
    CUmemoryPool pool{};
    make_pool(pool, properties);
    must("cuMemPoolSetAttribute", pool, 4, static_cast<void*>(&threshold));
    const auto state = [&](const char* after) { answers.give(after + of, pool_state(pool)); };
    const auto release = [&](CUdeviceptr& pointer) {
        if (pointer) must("cuMemFreeAsync", pointer, stream);
        pointer = 0;
    };
    CUdeviceptr small = 0, large = 0, third = 0;
    must("cuMemAllocFromPoolAsync", &small, std::size_t{1000}, pool, stream);
    state("1: 1000 bytes");
    answers.give("2: 40M" + of, call("cuMemAllocFromPoolAsync", &large, std::size_t{40} << 20, pool, stream));
    state("3: 1000 bytes and 40M");
    answers.give("4: 40M more" + of, call("cuMemAllocFromPoolAsync", &third, std::size_t{40} << 20, pool, stream));
    state("5: and 40M more");
    release(third);
    state("6: these freed");
    must("cuStreamSynchronize", stream);
    state("7: synchronized");
    release(large);
    must("cuStreamSynchronize", stream);
    state("8: 40M freed, synchronized");
    answers.give("9: trim to 0" + of, call("cuMemPoolTrimTo", pool, std::size_t{0}));
    state("10: trimmed");
    unsigned long long zero = 0, one = 1;
    for (int attribute : {5, 6, 7, 8}) {
        answers.give("11: set " + number(attribute) + " to 1" + of, call("cuMemPoolSetAttribute", pool, attribute, static_cast<void*>(&one)));
        answers.give("11: set " + number(attribute) + " to 0" + of, call("cuMemPoolSetAttribute", pool, attribute, static_cast<void*>(&zero)));
    }
    state("12: marks set to 0");
    must("cuMemAllocFromPoolAsync", &large, std::size_t{100}, pool, stream);
    state("13: 100 bytes more");
    release(large);
    release(small);
    must("cuStreamSynchronize", stream);
    state("14: all freed, synchronized");
    must("cuMemAllocFromPoolAsync", &small, std::size_t{2000}, pool, stream);
    must("cuStreamSynchronize", stream);
    must("cuMemFree_v2", small);
    must("cuCtxSynchronize"); // an H100's driver goes on counting what cuMemFree has freed
    answers.give("17: trim to 40M" + of, call("cuMemPoolTrimTo", pool, std::size_t{40} << 20));
    int flag = 5;
    answers.give("19: flag 5" + of, call("cuMemPoolSetAttribute", pool, 1, static_cast<void*>(&flag)));
    must("cuMemPoolGetAttribute", pool, 1, static_cast<void*>(&flag));
    answers.give("20: flag" + of, flag);
    must("cuMemPoolDestroy", pool);
}

void ask_reuse(Answers& answers, CUstream stream, CUstream other) {
    CUmemoryPool pool{};
    make_pool(pool, device_pool());
    CUdeviceptr a = 0, b = 0, c = 0, d = 0;
    must("cuMemAllocFromPoolAsync", &a, std::size_t{400000}, pool, stream);
    must("cuMemFreeAsync", a, stream);
    must("cuMemAllocFromPoolAsync", &b, std::size_t{400000}, pool, stream);
    answers.give("reuse in the stream", a == b);
    must("cuMemFreeAsync", b, stream);
    must("cuMemAllocFromPoolAsync", &c, std::size_t{300000}, pool, stream);
    answers.give("reuse for fewer bytes", a == c);
    must("cuMemFreeAsync", c, stream);
    must("cuStreamSynchronize", stream);
    must("cuMemAllocFromPoolAsync", &d, std::size_t{400000}, pool, other);
    answers.give("reuse in another stream once done", a == d);
    must("cuMemFreeAsync", d, other);
    must("cuStreamSynchronize", other);
    for (std::size_t size : {1, 512, 513, 4096, 100000, 400000, 2 << 20, (2 << 20) + 1, 33 << 20}) {
        CUmemoryPool fresh{};
        make_pool(fresh, device_pool());
        must("cuMemAllocFromPoolAsync", &a, size, fresh, stream);
        must("cuMemAllocFromPoolAsync", &b, size, fresh, stream);
        answers.give("two of " + number(static_cast<long long>(size)), pool_state(fresh));
        must("cuMemFreeAsync", a, stream);
        must("cuMemFreeAsync", b, stream);
        must("cuStreamSynchronize", stream);
        must("cuMemPoolDestroy", fresh);
    }
    must("cuMemAllocFromPoolAsync", &a, std::size_t{1000}, pool, stream);
    answers.give("destroying a pool in use", call("cuMemPoolDestroy", pool));
    answers.give("freeing then", call("cuMemFreeAsync", a, stream));
    answers.give("freeing 0x10", call("cuMemFreeAsync", CUdeviceptr{0x10}, stream));
    answers.give("freeing null", call("cuMemFreeAsync", CUdeviceptr{0}, stream));
    must("cuStreamSynchronize", stream);
}

} // namespace

int main(int count, char** words) {
    Answers answers(count, words);
    alarm(100);
    CUcontext context{};
    must("cuInit", 0u);
    must("cuDevicePrimaryCtxRetain", &context, 0);
    must("cuCtxSetCurrent", context);
    CUstream stream{}, other{};
    must("cuStreamCreate", &stream, 1u);
    must("cuStreamCreate", &other, 1u);
    for (unsigned long long threshold : {0ull, 64ull << 20, ~0ull})
        for (std::size_t most : {std::size_t{0}, std::size_t{64} << 20}) ask_pool_life(answers, stream, threshold, most);
    ask_reuse(answers, stream, other);
    ask_pool_properties(answers);
    ask_pools_of_places(answers, stream);
    return answers.finish();
}
