// SPDX-License-Identifier: Apache-2.0
// What processes know of an event that they share (cuIpcGetEventHandle): how often it was recorded, and how many of
// these records have happened. A page of memory that all of them map.
#pragma once

#include "runtime/base/file_place.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace ptarmigan::runtime {

/// Thread-safe, between processes too.
class SharedEvent {
public:
    /// Null if the process gets no memory to share.
    static std::shared_ptr<SharedEvent> create();
    /// Another process's; null if it is gone.
    static std::shared_ptr<SharedEvent> open(const FilePlace& place);
    ~SharedEvent();
    SharedEvent(const SharedEvent&) = delete;
    SharedEvent& operator=(const SharedEvent&) = delete;

    /// For the handle's 64 bytes.
    Status place(FilePlace& place) const;
    /// A record was asked for: its number, to be given to happened() in stream order.
    std::uint64_t record();
    void happened(std::uint64_t record);
    /// The number of the last record that was asked for, by any process; 0 before the first.
    std::uint64_t last() const;
    /// True if that record or a later one has happened, or the process that asked for it is gone.
    bool has_happened(std::uint64_t record) const;
    /// Sleeps until has_happened(), or until `given_up()`, which is asked every now and then.
    void wait(std::uint64_t record, const std::function<bool()>& given_up) const;

private:
    struct Page;
    SharedEvent(Page* page, FileDescriptor file) : page_(page), file_(std::move(file)) {}
    static std::shared_ptr<SharedEvent> map(FileDescriptor file);
    Page* page_;
    FileDescriptor file_; ///< of an own event: the handle names it
};

} // namespace ptarmigan::runtime
