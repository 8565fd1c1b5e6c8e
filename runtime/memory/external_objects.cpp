// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/external_objects.h"

#include "runtime/base/handle_table.h"
#include "runtime/base/page_size.h"
#include "runtime/context/context.h"
#include "runtime/context/context_keeper.h"
#include "runtime/memory/address_space.h"
#include "runtime/memory/patience.h"
#include "runtime/stream/stream.h"

#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ptarmigan::runtime {
namespace {

constexpr std::size_t counter_bytes = 8;

bool is_file_of(int descriptor, std::size_t size) {
    struct stat status {};
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return false;
    return status.st_size > 0 && static_cast<std::uint64_t>(status.st_size) >= size;
}

bool is_eventfd(int descriptor) {
    char target[PATH_MAX] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    const ssize_t length = readlink(link.c_str(), target, sizeof target - 1);
    return length > 0 && std::string(target).find("[eventfd]") != std::string::npos;
}

void end_external_objects(Context& context) {
    const auto mine = [&](const auto& object) { return &object.context() == &context; };
    HandleTable<ExternalMemory>::get().remove_if(mine);
    HandleTable<ExternalSemaphore>::get().remove_if(mine);
}

const RegisterContextKeeper external_objects_of_contexts(ContextKeeper::Kind::external_objects,
                                                         {.end = end_external_objects});

} // namespace

OwnedFile::~OwnedFile() {
    close(descriptor_);
}

Status ExternalMemory::import(Context& context, int descriptor, std::size_t size, bool whole,
                              std::shared_ptr<ExternalMemory>& memory) {
    if (size == 0 || !is_file_of(descriptor, size)) return Status::invalid_value;
    memory = std::make_shared<ExternalMemory>(context, descriptor, size, whole);
    HandleTable<ExternalMemory>::get().add(memory);
    return Status::success;
}

Status ExternalMemory::map(std::size_t offset, std::size_t size, DevicePointer& pointer) const {
    if (whole_ && offset != 0) return Status::invalid_value;
    if (size == 0 || offset % page_size() != 0 || offset > size_ || size > size_ - offset) return Status::invalid_value;
    // Whole granules, so that nothing else lies where the file is mapped.
    const std::size_t granules = (size + AddressSpace::granule - 1) / AddressSpace::granule * AddressSpace::granule;
    AddressSpace& space = AddressSpace::get();
    Allocation allocation;
    const Status status = space.allocate(granules, MemoryKind::device, &context_, allocation, AddressSpace::granule);
    if (status != Status::success) return status;
    void* const place = reinterpret_cast<void*>(allocation.base);
    if (mmap(place, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_.descriptor(),
             static_cast<off_t>(offset)) == MAP_FAILED) {
        static_cast<void>(space.free(allocation.base, [](const Allocation&) { return true; }));
        return Status::invalid_value;
    }
    pointer = allocation.base;
    return Status::success;
}

Status ExternalSemaphore::import(Context& context, int descriptor, bool timeline,
                                 std::shared_ptr<ExternalSemaphore>& semaphore) {
    void* counter = nullptr;
    if (is_file_of(descriptor, counter_bytes)) {
        counter = mmap(nullptr, counter_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        if (counter == MAP_FAILED) return Status::invalid_value;
    } else if (timeline || !is_eventfd(descriptor)) {
        return Status::invalid_value;
    }
    semaphore = std::make_shared<ExternalSemaphore>(context, descriptor, counter);
    HandleTable<ExternalSemaphore>::get().add(semaphore);
    return Status::success;
}

ExternalSemaphore::~ExternalSemaphore() {
    if (counter_) munmap(counter_, counter_bytes);
}

bool ExternalSemaphore::try_wait(std::uint64_t value) const {
    if (counter_) return __atomic_load_n(counter_, __ATOMIC_ACQUIRE) >= value;
    pollfd ready{file_.descriptor(), POLLIN, 0};
    std::uint64_t taken = 0;
    // Others may take it between the two calls: then a blocking eventfd blocks until there is another one.
    return poll(&ready, 1, 0) == 1 && read(file_.descriptor(), &taken, sizeof taken) == sizeof taken;
}

void ExternalSemaphore::signal_now(std::uint64_t value) {
    if (counter_) {
        __atomic_store_n(counter_, value, __ATOMIC_RELEASE);
        return;
    }
    const std::uint64_t one = 1;
    const ssize_t written = write(file_.descriptor(), &one, sizeof one);
    static_cast<void>(written); // fails where 2^64 signals are not taken only
}

void ExternalSemaphore::wait_now(std::uint64_t value, const Context& context) {
    Patience patience;
    while (!try_wait(value) && context.status() == Status::success) patience.pass();
}

void ExternalSemaphore::signal(Stream& stream, std::uint64_t value) {
    stream.submit([self = shared_from_this(), value] { self->signal_now(value); }, Stream::Start::elsewhere);
}

void ExternalSemaphore::wait(Stream& stream, std::uint64_t value) {
    stream.submit([self = shared_from_this(), value, &context = stream.context()] { self->wait_now(value, context); },
                  Stream::Start::elsewhere);
}

} // namespace ptarmigan::runtime
