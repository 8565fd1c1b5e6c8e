// SPDX-License-Identifier: Apache-2.0
#include "runtime/shim/copy_ends.h"

#include "runtime/texture/array.h"

namespace ptarmigan::shim {
namespace {

using runtime::CopyBox;
using runtime::Side;

Status make_end(const EndWords& words, const CopyBox& box, CopyBox::End& end) {
    const auto device = reinterpret_cast<void*>(words.device_pointer);
    switch (words.type) {
    case memory_host: end.side = Side::host, end.base = words.host_pointer; break;
    case memory_device: end.side = Side::device, end.base = device; break;
    case memory_unified: end.side = Side::unified, end.base = device; break;
    case memory_array: {
        auto array = find_handle<runtime::Array>(words.array);
        if (!array) return words.array ? Status::invalid_handle : Status::invalid_value;
        const Status status = runtime::array_end(*array, words.x, words.y, words.z, box, end);
        end.array = std::move(array);
        return status;
    }
    default: return Status::invalid_value;
    }
    end.pitch = words.pitch;
    end.height = words.height;
    end.x_bytes = words.x;
    end.y = words.y;
    end.z = words.z;
    return Status::success;
}

} // namespace

Status make_ends(const EndWords& source, const EndWords& destination, CopyBox& box) {
    if (const Status status = make_end(source, box, box.source); status != Status::success) return status;
    return make_end(destination, box, box.destination);
}

} // namespace ptarmigan::shim
