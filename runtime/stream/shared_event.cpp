// SPDX-License-Identifier: Apache-2.0
#include "runtime/stream/shared_event.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ptarmigan::runtime {
namespace {

constexpr std::uint64_t event_note = 0x746e657674707861, event_place = 0x6576656e74; // any other file is none of these
constexpr std::size_t page_size = 4096;

} // namespace

/// Lives in memory that other processes write to: nothing in it is trusted to be more than a number.
struct SharedEvent::Page {
    std::atomic<std::uint64_t> asked, happened;
    std::atomic<std::uint32_t> changes; ///< what sleepers watch
    std::atomic<std::int32_t> recorder; ///< the process that asked last
};

std::shared_ptr<SharedEvent> SharedEvent::map(FileDescriptor file) {
    void* memory = mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) return nullptr;
    return std::shared_ptr<SharedEvent>(new SharedEvent(static_cast<Page*>(memory), std::move(file)));
}

std::shared_ptr<SharedEvent> SharedEvent::create() {
    FileDescriptor file = make_shared_file(page_size, FileNote{event_note});
    return file ? map(std::move(file)) : nullptr;
}

std::shared_ptr<SharedEvent> SharedEvent::open(const FilePlace& place) {
    FileDescriptor file;
    FileNote note;
    std::size_t size = 0;
    if (check_place(place, event_place) != Status::success) return nullptr;
    file = open_place(place);
    if (!file || !read_shared_file(file.get(), size, note) || note.kind != event_note || size != page_size)
        return nullptr;
    return map(std::move(file));
}

SharedEvent::~SharedEvent() {
    munmap(page_, page_size);
}

Status SharedEvent::place(FilePlace& place) const {
    place = {};
    place.kind = event_place;
    place.file = file_.get();
    place.size = page_size;
    return name_place(place);
}

std::uint64_t SharedEvent::record() {
    page_->recorder.store(getpid());
    return page_->asked.fetch_add(1) + 1;
}

void SharedEvent::happened(std::uint64_t record) {
    std::uint64_t before = page_->happened.load();
    while (before < record && !page_->happened.compare_exchange_weak(before, record)) {
    }
    page_->changes.fetch_add(1);
    syscall(SYS_futex, &page_->changes, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

std::uint64_t SharedEvent::last() const {
    return page_->asked.load();
}

bool SharedEvent::has_happened(std::uint64_t record) const {
    if (page_->happened.load() >= record) return true;
    // What a process has not done at its end is not done any more.
    const std::int32_t recorder = page_->recorder.load();
    return recorder > 0 && kill(recorder, 0) != 0 && errno == ESRCH;
}

void SharedEvent::wait(std::uint64_t record, const std::function<bool()>& given_up) const {
    while (true) {
        const std::uint32_t seen = page_->changes.load();
        if (has_happened(record) || given_up()) return;
        const timespec limit{0, 20'000'000};
        syscall(SYS_futex, &page_->changes, FUTEX_WAIT, seen, &limit, nullptr, 0);
    }
}

} // namespace ptarmigan::runtime
