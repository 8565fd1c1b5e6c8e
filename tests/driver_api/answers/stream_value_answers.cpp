// SPDX-License-Identifier: Apache-2.0
// What a driver answers about writing and waiting for values in streams, one by one and in batches.
// Answers: stream_value_answers_h100.txt.
#include "answers.h"

#include "runtime/shim/cuda_types.h"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace answers;

namespace {

constexpr std::size_t page = 4096;
CUstream stream;

/// CUstreamBatchMemOpParams.
union Step {
    struct {
        int operation;
        CUdeviceptr address;
        std::uint64_t value;
        unsigned flags;
        CUdeviceptr alias;
    } value;
    struct {
        int operation;
        unsigned flags;
    } barrier;
    std::uint64_t pad[6];
};

Step step(int operation, CUdeviceptr address, std::uint64_t value, unsigned flags) {
    Step result;
    std::memset(&result, 0, sizeof result);
    result.value = {operation, address, value, flags, 0};
    return result;
}

Step barrier(int operation, unsigned flags) {
    Step result;
    std::memset(&result, 0, sizeof result);
    result.barrier = {operation, flags};
    return result;
}

std::string number(long long value) {
    return std::to_string(value);
}

CUdeviceptr address_of(void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

void ask_places(Answers& answers) {
    CUdeviceptr device = 0, managed = 0, freed = 0;
    void* pinned = nullptr;
    must("cuMemAlloc_v2", &device, page);
    must("cuMemAlloc_v2", &freed, std::size_t{64} << 20);
    must("cuMemFree_v2", freed);
    must("cuMemAllocManaged", &managed, page, 1u);
    must("cuMemHostAlloc", &pinned, page, 0u);
    void* registered = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must("cuMemHostRegister_v2", registered, page, 0u);
    void* pageable = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct {
        const char* name;
        CUdeviceptr address;
    } places[] = {{"device", device}, {"managed", managed}, {"pinned", address_of(pinned)}, {"registered", address_of(registered)},
                  {"pageable", address_of(pageable)}, {"null", 0}, {"freed", freed}, {"nowhere", 0x7000000}};
    for (const auto& place : places)
        for (unsigned offset : {0u, 1u, 2u, 4u}) {
            const std::string of = std::string(" ") + place.name + "+" + number(offset);
            const CUdeviceptr at = place.address + offset;
            answers.give("write 32" + of, call("cuStreamWriteValue32_v2", stream, at, 5u, 0u));
            answers.give("write 64" + of, call("cuStreamWriteValue64_v2", stream, at, std::uint64_t{5}, 0u));
            answers.give("write 32 first version" + of, call("cuStreamWriteValue32", stream, at, 5u, 0u));
            answers.give("write 64 first version" + of, call("cuStreamWriteValue64", stream, at, std::uint64_t{5}, 0u));
            answers.give("wait 32" + of, call("cuStreamWaitValue32_v2", stream, at, 0u, 0u));
            answers.give("wait 64" + of, call("cuStreamWaitValue64_v2", stream, at, std::uint64_t{0}, 0u));
            answers.give("wait 32 first version" + of, call("cuStreamWaitValue32", stream, at, 0u, 0u));
            answers.give("synchronise after" + of, call("cuStreamSynchronize", stream));
        }
    CUdeviceptr end = device + page;
    answers.give("write 64 over the end", call("cuStreamWriteValue64_v2", stream, end - 4, std::uint64_t{1}, 0u));
    answers.give("write 64 at the last place", call("cuStreamWriteValue64_v2", stream, end - 8, std::uint64_t{1}, 0u));
    for (unsigned flags : {0u, 1u, 2u, 4u, 8u, 1u << 30, 1u << 31}) {
        const std::string of = " flags " + number(flags);
        answers.give("write 32" + of, call("cuStreamWriteValue32_v2", stream, device, 5u, flags));
        answers.give("write 64" + of, call("cuStreamWriteValue64_v2", stream, device, std::uint64_t{5}, flags));
        answers.give("write 32 first version" + of, call("cuStreamWriteValue32", stream, device, 5u, flags));
    }
    for (unsigned flags : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 1u << 29, 1u << 30, 1u << 30 | 1, 1u << 31})
        for (int bits : {32, 64}) {
            must("cuStreamWriteValue64_v2", stream, device, std::uint64_t{5}, 0u);
            const std::uint64_t value = flags == 3 ? 0 : 5;
            const int result = bits == 32 ? call("cuStreamWaitValue32_v2", stream, device, static_cast<unsigned>(value), flags)
                                          : call("cuStreamWaitValue64_v2", stream, device, value, flags);
            answers.give("wait " + number(bits) + " flags " + number(flags), result);
        }
    must("cuStreamSynchronize", stream); // the writes of other streams are not ordered behind its waits for another value
    for (std::uintptr_t special : {std::uintptr_t{0}, std::uintptr_t{1}, std::uintptr_t{2}})
        answers.give("write 32 in stream " + number(static_cast<long long>(special)),
                     call("cuStreamWriteValue32_v2", reinterpret_cast<CUstream>(special), device, 7u, 0u));
    answers.give("synchronise", call("cuCtxSynchronize"));
}

/// Whether a wait for `value` ends where memory holds `held`: what query says after a while, and in the end.
void ask_waits(Answers& answers) {
    void* memory = nullptr;
    must("cuMemHostAlloc", &memory, page, 0u);
    volatile auto* place = static_cast<volatile std::uint64_t*>(memory);
    const struct {
        std::uint64_t held, value;
        unsigned flags;
        std::uint64_t release;
    } waits[] = {{5, 5, 0, 5},      {4, 5, 0, 9},       {6, 5, 0, 6},           {0x80000004, 5, 0, 5},        {0x80000005, 5, 0, 5},
                 {0x80000006, 5, 0, 5}, {0xfffffff0, 5, 0, 5}, {0xfffffff0, 0xffffff00, 0, 0}, {5, 0xfffffff0, 0, 5},  {0x1ffffffff, 5, 0, 5},
                 {0x100000004, 5, 0, 5}, {5, 5, 1, 5},      {6, 5, 1, 5},           {0x100000005, 5, 1, 5},       {4, 5, 2, 4},
                 {2, 5, 2, 1},      {0x100000000, 0x100000000, 2, 0x100000001}, {0xffffffff, 0, 3, 0}, {~0ull, 0, 3, 0}, {0xfffffff0, 0xf, 3, 0}, {5, 0, 3, 5}};
    for (const auto& wait : waits)
        for (int bits : {32, 64}) {
            if (bits == 32 && wait.flags == 2 && (wait.value & 0xffffffff) == 0) continue; // nothing ends it
            *place = wait.held;
            int result = bits == 32 ? call("cuStreamWaitValue32_v2", stream, address_of(memory), static_cast<unsigned>(wait.value), wait.flags)
                                    : call("cuStreamWaitValue64_v2", stream, address_of(memory), wait.value, wait.flags);
            std::string answer = number(result);
            if (result == 0) {
                int query = 600;
                for (int i = 0; i < 60 && query == 600; ++i) {
                    usleep(1000);
                    query = call("cuStreamQuery", stream);
                }
                answer += " query " + number(query);
                // The value that it waits for, and its like of 64 bits.
                *place = wait.flags == 3 ? 0 : wait.flags == 2 ? wait.value : bits == 32 ? wait.value & 0xffffffff : wait.value;
                answer += " end " + number(call("cuStreamSynchronize", stream));
            }
            char of[80];
            std::snprintf(of, sizeof of, "wait %d for %llx flags %u at %llx", bits, static_cast<unsigned long long>(wait.value), wait.flags,
                          static_cast<unsigned long long>(wait.held));
            answers.give(of, answer);
        }
}

void ask_batches(Answers& answers) {
    CUdeviceptr device = 0;
    must("cuMemAlloc_v2", &device, page);
    const auto held = [&] {
        std::uint32_t values[8] = {};
        must("cuStreamSynchronize", stream);
        must("cuMemcpyDtoH_v2", static_cast<void*>(values), device, sizeof values);
        std::string text;
        for (std::uint32_t value : values) text += (text.empty() ? "" : ",") + number(value);
        return text;
    };
    const auto clear = [&] { must("cuMemsetD8_v2", device, static_cast<unsigned char>(0), page); };
    const auto batch = [&](const std::string& name, std::vector<Step> steps, unsigned flags = 0) {
        for (const char* entry : {"cuStreamBatchMemOp_v2", "cuStreamBatchMemOp"}) {
            if (steps.size() > 255 && !entry[18]) continue; // that version finds the number bad first
            clear();
            const int result = call(entry, stream, static_cast<unsigned>(steps.size()), steps.data(), flags);
            answers.give(std::string(entry[18] ? "" : "first version: ") + "batch " + name, number(result) + " " + held());
        }
    };
    for (int operation = 0; operation <= 12; ++operation) batch("operation " + number(operation), {step(operation, device, 0, 0)});
    for (unsigned flags : {0u, 1u, 2u, 3u, 4u}) {
        batch("barrier flags " + number(flags), {barrier(6, flags)});
        batch("flush flags " + number(flags), {barrier(3, flags)});
        batch("flags " + number(flags), {step(2, device, 1, 0)}, flags);
    }
    batch("write and wait", {step(2, device, 3, 0), step(1, device, 3, 0), step(5, device + 8, 4, 0), step(4, device + 8, 4, 1)});
    batch("bad operation behind a write", {step(2, device, 3, 0), step(9, device, 3, 0)});
    batch("bad address behind a write", {step(2, device, 3, 0), step(2, 0, 3, 0)});
    batch("misaligned behind a write", {step(2, device, 3, 0), step(2, device + 5, 3, 0)});
    batch("bad flags behind a write", {step(2, device, 3, 0), step(2, device + 4, 3, 8)});
    batch("no barrier", {step(2, device, 3, 1)});
    for (unsigned count : {0u, 1u, 2u, 255u, 256u, 257u, 512u, 1000u, 5000u}) {
        std::vector<Step> steps;
        for (unsigned i = 0; i < count; ++i) steps.push_back(step(2, device + i % 8 * 4, i + 1, 0));
        batch("of " + number(count), steps);
    }
}

} // namespace

int main(int count, char** words) {
    Answers all(count, words);
    alarm(100);
    CUcontext context = nullptr;
    must("cuInit", 0u);
    must("cuCtxCreate_v2", &context, 0u, 0);
    must("cuStreamCreate", &stream, 1u);
    ask_places(all);
    ask_waits(all);
    ask_batches(all);
    return all.finish();
}
