// SPDX-License-Identifier: Apache-2.0
// What a driver answers about memory and semaphores that others export. Answers: external_answers_h100.txt.
#include "answers.h"

#include "runtime/shim/cuda_types.h"

#include <cstring>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace answers;

namespace {

std::string number(long long value) {
    return std::to_string(value);
}

/// CUDA_EXTERNAL_MEMORY_HANDLE_DESC.
struct MemoryDescription {
    int type;
    union {
        int fd;
        void* pointers[2];
    } handle;
    unsigned long long size;
    unsigned flags;
    unsigned reserved[16];
};
/// CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC.
struct SemaphoreDescription {
    int type;
    union {
        int fd;
        void* pointers[2];
    } handle;
    unsigned flags;
    unsigned reserved[16];
};
/// CUDA_EXTERNAL_MEMORY_BUFFER_DESC.
struct BufferDescription {
    unsigned long long offset, size;
    unsigned flags;
    unsigned reserved[16];
};

int memory_file() {
    const int fd = memfd_create("external", 0);
    if (ftruncate(fd, 2 << 20) != 0) std::_Exit(2);
    return fd;
}

MemoryDescription describe(int type, int fd, unsigned long long size, unsigned flags = 0) {
    MemoryDescription result;
    std::memset(&result, 0, sizeof result);
    result.type = type, result.handle.fd = fd, result.size = size, result.flags = flags;
    return result;
}

void ask_memory(Answers& answers) {

    for (int type = 0; type <= 10; ++type)
        for (const char* kind : {"bad", "closed", "file", "pipe"}) {
            if (type == 1 && *kind == 'f') continue; // taken here, 999 there
            int pipes[2] = {-1, -1};
            if (*kind == 'p' && pipe(pipes) != 0) std::_Exit(2);
            const int fd = *kind == 'b' ? -1 : *kind == 'c' ? 900 : *kind == 'f' ? memory_file() : pipes[0];
            const MemoryDescription description = describe(type, fd, 2 << 20);
            void* memory = nullptr;
            answers.give("import memory of type " + number(type) + " " + kind, call("cuImportExternalMemory", &memory, &description));
        }
    // What this driver exports itself.
    struct {
        int type = 1, handles = 1;
        CUmemLocation place{1, 0};
        void* security = nullptr;
        unsigned char flags[8] = {};
    } properties;
    static_assert(sizeof properties == 32);
    std::uint64_t allocation = 0;
    if (call("cuMemCreate", &allocation, std::size_t{2} << 20, &properties, 0ull) != 0) {
        answers.forget("own memory"); // not to be had here
        return;
    }
    for (int type : {1, 9})
        for (unsigned long long size : {2ull << 20, 1ull << 20, 0ull}) // more than there is: taken there, 999 here
            for (unsigned flags : {0u, 1u, 2u}) {
                int fd = -1;
                must("cuMemExportToShareableHandle", static_cast<void*>(&fd), allocation, 1, 0ull);
                const MemoryDescription description = describe(type, fd, size, flags);
                void* memory = nullptr;
                const int result = call("cuImportExternalMemory", &memory, &description);
                const std::string of = " own memory as " + number(type) + " of " + number(static_cast<long long>(size)) + " flags " + number(flags);
                answers.give("import" + of, result);
                if (result != 0) continue;
                for (unsigned long long offset : {0ull, 4096ull, 1ull << 20, 2ull << 20}) {
                    BufferDescription wanted;
                    std::memset(&wanted, 0, sizeof wanted);
                    wanted.offset = offset, wanted.size = 1 << 20;
                    CUdeviceptr buffer = 0;
                    const int mapped = call("cuExternalMemoryGetMappedBuffer", &buffer, memory, &wanted);
                    answers.give("map at " + number(static_cast<long long>(offset)) + of, mapped);
                    if (mapped == 0) {
                        answers.give("write there" + of + " " + number(static_cast<long long>(offset)), call("cuMemsetD8_v2", buffer, static_cast<unsigned char>(1), std::size_t{4096}));
                        answers.give("free" + of + " " + number(static_cast<long long>(offset)), call("cuMemFree_v2", buffer));
                    }
                }
                answers.give("destroy" + of, call("cuDestroyExternalMemory", memory));
            }
}

void ask_semaphores(Answers& answers, CUstream stream) {
    for (int type = 0; type <= 11; ++type)
        for (const char* kind : {"bad", "closed", "file", "event"})
            for (unsigned flags : {0u, 1u, 2u}) {
                const bool taken_here = (type == 1 || (type == 9 && *kind == 'f')) && (*kind == 'f' || *kind == 'e');
                if (taken_here && flags == 0) continue; // 999 there
                const int fd = *kind == 'b' ? -1 : *kind == 'c' ? 900 : *kind == 'f' ? memory_file() : eventfd(0, 0);
                SemaphoreDescription description;
                std::memset(&description, 0, sizeof description);
                description.type = type, description.handle.fd = fd, description.flags = flags;
                void* semaphore = nullptr;
                answers.give("import semaphore of type " + number(type) + " " + kind + " flags " + number(flags), call("cuImportExternalSemaphore", &semaphore, &description));
            }
    for (const char* entry : {"cuSignalExternalSemaphoresAsync", "cuWaitExternalSemaphoresAsync"})
        answers.give(std::string(entry) + " of none", call(entry, static_cast<void*>(nullptr), static_cast<void*>(nullptr), 0u, stream));
    answers.give("destroy no semaphore", call("cuDestroyExternalSemaphore", static_cast<void*>(nullptr)));
    answers.give("destroy no memory", call("cuDestroyExternalMemory", static_cast<void*>(nullptr)));
}

} // namespace

int main(int count, char** words) {
    Answers all(count, words);
    alarm(100);
    CUcontext context = nullptr;
    CUstream stream = nullptr;
    must("cuInit", 0u);
    must("cuCtxCreate_v2", &context, 0u, 0);
    must("cuStreamCreate", &stream, 1u);
    ask_memory(all);
    ask_semaphores(all, stream);
    return all.finish();
}
